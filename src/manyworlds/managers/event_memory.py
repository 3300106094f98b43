"""Reapplication of events in worlds whose variants change, with the numbers they had."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manyworlds.managers.manager_base import entity_cfgs
from manyworlds.managers.prepared_event import plain_function
from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import RandomStream
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.managers.event_manager import EventTermCfg
    from manyworlds.sim import Simulation


class EventMemory(Stateful):
    """Reapplication of events in worlds that change variants: `Simulation.after_assignment`.

    A term is affected if it declares a model field in which the variants of an entity differ, or
    shares a field with an affected term. Terms run in the order in which they last ran in a world,
    and draw the numbers that they drew then: `env.random` goes back to where it was.

    Args:
        sim: the simulation.
        terms: all events by name, in their order.
        streams: their random numbers, by name.
        call: function that calls a term by name for given worlds.
    """

    state_attributes = ("_count", "_last", "_start")
    world_columns = ("_last", "_start")

    def __init__(
        self,
        sim: Simulation,
        terms: Mapping[str, EventTermCfg],
        streams: Mapping[str, RandomStream],
        call: Callable[[str, torch.Tensor], object],
    ) -> None:
        self._sim = sim
        self._terms = terms
        self._call = call
        self._concerned: dict[str, tuple[list[str], set[str]]] = {}
        """Names of the affected terms and the fields that they change, by entity."""
        for entity in sim.world_to_variant:
            mine = {name: term for name, term in terms.items() if _may_concern(term, entity)}
            self._concerned[entity] = _connected(mine, sim.variant_fields(entity))
        found = {name for names, _ in self._concerned.values() for name in names}
        self._rows = {name: row for row, name in enumerate(n for n in terms if n in found)}
        self._streams = {name: streams[name] for name in self._rows}
        self._count = 0
        with torch.inference_mode(False):
            shape = (len(self._rows), sim.num_envs)
            self._last = torch.zeros(shape, dtype=torch.long, device=sim.device)
            """Value of `_count` when each term last ran in each world; 0 for never."""
            self._start = torch.zeros_like(self._last)
            """State of each term's random numbers before it last ran in each world."""
        self._due: tuple[Sequence[str], Worlds] = (), self._worlds(None)

    def __bool__(self) -> bool:
        """Return True if any term is affected."""
        return bool(self._rows)

    @contextlib.contextmanager
    def applying(
        self,
        name: str,
        worlds: Worlds,
        due: Sequence[str],
        within: Worlds,
    ) -> Iterator[None]:
        """Record that a term runs, and the terms that follow it immediately.

        Args:
            name: name of the term.
            worlds: the worlds in which it runs.
            due: names of the terms that follow, and so need not be reapplied before.
            within: the worlds in which those terms run.
        """
        before = self._due
        self._due = ((name, *due), within)
        row = self._rows.get(name)
        if row is not None:
            self._start[row, worlds.rows] = self._streams[name].states[worlds.rows]
        try:
            yield
        finally:
            self._due = before
        if row is not None:
            self._count += 1
            self._last[row, worlds.rows] = self._count

    def continue_from(self, other: EventMemory) -> None:
        """Take over what another memory knows about the terms that both have."""
        self._count = other._count
        for name in self._rows.keys() & other._rows.keys():
            self._last[self._rows[name]] = other._last[other._rows[name]]
            self._start[self._rows[name]] = other._start[other._rows[name]]

    def apply_again(self, entity: str, worlds: torch.Tensor) -> None:
        """Apply the events of an entity again in worlds where its variant changed."""
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

    def _worlds(self, env_ids: torch.Tensor | None) -> Worlds:
        return Worlds(env_ids, self._sim.num_envs, self._sim.device)

    def _repeat(self, name: str, worlds: torch.Tensor) -> None:
        """Call a term again in some worlds, with the numbers that it drew last."""
        states = self._streams[name].states
        now = states[worlds]
        states[worlds] = self._start[self._rows[name], worlds]
        before = self._due
        self._due = ((name,), self._worlds(worlds))
        try:
            self._call(name, worlds)
        finally:
            self._due = before
            states[worlds] = now

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        # Checkpoints of before world-keyed random numbers lack these states.
        super().load_state_dict({"_start": torch.zeros_like(self._start), **state})


def _may_concern(term: EventTermCfg, entity: str) -> bool:
    """Return True if a term may change an entity: it selects that entity, or none at all."""
    names = {selection.name for selection in entity_cfgs(term.params)}
    return not names or entity in names


def _connected(
    terms: Mapping[str, EventTermCfg], fields: frozenset[str]
) -> tuple[list[str], set[str]]:
    """Return the terms that change given fields, directly or through others, and their fields."""
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
