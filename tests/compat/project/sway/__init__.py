"""A task package in the style of the reference: a pole on a cart that moves by position targets."""

from mjlab.tasks.registry import register_mjlab_task

from .sway_env_cfg import sway_env_cfg, sway_ppo_runner_cfg

register_mjlab_task(
    task_id="Sway-Pole",
    env_cfg=sway_env_cfg(),
    play_env_cfg=sway_env_cfg(play=True),
    rl_cfg=sway_ppo_runner_cfg(),
)
