"""Curriculum terms, called as `func(env, env_ids, **params)`: what they return is logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NotRequired, TypedDict

import torch

from manyworlds.managers.manager_base import ManagerTermBase, ManagerTermBaseCfg
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


class RewardCurriculumStage(TypedDict):
    """What a reward is from a step on; what a stage leaves out stays as it was."""

    step: int
    """Control step of the environment (`common_step_counter`)."""
    weight: NotRequired[float]
    params: NotRequired[dict[str, Any]]


class TerminationCurriculumStage(TypedDict):
    """What a termination is from a step on; what a stage leaves out stays as it was."""

    step: int
    """Control step of the environment (`common_step_counter`)."""
    params: NotRequired[dict[str, Any]]


class _StageCurriculum(ManagerTermBase):
    """Sets a term's weight and parameters to those of the last stage that has been reached.

    They are a function of the step alone, so that a resumed run has those that it had.

    Raises:
        ValueError: the steps do not rise, or a stage has a key that it cannot have.
        KeyError: the term has no such parameter.
    """

    state_attributes = ("_step",)
    derived_attributes = ("_term_cfg",)
    stage_keys: ClassVar[frozenset[str]]

    def __init__(self, name: str, term_cfg: Any, stages: Sequence[Mapping[str, Any]], env: Any):
        super().__init__(env)
        self._stages, self._term_cfg = stages, term_cfg
        self._step = -1
        what = f"{type(self).__name__} of '{name}'"
        steps = [stage["step"] for stage in stages]
        if steps != sorted(steps):
            raise ValueError(f"{what}: the stages' steps must be nondecreasing, got {steps}.")
        self._weight = None
        self._params: dict[str, Any] = {}
        for stage in stages:
            if unknown := set(stage) - self.stage_keys:
                raise ValueError(
                    f"{what}: a stage has {sorted(unknown)}, but can have "
                    f"{sorted(self.stage_keys)} only."
                )
            if "weight" in stage:
                self._weight = term_cfg.weight
            for key in stage.get("params", {}):
                if key not in term_cfg.params:
                    raise KeyError(
                        f"{what}: a stage sets unknown param '{key}': the term's params are "
                        f"{sorted(term_cfg.params)}; give its first value there."
                    )
                self._params[key] = term_cfg.params[key]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned, and the term's values with it."""
        super().load_state_dict(state)
        self._apply()

    def _advance(self, env: ManagerBasedRlEnv) -> dict[str, torch.Tensor]:
        """Set the values of the present step; return the staged ones that are numbers."""
        self._step = env.common_step_counter
        return self._apply()

    def _apply(self) -> dict[str, torch.Tensor]:
        weight, params = self._weight, dict(self._params)
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
    """Changes a reward's weight and parameters as training goes on."""

    stage_keys = frozenset(RewardCurriculumStage.__annotations__)

    def __init__(self, cfg: ManagerTermBaseCfg, env: ManagerBasedRlEnv) -> None:
        name = cfg.params["reward_name"]
        super().__init__(name, env.reward_manager.get_term_cfg(name), cfg.params["stages"], env)

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: EnvIds,
        reward_name: str,
        stages: Sequence[RewardCurriculumStage],
    ) -> dict[str, torch.Tensor]:
        """Set the reward for the present step.

        Args:
            env: the environment.
            env_ids: unused: a reward is the same in all worlds.
            reward_name: the reward term.
            stages: what changes when, by rising steps.

        Returns:
            The present values of what the stages set.
        """
        return self._advance(env)


class termination_curriculum(_StageCurriculum):  # noqa: N801
    """Changes a termination's parameters as training goes on."""

    stage_keys = frozenset(TerminationCurriculumStage.__annotations__)

    def __init__(self, cfg: ManagerTermBaseCfg, env: ManagerBasedRlEnv) -> None:
        name = cfg.params["termination_name"]
        term_cfg = env.termination_manager.get_term_cfg(name)
        super().__init__(name, term_cfg, cfg.params["stages"], env)

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: EnvIds,
        termination_name: str,
        stages: Sequence[TerminationCurriculumStage],
    ) -> dict[str, torch.Tensor]:
        """Set the termination for the present step.

        Args:
            env: the environment.
            env_ids: unused: a termination is the same in all worlds.
            termination_name: the termination term.
            stages: what changes when, by rising steps.

        Returns:
            The present values of what the stages set.
        """
        return self._advance(env)
