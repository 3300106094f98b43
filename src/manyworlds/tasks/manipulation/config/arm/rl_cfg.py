"""PPO settings of the built-in arm for cube lifting."""

from __future__ import annotations

from functools import partial

from manyworlds.tasks.manipulation.lift_cube_rl_cfg import (
    lift_cube_ppo_runner_cfg,
    lift_cube_vision_ppo_runner_cfg,
)

arm_lift_cube_ppo_runner_cfg = partial(lift_cube_ppo_runner_cfg, "arm_lift_cube")
arm_lift_cube_vision_ppo_runner_cfg = partial(
    lift_cube_vision_ppo_runner_cfg, "arm_lift_cube_vision"
)
arm_multi_cube_seg_ppo_runner_cfg = partial(lift_cube_vision_ppo_runner_cfg, "arm_multi_cube_seg")
