"""Observations of the motion and of the tracked bodies, each of shape [num_envs, n]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch

from manyworlds.tasks.tracking.mdp.commands import MotionCommand
from manyworlds.utils.math import (
    matrix_from_quat,
    quat_apply_inverse,
    quat_conjugate,
    quat_mul,
    subtract_frame_transforms,
)

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.share import ControlGraph, Value


def motion_anchor_pos_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Position of the motion's anchor in the robot's anchor frame [m], shape [num_envs, 3]."""
    command = motion_command(env, command_name)
    offset = command.anchor_pos_w - command.robot_anchor_pos_w
    return quat_apply_inverse(command.robot_anchor_quat_w, offset)


def motion_anchor_ori_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Orientation of the motion's anchor in the robot's anchor frame, shape [num_envs, 6].

    The first two columns of the rotation matrix, row by row.
    """
    command = motion_command(env, command_name)
    turn = quat_mul(quat_conjugate(command.robot_anchor_quat_w), command.anchor_quat_w)
    return _two_columns(turn)


def robot_body_pos_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Positions of the tracked bodies in the anchor's frame [m], shape [num_envs, 3 * bodies]."""
    return _bodies_in_anchor(motion_command(env, command_name))[0].flatten(1)


def robot_body_ori_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Orientations of the tracked bodies in the anchor's frame, shape [num_envs, 6 * bodies].

    The first two columns of each rotation matrix, row by row.
    """
    return _two_columns(_bodies_in_anchor(motion_command(env, command_name))[1])


def motion_command(env: ManagerBasedRlEnv, command_name: str) -> MotionCommand:
    """Return a motion command by name."""
    return cast(MotionCommand, env.command_manager.get_term(command_name))


def _bodies_in_anchor(command: MotionCommand) -> tuple[torch.Tensor, torch.Tensor]:
    pos = command.robot_body_pos_w
    quat = command.robot_body_quat_w
    anchor_pos = command.robot_anchor_pos_w.unsqueeze(1)
    anchor_quat = command.robot_anchor_quat_w.unsqueeze(1).expand_as(quat)
    return subtract_frame_transforms(anchor_pos, anchor_quat, pos, quat)


def _two_columns(quat: torch.Tensor) -> torch.Tensor:
    """Return the first two columns of rotation matrices, row by row, shape [num_envs, 6 * n].

    They are a continuous representation, unlike quaternions. Source: Y. Zhou et al., "On the
    continuity of rotation representations in neural networks" (2019).
    """
    return matrix_from_quat(quat)[..., :2].flatten(1)


PLAIN_OBSERVATION_FNS = {
    "motion_anchor_pos_b": lambda policy, data, params: policy.motion.anchor(
        policy.model, data, policy.time_step
    )[0],
    "motion_anchor_ori_b": lambda policy, data, params: policy.motion.anchor(
        policy.model, data, policy.time_step
    )[1][:, :2].ravel(),
}
"""Observation functions of this task for policies in plain MuJoCo."""


def _onnx_anchor_pos(graph: ControlGraph, params: dict[str, Any]) -> Value:
    row, body = _anchor(graph)
    offset = graph.motion("body_pos_w", row) - graph.position("body", body)
    return graph.axes("body", body).T @ offset


def _onnx_anchor_ori(graph: ControlGraph, params: dict[str, Any]) -> Value:
    row, body = _anchor(graph)
    matrix = _onnx_matrix(graph, graph.motion("body_quat_w", row))
    turn = graph.axes("body", body).T @ matrix
    return turn.reshape(9)[[0, 1, 3, 4, 6, 7]]


def _anchor(graph: ControlGraph) -> tuple[int, str]:
    """Return the row of the motion's anchor among its bodies, and the robot's body."""
    motion = graph.policy.motion
    assert motion is not None
    return motion.anchor_row, motion.anchor_body


def _onnx_matrix(graph: ControlGraph, quat: Value) -> Value:
    """Return the rotation matrix of a unit quaternion (w, x, y, z), as `mju_quat2Mat`."""
    w, x, y, z = quat
    rows = [
        *(w * w + x * x - y * y - z * z, (x * y - w * z) * 2.0, (x * z + w * y) * 2.0),
        *((x * y + w * z) * 2.0, w * w - x * x + y * y - z * z, (y * z - w * x) * 2.0),
        *((x * z - w * y) * 2.0, (y * z + w * x) * 2.0, w * w - x * x - y * y + z * z),
    ]
    return graph.concat([value.reshape(1) for value in rows]).reshape(3, 3)


ONNX_OBSERVATION_FNS = {
    "motion_anchor_pos_b": _onnx_anchor_pos,
    "motion_anchor_ori_b": _onnx_anchor_ori,
}
"""Observation functions of this task for policies in shared pages."""
