"""Settings of the tracking task that learn quickly on a few CPU cores."""

from __future__ import annotations

from typing import Any

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.cpu_physics import use_cheap_physics

_SOLVER_ITERATIONS = 10

_CALMER = 0.2
"""Factor of the initial velocities."""


def use_cpu_preset(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Simplify physics, reduce initial velocities, worlds and networks, and fix the learning rate.

    Pushes, randomization and the noise of observations are removed. Quantities that are observed,
    actions, rewards and terminations do not change. The adaptive schedule would reduce the learning
    rate about fiftyfold, because gradients from few samples are noisy.

    Args:
        env_cfg: the environment; it is modified.
        rl_cfg: the learner; it is modified.
    """
    use_cheap_physics(env_cfg, _SOLVER_ITERATIONS)
    env_cfg.events.clear()
    actor = env_cfg.observations["actor"]
    assert actor is not None
    actor.enable_corruption = False
    command: Any = env_cfg.commands["motion"]
    command.velocity_range = {
        name: (_CALMER * low, _CALMER * high)
        for name, (low, high) in command.velocity_range.items()
    }
    env_cfg.scene.num_envs = 512
    rl_cfg.max_iterations, rl_cfg.save_interval = 300, 50
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (128, 128, 128)
    assert rl_cfg.actor.distribution_cfg is not None
    rl_cfg.actor.distribution_cfg["init_std"] = 0.4
    rl_cfg.algorithm.schedule, rl_cfg.algorithm.learning_rate = "fixed", 1e-3
    rl_cfg.algorithm.entropy_coef = 0.0
