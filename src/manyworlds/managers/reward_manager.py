"""Reward terms and their manager: a weighted sum of terms."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg, TensorTerm
from manyworlds.managers.not_finite import is_not_finite
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

RewardNanPolicy = Literal["warn", "sanitize", "error"]


@dataclass(kw_only=True)
class RewardTermCfg(ManagerTermBaseCfg[TensorTerm]):
    """Configuration of a reward term; `func(env, **params)` returns shape [num_envs]."""

    func: TensorTerm
    """Function that returns values of shape [num_envs]; a class is first instantiated with `cfg=`
    and `env=`."""
    weight: float
    """Factor of the term; a term of weight 0 is not computed."""
    nan_policy: RewardNanPolicy = "warn"
    """Handling of values that are not finite: count as zero with one warning, count as zero
    silently, or raise. `Status/nan_reward` in the log counts the worlds."""


class RewardManager(ManagerBase[RewardTermCfg]):
    """Manager of reward terms: the reward is the sum of `weight * term * dt`.

    Values that are not finite count as zero, as `RewardTermCfg.nan_policy` says.

    Args:
        cfg: the terms by name.
        env: the environment.
        scale_by_dt: multiply by the control period, so that returns do not depend on it.

    Raises:
        ValueError: a term has a `weight` that is no number, or an unknown `nan_policy`.
    """

    state_attributes = ("_sums", "_step_reward")
    derived_attributes = ("_bad",)
    not_finite_status = "nan_reward"
    not_finite_effect = "where it counts as zero"
    _shown = ("weight",)

    def __init__(
        self,
        cfg: Mapping[str, RewardTermCfg | None],
        env: ManagerBasedRlEnv,
        scale_by_dt: bool = True,
    ) -> None:
        super().__init__(env)
        self._terms = self._prepare_all(cfg)
        self._scale_by_dt = scale_by_dt
        self._step_reward = torch.zeros(self.num_envs, len(self._terms), device=self.device)
        self._bad = torch.zeros_like(self._step_reward, dtype=torch.bool)
        self._columns = self._step_reward.unbind(1)
        self._sums = torch.zeros_like(self._step_reward)
        self._episode_sums = dict(zip(self._terms, self._sums.unbind(1), strict=True))
        """Sum of each weighted term over the running episode, shape [num_envs]."""
        for name, term in self._terms.items():
            if not isinstance(term.weight, numbers.Real):
                raise ValueError(
                    f"{self.kind} term '{name}' has weight {term.weight!r}, a "
                    f"{type(term.weight).__name__}: give a number."
                )
            if term.nan_policy not in get_args(RewardNanPolicy):
                raise ValueError(
                    f"{self.kind} term '{name}' has nan_policy '{term.nan_policy}': choose one of "
                    f"{', '.join(get_args(RewardNanPolicy))}."
                )

    @property
    def step_reward(self) -> torch.Tensor:
        """Weighted terms of the last step, not scaled by dt, shape [num_envs, num_terms]."""
        return self._step_reward

    def get_active_iterable_terms(self, env_idx: int) -> Sequence[tuple[str, Sequence[float]]]:
        """Return each weighted term of the last step in one world, not scaled by dt."""
        values = self._step_reward[env_idx].tolist()
        return [(name, [value]) for name, value in zip(self._terms, values, strict=True)]

    def compute(self, dt: float) -> torch.Tensor:
        """Compute the reward of a control step of `dt` [s], shape [num_envs].

        Raises:
            ValueError: a term returns a shape other than [num_envs].
        """
        for column, (name, term) in zip(self._columns, self._terms.items(), strict=True):
            if term.weight == 0.0:
                column.zero_()
                continue
            torch.mul(self._call_per_world(name, term), term.weight, out=column)
        self._bad = is_not_finite(self._step_reward)
        self._step_reward.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
        scale = dt if self._scale_by_dt else 1.0
        self._sums.add_(self._step_reward, alpha=scale)
        return self._step_reward.sum(dim=1).mul_(scale)

    def not_finite(self) -> torch.Tensor:
        """Return a mask of worlds with a term that was not finite, shape [num_envs]."""
        return self._bad.any(dim=1)

    def not_finite_terms(self) -> dict[str, torch.Tensor]:
        """Return masks of worlds by term, shape [num_envs]."""
        return dict(zip(self._terms, self._bad.unbind(1), strict=True))

    def nan_policy(self, term_name: str) -> str:
        """Return the policy of a term."""
        return self._terms[term_name].nan_policy

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Reset given worlds; log each term's mean over their episodes, per second, shape [].

        If the environment has no episode length, log the mean sum.
        """
        worlds = self._worlds(env_ids)
        means = worlds.mean(self._sums) / (self._env.max_episode_length_s or 1.0)
        log = {f"Episode_Reward/{name}": means[i] for i, name in enumerate(self._terms)}
        worlds.put(self._sums, 0.0)
        super().reset(worlds)
        return log
