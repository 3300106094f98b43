"""Registry entries of the tasks of I2RT's YAM arm."""

from manyworlds.tasks.manipulation.config.yam.env_cfgs import (
    yam_lift_cube_depth_env_cfg,
    yam_lift_cube_env_cfg,
    yam_lift_cube_rgb_env_cfg,
    yam_lift_cube_vision_env_cfg,
    yam_multi_cube_seg_env_cfg,
)
from manyworlds.tasks.manipulation.config.yam.rl_cfg import (
    yam_lift_cube_ppo_runner_cfg,
    yam_lift_cube_vision_ppo_runner_cfg,
    yam_multi_cube_seg_ppo_runner_cfg,
)

__all__ = [
    "yam_lift_cube_depth_env_cfg",
    "yam_lift_cube_env_cfg",
    "yam_lift_cube_ppo_runner_cfg",
    "yam_lift_cube_rgb_env_cfg",
    "yam_lift_cube_vision_env_cfg",
    "yam_lift_cube_vision_ppo_runner_cfg",
    "yam_multi_cube_seg_env_cfg",
    "yam_multi_cube_seg_ppo_runner_cfg",
]
