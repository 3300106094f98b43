"""A dance, tracked by a command of our own."""

from mjlab.rl import RslRlModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg
from mjlab.tasks.registry import register_mjlab_task

from .env_cfgs import dancer_env_cfg
from .runner import DancerRunner

register_mjlab_task(
    task_id="Dancer",
    env_cfg=dancer_env_cfg(),
    play_env_cfg=dancer_env_cfg(play=True),
    rl_cfg=RslRlOnPolicyRunnerCfg(
        actor=RslRlModelCfg(
            hidden_dims=(32, 32),
            obs_normalization=True,
            distribution_cfg={"class_name": "GaussianDistribution", "init_std": 0.8},
        ),
        critic=RslRlModelCfg(hidden_dims=(32, 32), obs_normalization=True),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.005, num_mini_batches=2),
        experiment_name="dancer",
        save_interval=1,
        num_steps_per_env=16,
        max_iterations=100,
        logger="tensorboard",
    ),
    runner_cls=DancerRunner,
)
