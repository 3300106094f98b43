"""PPO settings of the velocity tasks."""

from __future__ import annotations

from manyworlds.rl.config import (
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    gaussian_distribution,
)


def velocity_ppo_runner_cfg(experiment_name: str, max_iterations: int) -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings shared by all robots."""
    widths = (512, 256, 128)
    return RslRlOnPolicyRunnerCfg(
        experiment_name=experiment_name,
        max_iterations=max_iterations,
        actor=RslRlModelCfg(
            hidden_dims=widths, obs_normalization=True, distribution_cfg=gaussian_distribution()
        ),
        critic=RslRlModelCfg(hidden_dims=widths, obs_normalization=True),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.01),
    )
