"""Velocity tasks of the robot."""

from mjlab.tasks.registry import register_mjlab_task

from .env_cfgs import trotter_flat_env_cfg, trotter_rough_env_cfg
from .rl_cfg import trotter_ppo_runner_cfg
from .runner import TrotterRunner

register_mjlab_task(
    task_id="Mjlab-Velocity-Rough-Trotter",
    env_cfg=trotter_rough_env_cfg(),
    play_env_cfg=trotter_rough_env_cfg(play=True),
    rl_cfg=trotter_ppo_runner_cfg(),
    runner_cls=TrotterRunner,
)

register_mjlab_task(
    task_id="Mjlab-Velocity-Flat-Trotter",
    env_cfg=trotter_flat_env_cfg(),
    play_env_cfg=trotter_flat_env_cfg(play=True),
    rl_cfg=trotter_ppo_runner_cfg(),
    runner_cls=TrotterRunner,
)
