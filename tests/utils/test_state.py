"""Saving and restoring values of every kind."""

from __future__ import annotations

import io
import random
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from manyworlds.utils.state import Stateful, changing_only


@dataclass
class Record:
    """A dataclass with a part of another kind."""

    count: int
    rows: np.ndarray


class Pair(NamedTuple):
    """A tuple with names."""

    low: float
    high: torch.Tensor


class Holder(Stateful):
    """Keeps one value."""

    state_attributes = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def reload(saved: Any, fresh: Any) -> Any:
    """Pass a value through a file, as a checkpoint does, into an object that has another."""
    file = io.BytesIO()
    torch.save(Holder(saved).state_dict(), file)
    file.seek(0)
    other = Holder(fresh)
    other.load_state_dict(torch.load(file, weights_only=True))
    return other.value


@pytest.mark.parametrize(
    ("saved", "fresh"),
    [
        (torch.ones(2), torch.zeros(2)),
        (torch.ones(2), None),
        (None, torch.zeros(2)),
        (np.arange(3), np.zeros(3, int)),
        (np.arange(3.0), None),
        (np.float32(0.1), np.float32(0.2)),
        (deque([torch.ones(1), torch.zeros(1)], maxlen=3), deque(maxlen=3)),
        (deque([1], maxlen=3), deque([5, 6], maxlen=3)),
        ([1.5, "a", None], []),
        ({3, 4}, set()),
        ({"a": torch.ones(1), "b": [2, np.ones(2)]}, {}),
        (Pair(1.0, torch.ones(2)), Pair(0.0, torch.zeros(2))),
        (Record(3, np.ones(2)), Record(0, np.zeros(2))),
        (None, [1]),
    ],
)
def test_values_come_back_as_they_were(saved, fresh):
    """Restore value and type, also where the new object has nothing of the kind yet."""
    got = reload(saved, fresh)
    assert type(got) is type(saved) and repr(got) == repr(saved)
    assert getattr(got, "maxlen", None) == getattr(saved, "maxlen", None)


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (lambda: torch.Generator().manual_seed(1), lambda g: torch.rand(2, generator=g).tolist()),
        (lambda: np.random.default_rng(1), lambda g: g.random(2).tolist()),
        (lambda: np.random.Generator(np.random.MT19937(1)), lambda g: g.random(2).tolist()),
        (lambda: random.Random(1), lambda g: [g.random(), g.gauss(0, 1)]),
    ],
)
def test_generators_go_on(make, draw):
    """Draw from a restored generator what the saved one draws next."""
    source = make()
    draw(source)
    assert draw(reload(source, make())) == draw(source)


def test_saved_values_are_copies():
    """Leave what was saved as it was when the object goes on, and the other way round."""
    holder = Holder({"a": np.zeros(2), "b": deque([torch.zeros(2)])})
    saved = holder.state_dict()
    holder.value["a"] += 1
    holder.value["b"][0] += 1
    other = Holder(None)
    other.load_state_dict(saved)
    assert not other.value["a"].any() and not other.value["b"][0].any()
    other.value["b"][0] += 1
    assert not saved["value"]["b"][0].any()


def test_what_cannot_be_saved_is_refused():
    """Name the place within the attribute, and the kind."""
    with pytest.raises(TypeError, match=r"Holder\.value\['a'\]\[1\] is named .* a function cannot"):
        Holder({"a": [1, lambda: None]}).state_dict()


class Worlds(Stateful):
    """Tensors of four worlds, in all arrangements."""

    state_attributes = ("rows", "columns", "shared", "parts", "other")
    world_columns = ("columns",)
    shared_attributes = ("shared",)

    def __init__(self, count: int) -> None:
        self.rows = torch.arange(2.0 * count).view(count, 2)
        self.columns = {"a": torch.arange(3.0 * count).view(3, count)}
        self.shared = torch.arange(4.0)
        self.parts = [Holder(np.arange(count)), torch.nn.Linear(1, 4)]
        self.other = (torch.zeros(7), "text", Own(count))


class Own:
    """An object that saves itself, without a base class."""

    def __init__(self, count: int) -> None:
        self.values = torch.arange(float(count))

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The values."""
        return {"values": self.values.clone()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Take values."""
        self.values.copy_(state["values"])


def test_the_state_of_one_world():
    """Take world 2 of four, and load it into an object of one world."""
    batch, alone = Worlds(4), Worlds(1)
    file = io.BytesIO()
    torch.save(batch.state_of_world(2, 4), file)
    file.seek(0)
    alone.load_state_dict(torch.load(file, weights_only=True))
    assert alone.rows.tolist() == [[4.0, 5.0]]
    assert alone.columns["a"].tolist() == [[2.0], [6.0], [10.0]]
    assert torch.equal(alone.shared, batch.shared)
    holder, network = alone.parts
    assert holder.value.tolist() == [2]
    assert torch.equal(network.weight, batch.parts[1].weight)
    assert alone.other[2].values.tolist() == [2.0]
    batch.rows[:] = 0.0
    assert alone.rows.tolist() == [[4.0, 5.0]]


def test_a_shared_tensor_without_its_name_in_the_list_is_refused():
    """Leave out that a tensor is shared, and it has as many rows as worlds: loading says so."""

    class Forgetful(Worlds):
        shared_attributes = ()
        state_attributes = ("bins",)

        def __init__(self, count: int) -> None:
            self.bins = torch.zeros(4)

    with pytest.raises(ValueError, match=r"'bins' has shape \(1,\), expected \(4,\)"):
        Forgetful(1).load_state_dict(Forgetful(4).state_of_world(1, 4))


class _Filter(Stateful):
    """State of several forms."""

    state_attributes = ("value", "by_name", "columns", "steps", "late", "buffer")
    world_columns = ("columns",)

    def __init__(self) -> None:
        self.value = torch.zeros(3)
        self.by_name = {"a": torch.zeros(3, 2)}
        self.columns = torch.zeros(2, 3)
        self.steps = 0
        self.late: torch.Tensor | None = None
        self.buffer = [torch.zeros(3)]

    def move(self) -> None:
        """Change everything."""
        for tensor in (self.value, self.by_name["a"], self.columns, *self.buffer):
            tensor += 1.0
        self.steps += 1
        self.late = torch.ones(3)


def test_only_some_worlds_change():
    """Keep the rows of other worlds, in whichever dimension they are, and shared values."""
    part = _Filter()
    with changing_only(part, torch.tensor([False, True, False])):
        part.move()
    moved = torch.tensor([0.0, 1.0, 0.0])
    assert torch.equal(part.value, moved) and torch.equal(part.buffer[0], moved)
    assert torch.equal(part.by_name["a"], moved[:, None].expand(3, 2))
    assert torch.equal(part.columns, moved.expand(2, 3))
    assert part.steps == 1 and part.late is not None
