"""Observations of the arm and of the objects, each of shape [num_envs, ...]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import mujoco
import numpy as np
import torch

from manyworlds.managers import CommandTerm, SceneEntityCfg
from manyworlds.sensor import CameraSensorData
from manyworlds.tasks.manipulation.mdp.commands import LiftingCommand, MultiCubeLiftingCommand
from manyworlds.utils.math import quat_apply_inverse

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl import OnnxPolicy
    from manyworlds.share import ControlGraph, Value

_ROBOT = SceneEntityCfg("robot")
_Command = TypeVar("_Command", bound=CommandTerm)


def ee_to_object_distance(
    env: ManagerBasedRlEnv, object_name: str, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Vector from the site of `asset_cfg` to an object, in root frame [m], shape [num_envs, 3]."""
    target = env.scene.entity(object_name).data.root_link_pos_w
    return _in_root_frame(env, asset_cfg, target - site_position(env, asset_cfg))


def object_to_goal_distance(
    env: ManagerBasedRlEnv,
    object_name: str,
    command_name: str,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> torch.Tensor:
    """Vector from an object to its target, in the robot's root frame [m], shape [num_envs, 3].

    Raises:
        TypeError: the command is not a `LiftingCommand`.
    """
    command = lifting_command(env, command_name, LiftingCommand)
    way = command.target_pos - env.scene.entity(object_name).data.root_link_pos_w
    return _in_root_frame(env, asset_cfg, way)


def ee_to_target_object(
    env: ManagerBasedRlEnv, command_name: str, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Vector from the site of `asset_cfg` to the selected object, shape [num_envs, 3].

    In the robot's root frame [m], for the object that a `MultiCubeLiftingCommand` selects.

    Raises:
        TypeError: the command is not a `MultiCubeLiftingCommand`.
    """
    target = lifting_command(env, command_name, MultiCubeLiftingCommand).target_object_pos
    return _in_root_frame(env, asset_cfg, target - site_position(env, asset_cfg))


def target_object_to_goal(
    env: ManagerBasedRlEnv, command_name: str, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Vector from the selected object to its target, shape [num_envs, 3].

    In the robot's root frame [m], for the object that a `MultiCubeLiftingCommand` selects.

    Raises:
        TypeError: the command is not a `MultiCubeLiftingCommand`.
    """
    command = lifting_command(env, command_name, MultiCubeLiftingCommand)
    return _in_root_frame(env, asset_cfg, command.target_pos - command.target_object_pos)


def ee_velocity(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Velocity of the site of `asset_cfg` in the robot's root frame [m/s], shape [num_envs, 3]."""
    velocity = env.scene.entity(asset_cfg.name).data.site_lin_vel_w[:, asset_cfg.index("site")]
    return _in_root_frame(env, asset_cfg, velocity.squeeze(1))


def target_position(
    env: ManagerBasedRlEnv, command_name: str, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Target position of the object in the robot's root frame [m], shape [num_envs, 3].

    Raises:
        TypeError: the command is not a lifting command.
    """
    command = lifting_command(env, command_name, LiftingCommand, MultiCubeLiftingCommand)
    root = env.scene.entity(asset_cfg.name).data.root_link_pos_w
    return _in_root_frame(env, asset_cfg, command.command - root)


# mjlab's tasks of lifting, and many that began as copies of them, name the hand's site here,
# although the position does not depend on it.
target_position.selects = frozenset({"site"})  # type: ignore[attr-defined]


def camera_rgb(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Color image of a camera in [0, 1], shape [num_envs, 3, height, width]."""
    return _picture(env, sensor_name, "rgb").float() / 255.0


def camera_depth(
    env: ManagerBasedRlEnv, sensor_name: str, cutoff_distance: float, min_depth: float = 0.01
) -> torch.Tensor:
    """Depth image of a camera scaled to [0, 1], shape [num_envs, 1, height, width].

    Args:
        env: the environment.
        sensor_name: the camera.
        cutoff_distance: upper bound of the distance [m], which is mapped to 1.
        min_depth: lower bound of the distance [m].
    """
    depth = _picture(env, sensor_name, "depth")
    return depth.clamp(min_depth, cutoff_distance) / cutoff_distance


def camera_segmentation(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Object id and type (`mjtObj`) of each pixel as floats, shape [num_envs, 2, height, width]."""
    return _picture(env, sensor_name, "segmentation").float()


def camera_target_cube_mask(
    env: ManagerBasedRlEnv, sensor_name: str, command_name: str
) -> torch.Tensor:
    """Mask of the selected object in a camera image, 0 or 1, [num_envs, 1, height, width].

    Raises:
        TypeError: the command is not a `MultiCubeLiftingCommand`.
    """
    command = lifting_command(env, command_name, MultiCubeLiftingCommand)
    ids, kinds = _picture(env, sensor_name, "segmentation").unsqueeze(2).unbind(1)
    wanted = command.target_geom_ids.view(env.num_envs, -1, 1, 1)
    seen = (ids == wanted) & (kinds == int(mujoco.mjtObj.mjOBJ_GEOM))
    return seen.any(dim=1, keepdim=True).float()


def lifting_command(env: ManagerBasedRlEnv, name: str, *kinds: type[_Command]) -> _Command:
    """Return a command of one of the given types.

    Raises:
        TypeError: the command is of another type.
    """
    term = env.command_manager.get_term(name)
    if not isinstance(term, kinds):
        raise TypeError(
            f"Command '{name}' is a {type(term).__name__}, but this term needs a "
            f"{' or '.join(kind.__name__ for kind in kinds)}."
        )
    return term


def site_position(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Position of the single site of `asset_cfg` in the world frame [m], shape [num_envs, 3].

    Raises:
        ValueError: none or several sites are selected.
    """
    position = env.scene.entity(asset_cfg.name).data.site_pos_w[:, asset_cfg.index("site")]
    if position.shape[1] != 1:
        raise ValueError(
            f"{asset_cfg!r} selects {position.shape[1]} sites of '{asset_cfg.name}', but the hand "
            "is one: name it in site_names."
        )
    return position.squeeze(1)


def _in_root_frame(
    env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg, vector: torch.Tensor
) -> torch.Tensor:
    return quat_apply_inverse(env.scene.entity(asset_cfg.name).data.root_link_quat_w, vector)


def _picture(env: ManagerBasedRlEnv, sensor_name: str, kind: str) -> torch.Tensor:
    """Image of a camera with channels first, shape [num_envs, channels, height, width]."""
    data = env.scene.sensors[sensor_name].data
    assert isinstance(data, CameraSensorData)
    picture = getattr(data, kind)
    if picture is None:
        raise ValueError(
            f"Camera '{sensor_name}' provides no {kind} images: add '{kind}' to its data_types."
        )
    return picture.permute(0, 3, 1, 2)


def _plain_ee_to_object(policy: OnnxPolicy, data: mujoco.MjData, params: dict[str, Any]) -> Any:
    """Return `ee_to_object_distance` computed without an environment, shape [3]."""
    [site] = params["asset_cfg"]["site_names"]
    target = policy.entities[params["object_name"]]["root_body"]
    way = data.body(target).xpos - data.site(site).xpos
    return _plain_root_axes(policy, data, params).T @ way


def _plain_object_to_goal(policy: OnnxPolicy, data: mujoco.MjData, params: dict[str, Any]) -> Any:
    """Return `object_to_goal_distance` computed without an environment, shape [3]."""
    target = policy.entities[params["object_name"]]["root_body"]
    way = policy.commands[params["command_name"]] - data.body(target).xpos
    return _plain_root_axes(policy, data, params).T @ way


def _plain_root_axes(policy: OnnxPolicy, data: mujoco.MjData, params: dict[str, Any]) -> np.ndarray:
    root = policy.joints_of(params)[1]["root_body"]
    return data.body(root).xmat.reshape(3, 3)


PLAIN_OBSERVATION_FNS = {
    "ee_to_object_distance": _plain_ee_to_object,
    "object_to_goal_distance": _plain_object_to_goal,
}
"""Observation functions of these tasks for policies in plain MuJoCo."""


def _onnx_ee_to_object(graph: ControlGraph, params: dict[str, Any]) -> Value:
    [site] = params["asset_cfg"]["site_names"]
    target = graph.policy.entities[params["object_name"]]["root_body"]
    way = graph.position("body", target) - graph.position("site", site)
    return _onnx_root_axes(graph, params).T @ way


def _onnx_object_to_goal(graph: ControlGraph, params: dict[str, Any]) -> Value:
    target = graph.policy.entities[params["object_name"]]["root_body"]
    way = graph.command(params["command_name"]) - graph.position("body", target)
    return _onnx_root_axes(graph, params).T @ way


def _onnx_root_axes(graph: ControlGraph, params: dict[str, Any]) -> Value:
    return graph.axes("body", graph.policy.joints_of(params)[1]["root_body"])


ONNX_OBSERVATION_FNS = {
    "ee_to_object_distance": _onnx_ee_to_object,
    "object_to_goal_distance": _onnx_object_to_goal,
}
"""Observation functions of these tasks for policies in shared pages."""
