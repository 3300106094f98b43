"""Observations: groups of terms, each corrupted, clipped, scaled, delayed and remembered."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg, TensorTerm
from manyworlds.managers.observation_pipeline import (
    NanPolicy,
    NanReport,
    ObservationPipeline,
    Stage,
    nan_stage,
)
from manyworlds.signals import NoiseCfg, NoiseModelCfg
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from torch import Tensor

    from manyworlds.envs import ManagerBasedRlEnv
else:
    Tensor = Any  # the command line reads the types of fields without loading torch

_Call = tuple[str, str, "ObservationTermCfg", ObservationPipeline]
GroupObs: TypeAlias = "torch.Tensor | dict[str, torch.Tensor]"


@dataclass(kw_only=True)
class ObservationTermCfg(ManagerTermBaseCfg):
    """One observed quantity.

    Its values get noise, if the group asks for corruption, are clipped, scaled, checked for NaN,
    delayed, and gathered over the last control steps, in this order.
    """

    func: TensorTerm
    """Returns shape [num_envs, ...]; a class is first instantiated with `cfg=` and `env=`."""
    noise: NoiseCfg | NoiseModelCfg | None = None
    """Noise of each step, or noise with a bias that is drawn at resets."""
    clip: tuple[float, float] | None = None
    """Bounds, applied before scaling."""
    scale: tuple[float, ...] | float | Tensor | None = None
    """Factor: one for all elements, one for each column, or a tensor that broadcasts."""
    delay_min_lag: int = 0
    """Smallest delay [control steps]."""
    delay_max_lag: int = 0
    """Largest delay [control steps]; 0 for none. A world that began later gets its oldest value."""
    delay_per_env: bool = True
    """Draw a delay for each world, instead of one for all."""
    delay_hold_prob: float = 0.0
    """Probability that a delay is kept when it is due to be drawn."""
    delay_update_period: int = 0
    """Draw delays every so many control steps; 0 for every step."""
    delay_per_env_phase: bool = True
    """Let each world's period begin at a random step."""
    history_length: int = 0
    """Return the values of so many control steps, oldest first; 0 for the present one only."""
    flatten_history_dim: bool = True
    """Return a history as [num_envs, length * size] instead of [num_envs, length, ...]."""


@dataclass(kw_only=True)
class ObservationGroupCfg:
    """Terms that are observed together."""

    terms: dict[str, ObservationTermCfg]
    concatenate_terms: bool = True
    """Return one tensor instead of a dict of tensors."""
    concatenate_dim: int = -1
    """The dimension along which terms are put together, among those after that of worlds: 0 is the
    first of these, -1 the last."""
    enable_corruption: bool = False
    """Whether terms get their noise."""
    history_length: int | None = None
    """History of every term, in place of their own; None leaves theirs."""
    flatten_history_dim: bool = True
    """With `history_length`, used in place of the terms' own."""
    nan_policy: NanPolicy = "disabled"
    """What to do about values that are not finite: nothing, warn and put zero, put zero without a
    word, or raise. To 'warn' and 'error' the host must wait for the device in every step."""
    nan_check_per_term: bool = True
    """Check each term, before it is delayed and remembered, instead of the group's result."""


