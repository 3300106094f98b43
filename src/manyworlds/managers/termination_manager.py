"""Terminations: when an episode ends, and whether it merely ran out of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg, TensorTerm
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class TerminationTermCfg(ManagerTermBaseCfg):
    """One condition; `func(env, **params)` returns booleans of shape [num_envs]."""

    func: TensorTerm
    """Returns booleans of shape [num_envs]; a class is first instantiated with `cfg=`, `env=`."""
    time_out: bool = False
    """Whether it is a limit on time (truncation) rather than a failure or success."""


class TerminationManager(ManagerBase[TerminationTermCfg]):
    """Tells which episodes end."""

    state_attributes = ("_term_dones", "_terminated", "_time_outs")
    _shown = ("time_out",)

    def __init__(
        self, cfg: Mapping[str, TerminationTermCfg | None], env: ManagerBasedRlEnv
    ) -> None:
        super().__init__(cfg, env)
        shape = (len(self._terms), self.num_envs)
        self._term_dones = torch.zeros(shape, dtype=torch.bool, device=self.device)
        self._rows = self._term_dones.unbind(0)
        self._terminated = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._time_outs = torch.zeros_like(self._terminated)
        for name, term in self._terms.items():
            self._check_shape(name, self._call(name, term))

    @property
    def terminated(self) -> torch.Tensor:
        """Episodes that ended for a reason other than time, shape [num_envs]."""
        return self._terminated

    @property
    def time_outs(self) -> torch.Tensor:
        """Episodes that ran out of time, shape [num_envs]."""
        return self._time_outs

    @property
    def dones(self) -> torch.Tensor:
        """Episodes that ended, shape [num_envs]."""
        return self._terminated | self._time_outs

    def get_term(self, name: str) -> torch.Tensor:
        """Return which episodes a term ended in the last step, shape [num_envs]."""
        self.get_term_cfg(name)
        return self._rows[self.active_terms.index(name)]

    def get_active_iterable_terms(self, env_idx: int) -> Sequence[tuple[str, Sequence[float]]]:
        """Return 1 for each term that ended one world's episode in the last step, else 0."""
        values = self._term_dones[:, env_idx].float().tolist()
        return [(name, [value]) for name, value in zip(self._terms, values, strict=True)]

    def compute(self) -> torch.Tensor:
        """Evaluate all conditions; return `dones`.

        Raises:
            ValueError: a term returns another shape than [num_envs].
        """
        self._terminated.zero_()
        self._time_outs.zero_()
        for row, (name, term) in zip(self._rows, self._terms.items(), strict=True):
            value = self._call(name, term)
            self._check_shape(name, value)
            row.copy_(value)
            (self._time_outs if term.time_out else self._terminated).logical_or_(value)
        return self.dones

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Log how many of the finished episodes each term ended."""
        worlds = self._worlds(env_ids)
        counts = self._term_dones[:, worlds.rows].sum(dim=1)
        log = {f"Episode_Termination/{name}": counts[i] for i, name in enumerate(self._terms)}
        super().reset(worlds)
        return log
