"""PPO settings of the tracking tasks."""

from __future__ import annotations

from manyworlds.rl.config import RslRlModelCfg, RslRlOnPolicyRunnerCfg, gaussian_distribution


def tracking_ppo_runner_cfg(experiment_name: str, max_iterations: int) -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings shared by all robots."""
    widths = (512, 256, 128)
    return RslRlOnPolicyRunnerCfg(
        experiment_name=experiment_name,
        max_iterations=max_iterations,
        save_interval=500,
        actor=RslRlModelCfg(
            hidden_dims=widths, obs_normalization=True, distribution_cfg=gaussian_distribution()
        ),
        critic=RslRlModelCfg(hidden_dims=widths, obs_normalization=True),
    )
