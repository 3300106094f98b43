"""Results of control steps of a task's environment, which has one world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import gymnasium

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.types import VecEnvObs
    from manyworlds.lab.task.env_stepper import EnvironmentStepper
    from manyworlds.rl.inference import PolicyEstimate


@dataclass(frozen=True)
class StepReport:
    """Results of the last control step."""

    step: int
    """Number of control steps since the episode began."""
    rewards: dict[str, float]
    """Weighted reward terms, not scaled by the control period."""
    total: float
    """Reward of the step."""
    ended_by: tuple[str, ...]
    """Names of the termination terms that were true."""
    episodes: int
    """Number of episodes that ended since the lab was opened."""
    last_end: str
    """Termination terms of the last episode's end, as text; empty before the first."""
    metrics: dict[str, float]
    """Metric terms."""
    commands: dict[str, tuple[float, ...]]
    """Values of the command terms."""


@runtime_checkable
class _Estimator(Protocol):
    """Policy with an estimate of the value, as `InferencePolicy`."""

    def estimate(self, obs: VecEnvObs, /) -> PolicyEstimate: ...


def plain_step(env: ManagerBasedRlEnv) -> dict[str, object]:
    """Return the results of the last control step; see the verb `step_task`."""
    return plain_reset(env.obs_buf, env.extras) | {
        "reward": float(env.reward_buf),
        "terminated": bool(env.reset_terminated),
        "truncated": bool(env.reset_time_outs),
        "final_observations": _row(env.extras.get("final_obs", {})),
    }


def plain_reset(observations: object, extras: Mapping[str, object]) -> dict[str, object]:
    """Return what a reset returned; see the verb `reset_task`."""
    told: Any = extras["log"]
    log = {name: float(value) for name, value in told.items()}
    return {"observations": _row(observations), "log": log}


def plain_details(stepper: EnvironmentStepper) -> dict[str, object]:
    """Return what the last control step was like; see the verb `read_task_details`."""
    from manyworlds.live.story import step_of

    step = step_of(stepper.env)
    value = None
    deviation = {}
    if isinstance(stepper.policy, _Estimator):
        found = stepper.policy.estimate(stepper.env.get_observations())
        if found.value is not None:
            value = float(found.value[0])
        if found.deviation is not None:
            manager = stepper.env.action_manager
            parts = found.deviation[0].split(manager.action_term_dim)
            rows = zip(manager.active_terms, parts, strict=True)
            deviation = {name: part.tolist() for name, part in rows}
    return {
        "episode_time": step.time,
        "observations": step.observations,
        "action": step.action,
        "deviation": deviation,
        "value": value,
        "nearness": step.nearness,
    }


def shapes_of(space: gymnasium.Space) -> object:  # type: ignore[type-arg]
    """Return the shape of a box, or the shapes of a dict of spaces, by name."""
    import gymnasium  # labs without a task do not need it, and open sooner

    if isinstance(space, gymnasium.spaces.Dict):
        return {name: shapes_of(part) for name, part in space.spaces.items()}
    return list(space.shape or ())


def _row(value: Any) -> Any:
    """Return the first row of each tensor, as an array that later steps do not overwrite."""
    if isinstance(value, Mapping):
        return {name: _row(part) for name, part in value.items()}
    return value[0].detach().cpu().numpy().copy()
