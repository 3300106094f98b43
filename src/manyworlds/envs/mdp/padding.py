"""What takes the place of columns that a bucket of worlds lacks; `BucketedRlEnv` uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers import ActionTerm, ActionTermCfg, ManagerTermBase, ObservationTermCfg

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


class PresentColumns(ManagerTermBase):
    """Mask of the columns that a bucket has, 1 or 0, shape [num_envs, total width].

    Parameters of the term:
        columns: for each part of the mask, the number of columns present, and the width.
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        parts = []
        for count, width in cfg.params["columns"]:
            parts.append((torch.arange(width) < count).float())
        self._mask = torch.cat(parts).repeat(env.num_envs, 1).to(env.device)

    def __call__(
        self, env: ManagerBasedRlEnv, columns: tuple[tuple[int, int], ...]
    ) -> torch.Tensor:
        """Return the mask."""
        return self._mask


class AbsentValues(ManagerTermBase):
    """Zeros for an optional observation that a bucket lacks, shape [num_envs, *shape].

    Parameters of the term:
        shape: shape of the observation of one world.
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._zeros = torch.zeros(env.num_envs, *cfg.params["shape"], device=env.device)

    def __call__(self, env: ManagerBasedRlEnv, shape: tuple[int, ...]) -> torch.Tensor:
        """Return the zeros."""
        return self._zeros


@dataclass(kw_only=True)
class AbsentActionCfg(ActionTermCfg):
    """Configuration of `AbsentAction`."""

    entity_name: str = ""

    def build(self, env: ManagerBasedRlEnv) -> AbsentAction:
        """Build the term."""
        return AbsentAction(self, env)


class AbsentAction(ActionTerm):
    """Action term without effect, for an optional one that a bucket lacks."""

    needs_substeps = False

    def __init__(self, cfg: AbsentActionCfg, env: ManagerBasedRlEnv) -> None:
        ManagerTermBase.__init__(self, env)  # there is no entity
        self.cfg = cfg
        self._raw_action = torch.zeros(self.num_envs, 0, device=self.device)

    @property
    def action_dim(self) -> int:
        """Zero columns."""
        return 0

    @property
    def raw_action(self) -> torch.Tensor:
        """Columns that are read, shape [num_envs, 0]."""
        return self._raw_action

    def process_actions(self, actions: torch.Tensor) -> None:
        """Ignore the actions."""

    def apply_actions(self) -> None:
        """Write nothing."""


def _plain_mask(policy: Any, data: Any, params: dict[str, Any]) -> list[float]:
    """Return the mask of `PresentColumns` in plain MuJoCo."""
    mask: list[float] = []
    for count, width in params["columns"]:
        mask += [1.0] * count + [0.0] * (width - count)
    return mask


def _plain_zeros(policy: Any, data: Any, params: dict[str, Any]) -> Any:
    """Return the zeros of `AbsentValues` in plain MuJoCo."""
    return torch.zeros(params["shape"]).numpy()


PLAIN_OBSERVATION_FNS = {"PresentColumns": _plain_mask, "AbsentValues": _plain_zeros}
