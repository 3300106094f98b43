"""What events drew in each world, so that a world that becomes another variant keeps its draws."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manyworlds.managers.manager_base import entity_cfgs
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.managers.event_manager import EventTermCfg
    from manyworlds.sim import Simulation


class Draws:
    """The random numbers that a term drew last in each world.

    Args:
        num_envs: how many worlds there are.
        device: where the numbers are.
    """

    def __init__(self, num_envs: int, device: torch.device) -> None:
        self._num_envs = num_envs
        self._device = device
        self._values: dict[str, torch.Tensor] = {}
        self._layouts: dict[str, str] = {}
        self.repeats = False
        """Whether worlds get the numbers that they have, instead of new ones."""

    def draw(
        self,
        what: str,
        layout: str,
        worlds: torch.Tensor,
        sample: Callable[[int], torch.Tensor],
    ) -> torch.Tensor:
        """Draw numbers for some worlds, or repeat those that they have.

        Args:
            what: name of the numbers, of which a term may draw several.
            layout: what the numbers are for. Where it is not as in the last draw, those of all
                worlds are drawn anew, since the old ones mean something else.
            worlds: ids of the worlds.
            sample: called with a number of worlds; returns a row for each.

        Returns:
            Shape [len(worlds), ...].
        """
        known = self._layouts.get(what)
        if known == layout and self.repeats:
            return self._values[what][worlds]
        drawn = sample(len(worlds) if known in (None, layout) else self._num_envs)
        if known != layout:
            self._layouts[what] = layout
            with torch.inference_mode(False):
                self._values[what] = torch.zeros(
                    self._num_envs, *drawn.shape[1:], dtype=drawn.dtype, device=self._device
                )
            if known is not None:
                return self._values[what].copy_(drawn)[worlds]
        self._values[what][worlds] = drawn
        return drawn

    def state_dict(self) -> dict[str, Any]:
        """Copy the numbers, and what they are for."""
        values = {what: drawn.clone() for what, drawn in self._values.items()}
        return {"layouts": dict(self._layouts), "values": values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        self._layouts = dict(state["layouts"])
        with torch.inference_mode(False):
            self._values = {
                what: drawn.clone().to(self._device) for what, drawn in state["values"].items()
            }


class EventMemory(Stateful):
    """Applies events again in worlds that became other variants: `Simulation.after_assignment`.

    It concerns the terms that declare a model field in which the variants of an entity differ, and
    those that share a field with such a term. Terms of `mdp.dr` get the numbers that the world has;
    others are called again. Terms happen in the order in which they happened last in the world.

    Args:
        sim: the simulation.
        terms: all events by name, in their order.
        call: calls a term by name for the worlds named.
    """

    state_attributes = ("_count", "_last", "_draws")

    def __init__(
        self,
        sim: Simulation,
        terms: Mapping[str, EventTermCfg],
        call: Callable[[str, torch.Tensor], object],
    ) -> None:
        self._sim = sim
        self._terms = terms
        self._call = call
        self._concerned: dict[str, tuple[list[str], set[str]]] = {}
        """By entity, names of terms, and the fields that they change."""
        for entity in sim.world_to_variant:
            mine = {name: term for name, term in terms.items() if _may_concern(term, entity)}
            self._concerned[entity] = _connected(mine, sim.variant_fields(entity))
        found = {name for names, _ in self._concerned.values() for name in names}
        self._rows = {name: row for row, name in enumerate(n for n in terms if n in found)}
        self._draws: dict[str, Draws] = {}
        for name in self._rows:
            if (asset_cfg := _selection(terms[name])) is not None:
                self._draws[name] = asset_cfg.draws = Draws(sim.num_envs, sim.device)
        self._count = 0
        with torch.inference_mode(False):
            shape = (len(self._rows), sim.num_envs)
            self._last = torch.zeros(shape, dtype=torch.long, device=sim.device)
            """When each term happened last in each world, as counted by `_count`; 0 for never."""
        self._due: tuple[Sequence[str], Worlds] = (), Worlds(None, sim.num_envs, sim.device)

    def __bool__(self) -> bool:
        """Whether any term is concerned."""
        return bool(self._rows)

    @contextlib.contextmanager
    def happening(
        self,
        name: str,
        worlds: Worlds,
        due: Sequence[str],
        within: Worlds,
    ) -> Iterator[None]:
        """Note that a term happens, and which terms follow at once.

        Args:
            name: the term.
            worlds: the worlds in which it happens.
            due: names of the terms that follow, and so need not happen again before.
            within: the worlds in which they do.
        """
        before, self._due = self._due, ((name, *due), within)
        try:
            yield
        finally:
            self._due = before
        if name in self._rows:
            self._count += 1
            self._last[self._rows[name], worlds.rows] = self._count

    def apply_again(self, entity: str, worlds: torch.Tensor) -> None:
        """Randomize an entity in worlds where it became another variant."""
        names, fields = self._concerned[entity]
        if not names:
            return
        self._sim.restore_variant_fields(entity, fields, worlds)
        last = self._last[[self._rows[name] for name in names]][:, worlds].cpu().numpy()
        due = self._due[1].mask[worlds].cpu().numpy()
        last[np.outer([name in self._due[0] for name in names], due)] = 0
        order = np.argsort(last, axis=0, kind="stable")
        order[np.take_along_axis(last, order, axis=0) == 0] = -1
        orders, kinds = np.unique(order, axis=1, return_inverse=True)
        for kind, positions in enumerate(orders.T):
            alike = torch.from_numpy(np.flatnonzero(kinds.reshape(-1) == kind))
            for name in (names[i] for i in positions if i >= 0):
                self._repeat(name, worlds[alike.to(worlds.device)])

    def _repeat(self, name: str, worlds: torch.Tensor) -> None:
        draws = self._draws.get(name)
        before, self._due = self._due, ((name,), Worlds(worlds, self._sim.num_envs))
        try:
            if draws is not None:
                draws.repeats = True
            self._call(name, worlds)
        finally:
            self._due = before
            if draws is not None:
                draws.repeats = False


def plain_function(func: Any) -> Any:
    """Return the function within partial ones."""
    while isinstance(func, functools.partial):
        func = func.func
    return func


def _selection(term: EventTermCfg) -> SceneEntityCfg | None:
    """The only selection of a term that keeps its draws with it; None for other terms."""
    selections = list(entity_cfgs(term.params))
    keeps = getattr(plain_function(term.func), "keeps_draws", False)
    return selections[0] if keeps and len(selections) == 1 else None


def _may_concern(term: EventTermCfg, entity: str) -> bool:
    """Whether a term may change an entity: it names this one, or none at all."""
    names = {selection.name for selection in entity_cfgs(term.params)}
    return not names or entity in names


def _connected(
    terms: Mapping[str, EventTermCfg], fields: frozenset[str]
) -> tuple[list[str], set[str]]:
    """Names of the terms that some fields concern, directly or through others, and their fields."""
    functions = {name: plain_function(term.func) for name, term in terms.items()}
    written = {name: set(getattr(f, "model_fields", ())) for name, f in functions.items()}
    read = {name: set(getattr(f, "reads_fields", ())) for name, f in functions.items()}
    found: set[str] = set()
    changed: set[str] = set()
    while (
        more := {name for name in terms if (written[name] | read[name]) & (fields | changed)}
        - found
    ):
        found |= more
        changed.update(*(written[name] for name in more))
    return [name for name in terms if name in found], changed
