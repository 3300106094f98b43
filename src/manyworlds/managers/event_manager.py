"""Event terms and their manager: changes to worlds at startup, at resets and during episodes."""

from __future__ import annotations

import copy
import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import torch

from manyworlds.managers.event_memory import EventMemory
from manyworlds.managers.manager_base import (
    EventTerm,
    ManagerBase,
    ManagerTermBase,
    ManagerTermBaseCfg,
)
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.sim import RecomputeLevel
from manyworlds.sim.fields.model_fields import derived_fields
from manyworlds.utils.clocks import count_down
from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import RandomStream
from manyworlds.validation.rules import refuse
from manyworlds.validation.worlds import EnvIds, Worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

__all__ = [
    "EpisodeEvent",
    "EventManager",
    "EventMode",
    "EventTermCfg",
    "RecomputeLevel",
    "requires_model_fields",
]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_ONCE = 2**62  # control steps between two events in a world: no second one
_NEVER = -_ONCE  # control step of the last event in a world, before the first one

EventMode = Literal["startup", "reset", "interval", "step"]
"""Time at which an event is applied: see `EventTermCfg.mode`."""


def requires_model_fields(
    *fields: str, recompute: RecomputeLevel = RecomputeLevel.none
) -> Callable[[F], F]:
    """Declare the model fields that an event changes, on its function or class.

    The event manager gives each of these fields one row per world. After the event it recomputes
    the quantities that depend on them, in the affected worlds: as required by the table of model
    fields for the active engine, and at least at the level `recompute`.
    """

    def declare(func: F) -> F:
        func.model_fields = fields  # type: ignore[attr-defined]
        func.recompute = recompute  # type: ignore[attr-defined]
        return func

    return declare


class EventFields(NamedTuple):
    """Model fields that an event declares."""

    written: tuple[str, ...]
    """Fields that it changes."""
    read: tuple[str, ...]
    """Other fields that it reads."""
    recompute: RecomputeLevel
    """Lowest level of recomputation afterwards."""


def event_fields(func: Callable[..., object]) -> EventFields:
    """Return the model fields that an event's function or class declares."""
    func = plain_function(func)
    return EventFields(
        getattr(func, "model_fields", ()),
        getattr(func, "reads_fields", ()),
        getattr(func, "recompute", RecomputeLevel.none),
    )


