"""Cube lifting with I2RT's YAM arm."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from manyworlds.asset_zoo.third_party import YAM_ACTION_SCALE, get_yam_robot_cfg
from manyworlds.tasks.manipulation import lift_cube_cpu
from manyworlds.tasks.manipulation.config.arm import ARM
from manyworlds.tasks.manipulation.lift_cube_env_cfg import (
    lift_cube_env_cfg,
    lift_cube_vision_env_cfg,
    multi_cube_seg_env_cfg,
)
from manyworlds.tasks.manipulation.lift_cube_rl_cfg import (
    lift_cube_ppo_runner_cfg,
    lift_cube_vision_ppo_runner_cfg,
)

__all__ = [
    "use_cpu_preset",
    "yam_lift_cube_depth_env_cfg",
    "yam_lift_cube_env_cfg",
    "yam_lift_cube_ppo_runner_cfg",
    "yam_lift_cube_rgb_env_cfg",
    "yam_lift_cube_vision_env_cfg",
    "yam_lift_cube_vision_ppo_runner_cfg",
    "yam_multi_cube_seg_env_cfg",
    "yam_multi_cube_seg_ppo_runner_cfg",
]

YAM = replace(ARM, entity=get_yam_robot_cfg, action_scale=YAM_ACTION_SCALE)

use_cpu_preset = partial(lift_cube_cpu.use_cpu_preset, YAM)
"""Simplify physics and start episodes with the cube in the hand, to train on few CPU cores."""
yam_lift_cube_env_cfg = partial(lift_cube_env_cfg, YAM)
"""Return the task of lifting a cube to a goal; the actor observes the cube's position."""
yam_lift_cube_vision_env_cfg = partial(lift_cube_vision_env_cfg, YAM)
"""Return the task whose actor observes the cube by a camera of a kind, "rgb" or "depth"."""
yam_lift_cube_rgb_env_cfg = partial(yam_lift_cube_vision_env_cfg, "rgb")
"""Return the task whose actor observes the cube by color images."""
yam_lift_cube_depth_env_cfg = partial(yam_lift_cube_vision_env_cfg, "depth")
"""Return the task whose actor observes the cube by depth images."""
yam_multi_cube_seg_env_cfg = partial(multi_cube_seg_env_cfg, YAM)
"""Return the task of lifting one of several cubes, which a camera image marks."""
yam_lift_cube_ppo_runner_cfg = partial(lift_cube_ppo_runner_cfg, "yam_lift_cube")
"""Return the PPO settings of the task without a camera."""
yam_lift_cube_vision_ppo_runner_cfg = partial(
    lift_cube_vision_ppo_runner_cfg, "yam_lift_cube_vision"
)
"""Return the PPO settings of the tasks with a color or depth camera."""
yam_multi_cube_seg_ppo_runner_cfg = partial(lift_cube_vision_ppo_runner_cfg, "yam_multi_cube_seg")
"""Return the PPO settings of the task with several cubes."""
