"""Lifting tasks, from state and from depth images."""

from mjlab.tasks.registry import register_mjlab_task

from .env_cfgs import picker_cartesian_env_cfg, picker_lift_depth_env_cfg, picker_lift_env_cfg
from .rl_cfg import picker_depth_ppo_runner_cfg, picker_ppo_runner_cfg
from .runner import PickerRunner

register_mjlab_task(
    "Picker-Lift",
    picker_lift_env_cfg(),
    picker_lift_env_cfg(play=True),
    picker_ppo_runner_cfg(),
    PickerRunner,
)

register_mjlab_task(
    task_id="Picker-Lift-Depth",
    env_cfg=picker_lift_depth_env_cfg(),
    play_env_cfg=picker_lift_depth_env_cfg(play=True),
    rl_cfg=picker_depth_ppo_runner_cfg(),
    runner_cls=PickerRunner,
)

register_mjlab_task(
    task_id="Picker-Lift-Cartesian",
    env_cfg=picker_cartesian_env_cfg(),
    play_env_cfg=picker_cartesian_env_cfg(play=True),
    rl_cfg=picker_ppo_runner_cfg(),
    runner_cls=PickerRunner,
)
