"""Curriculum terms, called as `func(env, env_ids, **params)`; return values are logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NotRequired, TypedDict

import torch

from manyworlds.managers.manager_base import ManagerTermBase, ManagerTermBaseCfg
from manyworlds.validation.worlds import EnvIds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


class RewardCurriculumStage(TypedDict):
    """Values of a reward from a step on; values that are left out do not change."""

    step: int
    """First control step of the stage (`common_step_counter`)."""
    weight: NotRequired[float]
    params: NotRequired[dict[str, Any]]


class TerminationCurriculumStage(TypedDict):
    """Values of a termination from a step on; values that are left out do not change."""

    step: int
    """First control step of the stage (`common_step_counter`)."""
    params: NotRequired[dict[str, Any]]


class EventCurriculumStage(TypedDict):
    """Values of an event from a step on; values that are left out do not change."""

    step: int
    """First control step of the stage (`common_step_counter`)."""
    params: NotRequired[dict[str, Any]]


class _StageCurriculum(ManagerTermBase):
    """Curriculum that sets a term's weight and parameters to those of the last stage reached.

    The values depend on the step alone, so that a resumed run continues with the same ones.

    Raises:
        ValueError: the steps decrease, or a stage has a key that is not allowed.
        KeyError: the term does not have the parameter.
    """

    state_attributes = ("_step",)
    derived_attributes = ("_term_cfg",)
    stage_keys: ClassVar[frozenset[str]]

    def __init__(
        self,
        name: str,
        term_cfg: Any,
        stages: Sequence[Mapping[str, Any]],
        env: ManagerBasedRlEnv,
    ) -> None:
        super().__init__(env)
        self._stages = stages
        self._term_cfg = term_cfg
        self._step = -1
        what = f"{type(self).__name__} of '{name}'"
        steps = [stage["step"] for stage in stages]
        if steps != sorted(steps):
            raise ValueError(f"{what}: the stages' steps must be nondecreasing, got {steps}.")
        self._weight = None
        self._params: dict[str, Any] = {}
        for stage in stages:
            unknown = set(stage) - self.stage_keys
            if unknown:
                raise ValueError(
                    f"{what}: a stage has {sorted(unknown)}, but only "
                    f"{sorted(self.stage_keys)} are allowed."
                )
            if "weight" in stage:
                self._weight = term_cfg.weight
            for key in stage.get("params", {}):
                if key not in term_cfg.params:
                    raise KeyError(
                        f"{what}: a stage sets unknown param '{key}': the term's params are "
                        f"{sorted(term_cfg.params)}; set its initial value there."
                    )
                self._params[key] = term_cfg.params[key]

    def continue_from(self, other: _StageCurriculum) -> None:
        """Take over the values before the first stage, which another curriculum has replaced."""
        if other._weight is not None:
            self._weight = other._weight
        for key in self._params.keys() & other._params.keys():
            self._params[key] = other._params[key]

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Load a state that `state_dict` returned, and set the term's values accordingly."""
        super().load_state_dict(state)
        self._apply()

    def _advance(self, env: ManagerBasedRlEnv) -> dict[str, torch.Tensor]:
        """Set the values of the current step; return the staged ones that are numbers."""
        self._step = env.common_step_counter
        return self._apply()

    def _apply(self) -> dict[str, torch.Tensor]:
        weight = self._weight
        params = dict(self._params)
        for stage in self._stages:
            if stage["step"] <= self._step:
                weight = stage.get("weight", weight)
                params |= stage.get("params", {})
        self._term_cfg.params.update(params)
        log = {key: value for key, value in params.items() if isinstance(value, int | float)}
        if weight is not None:
            self._term_cfg.weight = log["weight"] = weight
        return {key: torch.tensor(float(value)) for key, value in log.items()}


class reward_curriculum(_StageCurriculum):  # noqa: N801
    """Curriculum of a reward's weight and parameters."""

    stage_keys = frozenset(RewardCurriculumStage.__annotations__)

    def __init__(self, cfg: ManagerTermBaseCfg, env: ManagerBasedRlEnv) -> None:
        name = cfg.params["reward_name"]
        super().__init__(name, env.reward_manager.get_term_cfg(name), cfg.params["stages"], env)

    @takes_worlds
    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: EnvIds,
        reward_name: str,
        stages: Sequence[RewardCurriculumStage],
    ) -> dict[str, torch.Tensor]:
        """Set the reward for the current step.

        Args:
            env: the environment.
            env_ids: unused, because a reward is the same in all worlds.
            reward_name: name of the reward term.
            stages: values by step, in nondecreasing order of steps.

        Returns:
            Current values set by the stages, scalars.
        """
        return self._advance(env)


class termination_curriculum(_StageCurriculum):  # noqa: N801
    """Curriculum of a termination's parameters."""

    stage_keys = frozenset(TerminationCurriculumStage.__annotations__)

    def __init__(self, cfg: ManagerTermBaseCfg, env: ManagerBasedRlEnv) -> None:
        name = cfg.params["termination_name"]
        term_cfg = env.termination_manager.get_term_cfg(name)
        super().__init__(name, term_cfg, cfg.params["stages"], env)

    @takes_worlds
    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: EnvIds,
        termination_name: str,
        stages: Sequence[TerminationCurriculumStage],
    ) -> dict[str, torch.Tensor]:
        """Set the termination for the current step.

        Args:
            env: the environment.
            env_ids: unused, because a termination is the same in all worlds.
            termination_name: name of the termination term.
            stages: values by step, in nondecreasing order of steps.

        Returns:
            Current values set by the stages, scalars.
        """
        return self._advance(env)


class event_curriculum(_StageCurriculum):  # noqa: N801
    """Curriculum of an event's parameters, such as the strength of pushes."""

    stage_keys = frozenset(EventCurriculumStage.__annotations__)

    def __init__(self, cfg: ManagerTermBaseCfg, env: ManagerBasedRlEnv) -> None:
        name = cfg.params["event_name"]
        term_cfg = env.event_manager.get_term_cfg(name)
        super().__init__(name, term_cfg, cfg.params["stages"], env)

    @takes_worlds
    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: EnvIds,
        event_name: str,
        stages: Sequence[EventCurriculumStage],
    ) -> dict[str, torch.Tensor]:
        """Set the event for the current step.

        Args:
            env: the environment.
            env_ids: unused, because an event is the same in all worlds.
            event_name: name of the event term.
            stages: values by step, in nondecreasing order of steps.

        Returns:
            Current values set by the stages, scalars.
        """
        return self._advance(env)
