"""What of the tracking task learns fast on a few CPU cores."""

from __future__ import annotations

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg


def use_cpu_preset(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Change a tracking task to fewer worlds, smaller networks, and steps of a fixed size.

    Observations, actions, rewards and episodes stay the same. The adaptive schedule would make
    steps some fifty times smaller, because gradients of few samples are noisy.
    """
    env_cfg.scene.num_envs = 512
    rl_cfg.max_iterations, rl_cfg.save_interval = 300, 50
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (128, 128, 128)
    assert rl_cfg.actor.distribution_cfg is not None
    rl_cfg.actor.distribution_cfg["init_std"] = 0.2
    rl_cfg.algorithm.schedule, rl_cfg.algorithm.learning_rate = "fixed", 5e-4
    rl_cfg.algorithm.entropy_coef = 0.0
