"""Reapplication of events in worlds that change to another variant."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from manyworlds.managers.manager_base import entity_cfgs
from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import RandomStream
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.managers.event_manager import EventFields, EventTermCfg
    from manyworlds.sim import Simulation


class EventMemory(Stateful):
    """Reapplication of events in worlds that change variants: `Simulation.after_assignment`.

    A term is affected if it declares a model field in which the variants of an entity differ, or
    shares a field with an affected term. Terms run in the order in which they last ran in a world,
    and draw the numbers that they drew then: `env.random` goes back to where it was.

    Args:
        sim: the simulation.
        terms: all events by name, in their order.
        fields: the model fields that each event declares, by name.
        streams: their random numbers, by name.
        call: function that calls a term by name for given worlds.
    """

    state_attributes = ("_count", "_last", "_start")
    world_columns = ("_last", "_start")

    def __init__(
        self,
        sim: Simulation,
        terms: Mapping[str, EventTermCfg],
        fields: Mapping[str, EventFields],
        streams: Mapping[str, RandomStream],
        call: Callable[[str, torch.Tensor], object],
    ) -> None:
        self._sim = sim
        self._call = call
        self._affected: dict[str, tuple[list[str], set[str]]] = {}
        """Names of the affected terms and the fields that they change, by entity."""
        for entity in sim.world_to_variant:
            candidates: dict[str, EventFields] = {}
            for name, term in terms.items():
                selected = {selection.name for selection in entity_cfgs(term.params)}
                if not selected or entity in selected:
                    candidates[name] = fields[name]
            self._affected[entity] = _affected_terms(candidates, sim.variant_fields(entity))
        affected = {name for names, _ in self._affected.values() for name in names}
        self._names = [name for name in terms if name in affected]
        self._rows = {name: row for row, name in enumerate(self._names)}
        self._streams = streams
        self._count = 0
        with torch.inference_mode(False):
            shape = len(self._names), sim.num_envs
            self._last = torch.zeros(shape, dtype=torch.long, device=sim.device)
            """Value of `_count` when each term last ran in each world; 0 for never."""
            self._start = torch.zeros_like(self._last)
            """State of each term's random numbers before it last ran in each world."""
        self._due: Sequence[str] = ()
        """Names of the term that runs, and of those that follow it immediately: these need not be
        repeated in the worlds `_due_worlds`."""
        self._due_worlds = self._worlds(None)

    def __bool__(self) -> bool:
        """Return True if any term is affected."""
        return bool(self._names)

    @contextlib.contextmanager
    def applying(
        self, name: str, worlds: Worlds, following: Sequence[str], within: Worlds
    ) -> Iterator[None]:
        """Record that a term runs within this context.

        Args:
            name: name of the term.
            worlds: the worlds in which it runs.
            following: names of the terms that run immediately afterwards.
            within: the worlds in which those terms run.
        """
        row = self._rows.get(name)
        if row is not None:
            worlds.put(self._start[row], worlds.take(self._streams[name].states))
        with self._not_repeating((name, *following), within):
            yield
        if row is not None:
            self._count += 1
            worlds.put(self._last[row], self._count)

    @contextlib.contextmanager
    def _not_repeating(self, names: Sequence[str], worlds: Worlds) -> Iterator[None]:
        before = self._due, self._due_worlds
        self._due, self._due_worlds = names, worlds
        try:
            yield
        finally:
            self._due, self._due_worlds = before

    def continue_from(self, other: EventMemory) -> None:
        """Take over what another memory knows about the terms that both have."""
        self._count = other._count
        for name in self._rows.keys() & other._rows.keys():
            self._last[self._rows[name]] = other._last[other._rows[name]]
            self._start[self._rows[name]] = other._start[other._rows[name]]

    def apply_again(self, entity: str, worlds: torch.Tensor) -> None:
        """Apply the events of an entity again in worlds where its variant changed."""
        names, fields = self._affected[entity]
        if not names:
            return
        self._sim.restore_variant_fields(entity, fields, worlds)
        rows = [self._rows[name] for name in names]
        last = self._last[rows][:, worlds].cpu().numpy()
        due_terms = [name in self._due for name in names]
        due_worlds = self._due_worlds.mask[worlds].cpu().numpy()
        last[np.outer(due_terms, due_worlds)] = 0
        # The order of the terms in each world; -1 in place of those that have not run there.
        order = np.argsort(last, axis=0, kind="stable")
        order[np.take_along_axis(last, order, axis=0) == 0] = -1
        # Worlds with the same order are treated together.
        orders, kinds = np.unique(order, axis=1, return_inverse=True)
        for kind, positions in enumerate(orders.T):
            alike = torch.from_numpy(np.flatnonzero(kinds.reshape(-1) == kind))
            for position in positions:
                if position >= 0:
                    self._repeat(names[position], worlds[alike.to(worlds.device)])

    def _repeat(self, name: str, worlds: torch.Tensor) -> None:
        """Call a term again in some worlds, with the numbers that it drew last."""
        states = self._streams[name].states
        now = states[worlds]
        states[worlds] = self._start[self._rows[name], worlds]
        try:
            with self._not_repeating((name,), self._worlds(worlds)):
                self._call(name, worlds)
        finally:
            states[worlds] = now

    def _worlds(self, env_ids: torch.Tensor | None) -> Worlds:
        return Worlds(env_ids, self._sim.num_envs, self._sim.device)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Load a state that `state_dict` returned."""
        # Checkpoints of before world-keyed random numbers lack these states.
        super().load_state_dict({"_start": torch.zeros_like(self._start), **state})


def _affected_terms(
    terms: Mapping[str, EventFields], fields: frozenset[str]
) -> tuple[list[str], set[str]]:
    """Return the terms that use given fields, directly or through others, and what they change."""
    found: set[str] = set()
    changed: set[str] = set()
    before = -1
    while before < len(found):  # until no further term shares a field with these
        before = len(found)
        for name, term in terms.items():
            if not (fields | changed).isdisjoint([*term.written, *term.read]):
                found.add(name)
                changed.update(term.written)
    return [name for name in terms if name in found], changed
