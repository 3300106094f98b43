"""Events of contacts that begin or end, for callbacks, the page and clients."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, get_args

import mujoco
import numpy as np

from manyworlds.lab.errors import near
from manyworlds.lab.loop.callbacks import Handle
from manyworlds.lab.world.patterns import match_names

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

ContactKind = Literal["body", "geom"]
"""Kind of the names that a watch has."""
ContactMoment = Literal["begin", "end", "both"]
_ANY = ".*"
MOST_EVENTS = 500
"""Number of events that the log keeps."""


@dataclass(frozen=True)
class ContactEvent:
    """Begin or end of the contact of two bodies, or of two geoms."""

    number: int
    """Number of earlier events of the lab."""
    event: str
    """`begin` or `end`."""
    time: float
    """Simulated time after the step that found it [s]."""
    first: str
    """Name of the body or geom that the first pattern of the watch matches."""
    second: str
    """Name of the other one."""
    kind: str
    """`body` or `geom`."""


class ContactWatch:
    """Contacts that a client asked for; `remove` ends it.

    Args:
        first: regular expression that matches whole names of bodies or geoms.
        second: the same for the other side.
        kind: kind of the names.
        moment: events to report.
        call: called with each event, in the physics thread; None for the log only.
    """

    def __init__(
        self,
        first: str,
        second: str,
        kind: ContactKind,
        moment: ContactMoment,
        call: Callable[[ContactEvent], object] | None,
    ) -> None:
        self.first = first
        self.second = second
        self.kind = kind
        self.moment = moment
        self.call = call
        self.removed = False
        self._pairs: set[tuple[int, int]] = set()

    def remove(self) -> None:
        """End the watch; a second call does nothing."""
        self.removed = True

    def bind(self, model: mujoco.MjModel, data: mujoco.MjData | None) -> None:
        """Find the names in a model; contacts that are there already do not begin.

        Raises:
            KeyError: a pattern matches nothing, or no body with geoms.
            ValueError: a pattern is no regular expression.
        """
        self._of_first = self._match(model, self.first)
        self._of_second = self._match(model, self.second)
        self._pairs = set() if data is None else self._touching(model, data)

    def changes(
        self, model: mujoco.MjModel, data: mujoco.MjData
    ) -> list[tuple[str, tuple[int, int]]]:
        """Return what began and ended since the last call: the event, and ids of both sides."""
        before, self._pairs = self._pairs, self._touching(model, data)
        if before == self._pairs:
            return []
        found = [("begin", pair) for pair in sorted(self._pairs - before)]
        found += [("end", pair) for pair in sorted(before - self._pairs)]
        return [(event, pair) for event, pair in found if self.moment in (event, "both")]

    def _match(self, model: mujoco.MjModel, pattern: str) -> np.ndarray:
        """Return which bodies or geoms a pattern matches, shape [num_names]."""
        count = model.nbody if self.kind == "body" else model.ngeom
        names = [getattr(model, self.kind)(i).name for i in range(count)]
        found = np.zeros(count, bool)
        found[match_names(pattern, names)] = True
        if not found.any():
            hint = near(pattern, names, ": patterns match whole names.")
            raise KeyError(f"No {self.kind} matches '{pattern}'{hint}")
        if self.kind == "body" and not model.body_geomnum[found].any():
            which = ", ".join(names[body] for body in np.flatnonzero(found))
            raise KeyError(
                f"Nothing touches what '{pattern}' matches ({which}), which has no geoms: choose "
                "another body, such as 'world' for the geoms of the world."
            )
        return found

    def _touching(self, model: mujoco.MjModel, data: mujoco.MjData) -> set[tuple[int, int]]:
        """Return the ids of both sides of the present contacts that match."""
        if not data.ncon:
            return set()
        ids = data.contact.geom[(data.contact.exclude == 0) & (data.contact.geom >= 0).all(axis=1)]
        if self.kind == "body":
            ids = model.geom_bodyid[ids]
        pairs: set[tuple[int, int]] = set()
        for sides in (ids, ids[:, ::-1]):
            hits = self._of_first[sides[:, 0]] & self._of_second[sides[:, 1]]
            for a, b in sides[hits].tolist():
                if (b, a) not in pairs:  # both patterns match both sides
                    pairs.add((a, b))
        return pairs


class ContactEvents:
    """Watches of a lab's contacts, and a log of what they saw.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab: LiveLab = weakref.proxy(lab)  # a cycle would keep the lab's memory
        self._watches: tuple[ContactWatch, ...] = ()
        self._log: deque[ContactEvent] = deque(maxlen=MOST_EVENTS)
        self.count = 0
        """Number of events of the lab until now."""
        self._of_clients: list[ContactWatch] = []
        self._listener: Handle | None = None  # while there is a watch
        lab.loop.on_reset(self._restart)
        self._model = lab.model

    @property
    def watches(self) -> tuple[ContactWatch, ...]:
        """The present watches."""
        return tuple(watch for watch in self._watches if not watch.removed)

    def watch(
        self,
        call: Callable[[ContactEvent], object] | None = None,
        first: str = _ANY,
        second: str = _ANY,
        *,
        kind: ContactKind = "body",
        moment: ContactMoment = "begin",
    ) -> ContactWatch:
        """Report contacts that begin or end from now on.

        Args:
            call: called with each event in the physics thread, its errors are reported; None for
                the log only.
            first: regular expression that matches whole names on one side of the contact.
            second: the same for the other side.
            kind: kind of the names.
            moment: events to report.

        Raises:
            KeyError: a pattern matches nothing.
            ValueError: a pattern or an option is invalid.
        """
        for name, value, known in (
            ("kind", kind, get_args(ContactKind)),
            ("moment", moment, get_args(ContactMoment)),
        ):
            if value not in known:
                raise ValueError(f"The {name} of contacts is {' or '.join(known)}, got '{value}'.")
        fresh = ContactWatch(first, second, kind, moment, call)

        def add(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            fresh.bind(model, data)
            self._watches = (*self.watches, fresh)
            if self._listener is None:
                self._model = model
                self._listener = self._lab.loop.on_post_step(self._look)

        self._lab.loop.do(add, edits_model=False)
        return fresh

    def watch_for_client(
        self, first: str, second: str, kind: ContactKind, moment: ContactMoment
    ) -> int:
        """Write contacts into the log; return a number for `unwatch`."""
        self._of_clients.append(self.watch(None, first, second, kind=kind, moment=moment))
        return len(self._of_clients) - 1

    def unwatch(self, number: int) -> None:
        """End a watch of `watch_for_client`.

        Raises:
            KeyError: there is none of this number.
        """
        if not 0 <= number < len(self._of_clients):
            raise KeyError(f"There is no watch {number} of contacts.")
        self._of_clients[number].remove()

    def log(self, since: int = 0) -> list[ContactEvent]:
        """Return the events from a number on, the newest last; at most `MOST_EVENTS` are kept."""
        return [event for event in list(self._log) if event.number >= since]

    def plain_log(self, since: int = 0) -> list[dict[str, object]]:
        """Return `log` as plain data."""
        return [asdict(event) for event in self.log(since)]

    def _look(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        """Report what began and ended in a step."""
        if model is not self._model:  # it was rebuilt
            self._model = model
            self._bind_again(data)
        if not self.watches and self._listener is not None:
            self._watches = ()
            self._listener.remove()
            self._listener = None
        if not moved:
            return
        for watch in self._watches:
            if watch.removed:
                self._watches = self.watches
                continue
            element = model.body if watch.kind == "body" else model.geom
            for event, pair in watch.changes(model, data):
                first, second = (element(i).name for i in pair)
                fresh = ContactEvent(self.count, event, data.time, first, second, watch.kind)
                self.count += 1
                self._log.append(fresh)
                if watch.call is not None:
                    self._lab.loop.reports.attempt(watch.call, fresh)

    def _restart(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        for watch in self.watches:
            watch.bind(model, data)

    def _bind_again(self, data: mujoco.MjData) -> None:
        """Find the names in a rebuilt world; end watches of what is gone, and say so."""
        for watch in self.watches:
            try:
                watch.bind(self._model, data)
            except KeyError as error:
                watch.remove()
                self._lab.rebuild_notes += (f"a watch of contacts ended: {error.args[0]}",)
