"""The sorting task, registered once for each ground."""

from mjlab.rl import RslRlModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg
from mjlab.tasks.registry import register_mjlab_task
from mjlab.tasks.velocity.rl import VelocityOnPolicyRunner

from .sort_env_cfg import SortEnvCfg, sort_env_cfg


def _rl_cfg(name: str) -> RslRlOnPolicyRunnerCfg:
    return RslRlOnPolicyRunnerCfg(
        actor=RslRlModelCfg(
            hidden_dims=(32,),
            activation="elu",
            distribution_cfg={
                "class_name": "GaussianDistribution",
                "init_std": 1.0,
                "std_type": "log",
            },
        ),
        critic=RslRlModelCfg(hidden_dims=(32,)),
        algorithm=RslRlPpoAlgorithmCfg(num_learning_epochs=2, num_mini_batches=2),
        obs_groups={"actor": ("policy",), "critic": ("policy", "privileged")},
        experiment_name=name,
        num_steps_per_env=12,
        save_interval=10,
        clip_actions=2.0,
    )


for _ground in ("Flat", "Rough"):
    register_mjlab_task(
        f"Sorter-{_ground}",
        sort_env_cfg(rough=_ground == "Rough"),
        sort_env_cfg(rough=_ground == "Rough", play=True),
        _rl_cfg(f"sorter_{_ground.lower()}"),
        VelocityOnPolicyRunner if _ground == "Flat" else None,
    )

__all__ = ["SortEnvCfg"]
