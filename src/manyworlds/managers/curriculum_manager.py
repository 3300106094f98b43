"""Curricula: changes to the task as training goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class CurriculumTermCfg(ManagerTermBaseCfg):
    """One curriculum; `func(env, env_ids, **params)` returns what to log.

    That is a number, a tensor of one element, a dict of them, or None.
    """


class CurriculumManager(ManagerBase[CurriculumTermCfg]):
    """Runs curricula for worlds that are about to be reset."""

    derived_attributes = ("_log",)

    def __init__(self, cfg: Mapping[str, CurriculumTermCfg | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self._log: dict[str, Any] = {}

    def compute(self, env_ids: torch.Tensor) -> None:
        """Run all curricula for the worlds whose episodes ended, before they are reset."""
        for name, term in self._terms.items():
            value = self._call(name, term, env_ids)
            values = value if isinstance(value, dict) else {"": value}
            for key, item in values.items():
                if item is not None:
                    self._log[f"Curriculum/{name}/{key}".rstrip("/")] = item

    def reset(self, env_ids: EnvIds = None) -> dict[str, Any]:
        """Log what the curricula returned last."""
        super().reset(env_ids)
        return dict(self._log)

    def get_active_iterable_terms(self, env_idx: int) -> list[tuple[str, list[float]]]:
        """What the curricula returned last, for viewers; the same for all worlds."""
        return [(key.split("/", 1)[1], [float(value)]) for key, value in self._log.items()]


class NullCurriculumManager(CurriculumManager):
    """A manager without curricula."""

    def __init__(self) -> None:
        self._terms, self._class_terms, self._log = {}, {}, {}
