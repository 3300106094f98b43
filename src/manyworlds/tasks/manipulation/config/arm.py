"""Cube lifting with the built-in arm."""

from __future__ import annotations

from functools import partial

from manyworlds.asset_zoo.arm import ARM_ACTION_SCALE, PADS, get_arm_cfg
from manyworlds.tasks.manipulation import lift_cube_cpu
from manyworlds.tasks.manipulation.lift_cube_env_cfg import (
    Arm,
    lift_cube_env_cfg,
    lift_cube_vision_env_cfg,
    multi_cube_seg_env_cfg,
)
from manyworlds.tasks.manipulation.lift_cube_rl_cfg import (
    lift_cube_ppo_runner_cfg,
    lift_cube_vision_ppo_runner_cfg,
)
from manyworlds.utils.viewer_config import ViewerConfig

__all__ = [
    "arm_lift_cube_depth_env_cfg",
    "arm_lift_cube_env_cfg",
    "arm_lift_cube_ppo_runner_cfg",
    "arm_lift_cube_rgb_env_cfg",
    "arm_lift_cube_vision_env_cfg",
    "arm_lift_cube_vision_ppo_runner_cfg",
    "arm_multi_cube_seg_env_cfg",
    "arm_multi_cube_seg_ppo_runner_cfg",
    "use_cpu_preset",
]

ARM = Arm(
    entity=get_arm_cfg,
    action_scale=ARM_ACTION_SCALE,
    root="arm",
    hand="link_6",
    grasp_site="grasp_site",
    fingertips=PADS,
    grasp={
        "joint2": 1.396,
        "joint3": 0.633,
        "joint4": -0.208,
        "left_finger": 0.0375,
        "right_finger": -0.0375,
    },
    closed={"left_finger": 0.0195, "right_finger": -0.0195},
    viewer=ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_BODY,
        entity_name="robot",
        body_name="arm",
        distance=1.5,
        elevation=-5.0,
        azimuth=120.0,
    ),
)

use_cpu_preset = partial(lift_cube_cpu.use_cpu_preset, ARM)
"""Simplify physics and start episodes with the cube in the hand, to train on few CPU cores."""
arm_lift_cube_env_cfg = partial(lift_cube_env_cfg, ARM)
"""Return the task of lifting a cube to a goal; the actor observes the cube's position."""
arm_lift_cube_vision_env_cfg = partial(lift_cube_vision_env_cfg, ARM)
"""Return the task whose actor observes the cube by a camera of a kind, "rgb" or "depth"."""
arm_lift_cube_rgb_env_cfg = partial(arm_lift_cube_vision_env_cfg, "rgb")
"""Return the task whose actor observes the cube by color images."""
arm_lift_cube_depth_env_cfg = partial(arm_lift_cube_vision_env_cfg, "depth")
"""Return the task whose actor observes the cube by depth images."""
arm_multi_cube_seg_env_cfg = partial(multi_cube_seg_env_cfg, ARM)
"""Return the task of lifting one of several cubes, which a camera image marks."""
arm_lift_cube_ppo_runner_cfg = partial(lift_cube_ppo_runner_cfg, "arm_lift_cube")
"""Return the PPO settings of the task without a camera."""
arm_lift_cube_vision_ppo_runner_cfg = partial(
    lift_cube_vision_ppo_runner_cfg, "arm_lift_cube_vision"
)
"""Return the PPO settings of the tasks with a color or depth camera."""
arm_multi_cube_seg_ppo_runner_cfg = partial(lift_cube_vision_ppo_runner_cfg, "arm_multi_cube_seg")
"""Return the PPO settings of the task with several cubes."""
