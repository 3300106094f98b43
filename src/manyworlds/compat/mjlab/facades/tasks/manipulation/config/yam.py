"""mjlab's cube lifting tasks of YAM."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from manyworlds.asset_zoo.third_party import YAM_ACTION_SCALE
from manyworlds.compat.mjlab.facades.tasks.manipulation.lift_cube_env_cfg import (
    make_lift_cube_env_cfg,
)
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.manipulation.config import yam as ours
from manyworlds.tasks.manipulation.config.yam import yam_lift_cube_ppo_runner_cfg
from manyworlds.tasks.manipulation.lift_cube_env_cfg import (
    CameraKind,
    add_arm,
    add_cubes,
    cube_cfg,
    get_cube_spec,
    observe_images,
    prepare_for_play,
)

__all__ = [
    "YAM_ACTION_SCALE",
    "get_cube_spec",
    "yam_lift_cube_depth_env_cfg",
    "yam_lift_cube_env_cfg",
    "yam_lift_cube_ppo_runner_cfg",
    "yam_lift_cube_rgb_env_cfg",
    "yam_lift_cube_vision_env_cfg",
    "yam_lift_cube_vision_ppo_runner_cfg",
    "yam_multi_cube_seg_env_cfg",
    "yam_multi_cube_seg_ppo_runner_cfg",
]

_YAM = replace(ours.YAM, fingertips="[lr]f_down(6|7|8|9|10|11)_collision")
_CNN: dict[str, Any] = {
    "output_channels": (16, 32),
    "kernel_size": (5, 3),
    "stride": (2, 2),
    "padding": "zeros",
    "activation": "elu",
    "max_pool": False,
    "global_pool": "none",
    "spatial_softmax": True,
    "spatial_softmax_temperature": 1.0,
}


def yam_lift_cube_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of an arm that observes the cube's position.

    Args:
        play: configure for playback: endless episodes and exact observations.
    """
    cfg = make_lift_cube_env_cfg()
    cfg.scene.entities = {"cube": cube_cfg()}
    add_arm(cfg, _YAM)
    if play:
        prepare_for_play(cfg)
    return cfg


def yam_lift_cube_vision_env_cfg(cam_type: CameraKind, play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of an arm that observes the cube with a camera in front of it.

    Args:
        cam_type: "rgb" for color images, "depth" for depth images.
        play: see `yam_lift_cube_env_cfg`.
    """
    cfg = yam_lift_cube_env_cfg(play)
    observe_images(cfg, _YAM, cam_type)
    return cfg


yam_lift_cube_rgb_env_cfg = partial(yam_lift_cube_vision_env_cfg, "rgb")
yam_lift_cube_depth_env_cfg = partial(yam_lift_cube_vision_env_cfg, "depth")


def yam_multi_cube_seg_env_cfg(num_cubes: int = 3, play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of lifting one of several cubes, which a camera image marks.

    Args:
        num_cubes: number of cubes, at least 2.
        play: see `yam_lift_cube_env_cfg`.

    Raises:
        ValueError: `num_cubes` is less than 2.
    """
    cfg = yam_lift_cube_env_cfg(play)
    add_cubes(cfg, _YAM, num_cubes)
    return cfg


def yam_lift_cube_vision_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return PPO settings for arms with a camera, whose images the critic observes, too."""
    return _vision(ours.yam_lift_cube_vision_ppo_runner_cfg())


def yam_multi_cube_seg_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return PPO settings for the choice between cubes."""
    return _vision(ours.yam_multi_cube_seg_ppo_runner_cfg())


def _vision(cfg: RslRlOnPolicyRunnerCfg) -> RslRlOnPolicyRunnerCfg:
    cfg.max_iterations = 3000
    cfg.obs_groups = {"actor": ("actor", "camera"), "critic": ("critic", "camera")}
    for model in (cfg.actor, cfg.critic):
        model.class_name = cfg.actor.class_name
        model.cnn_cfg = dict(_CNN)
        model.hidden_dims = cfg.actor.hidden_dims
    return cfg
