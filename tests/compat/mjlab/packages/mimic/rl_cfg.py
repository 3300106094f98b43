"""Learning settings."""

from dataclasses import dataclass, field

from mjlab.rl import RslRlModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg


@dataclass
class MimicRunnerCfg(RslRlOnPolicyRunnerCfg):
    """The runner's settings, with one of our own."""

    keep_best: bool = True
    notes: tuple[str, ...] = field(default_factory=tuple)


def biped_tracking_ppo_runner_cfg() -> MimicRunnerCfg:
    """Configure PPO."""
    return MimicRunnerCfg(
        actor=RslRlModelCfg(
            hidden_dims=(64, 32),
            obs_normalization=True,
            distribution_cfg={
                "class_name": "GaussianDistribution",
                "init_std": 0.8,
                "std_type": "log",
            },
        ),
        critic=RslRlModelCfg(hidden_dims=(64, 32), obs_normalization=True),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.005, num_learning_epochs=2),
        experiment_name="mimic_biped",
        logger="tensorboard",
        save_interval=1,
        max_iterations=1000,
        clip_actions=10.0,
    )
