"""PPO settings of I2RT's YAM arm for cube lifting."""

from __future__ import annotations

from functools import partial

from manyworlds.tasks.manipulation.lift_cube_rl_cfg import (
    lift_cube_ppo_runner_cfg,
    lift_cube_vision_ppo_runner_cfg,
)

yam_lift_cube_ppo_runner_cfg = partial(lift_cube_ppo_runner_cfg, "yam_lift_cube")
yam_lift_cube_vision_ppo_runner_cfg = partial(
    lift_cube_vision_ppo_runner_cfg, "yam_lift_cube_vision"
)
yam_multi_cube_seg_ppo_runner_cfg = partial(lift_cube_vision_ppo_runner_cfg, "yam_multi_cube_seg")
