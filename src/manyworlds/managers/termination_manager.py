"""Termination terms and their manager: the end of episodes, by failure, success or time limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg, TensorTerm
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass
class TerminationTermCfg(ManagerTermBaseCfg[TensorTerm]):
    """Configuration of a termination term; `func(env, **params)` returns booleans, [num_envs]."""

    func: TensorTerm
    """Function that returns booleans of shape [num_envs]; a class is first instantiated with `cfg=`
    and `env=`."""
    time_out: bool = False
    """True for a time limit (truncation) rather than a failure or success."""


class TerminationManager(ManagerBase[TerminationTermCfg]):
    """Manager of termination terms, which determine the episodes that end."""

    state_attributes = ("_dones", "_terminated", "_time_outs")
    world_columns = ("_dones",)
    _shown = ("time_out",)

    def __init__(
        self, cfg: Mapping[str, TerminationTermCfg | None], env: ManagerBasedRlEnv
    ) -> None:
        super().__init__(env)
        self._terms = self._prepare_all(cfg)
        shape = (len(self._terms), self.num_envs)
        self._dones = torch.zeros(shape, dtype=torch.bool, device=self.device)
        self._term_dones = dict(zip(self._terms, self._dones.unbind(0), strict=True))
        """Mask of the episodes that each term ended in the last step, shape [num_envs]."""
        self._terminated = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._time_outs = torch.zeros_like(self._terminated)

    @property
    def terminated(self) -> torch.Tensor:
        """Mask of episodes that ended for a reason other than time, shape [num_envs]."""
        return self._terminated

    @property
    def time_outs(self) -> torch.Tensor:
        """Mask of episodes that reached a time limit, shape [num_envs]."""
        return self._time_outs

    @property
    def dones(self) -> torch.Tensor:
        """Mask of episodes that ended, shape [num_envs]."""
        return self._terminated | self._time_outs

    def get_term(self, name: str) -> torch.Tensor:
        """Return a mask of the episodes that a term ended in the last step, shape [num_envs]."""
        self.get_term_cfg(name)
        return self._term_dones[name]

    def get_active_iterable_terms(self, env_idx: int) -> Sequence[tuple[str, Sequence[float]]]:
        """Return 1 for each term that ended the world's episode in the last step, else 0."""
        values = self._dones[:, env_idx].float().tolist()
        return [(name, [value]) for name, value in zip(self._terms, values, strict=True)]

    def compute(self) -> torch.Tensor:
        """Evaluate all terms; return `dones`, shape [num_envs].

        Raises:
            ValueError: a term returns a shape other than [num_envs], or no booleans.
        """
        self._terminated.zero_()
        self._time_outs.zero_()
        for name, term in self._terms.items():
            value = self._call_per_world(name, term)
            if value.is_floating_point():
                raise ValueError(
                    f"{self.kind} term '{name}' returned {value.dtype} numbers, expected booleans: "
                    "compare them with a bound, as in `height < 0.2`."
                )
            self._term_dones[name].copy_(value)
            if term.time_out:
                self._time_outs.logical_or_(value)
            else:
                self._terminated.logical_or_(value)
        return self._terminated | self._time_outs

    def clear(self, env_ids: EnvIds = None) -> None:
        """Forget which terms ended episodes in the given worlds in the last step."""
        worlds = self._worlds(env_ids)
        worlds.put(self._dones, False, dim=1)
        worlds.put(self._terminated, False)
        worlds.put(self._time_outs, False)

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Reset given worlds; log the number of their episodes that each term ended, shape []."""
        worlds = self._worlds(env_ids)
        counts = worlds.sum(self._dones, dim=1)
        if worlds.is_masked:  # there may be none, of which there is nothing to log
            counts = torch.where(worlds.mask.any(), counts.float(), torch.nan)
        log = {f"Episode_Termination/{name}": counts[i] for i, name in enumerate(self._terms)}
        super().reset(worlds)
        return log
