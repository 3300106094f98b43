"""A humanoid that imitates a recorded motion."""

from mjlab.tasks.registry import register_mjlab_task

from .env_cfgs import biped_tracking_env_cfg
from .rl_cfg import biped_tracking_ppo_runner_cfg
from .runner import MimicRunner

register_mjlab_task(
    task_id="Mimic-Biped",
    env_cfg=biped_tracking_env_cfg(),
    play_env_cfg=biped_tracking_env_cfg(play=True),
    rl_cfg=biped_tracking_ppo_runner_cfg(),
    runner_cls=MimicRunner,
)

register_mjlab_task(
    task_id="Mimic-Biped-No-State-Estimation",
    env_cfg=biped_tracking_env_cfg(has_state_estimation=False),
    play_env_cfg=biped_tracking_env_cfg(has_state_estimation=False, play=True),
    rl_cfg=biped_tracking_ppo_runner_cfg(),
    runner_cls=MimicRunner,
)
