"""Events: what happens to worlds at startup, at resets, and while they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg
from manyworlds.utils.indices import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

EventMode = Literal["startup", "reset", "interval", "step"]


@dataclass(kw_only=True)
class EventTermCfg(ManagerTermBaseCfg):
    """One event; called as `func(env, env_ids, **params)`."""

    mode: EventMode
    """When it happens: once at startup, at resets, at random intervals, or every control step."""
    interval_range_s: tuple[float, float] | None = None
    """Bounds of the time between two events of mode 'interval' [s]."""
    is_global_time: bool = False
    """Whether all worlds share one interval timer."""
    min_step_count_between_reset: int = 0
    """Control steps that must pass in a world before a reset triggers the event again."""


class EventManager(ManagerBase[EventTermCfg]):
    """Applies events by mode."""

    state_attributes = ("_time_left", "_last_step", "_triggered_once")

    def __init__(self, cfg: Mapping[str, EventTermCfg | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self._time_left: dict[str, torch.Tensor] = {}
        self._last_step: dict[str, torch.Tensor] = {}
        self._triggered_once: dict[str, torch.Tensor] = {}
        for name, term in self._terms.items():
            self._check(name, term)
            if term.mode == "interval":
                count = 1 if term.is_global_time else self.num_envs
                self._time_left[name] = self._sample_interval(term, count)
            elif term.mode == "reset":
                self._last_step[name] = torch.zeros(
                    self.num_envs, dtype=torch.long, device=self.device
                )
                self._triggered_once[name] = torch.zeros(
                    self.num_envs, dtype=torch.bool, device=self.device
                )

    @property
    def active_terms(self) -> dict[EventMode, list[str]]:
        """Names of the terms by mode."""
        terms: dict[EventMode, list[str]] = {}
        for name, term in self._terms.items():
            terms.setdefault(term.mode, []).append(name)
        return terms

    @property
    def available_modes(self) -> list[EventMode]:
        """Modes that have terms."""
        return list(self.active_terms)

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Restart the interval timers of the worlds named."""
        ids = slice(None) if env_ids is None else env_ids
        for name, timer in self._time_left.items():
            term = self._terms[name]
            if not term.is_global_time:
                timer[ids] = self._sample_interval(term, timer[ids].numel())
        return super().reset(env_ids)

    def apply(
        self,
        mode: EventMode,
        env_ids: torch.Tensor | None = None,
        dt: float | None = None,
        global_env_step_count: int | None = None,
    ) -> bool:
        """Apply all events of a mode; return whether any happened.

        Args:
            mode: which events.
            env_ids: the worlds concerned; None for all. Not for mode 'interval'.
            dt: time since the last call [s], for modes 'interval' and 'step'.
            global_env_step_count: control steps so far, for mode 'reset'.

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
        happened = False
        for name, term in self._terms.items():
            if term.mode != mode:
                continue
            ids = env_ids
            if mode == "interval":
                ids = self._due(name, term, dt or 0.0)
            elif mode == "reset" and term.min_step_count_between_reset > 0:
                ids = self._ready(name, term, env_ids, global_env_step_count or 0)
            if ids is None or len(ids):
                self._call(name, term, ids)
                happened = True
        return happened

    def _due(self, name: str, term: EventTermCfg, dt: float) -> torch.Tensor | None:
        """Worlds whose interval ran out, an empty tensor for none, or None for all."""
        timer = self._time_left[name]
        timer -= dt
        due = (timer < 1e-6).nonzero().squeeze(-1)
        if len(due):
            timer[due] = self._sample_interval(term, len(due))
        return None if term.is_global_time and len(due) else due

    def _ready(
        self, name: str, term: EventTermCfg, env_ids: torch.Tensor | None, step: int
    ) -> torch.Tensor:
        if env_ids is None:
            env_ids = torch.arange(self.num_envs, device=self.device)
        last, once = self._last_step[name], self._triggered_once[name]
        waited = step - last[env_ids] >= term.min_step_count_between_reset
        ids = env_ids[waited | ~once[env_ids]]
        last[ids] = step
        once[ids] = True
        return ids

    def _sample_interval(self, term: EventTermCfg, count: int) -> torch.Tensor:
        low, high = term.interval_range_s or (0.0, 0.0)
        return torch.rand(count, device=self.device) * (high - low) + low

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