def plain_function(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function within partial ones."""
    while isinstance(func, functools.partial):
        func = func.func
    return func


class EpisodeEvent(ManagerTermBase):
    """Base of event terms that take note of the end of episodes."""

    @abstractmethod
    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Take note of episodes that end; all state is still theirs.

        Args:
            env_ids: ids of the worlds, shape [n], possibly none; see `takes_worlds`.
        """


@dataclass
class EventTermCfg(ManagerTermBaseCfg[EventTerm]):
    """Configuration of an event term, called as `func(env, env_ids, **params)`."""

    func: EventTerm
    """Function that changes the given worlds; a class is first instantiated with `cfg=` and
    `env=`."""
    _: KW_ONLY
    mode: EventMode
    """Trigger: once at startup, at resets, at random intervals, or every control step."""
    interval_range_s: tuple[float, float] | None = None
    """Bounds of the time between two events of mode 'interval' [s]."""
    is_global_time: bool = False
    """True if all worlds share one interval timer."""
    min_step_count_between_reset: int = 0
    """Minimum number of control steps between two resets of a world that trigger the event."""


class EventManager(ManagerBase[EventTermCfg]):
    """Manager of event terms, which are applied by mode.

    Events of mode 'reset' receive world ids; events of the other modes receive None, for all
    worlds. `tick` returns on the device the worlds whose intervals have expired, so that they are
    part of the step's only transfer to the host.
    """

    state_attributes = ("_time_left", "_last_step")
    # Tables of the terms, which edits change and restore; see `with_term`.
    derived_attributes = (
        "_prepared",
        "_functions",
        "_class_terms",
        "_modes",
        "_fields",
        "_levels",
        "_memory",
    )
    world_columns = ("_time_left",)
    _shown = ("mode", "interval_range_s")

    def __init__(self, cfg: Mapping[str, EventTermCfg | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._prepared: dict[str, _PreparedEvent] = {}
        self._last_step: dict[str, torch.Tensor] = {}
        """Control step of the last event in each world, of terms that wait between resets."""
        self._all_ids = torch.arange(self.num_envs, device=self.device)
        self._terms = self._prepare_all(cfg)
        self._index()
        self._set_timers({name: self._interval(name) for name in self._timed()})

    def _prepare(self, name: str, term_cfg: EventTermCfg) -> EventTermCfg:
        """Check a term, and make what the manager keeps for it."""
        term_cfg = super()._prepare(name, term_cfg)
        if term_cfg.mode not in get_args(EventMode):
            raise ValueError(
                f"EventManager term '{name}' has mode '{term_cfg.mode}': "
                f"choose one of {', '.join(get_args(EventMode))}."
            )
        bounds = term_cfg.interval_range_s
        if term_cfg.mode == "interval" and bounds is None:
            raise ValueError(
                f"EventManager term '{name}' of mode 'interval' needs interval_range_s: "
                "give two bounds [s] with 0 <= lower <= upper."
            )
        if bounds is not None:
            message = (
                f"EventManager term '{name}' has interval_range_s={bounds}: "
                "give two bounds [s] with 0 <= lower <= upper."
            )
            if not min(bounds) >= 0:
                raise ValueError(message)
            if not bounds[0] <= bounds[1]:
                refuse(message)
        function = plain_function(term_cfg.func)
        if inspect.isfunction(function) and hasattr(function, "prepare"):
            self._prepared[name] = _PreparedEvent(term_cfg.func)
        if term_cfg.min_step_count_between_reset > 0:
            with torch.inference_mode(False):
                self._last_step[name] = torch.full_like(self._all_ids, _NEVER)
        return term_cfg

    def _index(self) -> None:
        """Sort the terms by mode, and find what they change."""
        self._modes: dict[EventMode, list[str]] = {}
        self._fields: dict[str, EventFields] = {}
        self._levels: dict[str, RecomputeLevel] = {}
        sim = self._env.sim
        for name, term in self._terms.items():
            self._modes.setdefault(term.mode, []).append(name)
            fields = event_fields(term.func)
            self._fields[name] = fields
            self._levels[name] = max(fields.recompute, sim.recompute_level(fields.written))
        memory = EventMemory(sim, self._terms, self._fields, self._streams, self.call)
        self._memory: EventMemory | None = None
        if memory:
            self._memory = memory

    def with_term(self, name: str, cfg: EventTermCfg) -> EventManager:
        """Return a manager with one more term, or with another one of the same name.

        All other terms are those of this manager, and continue as they are. The interval of the
        new term begins now, and its state is kept if its class is the same. An event of mode
        'startup' is applied in each world at its next reset, once. Until the next step, this
        manager can be used again instead.

        Raises:
            Exception: the term is wrong.
        """
        cfg = copy.deepcopy(cfg)
        if cfg.mode == "startup":
            cfg.mode = "reset"
            cfg.min_step_count_between_reset = _ONCE
        new = copy.copy(self)
        new._functions = _without(self._functions, name)
        new._class_terms = _without(self._class_terms, name)
        new._prepared = _without(self._prepared, name)
        new._last_step = _without(self._last_step, name)
        new._streams = dict(self._streams)
        term = new._prepare(name, cfg)
        new._terms = {**self._terms, name: term}
        if name in new._prepared:
            new._prepared[name].build(self._env, term.params)
        before = self._class_terms.get(name)
        if type(before) is type(term.func) and isinstance(before, Stateful):
            new._class_terms[name].load_state_dict(before.state_dict())
        new._index()
        if new._memory is not None and self._memory is not None:
            new._memory.continue_from(self._memory)
        timers = self._timers()
        if term.mode == "interval":
            timers[name] = new._interval(name)
        new._set_timers(timers)
        return new

    @property
    def active_terms(self) -> dict[EventMode, list[str]]:
        """Names of the terms by mode."""
        return {mode: list(names) for mode, names in self._modes.items()}

    @property
    def available_modes(self) -> list[EventMode]:
        """Modes that have at least one term."""
        return list(self._modes)

    @property
    def after_assignment(self) -> Callable[[str, torch.Tensor], object] | None:
        """Function for `Simulation.after_assignment`; None if no event depends on variants."""
        if self._memory is None:
            return None
        return self._memory.apply_again

    @property
    def domain_randomization_fields(self) -> tuple[str, ...]:
        """Model fields that events change and fields that are recomputed from them, each once."""
        names: dict[str, None] = {}  # in the order of the terms, without duplicates
        for fields in self._fields.values():
            names.update(dict.fromkeys(fields.written))
        level = max(self._levels.values(), default=RecomputeLevel.none)
        names.update(dict.fromkeys(derived_fields(level)))
        return tuple(names)

    @property
    def counts_steps(self) -> list[str]:
        """Names of the events for which numbers of Python are kept from step to step."""
        if self._memory is not None:
            return list(self._terms)
        return list(self._last_step)

    def check_terms(self) -> None:
        """Build the prepared events and call them for no world.

        Raises:
            Exception: the parameters of a term are wrong.
        """
        for name in self._prepared:
            self.call(name, self._all_ids[:0])

    def end_episodes(self, worlds: Worlds) -> None:
        """Let terms take note of the end of episodes, before anything of their worlds is reset."""
        for name, term in self._class_terms.items():
            if isinstance(term, EpisodeEvent):
                capture = self.capture
                if capture is not None and capture.breaks_at(self.kind, name):
                    capture.call(_end_episodes, term, worlds)
                else:
                    _end_episodes(term, worlds)

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Restart the interval timers of the given worlds; return values to log, shape []."""
        if len(self._time_left):
            worlds = self._worlds(env_ids)
            for name, left in self._timers().items():
                if not self._terms[name].is_global_time:
                    worlds.put(left, self._interval(name, worlds))
        return super().reset(env_ids)

    def expire(self) -> None:
        """Let all intervals end at the next call of `tick`, as checks of tasks need it."""
        self._time_left.zero_()

    def apply(
        self,
        mode: EventMode,
        env_ids: EnvIds = None,
        dt: float | None = None,
        global_env_step_count: int | None = None,
        due: np.ndarray | torch.Tensor | None = None,
    ) -> None:
        """Apply all events of a mode.

        Args:
            mode: mode of the events.
            env_ids: the affected worlds; None for all. Not allowed for mode 'interval'.
            dt: time since the last call [s], for modes 'interval' and 'step'.
            global_env_step_count: control steps so far, for mode 'reset'.
            due: result of `tick` for this `dt`, for mode 'interval', on the host or, to be used
                without a read, on the device; None calls `tick`.

        Raises:
            ValueError: an argument that the mode needs is missing, or an argument is given that it
                cannot use.
        """
        if mode in ("interval", "step") and dt is None:
            raise ValueError(
                f"Events of mode '{mode}' need dt: pass the control period in seconds."
            )
        if mode == "interval" and env_ids is not None:
            raise ValueError("Events of mode 'interval' select their worlds: do not pass env_ids.")
        if mode == "reset" and global_env_step_count is None:
            raise ValueError(
                "Events of mode 'reset' need global_env_step_count: pass the step counter."
            )
        if mode not in self._modes:
            return
        if mode == "interval":
            if due is None:
                due = self.tick(dt or 0.0).cpu().numpy()
            self._apply_intervals(due)
            return
        concerned = self._worlds(env_ids)
        applied: list[tuple[str, Worlds]] = []
        names = self._modes[mode]
        for i, name in enumerate(names):
            worlds = concerned
            if mode == "reset" and name in self._last_step:
                worlds = self._ready(name, concerned, global_env_step_count or 0)
            if worlds:
                self._apply_term(name, worlds, following=names[i + 1 :], within=concerned)
                applied.append((name, worlds))
        self._recompute(applied)

    def _ready(self, name: str, worlds: Worlds, step: int) -> Worlds:
        """Return the given worlds whose last event is old enough; ids wait for the device."""
        last = self._last_step[name]
        waited = step - worlds.take(last) >= self._terms[name].min_step_count_between_reset
        ready = worlds.where(waited)
        ready.put(last, step)
        return ready

    def _apply_intervals(self, due: np.ndarray | torch.Tensor) -> None:
        """Apply the events of mode 'interval' that are due, and begin their next intervals.

        Args:
            due: result of `tick`.
        """
        applied: list[tuple[str, Worlds]] = []
        for (name, left), row in zip(self._timers().items(), due, strict=True):
            if isinstance(row, np.ndarray) and not row.any():
                continue
            # Drawn for all worlds, so that no index is needed; only expired timers take part.
            expired = left <= 0.0
            torch.where(expired, self._interval(name, expired), left, out=left)
            if isinstance(row, torch.Tensor):
                worlds = Worlds.masked(row)
            elif self._terms[name].is_global_time:
                worlds = self._worlds(None)
            else:
                worlds = self._worlds(np.flatnonzero(row))
            self._apply_term(name, worlds, following=(), within=worlds)
            applied.append((name, worlds))
        self._recompute(applied)

    def _apply_term(
        self, name: str, worlds: Worlds, following: Sequence[str], within: Worlds
    ) -> None:
        """Apply a term in some worlds; other terms of its mode follow in the worlds `within`."""
        capture = self.capture
        if capture is not None and capture.breaks_at(self.kind, name):
            capture.call(self._apply_term, name, worlds, following, within, writes=True)
            return
        term = self._terms[name]
        given: Any = worlds.for_term(term.func)
        needs_worlds = term.mode == "reset" or worlds.is_masked
        if needs_worlds:
            given = worlds.for_call(term.func)
        if given is None and needs_worlds:
            pass  # a mask is empty
        elif self._memory is None:
            self._call(name, term, given)
        else:
            # Terms that wait between resets may not run.
            sure = [other for other in following if other not in self._last_step]
            with self._memory.applying(name, worlds, sure, within if sure else worlds):
                self._call(name, term, given)
        self._env.sim.outdate(worlds)  # terms that follow read what this one has written

    def call(self, name: str, env_ids: torch.Tensor | None) -> None:
        """Apply one event in some worlds, all of them for None; recompute nothing.

        Raises:
            ValueError: there is no such term.
        """
        before = self._env.random
        self._call(name, self.get_term_cfg(name), env_ids)
        self._env.random = before  # one event may apply others again

    def _call(self, name: str, term_cfg: ManagerTermBaseCfg, *args: object) -> object:
        event = self._prepared.get(name)
        if event is None or event.func is not term_cfg.func:  # a curriculum may name another one
            result = super()._call(name, term_cfg, *args)
            self._env.sim.restore_absent()
            return result
        self._env.random = self._streams[name]
        try:
            return event.build(self._env, term_cfg.params)(self._env, *args)
        except Exception as error:
            self._blame(error, name, term_cfg.params)
            raise

    def _recompute(self, applied: Sequence[tuple[str, Worlds]]) -> None:
        """Recompute once, at the strongest level, the worlds of all terms that require it."""
        strongest = RecomputeLevel.none
        concerned: Worlds | None = None
        for name, worlds in applied:
            level = self._levels[name]
            if level > RecomputeLevel.none:
                strongest = max(strongest, level)
                if concerned is not None:
                    worlds = concerned.union(worlds)
                concerned = worlds
        if concerned is not None:
            self._env.sim.recompute_constants(strongest, concerned)

    def tick(self, dt: float) -> torch.Tensor:
        """Advance interval timers by `dt` [s]; return where they have expired.

        Returns:
            Flags of the terms of mode 'interval', on the device, shape [num_terms, num_envs].
        """
        if not len(self._time_left):
            return self._time_left.bool()
        return count_down(self._time_left, dt)

    def randomize_timers(self) -> None:
        """Multiply the time left on each interval timer by a random number in [0, 1).

        Afterwards the timers have the phases of worlds that have run for a long time.
        """
        for name, left in self._timers().items():
            left.mul_(self._timer_stream(name).uniform())

    def _timed(self) -> list[str]:
        """Return the names of the terms of mode 'interval'."""
        return self._modes.get("interval", [])

    def _timers(self) -> dict[str, torch.Tensor]:
        """Return the rows of these terms in the table of the time left [s]."""
        return dict(zip(self._timed(), self._time_left, strict=True))

    def _set_timers(self, timers: Mapping[str, torch.Tensor]) -> None:
        """Make the table; the row of a timer that worlds share has the same value everywhere."""
        with torch.inference_mode(False):
            self._time_left = torch.zeros(len(self._timed()), self.num_envs, device=self.device)
            for name, left in self._timers().items():
                left.copy_(timers[name])

    def _interval(self, name: str, env_ids: Worlds | torch.Tensor | None = None) -> torch.Tensor:
        """Draw the time until a term's next event [s], shape [n], or [1] if worlds share it."""
        term = self._terms[name]
        assert term.interval_range_s is not None
        low, high = term.interval_range_s
        if term.is_global_time:
            env_ids = None
        return self._timer_stream(name).uniform(low, high, env_ids=env_ids)

    def _timer_stream(self, name: str) -> RandomStream:
        shared = self._terms[name].is_global_time
        return self._env.random_streams.stream(f"{self.kind}/{name}/timer", shared=shared)

    def saved_values(self) -> dict[str, object]:
        """Return the saved values of the manager, its terms, and the order of its last events."""
        values = super().saved_values()
        if self._memory is not None:
            values["memory"] = self._memory
        return values

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned.

        Raises:
            ValueError: the saved state does not fit this manager.
        """
        if ("memory" in state) != (self._memory is not None):
            raise ValueError(
                "The saved state and this manager disagree on whether the draws of events are kept "
                "(to reapply them when variants change): load it with the configuration and "
                "version that saved it."
            )
        super().load_state_dict(self._of_this_version(state))
        if self._memory is not None:
            self._memory.load_state_dict(state["memory"])

    def _of_this_version(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return a state as it would be saved now."""
        state = dict(state)
        # Checkpoints before world-keyed random numbers have the numbers of prepared events.
        state["terms"] = dict(state["terms"])
        for name in self._prepared:
            state["terms"].pop(name, None)
        # Those before `with_term` have a table of their own for timers that worlds share.
        if "_global_time_left" in state:
            tables = {True: iter(state["_global_time_left"]), False: iter(state["_time_left"])}
            time_left = self._time_left.clone()
            for left, name in zip(time_left, self._timed(), strict=True):
                left.copy_(next(tables[self._terms[name].is_global_time]))
            state["_time_left"] = time_left
        # Those before `_NEVER` have a mask of the worlds in which there has been an event.
        if "_triggered_once" in state:
            last_step: dict[str, torch.Tensor] = {}
            for name, last in state["_last_step"].items():
                last_step[name] = torch.where(state["_triggered_once"][name], last, _NEVER)
            state["_last_step"] = last_step
        return state


def _end_episodes(term: EpisodeEvent, worlds: Worlds) -> None:
    ended: Any = worlds.for_call(term.end_episodes)
    if ended is not None:
        term.end_episodes(ended)


class _PreparedEvent:
    """Event function with the attribute `prepare`, which builds the event for many calls.

    `prepare(env, **params)` checks the parameters and returns a function that is called as
    `function(env, env_ids)`, with any number of worlds, also none. It is built at the first call,
    and again after a change of the parameters, which a curriculum may edit in place.

    Args:
        func: the function, or a partial of it.
    """

    def __init__(self, func: EventTerm) -> None:
        self.func = func
        """The function, as the term's config names it."""
        self._fixed: Mapping[str, object] = {}
        if isinstance(func, functools.partial):
            self._fixed = func.keywords
        self._params: object = None
        self._built: Callable[..., object] | None = None

    def build(self, env: ManagerBasedRlEnv, params: Mapping[str, object]) -> Callable[..., object]:
        """Return the event for these parameters.

        Raises:
            Exception: the parameters are wrong.
        """
        params = {**self._fixed, **params}
        built = self._built
        if built is None or params != self._params:
            function: Any = plain_function(self.func)
            built = function.prepare(env, **params)
            self._built = built
            self._params = _snapshot(params)
        return built


def _snapshot(value: object) -> object:
    """Copy the parts of parameters that may be edited in place."""
    if isinstance(value, SceneEntityCfg):
        return copy.deepcopy(value)
    if isinstance(value, Mapping):
        return {key: _snapshot(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_snapshot(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_snapshot(item) for item in value)
    return value


def _without(items: Mapping[str, T], name: str) -> dict[str, T]:
    """Return a copy without one item, if it is there."""
    return {other: item for other, item in items.items() if other != name}
