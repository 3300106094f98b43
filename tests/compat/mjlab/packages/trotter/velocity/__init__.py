"""Velocity tasks of the robot."""

from mjlab.tasks.registry import register_mjlab_task
from mjlab.tasks.velocity.rl import VelocityOnPolicyRunner

from .env_cfgs import trotter_flat_env_cfg, trotter_rough_env_cfg
from .rl_cfg import trotter_ppo_runner_cfg

register_mjlab_task(
    task_id="Mjlab-Velocity-Rough-Trotter",
    env_cfg=trotter_rough_env_cfg(),
    play_env_cfg=trotter_rough_env_cfg(play=True),
    rl_cfg=trotter_ppo_runner_cfg(),
    runner_cls=VelocityOnPolicyRunner,
)

register_mjlab_task(
    task_id="Mjlab-Velocity-Flat-Trotter",
    env_cfg=trotter_flat_env_cfg(),
    play_env_cfg=trotter_flat_env_cfg(play=True),
    rl_cfg=trotter_ppo_runner_cfg(),
    runner_cls=VelocityOnPolicyRunner,
)
