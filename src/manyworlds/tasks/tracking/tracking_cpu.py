"""Settings of the tracking task that learn quickly on a few CPU cores."""

from __future__ import annotations

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import CurriculumTermCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.cpu_physics import use_cheap_physics
from manyworlds.tasks.ramps import Points, ramp, scaled
from manyworlds.tasks.tracking import mdp

_SOLVER_ITERATIONS = 10
_CALMER: Points = ((8000, 0.2), (28000, 1.0))
"""Factors of the initial velocities, by control step."""


def use_cpu_preset(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Simplify physics, begin with small velocities, reduce worlds and networks.

    Pushes, randomization and the noise of observations are removed. Quantities that are observed,
    actions, rewards and terminations do not change; initial velocities grow to those of the task.
    The learning rate is fixed: the adaptive schedule would reduce it about fiftyfold, because
    gradients from few samples are noisy.

    Args:
        env_cfg: the environment; it is modified.
        rl_cfg: the learner; it is modified.
    """
    use_cheap_physics(env_cfg, _SOLVER_ITERATIONS)
    env_cfg.events.clear()
    env_cfg.observations["actor"].enable_corruption = False
    command = env_cfg.commands["motion"]
    assert isinstance(command, mdp.MotionCommandCfg)
    stages = [
        {"step": step, "velocity_range": scaled(command.velocity_range, factor)}
        for step, factor in ramp(_CALMER)
    ]
    command.velocity_range = stages[0]["velocity_range"]
    env_cfg.curriculum["start_velocities"] = CurriculumTermCfg(
        func=mdp.start_velocities, params={"command_name": "motion", "stages": stages}
    )
    env_cfg.scene.num_envs = 512
    rl_cfg.max_iterations = 1700
    rl_cfg.save_interval = 50
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (128, 128, 128)
    assert rl_cfg.actor.distribution_cfg is not None
    rl_cfg.actor.distribution_cfg["init_std"] = 0.4
    rl_cfg.algorithm.schedule = "fixed"
    rl_cfg.algorithm.learning_rate = 1e-3
    rl_cfg.algorithm.learning_rate_stages = ((1200, 5e-4), (1450, 2e-4))
    rl_cfg.algorithm.entropy_coef = 0.001
