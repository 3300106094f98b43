"""Event terms and their manager: changes to worlds at startup, at resets and during episodes."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import torch

from manyworlds.managers.event_memory import EventMemory
from manyworlds.managers.manager_base import (
    EventTerm,
    ManagerBase,
    ManagerTermBase,
    ManagerTermBaseCfg,
)
from manyworlds.managers.prepared_event import PreparedEvent, plain_function
from manyworlds.sim import RecomputeLevel
from manyworlds.sim.fields.model_fields import derived_fields
from manyworlds.utils.clocks import count_down
from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import RandomStream
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
_ONCE = 2**62  # control steps between two events in a world: no second one

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


class EpisodeEvent(ManagerTermBase):
    """Base of event terms that take note of the end of episodes."""

    @abstractmethod
    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Take note of episodes that end; all state is still theirs.

        Args:
            env_ids: ids of the worlds, shape [n]; possibly none.
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

    state_attributes = ("_time_left", "_global_time_left", "_last_step", "_triggered_once")
    # The tables of terms change only by edits, which restore them; see `put`.
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
    shared_attributes = ("_global_time_left",)
    _shown = ("mode", "interval_range_s")

    def __init__(self, cfg: Mapping[str, EventTermCfg | None], env: ManagerBasedRlEnv) -> None:
        self._prepared: dict[str, PreparedEvent] = {}
        super().__init__(env)
        self._terms = self._prepare_all(cfg)
        for name, term in self._terms.items():
            self._check(name, term)
        self._index()
        self._begin_timers()
        self._all_ids = torch.arange(self.num_envs, device=self.device)
        throttled = [n for n, t in self._terms.items() if t.min_step_count_between_reset > 0]
        self._last_step = {name: torch.zeros_like(self._all_ids) for name in throttled}
        self._triggered_once = {
            name: torch.zeros_like(self._all_ids, dtype=torch.bool) for name in throttled
        }

    def _index(self) -> None:
        """Sort the terms by mode, and find what they change."""
        self._modes: dict[EventMode, list[str]] = {}
        for name, term in self._terms.items():
            self._modes.setdefault(term.mode, []).append(name)
        self._fields: dict[str, None] = {}  # in the order of the terms, without duplicates
        self._levels: dict[str, RecomputeLevel] = {}
        sim = self._env.sim
        for name, term in self._terms.items():
            fields, level = _declared(term.func)
            self._fields.update(dict.fromkeys(fields))
            self._levels[name] = max(level, sim.recompute_level(fields))
        memory = EventMemory(sim, self._terms, self._streams, self.call)
        self._memory = memory if memory else None
        sim.after_assignment = memory.apply_again if memory else None

    def _timed(self, shared: bool) -> list[tuple[str, EventTermCfg]]:
        """Return the terms of mode 'interval' with timers that worlds share, or with their own."""
        names = self._modes.get("interval", ())
        return [(n, t) for n in names if (t := self._terms[n]).is_global_time == shared]

    def put(self, name: str, cfg: EventTermCfg) -> Callable[[], None]:
        """Add a term, or replace one of the same name; other terms continue as they are.

        Its timers begin now, and what it remembers is kept if its class is the same. An event of
        mode 'startup' is applied in each world at its next reset, once.

        Returns:
            A function that takes the change back.

        Raises:
            Exception: the term is wrong; then nothing has changed.
        """
        before = vars(self).copy()
        after_assignment = self._env.sim.after_assignment

        def undo() -> None:
            vars(self).clear()
            vars(self).update(before)
            self._env.sim.after_assignment = after_assignment

        try:
            self._put(name, cfg)
        except BaseException:
            undo()
            raise
        return undo

    def _put(self, name: str, cfg: EventTermCfg) -> None:
        cfg = copy.deepcopy(cfg)
        if cfg.mode == "startup":
            cfg.mode = "reset"
            cfg.min_step_count_between_reset = _ONCE
        old = self._terms.get(name)
        was = self._class_terms.get(name)
        timers = self._timers()
        memory = self._memory
        self._functions = {n: f for n, f in self._functions.items() if n != name}
        self._class_terms = {n: f for n, f in self._class_terms.items() if n != name}
        self._prepared = {n: e for n, e in self._prepared.items() if n != name}
        term = self._prepare(name, cfg)
        self._check(name, term)
        if name in self._prepared:
            self._prepared[name].build(self._env, term.params)
        elif old is not None and type(was) is type(term.func) and isinstance(was, Stateful):
            self._class_terms[name].load_state_dict(was.state_dict())
        self._terms = {**self._terms, name: term}
        self._index()
        if self._memory is not None and memory is not None:
            self._memory.continue_from(memory)
        self._begin_timers()
        timers.pop(name, None)
        for other, left in self._timers().items():
            left.copy_(timers.get(other, left))
        self._last_step = {n: s for n, s in self._last_step.items() if n != name}
        self._triggered_once = {n: s for n, s in self._triggered_once.items() if n != name}
        if term.min_step_count_between_reset > 0:
            with torch.inference_mode(False):
                self._last_step[name] = torch.zeros_like(self._all_ids)
                self._triggered_once[name] = torch.zeros_like(self._all_ids, dtype=torch.bool)
        self._env.sim.expand_model_fields(self.domain_randomization_fields)

    def _timers(self) -> dict[str, torch.Tensor]:
        """Return the row of each term with an interval in the table of timers."""
        own = dict(zip((n for n, _ in self._timed(shared=False)), self._time_left, strict=True))
        shared = (n for n, _ in self._timed(shared=True))
        return own | dict(zip(shared, self._global_time_left, strict=True))

    @property
    def active_terms(self) -> dict[EventMode, list[str]]:
        """Names of the terms by mode."""
        return {mode: list(names) for mode, names in self._modes.items()}

    @property
    def available_modes(self) -> list[EventMode]:
        """Modes that have at least one term."""
        return list(self._modes)

    @property
    def domain_randomization_fields(self) -> tuple[str, ...]:
        """Model fields that events change and fields that are recomputed from them, each once."""
        level = max(self._levels.values(), default=RecomputeLevel.none)
        return tuple(dict.fromkeys([*self._fields, *derived_fields(level)]))

    def check_terms(self) -> None:
        """Build the prepared events and call them for no world.

        Raises:
            Exception: the parameters of a term are wrong.
        """
        for name in self._prepared:
            self.call(name, self._all_ids[:0])

    def call(self, name: str, env_ids: torch.Tensor | None) -> None:
        """Apply one event in some worlds, all of them for None; recompute nothing.

        Raises:
            ValueError: there is no such term.
        """
        before = self._env.random
        self._call(name, self.get_term_cfg(name), env_ids)
        self._env.random = before  # one event may apply others again

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Let terms take note of the end of episodes, before anything of their worlds is reset.

        Args:
            env_ids: ids of the worlds, shape [n].
        """
        for term in self._class_terms.values():
            if isinstance(term, EpisodeEvent):
                term.end_episodes(env_ids)

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Restart the interval timers of the given worlds; return values to log, shape []."""
        if len(self._time_left):
            worlds = self._worlds(env_ids)
            for left, (name, term) in zip(self._time_left, self._timed(shared=False), strict=True):
                left[worlds.rows] = self._interval(name, term, worlds.ids_or_none)
        return super().reset(env_ids)

    def randomize_timers(self) -> None:
        """Multiply the time left on each interval timer by a random number in [0, 1).

        Afterwards the timers have the phases of worlds that have run for a long time.
        """
        for name, left in self._timers().items():
            left.mul_(self._timer_stream(name, self._terms[name]).uniform())

    def apply(
        self,
        mode: EventMode,
        env_ids: EnvIds = None,
        dt: float | None = None,
        global_env_step_count: int | None = None,
        due: np.ndarray | None = None,
    ) -> None:
        """Apply all events of a mode.

        Args:
            mode: mode of the events.
            env_ids: the affected worlds; None for all. Not allowed for mode 'interval'.
            dt: time since the last call [s], for modes 'interval' and 'step'.
            global_env_step_count: control steps so far, for mode 'reset'.
            due: result of `tick` for this `dt`, for mode 'interval'; None calls `tick`.

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
            self._apply_intervals(self.tick(dt or 0.0).cpu().numpy() if due is None else due)
            return
        applied: list[tuple[str, Worlds]] = []
        concerned = self._worlds(env_ids)
        for i, name in enumerate(self._modes[mode]):
            term = self._terms[name]
            worlds = concerned
            if mode == "reset" and term.min_step_count_between_reset > 0:
                ids = self._ready(name, term, concerned.ids, global_env_step_count or 0)
                worlds = self._worlds(ids)
            if worlds:
                self._apply_term(name, worlds, self._modes[mode][i + 1 :], concerned)
                applied.append((name, worlds))
        self._recompute(applied)

    def saved_values(self) -> dict[str, object]:
        """Return the saved values of the manager, its terms, and the random numbers it keeps."""
        kept = {} if self._memory is None else {"memory": self._memory}
        return {**super().saved_values(), **kept}

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
        # Checkpoints of before world-keyed random numbers have the numbers of prepared events.
        terms = {n: saved for n, saved in state["terms"].items() if n not in self._prepared}
        super().load_state_dict({**state, "terms": terms})
        if self._memory is not None:
            self._memory.load_state_dict(state["memory"])

    def tick(self, dt: float) -> torch.Tensor:
        """Advance interval timers by `dt` [s]; return the terms with per-world timers that are due.

        Returns:
            Flags of these terms, on the device, shape [num_terms, num_envs].
        """
        if len(self._global_time_left):
            count_down(self._global_time_left, dt)
        if not len(self._time_left):
            return self._time_left.bool()
        return count_down(self._time_left, dt)

    def _prepare(self, name: str, term_cfg: EventTermCfg) -> EventTermCfg:
        term_cfg = super()._prepare(name, term_cfg)
        event = PreparedEvent.of(term_cfg)
        if event is not None:
            self._prepared[name] = self._class_terms[name] = event
        return term_cfg

    def _call(self, name: str, term_cfg: ManagerTermBaseCfg, *args: Any) -> Any:
        self._env.random = self._streams[name]
        event = self._prepared.get(name)
        if event is None or event.func is not term_cfg.func:  # a curriculum may name another one
            result = super()._call(name, term_cfg, *args)
            self._env.sim.restore_absent()
            return result
        try:
            return event(self._env, *args, **term_cfg.params)
        except Exception as error:
            self._blame(error, name, term_cfg.params)
            raise

    def _stateful_terms(self) -> Iterator[tuple[str, Any]]:
        for name, term in super()._stateful_terms():
            if name not in self._prepared:
                yield name, term

    def _apply_intervals(self, due: np.ndarray) -> None:
        shared = (self._global_time_left <= 0.0).numpy()
        for i, (name, term) in enumerate(self._timed(shared=True)):
            if shared[i, 0]:
                self._global_time_left[i].copy_(self._interval(name, term))
        if due.any():
            own = zip(self._timed(shared=False), self._time_left, strict=True)
            for (name, term), left in own:
                expired = left <= 0.0
                drawn = self._interval(name, term, expired)
                torch.where(expired, drawn, left, out=left)
        rows = iter(due)
        flags = iter(shared[:, 0])
        applied: list[tuple[str, Worlds]] = []
        for name in self._modes["interval"]:
            shared_timer = self._terms[name].is_global_time
            ids = (None if next(flags) else []) if shared_timer else np.flatnonzero(next(rows))
            worlds = self._worlds(ids)
            if worlds:
                self._apply_term(name, worlds)
                applied.append((name, worlds))
        self._recompute(applied)

    def _apply_term(
        self,
        name: str,
        worlds: Worlds,
        following: Sequence[str] = (),
        within: Worlds | None = None,
    ) -> None:
        """Apply a term in some worlds; other terms of its mode follow in the worlds `within`."""
        term = self._terms[name]
        memory = self._memory
        ids = worlds.ids if term.mode == "reset" else worlds.ids_or_none
        if memory is None:
            self._call(name, term, ids)
        else:
            due = [other for other in following if other not in self._last_step]  # throttled
            within = within if due and within is not None else worlds
            with memory.applying(name, worlds, due, within):
                self._call(name, term, ids)
        self._env.sim.outdate(worlds)  # terms that follow read what this one has written

    def _recompute(self, applied: Sequence[tuple[str, Worlds]]) -> None:
        """Recompute once, at the strongest level, the worlds of all terms that require it."""
        strongest = RecomputeLevel.none
        concerned: Worlds | None = None
        for name, worlds in applied:
            level = self._levels[name]
            if level > RecomputeLevel.none:
                strongest = max(strongest, level)
                concerned = worlds if concerned is None else concerned.union(worlds)
        if concerned is not None:
            self._env.sim.recompute_constants(strongest, concerned)

    def _ready(
        self, name: str, term: EventTermCfg, env_ids: torch.Tensor, step: int
    ) -> torch.Tensor:
        """Return the given worlds whose last event is old enough; synchronizes with the device."""
        last = self._last_step[name]
        once = self._triggered_once[name]
        waited = step - last[env_ids] >= term.min_step_count_between_reset
        ids = env_ids[waited | ~once[env_ids]]
        last[ids] = step
        once[ids] = True
        return ids

    def _begin_timers(self) -> None:
        """Begin all interval timers."""
        own = [self._interval(name, term) for name, term in self._timed(shared=False)]
        shared = [self._interval(name, term) for name, term in self._timed(shared=True)]
        nothing = torch.zeros(0, self.num_envs, device=self.device)
        self._time_left = torch.stack(own) if own else nothing
        self._global_time_left = torch.stack(shared).cpu() if shared else torch.zeros(0, 1)

    def _interval(
        self, name: str, term: EventTermCfg, env_ids: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Draw the time until a term's next event [s], shape [n], or [1] if worlds share it."""
        assert term.interval_range_s is not None
        low, high = term.interval_range_s
        stream = self._timer_stream(name, term)
        if not term.is_global_time:
            return stream.uniform(low, high, env_ids=env_ids)
        return stream.uniform(low, high)

    def _timer_stream(self, name: str, term: EventTermCfg) -> RandomStream:
        key = f"{self.kind}/{name}/timer"
        return self._env.random_streams.stream(key, shared=term.is_global_time)

    def _check(self, name: str, term: EventTermCfg) -> None:
        if term.mode not in get_args(EventMode):
            raise ValueError(
                f"EventManager term '{name}' has mode '{term.mode}': "
                f"choose one of {', '.join(get_args(EventMode))}."
            )
        if term.mode == "interval" and term.interval_range_s is None:
            raise ValueError(
                f"EventManager term '{name}' of mode 'interval' needs interval_range_s: "
                "give two bounds [s] with 0 <= lower <= upper."
            )
        if (
            term.interval_range_s is not None
            and not 0 <= term.interval_range_s[0] <= (term.interval_range_s[1])
        ):
            raise ValueError(
                f"EventManager term '{name}' has interval_range_s={term.interval_range_s}: "
                "give two bounds [s] with 0 <= lower <= upper."
            )


def _declared(func: Any) -> tuple[tuple[str, ...], RecomputeLevel]:
    """Return the fields and the recompute level that `requires_model_fields` declared."""
    func = plain_function(func)
    return getattr(func, "model_fields", ()), getattr(func, "recompute", RecomputeLevel.none)
