"""Learning settings."""

from mjlab.rl import RslRlModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg

_GAUSSIAN = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}
_CNN = {
    "output_channels": [4, 8],
    "kernel_size": [3, 3],
    "stride": [2, 1],
    "padding": "zeros",
    "activation": "elu",
    "max_pool": False,
    "global_pool": "none",
    "spatial_softmax": True,
    "spatial_softmax_temperature": 1.0,
}


def picker_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Configure PPO on states."""
    return RslRlOnPolicyRunnerCfg(
        actor=RslRlModelCfg((64, 64), "elu", True, distribution_cfg=dict(_GAUSSIAN)),
        critic=RslRlModelCfg((64, 64), "elu", True),
        algorithm=RslRlPpoAlgorithmCfg(num_learning_epochs=2, entropy_coef=0.005),
        experiment_name="picker_lift",
        save_interval=100,
        num_steps_per_env=16,
        max_iterations=5_000,
    )


def picker_depth_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Configure PPO on depth images."""
    class_name = "mjlab.rl.spatial_softmax:SpatialSoftmaxCNNModel"
    return RslRlOnPolicyRunnerCfg(
        actor=RslRlModelCfg(
            hidden_dims=(32,),
            obs_normalization=True,
            cnn_cfg=dict(_CNN),
            distribution_cfg=dict(_GAUSSIAN),
            class_name=class_name,
        ),
        critic=RslRlModelCfg(
            hidden_dims=(32,), obs_normalization=True, cnn_cfg=dict(_CNN), class_name=class_name
        ),
        algorithm=RslRlPpoAlgorithmCfg(num_learning_epochs=1, share_cnn_encoders=True),
        obs_groups={"actor": ("actor", "camera"), "critic": ("critic", "camera")},
        experiment_name="picker_lift_depth",
        num_steps_per_env=4,
        max_iterations=3_000,
    )
