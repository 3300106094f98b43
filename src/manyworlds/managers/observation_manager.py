"""Observation terms in groups and their manager: noise, clip, scale, delay and history."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from manyworlds.managers.manager_base import (
    ManagerBase,
    ManagerTermBaseCfg,
    TensorTerm,
    TermTable,
)
from manyworlds.managers.observation_pipeline import (
    NanPolicy,
    NanStage,
    ObservationPipeline,
    nan_stage,
)
from manyworlds.signals import NoiseCfg, NoiseModelCfg
from manyworlds.utils.declared import declared
from manyworlds.utils.state import Stateful, WorldFlags, changing_only
from manyworlds.validation.worlds import EnvIds, Worlds

if TYPE_CHECKING:
    from torch import Tensor

    from manyworlds.envs import ManagerBasedRlEnv
else:
    Tensor = Any  # the command line reads the types of fields without loading torch

_Call = tuple[str, str, ManagerTermBaseCfg, ObservationPipeline]
GroupObs: TypeAlias = "torch.Tensor | dict[str, torch.Tensor]"


@dataclass
class ObservationTermCfg(ManagerTermBaseCfg[TensorTerm]):
    """Configuration of an observation term.

    The values pass these stages in order: noise (if the group enables corruption), clip, scale, NaN
    policy, delay, history, and padding.
    """

    func: TensorTerm
    """Function that returns shape [num_envs, ...]; a class is first instantiated with `cfg=`,
    `env=`."""
    noise: NoiseCfg | NoiseModelCfg | None = None
    """Noise of each step, or noise with a bias that is sampled at resets."""
    clip: tuple[float, float] | None = None
    """Bounds (min, max), applied before scaling."""
    scale: tuple[float, ...] | float | Tensor | None = None
    """Factor: one for all elements, one for each column, or a tensor that broadcasts."""
    delay_min_lag: int = 0
    """Minimum delay [control steps]."""
    delay_max_lag: int = 0
    """Maximum delay [control steps]; 0 for none. A world whose episode is younger than its delay
    gets its oldest value."""
    delay_per_env: bool = True
    """Sample a delay for each world, instead of one for all."""
    delay_hold_prob: float = 0.0
    """Probability that a delay is kept when it is due for resampling."""
    delay_update_period: int = 0
    """Number of control steps between two samplings of delays; 0 samples in every step."""
    delay_per_env_phase: bool = True
    """Start each world's update period at a random step."""
    history_length: int = 0
    """Number of control steps to stack, oldest first; 0 for the current values without history."""
    flatten_history_dim: bool = True
    """Return a history as [num_envs, length * size] instead of [num_envs, length, ...]."""
    pad_to: tuple[int, ...] | None = None
    """Shape of one world's observation that zeros at its end fill, history included; None for its
    own. `BucketedRlEnv` sets it where buckets have other shapes."""


@dataclass
class ObservationGroupCfg:
    """Configuration of a group of terms that are observed together."""

    terms: dict[str, ObservationTermCfg]
    concatenate_terms: bool = True
    """Return one tensor instead of a dict of tensors."""
    concatenate_dim: int = -1
    """Dimension along which terms are concatenated, not counting the world dimension: 0 is the
    first of these dimensions, -1 the last."""
    enable_corruption: bool = False
    """True to add the noise of the terms."""
    history_length: int | None = None
    """History length of every term, replacing their own; None keeps theirs."""
    flatten_history_dim: bool = True
    """Value of `flatten_history_dim` for all terms, used if `history_length` is set."""
    nan_policy: NanPolicy = "disabled"
    """Handling of values that are not finite: none, replace by zero with a warning, replace by zero
    silently, or raise. 'warn' and 'error' synchronize the host with the device in every step."""
    nan_check_per_term: bool = True
    """Check each term, before delay and history, instead of the group's result."""


