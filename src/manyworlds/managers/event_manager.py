"""Events: what happens to worlds at startup, at resets, and while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import torch

from manyworlds.managers.event_memory import EventMemory, plain_function
from manyworlds.managers.manager_base import EventTerm, ManagerBase, ManagerTermBaseCfg
from manyworlds.sim import RecomputeLevel
from manyworlds.sim.fields.model_fields import derived_fields
from manyworlds.validation.worlds import EnvIds, Worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

__all__ = [
    "EventManager",
    "EventMode",
    "EventTermCfg",
    "RecomputeLevel",
    "requires_model_fields",
]

F = TypeVar("F", bound=Callable[..., Any])
_DUE = 1e-6  # a timer with less time left has run out, whatever rounding left of it [s]

EventMode = Literal["startup", "reset", "interval", "step"]


def requires_model_fields(
    *fields: str, recompute: RecomputeLevel = RecomputeLevel.none
) -> Callable[[F], F]:
    """Declare which model fields an event changes, on its function or class.

    The event manager gives each of them one row per world. After the event it recomputes what
    derives from them, in the worlds concerned: as much as the table of model fields says for the
    engine in use, and at least `recompute`.
    """

    def declare(func: F) -> F:
        func.model_fields = fields  # type: ignore[attr-defined]
        func.recompute = recompute  # type: ignore[attr-defined]
        return func

    return declare


@dataclass(kw_only=True)
class EventTermCfg(ManagerTermBaseCfg):
    """One event; called as `func(env, env_ids, **params)`."""

    func: EventTerm
    """Changes the worlds named; a class is first instantiated with `cfg=` and `env=`."""
    mode: EventMode
    """When it happens: once at startup, at resets, at random intervals, or every control step."""
    interval_range_s: tuple[float, float] | None = None
    """Bounds of the time between two events of mode 'interval' [s]."""
    is_global_time: bool = False
    """Whether all worlds share one interval timer."""
    min_step_count_between_reset: int = 0
    """Control steps that must pass in a world before a reset triggers the event again."""


class EventManager(ManagerBase[EventTermCfg]):
    """Applies events by mode.

    Events of mode 'reset' are given ids of worlds, those of the other modes None for all worlds.
    Which worlds' intervals ran out `tick` tells on the device, for the one read of a step.
    """

    state_attributes = ("_time_left", "_global_time_left", "_last_step", "_triggered_once")
    derived_attributes = ("touched",)
    _shown = ("mode", "interval_range_s")

    def __init__(self, cfg: Mapping[str, EventTermCfg | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        for name, term in self._terms.items():
            self._check(name, term)
        self.touched = self._worlds([])
        """The worlds that the last events happened in, maybe repeated."""
        self._modes: dict[EventMode, list[str]] = {}
        for name, term in self._terms.items():
            self._modes.setdefault(term.mode, []).append(name)
        timed = [self._terms[name] for name in self._modes.get("interval", ())]
        self._low, self._span = self._ranges([t for t in timed if not t.is_global_time])
        self._global_low, self._global_span = self._ranges([t for t in timed if t.is_global_time])
        self._global_low, self._global_span = self._global_low.cpu(), self._global_span.cpu()
        self._time_left = self._draw(self._low, self._span, self.num_envs)
        self._global_time_left = self._draw(self._global_low, self._global_span, 1)
        self._all_ids = torch.arange(self.num_envs, device=self.device)
        throttled = [n for n, t in self._terms.items() if t.min_step_count_between_reset > 0]
        self._last_step = {name: torch.zeros_like(self._all_ids) for name in throttled}
        self._triggered_once = {
            name: torch.zeros_like(self._all_ids, dtype=torch.bool) for name in throttled
        }
        self._fields: dict[str, None] = {}  # in the order of the terms, each once
        self._levels: dict[str, RecomputeLevel] = {}
        for name, term in self._terms.items():
            fields, level = _declared(term.func)
            self._fields.update(dict.fromkeys(fields))
            self._levels[name] = max(level, env.sim.recompute_level(fields))
        memory = EventMemory(env.sim, self._terms, lambda n, w: self._call(n, self._terms[n], w))
        self._memory = memory if memory else None
        env.sim.after_assignment = memory.apply_again if memory else None

    @property
    def active_terms(self) -> dict[EventMode, list[str]]:
        """Names of the terms by mode."""
        return {mode: list(names) for mode, names in self._modes.items()}

    @property
    def available_modes(self) -> list[EventMode]:
        """Modes that have terms."""
        return list(self._modes)

    @property
    def domain_randomization_fields(self) -> tuple[str, ...]:
        """Model fields that events change, and those that are then recomputed, each once."""
        level = max(self._levels.values(), default=RecomputeLevel.none)
        return tuple(dict.fromkeys([*self._fields, *derived_fields(level)]))

    def check_terms(self) -> None:
        """Call terms that accept it for no world, which tells of wrong parameters at build time."""
        for name, term in self._terms.items():
            if getattr(plain_function(term.func), "accepts_no_worlds", False):
                self._call(name, term, self._all_ids[:0])

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Restart the interval timers of the worlds named."""
        if len(self._time_left):
            ids = self._worlds(env_ids).rows
            # Drawn for all worlds, so that random numbers do not depend on how many are reset.
            drawn = self._draw(self._low, self._span, self.num_envs)
            self._time_left[:, ids] = drawn[:, ids]
        return super().reset(env_ids)

    def randomize_timers(self) -> None:
        """Multiply the time left of each interval timer by a random number in [0, 1).

        The timers then have the phases of worlds that have run for long.
        """
        for left in (self._time_left, self._global_time_left):
            left.mul_(torch.rand_like(left))

    def apply(
        self,
        mode: EventMode,
        env_ids: EnvIds = None,
        dt: float | None = None,
        global_env_step_count: int | None = None,
        due: np.ndarray | None = None,
    ) -> bool:
        """Apply all events of a mode; return whether any happened, `touched` tells where.

        Args:
            mode: which events.
            env_ids: the worlds concerned; None for all. Not for mode 'interval'.
            dt: time since the last call [s], for modes 'interval' and 'step'.
            global_env_step_count: control steps so far, for mode 'reset'.
            due: what `tick` returned for this `dt`, for mode 'interval'; None calls it.

        Raises:
            ValueError: an argument that the mode needs is missing, or one that it cannot use is
                given.
        """
        if mode in ("interval", "step") and dt is None:
            raise ValueError(
                f"Events of mode '{mode}' need dt: pass the control period in seconds."
            )
        if mode == "interval" and env_ids is not None:
            raise ValueError("Events of mode 'interval' pick their worlds: do not pass env_ids.")
        if mode == "reset" and global_env_step_count is None:
            raise ValueError("Events of mode 'reset' need global_env_step_count.")
        if mode not in self._modes:
            return False
        if mode == "interval":
            return self._apply_intervals(self.tick(dt or 0.0).cpu().numpy() if due is None else due)
        fired: list[tuple[RecomputeLevel, Worlds]] = []
        concerned = self._worlds(env_ids)
        for i, name in enumerate(self._modes[mode]):
            term, worlds = self._terms[name], concerned
            if mode == "reset" and term.min_step_count_between_reset > 0:
                ids = self._ready(name, term, concerned.ids, global_env_step_count or 0)
                worlds = self._worlds(ids)
            if worlds:
                self._happen(name, worlds, self._modes[mode][i + 1 :], concerned)
                fired.append((self._levels[name], worlds))
        return self._recompute(fired)

    def state_dict(self) -> dict[str, Any]:
        """State of the manager and of its terms, and what they drew, where that is kept."""
        kept = {} if self._memory is None else {"memory": self._memory.state_dict()}
        return {**super().state_dict(), **kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned.

        Raises:
            ValueError: the saved state does not fit this manager.
        """
        if ("memory" in state) != (self._memory is not None):
            raise ValueError(
                "The saved state has draws of events to apply again after changes of variants, or "
                "lacks them: was it saved from another configuration, or by an older version?"
            )
        super().load_state_dict(state)
        if self._memory is not None:
            self._memory.load_state_dict(state["memory"])

    def tick(self, dt: float) -> torch.Tensor:
        """Let `dt` [s] go by for interval events; tell where those with own timers are due.

        Returns:
            A row of flags for each of these terms, on the device, shape [num_terms, num_envs].
        """
        self._global_time_left.sub_(dt)
        return self._time_left.sub_(dt) < _DUE

    def _apply_intervals(self, due: np.ndarray) -> bool:
        shared = (self._global_time_left < _DUE).numpy()
        if due.any():
            drawn = self._draw(self._low, self._span, self.num_envs)
            torch.where(self._time_left < _DUE, drawn, self._time_left, out=self._time_left)
        if shared.any():
            drawn = self._draw(self._global_low, self._global_span, 1)
            self._global_time_left.copy_(
                torch.where(torch.from_numpy(shared), drawn, self._global_time_left)
            )
        rows, flags = iter(due), iter(shared[:, 0])
        fired: list[tuple[RecomputeLevel, Worlds]] = []
        for name in self._modes["interval"]:
            shared_timer = self._terms[name].is_global_time
            ids = (None if next(flags) else []) if shared_timer else np.flatnonzero(next(rows))
            if worlds := self._worlds(ids):
                self._happen(name, worlds)
                fired.append((self._levels[name], worlds))
        return self._recompute(fired)

    def _happen(
        self,
        name: str,
        worlds: Worlds,
        following: Sequence[str] = (),
        within: Worlds | None = None,
    ) -> None:
        """Let a term happen in some worlds, before others of its mode happen in worlds `within`."""
        term, memory = self._terms[name], self._memory
        ids = worlds.ids if term.mode == "reset" else worlds.ids_or_none
        if memory is None:
            self._call(name, term, ids)
            return
        due = [other for other in following if other not in self._last_step]  # throttled
        with memory.happening(name, worlds, due, within if due and within is not None else worlds):
            self._call(name, term, ids)

    def _recompute(self, fired: list[tuple[RecomputeLevel, Worlds]]) -> bool:
        """Recompute the strongest level once, for the worlds of all terms that ask for any."""
        if asking := [each for each in fired if each[0] > RecomputeLevel.none]:
            worlds = Worlds.union([worlds for _, worlds in asking])
            self._env.sim.recompute_constants(max(level for level, _ in asking), worlds)
        if fired:
            self.touched = Worlds.union([worlds for _, worlds in fired])
        return bool(fired)

    def _ready(
        self, name: str, term: EventTermCfg, env_ids: torch.Tensor, step: int
    ) -> torch.Tensor:
        """Those of the worlds that were not treated too recently; waits for the device."""
        last, once = self._last_step[name], self._triggered_once[name]
        waited = step - last[env_ids] >= term.min_step_count_between_reset
        ids = env_ids[waited | ~once[env_ids]]
        last[ids] = step
        once[ids] = True
        return ids

    def _ranges(self, terms: list[EventTermCfg]) -> tuple[torch.Tensor, torch.Tensor]:
        """Shortest interval and spread of intervals of each term [s], shapes [num_terms, 1]."""
        bounds = torch.tensor([t.interval_range_s for t in terms]).reshape(-1, 2).to(self.device)
        return bounds[:, :1], bounds[:, 1:] - bounds[:, :1]

    @staticmethod
    def _draw(low: torch.Tensor, span: torch.Tensor, count: int) -> torch.Tensor:
        """Draw intervals [s], shape [num_terms, count]."""
        return low + span * torch.rand(len(low), count, device=low.device)

    def _check(self, name: str, term: EventTermCfg) -> None:
        if term.mode not in get_args(EventMode):
            raise ValueError(
                f"EventManager term '{name}' has mode '{term.mode}': "
                f"choose one of {', '.join(get_args(EventMode))}."
            )
        if term.mode == "interval" and term.interval_range_s is None:
            raise ValueError(
                f"EventManager term '{name}' of mode 'interval' needs interval_range_s."
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
    """What `requires_model_fields` says of a term."""
    func = plain_function(func)
    return getattr(func, "model_fields", ()), getattr(func, "recompute", RecomputeLevel.none)
