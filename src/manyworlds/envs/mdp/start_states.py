"""Resets to start states from easy to hard, of which successes open the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers.event_manager import EpisodeEvent, EventTermCfg
from manyworlds.managers.manager_base import EventFunc, TensorFunc
from manyworlds.validation.worlds import EnvIds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_MEMORY = 300
"""Number of episodes of one kind over which its rate of success is averaged."""
_FLOOR = 0.1
"""Failure rate that is added to each kind, so that no kind is forgotten."""


class reset_to_start_states(EpisodeEvent):  # noqa: N801
    """Event of mode 'reset' that starts episodes in states of several kinds, easy ones first.

    A kind is open once the one before it has succeeded at the rate `opens_at`. Episodes are shared
    among open kinds in proportion to their rates of failure plus 0.1. The term comes after events
    that set the same state, because the kinds change only a part of it.

    Raises:
        ValueError: the event's mode is not 'reset', there are no kinds, or `opens_at` is not
            between 0 and 1.
    """

    state_attributes = ("_kind", "rates", "_open")
    derived_attributes = ("_cfg",)

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._cfg = cfg
        kinds = cfg.params["kinds"]
        opens_at = cfg.params.get("opens_at", 0.5)
        if cfg.mode != "reset":
            raise ValueError(
                f"reset_to_start_states sets the states of new episodes, but its mode is "
                f"'{cfg.mode}': use 'reset'."
            )
        if not kinds:
            raise ValueError("reset_to_start_states has no kinds: give functions by name.")
        if not 0.0 < opens_at < 1.0:
            raise ValueError(
                f"reset_to_start_states: opens_at is a rate between 0 and 1, got {opens_at}."
            )
        self.names = tuple(kinds)
        """Names of the kinds, in order of difficulty."""
        with torch.inference_mode(False):
            self.rates = torch.zeros(len(kinds), device=self.device)
            """Rates of success by kind, a moving average, shape [kinds]."""
            self._open = torch.zeros(len(kinds), dtype=torch.bool, device=self.device)
            self._open[0] = True
            self._kind = torch.full((self.num_envs,), -1, device=self.device)

    @property
    def shares(self) -> torch.Tensor:
        """Shares of new episodes by kind, shape [kinds]."""
        weights = self._open * (1.0 + _FLOOR - self.rates)
        return weights / weights.sum()

    @takes_worlds
    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: EnvIds,
        kinds: Mapping[str, EventFunc],
        success: TensorFunc,
        opens_at: float = 0.5,
    ) -> None:
        """Start new episodes.

        Args:
            env: the environment.
            env_ids: ids of the worlds; None for all.
            kinds: functions that set a start state, called as `func(env, env_ids)`, by name; the
                easiest first.
            success: function that returns whether each world's episode has succeeded, called as
                `func(env)` when episodes end, booleans of shape [num_envs].
            opens_at: rate of success of a kind that opens the next one.
        """
        worlds = self._worlds(env_ids)
        self._open[1:] |= self._open[:-1] & (self.rates[:-1] >= opens_at)
        drawn = self.random.choice(self.shares, worlds)
        worlds.put(self._kind, drawn)
        for index, start in enumerate(kinds.values()):
            chosen = worlds.where(drawn == index)
            given: Any = None
            if chosen:
                given = chosen.for_call(start)
            if given is not None:
                start(env, given)

    @takes_worlds
    def end_episodes(self, env_ids: EnvIds) -> None:
        """Count the episodes that end; see `__call__`."""
        success: TensorFunc = self._cfg.params["success"]
        worlds = self._worlds(env_ids)
        kinds = worlds.take(self._kind)
        successes = worlds.take(success(self._env)).float()
        # The rates move toward the mean of these episodes.
        counted = kinds[:, None] == torch.arange(len(self.names), device=self.device)
        if worlds.is_masked:
            counted &= worlds.mask[:, None]
        of_kind = counted.float()
        counts = of_kind.sum(dim=0)
        mean = of_kind.T @ successes / counts.clamp(min=1.0)
        self.rates.lerp_(mean, (counts / _MEMORY).clamp(max=1.0))


@takes_worlds
def start_state_rates(
    env: ManagerBasedRlEnv, env_ids: EnvIds, event_name: str
) -> dict[str, torch.Tensor]:
    """Return the rates of success of a `reset_to_start_states` event by kind, shape [] each.

    Args:
        env: the environment.
        env_ids: unused, because all worlds share the rates.
        event_name: name of the event.

    Raises:
        TypeError: the event is of another type.
    """
    term = env.event_manager.get_term_cfg(event_name).func
    if not isinstance(term, reset_to_start_states):
        raise TypeError(f"Event '{event_name}' is not a reset_to_start_states: {term!r}.")
    return dict(zip(term.names, term.rates.clone().unbind(), strict=True))
