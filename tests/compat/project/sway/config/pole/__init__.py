"""The task with a pole, trained by a runner that packages of tasks have."""

from mjlab.tasks.registry import register_mjlab_task
from mjlab.tasks.velocity.rl import VelocityOnPolicyRunner

from sway.sway_env_cfg import sway_env_cfg, sway_ppo_runner_cfg

register_mjlab_task(
    task_id="Sway-Pole",
    env_cfg=sway_env_cfg(),
    play_env_cfg=sway_env_cfg(play=True),
    rl_cfg=sway_ppo_runner_cfg(),
    runner_cls=VelocityOnPolicyRunner,
)