class ObservationManager(ManagerBase[ObservationTermCfg]):
    """Manager of observation terms, which are computed by group."""

    state_attributes = ("_pipelines",)
    # Configs, like `_terms` of other managers, and masks of the last step.
    derived_attributes = ("_groups", "_calls", "_nan_stages", "_all_nan_stages", "_advancing")
    not_finite_status = "nan_observation"
    group_obs_term_dim: dict[str, list[tuple[int, ...]]] = declared()
    """Shape of each term of each group, without the world dimension."""

    def __init__(
        self, cfg: Mapping[str, ObservationGroupCfg | None], env: ManagerBasedRlEnv
    ) -> None:
        super().__init__(env)
        self._groups = {
            name: copy.copy(group)
            for name, group in cfg.items()
            if group is not None and any(group.terms.values())
        }
        self._pipelines: dict[str, dict[str, ObservationPipeline]] = {}
        self._calls: dict[str, list[_Call]] = {}
        self._nan_stages: dict[str, NanStage | None] = {}
        self._obs_buffer: dict[str, GroupObs] = {}
        self._began_anew: dict[str, Worlds] = {}
        self.group_obs_term_dim = {}
        for name, group in self._groups.items():
            self._build_group(name, group)
        pipelines = [p for terms in self._pipelines.values() for p in terms.values()]
        stages = [*self._nan_stages.values(), *(p.nan_stage for p in pipelines)]
        self._all_nan_stages = [stage for stage in stages if stage is not None]
        parts = [*(p.noise for p in pipelines), *dict(self._stateful_terms()).values()]
        self._advancing = [part for part in parts if isinstance(part, Stateful)]

    def _build_group(self, name: str, group: ObservationGroupCfg) -> None:
        group.terms = self._prepare_all(group.terms, f"{name}/")
        policy_of_terms: NanPolicy = "disabled"
        policy_of_group: NanPolicy = "disabled"
        if group.nan_check_per_term:
            policy_of_terms = group.nan_policy
        else:
            policy_of_group = group.nan_policy
        self._nan_stages[name] = nan_stage(policy_of_group, f"{self.kind} group '{name}'")
        pipelines: dict[str, ObservationPipeline] = {}
        self._pipelines[name] = pipelines
        for term, cfg in group.terms.items():
            if group.history_length is not None:
                cfg.history_length = group.history_length
                cfg.flatten_history_dim = group.flatten_history_dim
            if not group.enable_corruption:
                cfg.noise = None
            value = self._call(f"{name}/{term}", cfg)
            pipelines[term] = ObservationPipeline(
                f"{self.kind} term '{name}/{term}'",
                cfg,
                policy_of_terms,
                value,
                self.num_envs,
                self._env.random_streams,
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
        """True for each group that is concatenated to one tensor."""
        return {name: group.concatenate_terms for name, group in self._groups.items()}

    @property
    def group_obs_concatenate_dim(self) -> dict[str, int]:
        """Dimension along which each group's terms are concatenated, not counting worlds."""
        return {name: group.concatenate_dim for name, group in self._groups.items()}

    @property
    def group_obs_dim(self) -> dict[str, tuple[int, ...] | list[tuple[int, ...]]]:
        """Shape of each group, or of its terms if they are not concatenated, without worlds."""
        dims: dict[str, tuple[int, ...] | list[tuple[int, ...]]] = {}
        for name, group in self._groups.items():
            shapes = self.group_obs_term_dim[name]
            dims[name] = shapes
            if group.concatenate_terms:
                whole = list(shapes[0])
                axis = group.concatenate_dim
                whole[axis] = sum(shape[axis] for shape in shapes)
                dims[name] = tuple(whole)
        return dims

    def _check_concatenation(
        self, name: str, group: ObservationGroupCfg, shapes: list[tuple[int, ...]]
    ) -> None:
        """Check that all terms have the dimension, and that their other dimensions are equal."""
        axis = group.concatenate_dim
        rank = len(shapes[0])
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
                    f"Observation group '{name}' cannot concatenate term '{term}' of shape {shape} "
                    f"with '{first}' of shape {shapes[0]} along concatenate_dim={axis}: "
                    "make the other dimensions equal, choose another concatenate_dim, or set "
                    "concatenate_terms=False."
                )

    def get_term_cfg(  # type: ignore[override]
        self, group_name: str, term_name: str
    ) -> ObservationTermCfg:
        """Return the manager's own copy of a term's config.

        Raises:
            ValueError: the group or the term does not exist.
        """
        if group_name not in self._groups:
            raise self._no_group(group_name)
        terms = self._groups[group_name].terms
        if term_name not in terms:
            raise ValueError(
                f"Observation group '{group_name}' has no term '{term_name}'. "
                f"Available: {list(terms)}."
            )
        return terms[term_name]

    def get_active_iterable_terms(self, env_idx: int) -> Sequence[tuple[str, Sequence[float]]]:
        """Return the last observation of each term in one world, flat, named 'group/term'."""
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

    def compute(
        self, update_history: bool = False, env_ids: EnvIds = None
    ) -> dict[str, torch.Tensor]:
        """Return all groups; see `compute_group`.

        The type leaves out that a group with `concatenate_terms=False` is a dict of tensors by
        term, so that `obs["actor"].shape` needs no check.
        """
        with contextlib.ExitStack() as stack:
            if update_history and env_ids is not None:
                # Terms and noise compute all worlds; those whose episode continues do not advance.
                for part in self._advancing:
                    stack.enter_context(changing_only(part, self._worlds(env_ids).mask))
            obs: dict[str, Any] = {}
            for name in self._groups:
                obs[name] = self.compute_group(name, update_history, env_ids)
            return obs

    def compute_final(self) -> dict[str, torch.Tensor]:
        """Observe the final state of episodes without advancing delays, histories and noise.

        Returns:
            Observations by group, shapes as in `compute_group`.

        Values that are not finite are replaced by zero silently, unless the group's policy is
        'disabled': the episode of a diverged world has ended for that reason, and the world is
        reset. If a diverged world continues, the next observation reports it.
        """
        buffers = dict(self._obs_buffer), dict(self._began_anew)
        before = super().state_dict()
        stages = self._all_nan_stages
        for stage in stages:
            stage.quiet = True
        try:
            return self.compute(update_history=True)
        finally:
            for stage in stages:
                stage.quiet = False
            super().load_state_dict(before)
            self._obs_buffer, self._began_anew = buffers

    def not_finite(self) -> torch.Tensor | None:
        """Return a mask of worlds whose values a policy has replaced since the last call."""
        masks = []
        for stage in self._all_nan_stages:
            if stage.not_finite is not None:
                masks.append(stage.not_finite)
                stage.not_finite = None
        if not masks:
            return None
        return torch.stack(masks).any(dim=0)

    def compute_group(
        self, group_name: str, update_history: bool = False, env_ids: EnvIds = None
    ) -> GroupObs:
        """Return one group: shape [num_envs, ...], or a dict of such tensors by term.

        Returned tensors are never overwritten.

        Args:
            group_name: name of the group.
            update_history: compute all terms and advance delays and histories; once per control
                step. False returns the last observation, recomputed only for worlds reset since.
            env_ids: with update_history, the worlds whose episode begins with this observation.
                Rows, delays and histories of the other worlds do not change.

        Raises:
            ValueError: the group does not exist, or a value is not finite and the policy is
                'error'.
        """
        group = self._groups.get(group_name)
        if group is None:
            raise self._no_group(group_name)
        began = self._began_anew.pop(group_name, None)
        last = self._obs_buffer.get(group_name)
        if last is None or (update_history and env_ids is None):
            obs = self._compute_group(group_name, group, None)
            self._obs_buffer[group_name] = obs
            return obs
        # Only worlds that begin an episode are observed anew.
        beginning = began
        if update_history:
            beginning = self._worlds(env_ids)
            if began is not None:
                beginning = beginning.union(began)
        if beginning is None:
            return last
        with self._env.random_streams.only(beginning.mask):
            obs = self._compute_group(group_name, group, beginning)
        obs = _merge(last, obs, beginning)
        self._obs_buffer[group_name] = obs
        return obs

    def _compute_group(
        self, name: str, group: ObservationGroupCfg, beginning: Worlds | None
    ) -> GroupObs:
        values: dict[str, torch.Tensor] = {}
        for term, label, cfg, pipeline in self._calls[name]:
            value = self._call(label, cfg)
            if pipeline.works:
                value = pipeline(value, beginning)
            values[term] = value
        check = self._nan_stages[name]
        if group.concatenate_terms:
            axis = group.concatenate_dim
            obs = torch.cat(list(values.values()), dim=axis + (axis >= 0))  # dimension 0 is worlds
            if check is not None:
                obs = check(obs)
            return obs
        for term, _, _, pipeline in self._calls[name]:
            if check is not None:
                values[term] = check(values[term])
            # A term may return a view of simulation memory, which later steps overwrite.
            if not pipeline.copies:
                values[term] = values[term].clone()
        return values

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Reset the given worlds: empty their histories, resample delays and biases.

        Returns:
            Values to log, shape [].
        """
        worlds = self._worlds(env_ids)
        for name, pipelines in self._pipelines.items():
            for pipeline in pipelines.values():
                pipeline.reset(worlds)
            if worlds.is_all:
                self._obs_buffer.pop(name, None)
            elif name in self._obs_buffer:
                before = self._began_anew.get(name, worlds)
                self._began_anew[name] = before.union(worlds)
        return super().reset(worlds)

    def saved_values(self) -> dict[str, object]:
        """Return delays, histories and noise, and the last observation."""
        began = {name: worlds.ids for name, worlds in self._began_anew.items()}
        last = {"_obs_buffer": self._obs_buffer, "_began_anew": began}
        return {**super().saved_values(), **last}

    def state_of_world(self, env_id: int | torch.Tensor, num_envs: int) -> dict[str, object]:
        """Return the part of the state that belongs to one world, or to several."""
        began: dict[str, object] = {}
        for name, worlds in self._began_anew.items():
            ids = worlds.ids
            if isinstance(env_id, torch.Tensor):
                began[name] = WorldFlags(torch.isin(env_id.to(ids.device), ids))
            else:
                began[name] = ids[ids == env_id] * 0
        return {**super().state_of_world(env_id, num_envs), "_began_anew": began}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        super().load_state_dict(state)
        # New tensors: callers may still hold the current ones.
        self._obs_buffer = _clone(state["_obs_buffer"], self.device)
        began = _clone(state["_began_anew"], self.device)
        self._began_anew = {name: self._worlds(ids) for name, ids in began.items()}

    def _no_group(self, name: str) -> ValueError:
        return ValueError(f"No observation group '{name}'. Available: {[*self._groups]}.")

    def _tables(self) -> Iterable[TermTable]:
        for name, dim in self.group_obs_dim.items():
            terms = zip(self.active_terms[name], self.group_obs_term_dim[name], strict=True)
            rows = [[i, term, shape] for i, (term, shape) in enumerate(terms)]
            yield f"{self.kind} group '{name}' {dim}", ("index", "name", "shape"), rows


def _merge(last: GroupObs, new: GroupObs, worlds: Worlds) -> GroupObs:
    """Return a copy of `last` with the rows of some worlds replaced by those of `new`."""
    if isinstance(last, torch.Tensor) and isinstance(new, torch.Tensor):
        merged = last.clone()
        worlds.put(merged, worlds.take(new))
        return merged
    assert isinstance(last, dict) and isinstance(new, dict)
    merged_terms: dict[str, torch.Tensor] = {}
    for term, value in last.items():
        merged_terms[term] = value.clone()
        worlds.put(merged_terms[term], worlds.take(new[term]))
    return merged_terms


def _clone(value: Any, device: torch.device | None = None) -> Any:
    if isinstance(value, dict):
        return {key: _clone(item, device) for key, item in value.items()}
    return value.to(device, copy=True)
