"""Assignment of variants to worlds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyworlds.entity.variants import allocate_worlds
from tests.entity.variants.props import build, prop, variants

PROPS = {"a": prop(1), "b": prop(2), "c": prop(3)}


def test_worlds_are_shared_out_by_largest_remainder():
    """Share ten worlds out among weights 1, 2, 1 in blocks; give ties to who comes first."""
    assert allocate_worlds((1.0, 2.0, 1.0), 10) == 3 * [0] + 5 * [1] + 2 * [2]
    assert allocate_worlds((0.1, 0.2, 0.1), 10) == allocate_worlds((1, 2, 1), 10)
    assert allocate_worlds((1, 1), 8) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert allocate_worlds((1, 0, 1), 3) == [0, 0, 2]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.integers(0, 50))
def test_every_share_is_its_quota_rounded(weights, nworld):
    """Compare counts with exact quotas: each is rounded down or up, and all worlds are used."""
    if not sum(weights) > 1e-6:
        return
    found = allocate_worlds(weights, nworld)
    counts = Counter(found)
    assert len(found) == nworld and found == sorted(found)
    for i, weight in enumerate(weights):
        assert abs(counts[i] - weight / sum(weights) * nworld) < 1 + 1e-6
        assert weight > 0 or not counts[i]


@pytest.mark.parametrize(
    ("weights", "message"),
    [((1, -1), "non-negative"), ((0, 0), "positive sum"), ((1, float("nan")), "finite")],
)
def test_weights_must_make_sense(weights, message):
    """Refuse weights that share nothing out."""
    with pytest.raises(ValueError, match=message):
        allocate_worlds(weights, 4)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"spec_fn": PROPS["a"]}, "spec_fn cannot be set"),
        ({"variants": {}}, "at least one"),
        ({"variants": {"none": None}}, "at least one"),
        ({"variants": {"a/b": PROPS["a"]}}, "slash"),
        ({"assignment": {"aa": 1.0}}, "names 'aa', which is no variant"),
        ({"assignment": {"a": -1.0}}, "non-negative"),
        ({"assignment": dict.fromkeys(PROPS, 0.0)}, "positive sum"),
        ({"assignment": {0: 1.0}}, "names 0, which is no variant"),
        ({"assignment": {"b": -1.0}}, r"assignment\['b'\] is -1.0: give a finite, non-negative"),
        ({"assignment": {"b": float("inf")}}, r"\['b'\] is inf: give a finite, non-negative"),
        ({"assignment": {"b": "2"}}, r"\['b'\] is '2': give a finite, non-negative"),
        ({"assignment": {"b": None}}, r"\['b'\] is None: give a finite, non-negative"),
        ({"assignment": "a"}, "assignment is 'a': give weights by name, .* or a function"),
        ({"assignment": 1}, "assignment is 1: give weights by name"),
        ({"assignment": {"a", "b"}}, "give weights by name"),
        ({"assignment": [0, 1, 3]}, r"assignment has variant index 3, .* indices in \[0, 3\)"),
        ({"assignment": [0, -1]}, "assignment has variant index -1"),
        ({"assignment": [0.0, 1.0]}, r"assignment is \[0.0, 1.0\]: give integers"),
        ({"assignment": ["a", "b"]}, r"assignment is \['a', 'b'\]: give integers"),
        ({"assignment": [True, False]}, "give integers"),
        ({"assignment": [[0, 1], [1, 0]]}, "give integers, one for each world"),
        ({"assignment": [[0], [1, 0]]}, "give integers, one for each world"),
        ({"assignment": torch.tensor([0.5, 1.0])}, "give integers, one for each world"),
    ],
)
def test_configurations_must_make_sense(kwargs, message):
    """Refuse configurations at once, before anything is built."""
    with pytest.raises(ValueError, match=message):
        variants(**{"variants": PROPS, **kwargs})


def test_weights_left_out_are_one():
    """Give a variant twice the worlds of the others."""
    _, sim = build({"prop": variants(variants=PROPS, assignment={"b": 2.0})}, 8)
    assert sim.world_to_variant["prop"].tolist() == [0, 0, 1, 1, 1, 1, 2, 2]


def test_functions_assign_world_by_world():
    """Let a function of the number of worlds decide; refuse what is no assignment."""
    _, sim = build({"prop": variants(variants=PROPS, assignment=lambda n: [n % 3] * n)}, 4)
    assert sim.world_to_variant["prop"].tolist() == [1, 1, 1, 1]
    for function, message in (
        (lambda n: [0], "'prop' returned 1 indices but nworld=4"),
        (lambda n: [0, 1, 99, 0], "returned variant index 99"),
        (lambda n: [0.5] * n, "return integers"),
        (lambda n: None, "of entity 'prop' returned None: return integers, one for each world"),
        (lambda n: 2, "returned 2: return integers, one for each world"),
        (lambda n: "0123", "returned '0123': return integers"),
        (lambda n: {0: 1}, "return integers"),
        (lambda n: [[0], [1, 2]], "return integers"),
        (lambda n: torch.zeros(n, 1, dtype=torch.long), "return integers, one for each world"),
    ):
        with pytest.raises(ValueError, match=message):
            build({"prop": variants(variants=PROPS, assignment=function)}, 4)


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor])
def test_lists_assign_world_by_world(kind):
    """Take an index for each world, in any form; leave the configuration as it is."""
    cfg = variants(variants=PROPS, assignment=kind([0, 2, 2, 1]))
    _, sim = build({"prop": cfg}, 4)
    assert sim.world_to_variant["prop"].tolist() == [0, 2, 2, 1]
    assert isinstance(cfg.assignment, type(kind([0]))) and cfg.weights() == (1.0, 1.0, 1.0)
    message = "of entity 'prop' has 4 indices but nworld=6: give one per world"
    with pytest.raises(ValueError, match=message):
        build({"prop": cfg}, 6)
