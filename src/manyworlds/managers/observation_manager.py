"""Observations: groups of terms, each clipped and scaled, then put together."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg
from manyworlds.utils.indices import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class ObservationTermCfg(ManagerTermBaseCfg):
    """One observed quantity; `func(env, **params)` returns shape [num_envs, ...]."""

    clip: tuple[float, float] | None = None
    """Bounds, applied before scaling."""
    scale: tuple[float, ...] | float | None = None
    """Factor, one for all elements or one for each."""


@dataclass(kw_only=True)
class ObservationGroupCfg:
    """Terms that are observed together."""

    terms: dict[str, ObservationTermCfg]
    concatenate_terms: bool = True
    """Return one tensor instead of a dict of tensors."""
    concatenate_dim: int = -1
    """The dimension along which terms are put together."""


class ObservationManager(ManagerBase[ObservationTermCfg]):
    """Computes groups of observations."""

    def __init__(
        self, cfg: Mapping[str, ObservationGroupCfg | None], env: ManagerBasedRlEnv
    ) -> None:
        super().__init__({}, env)
        self._groups = {
            name: copy.deepcopy(group)
            for name, group in cfg.items()
            if group is not None and any(group.terms.values())
        }
        self._scales: dict[tuple[str, str], torch.Tensor | float] = {}
        self.group_obs_term_dim: dict[str, list[tuple[int, ...]]] = {}
        """Shape of each term of each group, without the world dimension."""
        for name, group in self._groups.items():
            group.terms = self._prepare_terms(group.terms, f"{name}/")
            self.group_obs_term_dim[name] = [
                self._probe(name, term, term_cfg) for term, term_cfg in group.terms.items()
            ]

    @property
    def active_terms(self) -> dict[str, list[str]]:
        """Names of the terms by group."""
        return {name: list(group.terms) for name, group in self._groups.items()}

    @property
    def group_obs_concatenate(self) -> dict[str, bool]:
        """Whether each group is one tensor."""
        return {name: group.concatenate_terms for name, group in self._groups.items()}

    @property
    def group_obs_dim(self) -> dict[str, tuple[int, ...] | list[tuple[int, ...]]]:
        """Shape of each group, or of its terms where they are not concatenated."""
        dims: dict[str, tuple[int, ...] | list[tuple[int, ...]]] = {}
        for name, group in self._groups.items():
            shapes = self.group_obs_term_dim[name]
            dims[name] = shapes
            if group.concatenate_terms:
                self._check_concatenation(name, group, shapes)
                axis = group.concatenate_dim - (group.concatenate_dim > 0)
                whole = list(shapes[0])
                whole[axis] = sum(shape[axis] for shape in shapes)
                dims[name] = tuple(whole)
        return dims

    def _check_concatenation(
        self, name: str, group: ObservationGroupCfg, shapes: list[tuple[int, ...]]
    ) -> None:
        if group.concatenate_dim == 0 or len({len(shape) for shape in shapes}) > 1:
            raise ValueError(
                f"Observation group '{name}' cannot put terms of shapes {shapes} together along "
                f"dimension {group.concatenate_dim}: give them equally many dimensions, choose "
                "another dimension than that of worlds, or set concatenate_terms=False."
            )

    def get_term_cfg(self, group_name: str, term_name: str) -> ObservationTermCfg:
        """Return the manager's own copy of a term's config.

        Raises:
            ValueError: there is no such group or term.
        """
        if group_name not in self._groups:
            raise ValueError(f"No observation group '{group_name}'. Available: {[*self._groups]}.")
        terms = self._groups[group_name].terms
        if term_name not in terms:
            raise ValueError(
                f"Observation group '{group_name}' has no term '{term_name}'. "
                f"Available: {list(terms)}."
            )
        return terms[term_name]

    def compute(self) -> dict[str, torch.Tensor | dict[str, torch.Tensor]]:
        """Compute all groups."""
        return {name: self.compute_group(name) for name in self._groups}

    def compute_group(self, group_name: str) -> torch.Tensor | dict[str, torch.Tensor]:
        """Compute one group: shape [num_envs, ...], or a dict of such tensors by term."""
        group = self._groups[group_name]
        values = {
            name: self._compute_term(group_name, name, term) for name, term in group.terms.items()
        }
        if not group.concatenate_terms:
            return values
        return torch.cat(list(values.values()), dim=group.concatenate_dim)

    def _compute_term(self, group: str, name: str, cfg: ObservationTermCfg) -> torch.Tensor:
        value = self._call(f"{group}/{name}", cfg)
        if cfg.clip is not None:
            value = value.clamp(*cfg.clip)
        if cfg.scale is not None:
            value = value * self._scales[group, name]
        # Without a scale a term may return a view of the simulation, which later steps overwrite.
        return value if self._groups[group].concatenate_terms else value.clone()

    def _probe(self, group: str, name: str, cfg: ObservationTermCfg) -> tuple[int, ...]:
        value = self._call(f"{group}/{name}", cfg)
        if not isinstance(value, torch.Tensor) or value.ndim < 2 or len(value) != self.num_envs:
            got = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise ValueError(
                f"{self.kind} term '{group}/{name}' returned {got}, "
                f"expected ({self.num_envs}, ...): return at least one column per world."
            )
        if cfg.scale is not None:
            scale = torch.as_tensor(cfg.scale, dtype=torch.float32, device=self.device)
            if isinstance(cfg.scale, Sequence) and len(cfg.scale) != value.shape[-1]:
                raise ValueError(
                    f"{self.kind} term '{group}/{name}' has {value.shape[-1]} columns but "
                    f"{len(cfg.scale)} scales: give one factor, or one per column."
                )
            self._scales[group, name] = scale
        return tuple(value.shape[1:])

    def reset(self, env_ids: EnvIds = None) -> dict[str, Any]:
        """Begin new episodes in the worlds named."""
        return super().reset(env_ids)
