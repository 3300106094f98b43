"""Registry entries of the built-in arm's tasks."""

from manyworlds.tasks.manipulation.config.arm.env_cfgs import (
    arm_lift_cube_depth_env_cfg,
    arm_lift_cube_env_cfg,
    arm_lift_cube_rgb_env_cfg,
    arm_lift_cube_vision_env_cfg,
    arm_multi_cube_seg_env_cfg,
)
from manyworlds.tasks.manipulation.config.arm.rl_cfg import (
    arm_lift_cube_ppo_runner_cfg,
    arm_lift_cube_vision_ppo_runner_cfg,
    arm_multi_cube_seg_ppo_runner_cfg,
)

__all__ = [
    "arm_lift_cube_depth_env_cfg",
    "arm_lift_cube_env_cfg",
    "arm_lift_cube_ppo_runner_cfg",
    "arm_lift_cube_rgb_env_cfg",
    "arm_lift_cube_vision_env_cfg",
    "arm_lift_cube_vision_ppo_runner_cfg",
    "arm_multi_cube_seg_env_cfg",
    "arm_multi_cube_seg_ppo_runner_cfg",
]
