"""Settings of the tracking task that learn quickly on a few CPU cores."""

from __future__ import annotations

from typing import Any

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import CurriculumTermCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.cpu_physics import use_cheap_physics
from manyworlds.tasks.tracking import mdp

_SOLVER_ITERATIONS = 10
_SCALES = (0.2, 0.6, 1.0)
"""Factors of the initial velocities: at first, after some control steps, and at last."""
_STAGES = (0, 4400, 5600)
"""Control steps at which initial velocities grow."""


def use_cpu_preset(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Simplify physics, let initial velocities grow, reduce worlds and networks, fix the rate.

    Pushes, randomization and the noise of observations are removed: within few samples, the noise
    of velocities hides the robot's own. Observations, actions, rewards and terminations do not
    change otherwise. The adaptive schedule would reduce the learning rate about fiftyfold, because
    gradients from few samples are noisy.

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
    stages = [{"step": step, "scale": scale} for step, scale in zip(_STAGES, _SCALES, strict=True)]
    env_cfg.curriculum["initial_velocities"] = CurriculumTermCfg(
        func=mdp.initial_velocities,
        params={
            "command_name": "motion",
            "velocity_range": dict(command.velocity_range),
            "stages": stages,
        },
    )
    env_cfg.scene.num_envs = 512
    rl_cfg.max_iterations, rl_cfg.save_interval = 500, 50
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (128, 128, 128)
    assert rl_cfg.actor.distribution_cfg is not None
    rl_cfg.actor.distribution_cfg["init_std"] = 0.4
    rl_cfg.algorithm.schedule, rl_cfg.algorithm.learning_rate = "fixed", 1e-3
    rl_cfg.algorithm.entropy_coef = 0.0
