"""Metric terms and their manager: quantities that are logged per episode but not rewarded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg
from manyworlds.managers.not_finite import is_not_finite, mean_of_finite
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

REDUCE_OPTIONS = ("last", "max", "mean", "sum")


@dataclass(kw_only=True)
class MetricsTermCfg(ManagerTermBaseCfg[Callable[..., object]]):
    """Configuration of a metric term; `func(env, **params)` returns shape [num_envs]."""

    per_substep: bool = False
    """Evaluate the term after every physics step; its value for the control step is the mean of
    these values."""
    reduce: Literal["mean", "last", "max", "sum"] = "mean"
    """Reduction of an episode's values to one value."""


class MetricsManager(ManagerBase[MetricsTermCfg]):
    """Manager of metric terms, which are logged when episodes end.

    Raises:
        ValueError: a term has an unknown `reduce`.
    """

    not_finite_status = "nan_metric"
    not_finite_effect = "whose episodes are left out of the log"
    _shown = ("reduce", "per_substep")
    state_attributes = (
        "_step_count",
        "_values",
        "_sums",
        "_episode_max",
        "_substep_accum",
        "_substep_count",
    )
    world_columns = ("_values", "_sums", "_episode_max", "_substep_accum")

    def __init__(self, cfg: Mapping[str, MetricsTermCfg | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._terms = self._prepare_all(cfg)
        shape = (len(self._terms), self.num_envs)
        self._values = torch.zeros(shape, device=self.device)
        self._sums = torch.zeros_like(self._values)
        self._episode_sums = dict(zip(self._terms, self._sums.unbind(0), strict=True))
        """Sum of each term over the running episode, shape [num_envs]."""
        self._episode_max = torch.full_like(self._values, -torch.inf)
        self._substep_accum = torch.zeros_like(self._values)
        self._substep_count = 0
        self._step_count = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        for name, term in self._terms.items():
            if term.reduce not in REDUCE_OPTIONS:
                raise ValueError(
                    f"{self.kind} term '{name}' has reduce='{term.reduce}': choose one of "
                    f"{', '.join(REDUCE_OPTIONS)}."
                )
        self._reduced_by = {
            option: torch.tensor(
                [[term.reduce == option] for term in self._terms.values()], device=self.device
            )
            for option in REDUCE_OPTIONS
        }
        self._has_max = any(term.reduce == "max" for term in self._terms.values())

    @property
    def needs_substeps(self) -> bool:
        """True if a term is evaluated after every physics step."""
        return any(term.per_substep for term in self._terms.values())

    def compute_substep(self) -> None:
        """Evaluate the terms with `per_substep` after a physics step.

        Raises:
            ValueError: a term returns a shape other than [num_envs].
        """
        self._substep_count += 1
        for i, (name, term) in enumerate(self._terms.items()):
            if term.per_substep:
                self._substep_accum[i] += self._call_per_world(name, term)

    def compute(self) -> None:
        """Evaluate all terms after a control step.

        Raises:
            ValueError: a term returns a shape other than [num_envs].
        """
        if not self._terms:
            return
        for i, (name, term) in enumerate(self._terms.items()):
            if term.per_substep:
                torch.div(self._substep_accum[i], max(self._substep_count, 1), out=self._values[i])
            else:
                self._values[i] = self._call_per_world(name, term)
        self._sums += self._values
        if self._has_max:
            torch.maximum(self._episode_max, self._values, out=self._episode_max)
        self._step_count += 1
        if self._substep_count:
            self._substep_accum.zero_()
            self._substep_count = 0

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Reset given worlds; log the mean of each reduced term over their episodes, shape [].

        Episodes without steps count as zero. Those whose value is not finite are left out; the mean
        is NaN if none is left.
        """
        super().reset(env_ids)
        if not self._terms:
            return {}
        worlds = self._worlds(env_ids)
        count = worlds.take(self._step_count)
        by = self._reduced_by
        result = worlds.take(self._sums, dim=1)
        result = torch.where(by["mean"], result / count.clamp(min=1), result)
        result = torch.where(by["last"], worlds.take(self._values, dim=1), result)
        if self._has_max:
            peak = torch.where(count > 0, worlds.take(self._episode_max, dim=1), 0.0)
            result = torch.where(by["max"], peak, result)
            worlds.put(self._episode_max, -torch.inf, dim=1)
        if worlds.is_masked:
            result = torch.where(worlds.mask, result, torch.nan)
        worlds.put(self._sums, 0.0, dim=1)
        worlds.put(self._values, 0.0, dim=1)
        worlds.put(self._step_count, 0)
        means = mean_of_finite(result).unbind()
        return {f"Episode_Metrics/{n}": m for n, m in zip(self._terms, means, strict=True)}

    def not_finite(self) -> torch.Tensor:
        """Return a mask of worlds with a term that is not finite in this step, [num_envs]."""
        return is_not_finite(self._values).any(dim=0)

    def not_finite_terms(self) -> dict[str, torch.Tensor]:
        """Return masks of worlds by term, shape [num_envs]."""
        return dict(zip(self._terms, is_not_finite(self._values).unbind(), strict=True))

    def get_active_iterable_terms(self, env_idx: int) -> list[tuple[str, list[float]]]:
        """Return the last value of each term in one world."""
        values = self._values[:, env_idx].tolist()
        return [(name, [value]) for name, value in zip(self._terms, values, strict=True)]


class NullMetricsManager(MetricsManager):
    """Metrics manager without terms."""

    state_attributes = ()

    def __init__(self) -> None:
        self._terms = {}
        self._functions = {}
        self._class_terms = {}
        self._substep_count = 0

    def get_active_iterable_terms(self, env_idx: int) -> list[tuple[str, list[float]]]:
        """Return nothing: there are no terms."""
        return []
