"""PPO settings of the cube lifting tasks."""

from __future__ import annotations

from manyworlds.rl.config import (
    SPATIAL_SOFTMAX_CNN,
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    gaussian_distribution,
)

_WIDTHS = (512, 256, 128)
_CNN = {
    "output_channels": (16, 32),
    "kernel_size": (5, 3),
    "stride": (2, 2),
    "activation": "elu",
}


def lift_cube_ppo_runner_cfg(experiment_name: str = "lift_cube") -> RslRlOnPolicyRunnerCfg:
    """Return PPO settings for arms that observe the cube's position."""
    return RslRlOnPolicyRunnerCfg(
        experiment_name=experiment_name,
        max_iterations=5000,
        save_interval=100,
        actor=RslRlModelCfg(
            hidden_dims=_WIDTHS, obs_normalization=True, distribution_cfg=gaussian_distribution()
        ),
        critic=RslRlModelCfg(hidden_dims=_WIDTHS, obs_normalization=True),
    )


def lift_cube_vision_ppo_runner_cfg(
    experiment_name: str = "lift_cube_vision",
) -> RslRlOnPolicyRunnerCfg:
    """Return PPO settings for arms with a camera; the critic observes the cube's position."""
    cfg = lift_cube_ppo_runner_cfg(experiment_name)
    cfg.obs_groups = {"actor": ("actor", "camera"), "critic": ("critic",)}
    cfg.actor.class_name = SPATIAL_SOFTMAX_CNN
    cfg.actor.cnn_cfg = dict(_CNN)
    cfg.actor.hidden_dims = (256, 256, 128)
    return cfg
