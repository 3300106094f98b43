"""Settings of the velocity tasks that learn quickly on a few CPU cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import is_terminated, reward_curriculum
from manyworlds.managers import CurriculumTermCfg, RewardTermCfg
from manyworlds.rl.config import SYMMETRIC_MLP, RslRlOnPolicyRunnerCfg
from manyworlds.sensor import TerrainHeightSensorCfg
from manyworlds.tasks.cpu_physics import use_cheap_physics

# Weights of rewards at first, after some control steps, and at last; None is the task's own. With
# the task's own weights, a policy first learns to stand still, because noise then costs least, and
# does not leave this optimum for a long time. The last cost of the action rate is higher than the
# task's, so that policies are as calm as after a longer training.
_WEIGHTS = {
    "track_linear_velocity": (4.0, 4.0, 4.0),
    "track_angular_velocity": (3.0, 2.5, None),
    "air_time": (1.0, 0.5, None),
    "action_rate_l2": (-0.01, -0.05, -0.2),
    # With a short horizon, a fall costs little: the rewards of about a second. A penalty from the
    # start teaches some policies to stand still.
    "is_terminated": (0.0, -100.0, -200.0),
}
# Iterations of the solver. Flat feet and collisions between legs need more of them.
_SOLVER_ITERATIONS, _BIPED_SOLVER_ITERATIONS = 5, 10
_STAGES = (0, 1500, 3000)
"""Control steps at which weights change."""
# Most falls follow a change of the command; the task's commands last 3 to 8 s.
_COMMAND_S = (2.0, 6.0)
# A biped leaves the optimum of standing still by itself: it falls.
_BIPED_WEIGHTS = {"action_rate_l2": (-0.02, -0.04, None)}
_BIPED_STAGES = (0, 6000, 14000)


def use_cpu_preset(
    env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg, noisy_iterations: int = 350
) -> None:
    """Simplify physics, and learn from few samples with small symmetric networks.

    Observations, actions, commands and terminations do not change. Weights of rewards change during
    the training; policies are evaluated in the task itself.

    Args:
        env_cfg: the environment; it is modified.
        rl_cfg: the learner; it is modified.
        noisy_iterations: iterations with a large entropy coefficient.
    """
    use_cheap_physics(env_cfg, _SOLVER_ITERATIONS)
    _simplify_contacts(env_cfg, self_collisions=False)
    env_cfg.rewards["is_terminated"] = RewardTermCfg(func=is_terminated, weight=0.0)
    _change(env_cfg, rl_cfg, _WEIGHTS, _STAGES)
    twist = env_cfg.commands["twist"]
    assert twist is not None
    twist.resampling_time_range = _COMMAND_S
    rl_cfg.num_steps_per_env, rl_cfg.max_iterations = 12, 700
    # A short horizon reduces the variance of advantages, which few samples require; they also
    # require a policy that changes faster.
    rl_cfg.algorithm.gamma, rl_cfg.algorithm.desired_kl = 0.97, 0.015
    # Noise finds the gait; afterwards its bonus would only delay turning and a steady gait.
    rl_cfg.algorithm.entropy_coef = 0.012
    rl_cfg.algorithm.entropy_stages = ((noisy_iterations, 0.002),)


def use_biped_cpu_preset(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Change a velocity task of a biped, which learns to stand before it learns to walk.

    Compared to `use_cpu_preset`, training takes longer, with less noise, because noise alone makes
    the robot fall. Collisions between the legs are kept: without them, policies pass one leg
    through the other.

    Args:
        env_cfg: the environment; it is modified.
        rl_cfg: the learner; it is modified.
    """
    use_cheap_physics(env_cfg, _BIPED_SOLVER_ITERATIONS)
    _simplify_contacts(env_cfg, self_collisions=True)
    _change(env_cfg, rl_cfg, _BIPED_WEIGHTS, _BIPED_STAGES)
    # With many joints, the bound on the change of action probabilities allows a small step per
    # update, however many samples it has: make many updates of few samples.
    rl_cfg.num_steps_per_env, rl_cfg.max_iterations = 6, 10000
    algorithm = rl_cfg.algorithm
    algorithm.num_learning_epochs, algorithm.gamma, algorithm.entropy_coef = 4, 0.99, 0.001
    # The adaptive rate swings over more than an order of magnitude from update to update.
    algorithm.schedule, algorithm.learning_rate = "fixed", 4e-4
    algorithm.critic_learning_rate = 1e-3
    assert rl_cfg.actor.distribution_cfg is not None
    rl_cfg.actor.distribution_cfg["init_std"] = 0.3


def _change(
    env_cfg: ManagerBasedRlEnvCfg,
    rl_cfg: RslRlOnPolicyRunnerCfg,
    weights: Mapping[str, tuple[float | None, ...]],
    stages: tuple[int, ...],
) -> None:
    """Take few worlds, small networks, and weights that change."""
    _simplify_foot_heights(env_cfg)
    # Small batches: more updates per sample are worth more than the time that they take.
    env_cfg.scene.num_envs = 512
    for name, values in weights.items():
        _stage(env_cfg, name, values, stages)
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (128, 128, 128)
    rl_cfg.actor.class_name = SYMMETRIC_MLP  # with a symmetric critic, too, policies learn later
    # Few samples require a value function that changes fast.
    rl_cfg.algorithm.use_clipped_value_loss = False


def _simplify_contacts(cfg: ManagerBasedRlEnvCfg, self_collisions: bool) -> None:
    """Limit friction to three dimensions, and optionally the robot's contacts to the ground."""
    for collision in cfg.scene.entities["robot"].collisions:
        collision.condim = _at_most_three(collision.condim)
        if not self_collisions:
            collision.contype, collision.conaffinity = 0, 1


def _at_most_three(condim: Any) -> Any:
    if isinstance(condim, dict):
        return {name: min(value, 3) for name, value in condim.items()}
    return None if condim is None else min(condim, 3)


def _simplify_foot_heights(cfg: ManagerBasedRlEnvCfg) -> None:
    """Measure the foot height with one ray per foot on a plane."""
    if cfg.scene.terrain is None or cfg.scene.terrain.terrain_type != "plane":
        return
    for sensor in cfg.scene.sensors:
        if isinstance(sensor, TerrainHeightSensorCfg):
            pattern: Any = sensor.pattern
            pattern.include_center = False
            pattern.rings[0].num_samples = 1


def _stage(
    cfg: ManagerBasedRlEnvCfg,
    name: str,
    weights: tuple[float | None, ...],
    steps: tuple[int, ...],
) -> None:
    """Change a reward's weight in stages; None is the task's own weight."""
    term = cfg.rewards[name]
    assert term is not None
    values = [term.weight if weight is None else weight for weight in weights]
    stages = [{"step": step, "weight": value} for step, value in zip(steps, values, strict=True)]
    term.weight = values[0]
    cfg.curriculum[f"{name}_weight"] = CurriculumTermCfg(
        func=reward_curriculum, params={"reward_name": name, "stages": stages}
    )