class ObservationManager(ManagerBase[ObservationTermCfg]):
    """Computes groups of observations."""

    state_attributes = ("_pipelines",)
    derived_attributes = ("_groups", "_calls")  # configs, as `_terms` of other managers

    def __init__(
        self, cfg: Mapping[str, ObservationGroupCfg | None], env: ManagerBasedRlEnv
    ) -> None:
        super().__init__({}, env)
        self._groups = {
            name: copy.copy(group)
            for name, group in cfg.items()
            if group is not None and any(group.terms.values())
        }
        self._pipelines: dict[str, dict[str, ObservationPipeline]] = {}
        self._calls: dict[str, list[_Call]] = {}
        self._nan_stages: dict[str, Stage | None] = {}
        self._obs_buffer: dict[str, GroupObs] = {}
        self._began_anew: dict[str, torch.Tensor] = {}
        self._all_ids = torch.arange(self.num_envs, device=self.device)
        self.group_obs_term_dim: dict[str, list[tuple[int, ...]]] = {}
        """Shape of each term of each group, without the world dimension."""
        for name, group in self._groups.items():
            self._build_group(name, group)

    def _build_group(self, name: str, group: ObservationGroupCfg) -> None:
        group.terms = self._prepare_terms(group.terms, f"{name}/")
        per_term = group.nan_policy if group.nan_check_per_term else "disabled"
        whole = "disabled" if group.nan_check_per_term else group.nan_policy
        self._nan_stages[name] = nan_stage(whole, f"{self.kind} group '{name}'")
        self._pipelines[name] = pipelines = {}
        for term, cfg in group.terms.items():
            if group.history_length is not None:
                cfg.history_length = group.history_length
                cfg.flatten_history_dim = group.flatten_history_dim
            if not group.enable_corruption:
                cfg.noise = None
            value = self._call(f"{name}/{term}", cfg)
            pipelines[term] = ObservationPipeline(
                f"{self.kind} term '{name}/{term}'", cfg, per_term, value, self.num_envs
            )
        self._calls[name] = [
            (term, f"{name}/{term}", cfg, pipelines[term]) for term, cfg in group.terms.items()
        ]
        shapes = [pipeline.shape for pipeline in pipelines.values()]
        self.group_obs_term_dim[name] = shapes
        if group.concatenate_terms:
            self._check_concatenation(name, group, shapes)

    @property
    def active_terms(self) -> dict[str, list[str]]:
        """Names of the terms by group."""
        return {name: list(group.terms) for name, group in self._groups.items()}

    @property
    def group_obs_concatenate(self) -> dict[str, bool]:
        """Whether each group is one tensor."""
        return {name: group.concatenate_terms for name, group in self._groups.items()}

    @property
    def group_obs_concatenate_dim(self) -> dict[str, int]:
        """The dimension, worlds not counted, along which each group's terms are put together."""
        return {name: group.concatenate_dim for name, group in self._groups.items()}

    @property
    def group_obs_dim(self) -> dict[str, tuple[int, ...] | list[tuple[int, ...]]]:
        """Shape of each group, or of its terms where they are not concatenated."""
        dims: dict[str, tuple[int, ...] | list[tuple[int, ...]]] = {}
        for name, group in self._groups.items():
            shapes = self.group_obs_term_dim[name]
            dims[name] = shapes
            if group.concatenate_terms:
                whole, axis = list(shapes[0]), group.concatenate_dim
                whole[axis] = sum(shape[axis] for shape in shapes)
                dims[name] = tuple(whole)
        return dims

    def _check_concatenation(
        self, name: str, group: ObservationGroupCfg, shapes: list[tuple[int, ...]]
    ) -> None:
        """Check that all terms have the dimension, and that their others are equal."""
        axis, rank = group.concatenate_dim, len(shapes[0])
        first, *names = group.terms
        if axis not in range(-rank, rank):
            raise ValueError(
                f"Observation group '{name}' has concatenate_dim={axis!r}, but it must be from "
                f"{-rank} to {rank - 1}: the values of term '{first}' have shape {shapes[0]}, "
                "worlds not counted. Choose one of these dimensions, or set "
                "concatenate_terms=False."
            )
        rows = [[*shape] for shape in shapes]
        for term, shape, row in zip(names, shapes[1:], rows[1:], strict=True):
            if len(row) == rank:
                row[axis] = rows[0][axis]
            if row != rows[0]:
                raise ValueError(
                    f"Observation group '{name}' cannot put term '{term}' of shape {shape} "
                    f"together with '{first}' of shape {shapes[0]} along concatenate_dim={axis}: "
                    "give them equal other dimensions, choose another concatenate_dim, or set "
                    "concatenate_terms=False."
                )

    def get_term_cfg(self, group_name: str, term_name: str) -> ObservationTermCfg:
        """Return the manager's own copy of a term's config.

        Raises:
            ValueError: there is no such group or term.
        """
        terms = self._group(group_name).terms
        if term_name not in terms:
            raise ValueError(
                f"Observation group '{group_name}' has no term '{term_name}'. "
                f"Available: {list(terms)}."
            )
        return terms[term_name]

    def get_active_iterable_terms(self, env_idx: int) -> Sequence[tuple[str, Sequence[float]]]:
        """Return what was last observed of each term in one world, flat, as 'group/term'."""
        shown: list[tuple[str, Sequence[float]]] = []
        for name, group in self._groups.items():
            obs = self.compute_group(name)
            if isinstance(obs, dict):
                rows = [value[env_idx] for value in obs.values()]
            else:
                axis = group.concatenate_dim
                sizes = [shape[axis] for shape in self.group_obs_term_dim[name]]
                rows = obs[env_idx].cpu().split(sizes, dim=axis)
            shown += [
                (f"{name}/{term}", row.flatten().tolist())
                for term, row in zip(group.terms, rows, strict=True)
            ]
        return shown

    def compute(self, update_history: bool = False, env_ids: EnvIds = None) -> dict[str, GroupObs]:
        """Return all groups; see `compute_group`."""
        return {name: self.compute_group(name, update_history, env_ids) for name in self._groups}

    def compute_final(self) -> dict[str, GroupObs]:
        """Observe what episodes end with, and leave no trace in delays, histories and noise.

        Values that are not finite become zero without a word, unless the policy for them is
        'disabled': a world that diverged has ended its episode for that, and is reset. If one goes
        on, the next observation tells.
        """
        buffers = dict(self._obs_buffer), dict(self._began_anew)
        before = super().state_dict()
        stages = [*self._nan_stages.values()]
        stages += [p.nan_stage for terms in self._pipelines.values() for p in terms.values()]
        reports = [stage for stage in stages if isinstance(stage, NanReport)]
        for report in reports:
            report.quiet = True
        try:
            return self.compute(update_history=True)
        finally:
            for report in reports:
                report.quiet = False
            super().load_state_dict(before)
            self._obs_buffer, self._began_anew = buffers

    def compute_group(
        self, group_name: str, update_history: bool = False, env_ids: EnvIds = None
    ) -> GroupObs:
        """Return one group: shape [num_envs, ...], or a dict of such tensors by term.

        Tensors that were returned never change later.

        Args:
            group_name: the group.
            update_history: compute anew and advance delays and histories: once a control step.
                Otherwise return what was last computed, anew only for worlds reset since.
            env_ids: with update_history, the worlds that begin a new episode with this
                observation. Rows, delays and histories of the others stay as they are.

        Raises:
            ValueError: there is no such group, or a value is not finite and that is an error.
        """
        group = self._group(group_name)
        began = self._began_anew.pop(group_name, None)
        last = self._obs_buffer.get(group_name)
        if last is not None and not update_history and began is None:
            return last
        ids = None
        if last is not None and (env_ids is not None or not update_history):
            named = self._worlds(env_ids).ids if update_history else self._all_ids[:0]
            ids = named if began is None else torch.cat([began, named])
        obs = self._compute_group(group_name, group, ids)
        if ids is not None and last is not None:
            obs = _merge(last, obs, ids)
        self._obs_buffer[group_name] = obs
        return obs

    def _compute_group(
        self, name: str, group: ObservationGroupCfg, ids: torch.Tensor | None
    ) -> GroupObs:
        values: dict[str, torch.Tensor] = {}
        for term, label, cfg, pipeline in self._calls[name]:
            value = self._call(label, cfg)
            values[term] = pipeline(value, ids) if pipeline.works else value
        check = self._nan_stages[name]
        if group.concatenate_terms:
            axis = group.concatenate_dim
            obs = torch.cat(list(values.values()), dim=axis + (axis >= 0))  # worlds come first
            return obs if check is None else check(obs)
        for term, _, _, pipeline in self._calls[name]:
            value = values[term] if check is None else check(values[term])
            # A term may return a view of the simulation, which later steps overwrite.
            values[term] = value if pipeline.copies else value.clone()
        return values

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Begin new episodes in the worlds named: empty their histories, draw delays and biases."""
        worlds = self._worlds(env_ids)
        for name, pipelines in self._pipelines.items():
            for pipeline in pipelines.values():
                pipeline.reset(worlds)
            if worlds.is_all:
                self._obs_buffer.pop(name, None)
            elif name in self._obs_buffer:
                before = self._began_anew.get(name, self._all_ids[:0])
                self._began_anew[name] = torch.cat([before, worlds.ids])
        return super().reset(worlds)

    def state_dict(self) -> dict[str, Any]:
        """State of delays, histories and noise, and what was last computed."""
        last = {"_obs_buffer": _clone(self._obs_buffer), "_began_anew": _clone(self._began_anew)}
        return {**super().state_dict(), **last}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        super().load_state_dict(state)
        # New tensors, as users may still hold the present ones.
        self._obs_buffer = _clone(state["_obs_buffer"], self.device)
        self._began_anew = _clone(state["_began_anew"], self.device)

    def _group(self, name: str) -> ObservationGroupCfg:
        if name not in self._groups:
            raise ValueError(f"No observation group '{name}'. Available: {[*self._groups]}.")
        return self._groups[name]

    def _tables(self) -> Iterable[tuple[str, Sequence[str], list[list[Any]]]]:
        for name, dim in self.group_obs_dim.items():
            terms = zip(self.active_terms[name], self.group_obs_term_dim[name], strict=True)
            rows = [[i, term, shape] for i, (term, shape) in enumerate(terms)]
            yield f"{self.kind} group '{name}' {dim}", ("index", "name", "shape"), rows


def _merge(last: GroupObs, new: GroupObs, ids: torch.Tensor) -> GroupObs:
    """Return a copy of `last` with some rows of `new`."""
    if isinstance(last, torch.Tensor) and isinstance(new, torch.Tensor):
        return last.index_copy(0, ids, new[ids])
    assert isinstance(last, dict) and isinstance(new, dict)
    return {term: value.index_copy(0, ids, new[term][ids]) for term, value in last.items()}


def _clone(value: Any, device: torch.device | None = None) -> Any:
    if isinstance(value, dict):
        return {key: _clone(item, device) for key, item in value.items()}
    return value.to(device, copy=True)
