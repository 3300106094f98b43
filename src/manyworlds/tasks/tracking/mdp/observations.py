"""What is observed of the motion and of the tracked bodies, each of shape [num_envs, n]."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

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


def motion_anchor_pos_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Where the anchor should be, seen from the robot's anchor [m], shape [num_envs, 3]."""
    command = motion_command(env, command_name)
    offset = command.anchor_pos_w - command.robot_anchor_pos_w
    return quat_apply_inverse(command.robot_anchor_quat_w, offset)


def motion_anchor_ori_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """How the anchor should be turned, seen from the robot's anchor, shape [num_envs, 6]."""
    command = motion_command(env, command_name)
    turn = quat_mul(quat_conjugate(command.robot_anchor_quat_w), command.anchor_quat_w)
    return _two_columns(turn)


def robot_body_pos_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Tracked bodies of the robot seen from its anchor [m], shape [num_envs, 3 bodies]."""
    return _bodies_in_anchor(motion_command(env, command_name))[0].flatten(1)


def robot_body_ori_b(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """How tracked bodies are turned, seen from the anchor, shape [num_envs, 6 bodies]."""
    return _two_columns(_bodies_in_anchor(motion_command(env, command_name))[1])


def motion_command(env: ManagerBasedRlEnv, command_name: str) -> MotionCommand:
    """Return a motion command by name."""
    return cast(MotionCommand, env.command_manager.get_term(command_name))


def _bodies_in_anchor(command: MotionCommand) -> tuple[torch.Tensor, torch.Tensor]:
    pos, quat = command.robot_body_pos_w, command.robot_body_quat_w
    anchor_pos = command.robot_anchor_pos_w.unsqueeze(1)
    anchor_quat = command.robot_anchor_quat_w.unsqueeze(1).expand_as(quat)
    return subtract_frame_transforms(anchor_pos, anchor_quat, pos, quat)


def _two_columns(quat: torch.Tensor) -> torch.Tensor:
    """The first two columns of rotation matrices, row by row, shape [num_envs, 6 n].

    They vary continuously with the rotation, unlike quaternions. Source: Y. Zhou et al., "On the
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
"""The same in plain MuJoCo, for `manyworlds.rl.OnnxPolicy`."""
