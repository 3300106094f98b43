"""Motion to track, as tensors."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from manyworlds.tasks.tracking.motion import Motion


class MotionFrames(NamedTuple):
    """Frames of a motion, one a row."""

    joint_pos: torch.Tensor
    """Joint positions [rad or m], shape [rows, joints]."""
    joint_vel: torch.Tensor
    """Joint velocities [rad/s or m/s], shape [rows, joints]."""
    body_pos_w: torch.Tensor
    """Positions in the world frame [m], shape [rows, bodies, 3]."""
    body_quat_w: torch.Tensor
    """Orientations in the world frame (wxyz), shape [rows, bodies, 4]."""
    body_lin_vel_w: torch.Tensor
    """Linear velocities in the world frame [m/s], shape [rows, bodies, 3]."""
    body_ang_vel_w: torch.Tensor
    """Angular velocities in the world frame [rad/s], shape [rows, bodies, 3]."""


class MotionLoader:
    """Motion as tensors, restricted to some bodies.

    Args:
        motion_file: NPZ file, or a motion in memory.
        body_indexes: indices of the selected bodies, in the order of the result.
        device: device of the tensors.

    Raises:
        ValueError: the file is invalid (see `Motion`), or has fewer bodies.
    """

    def __init__(
        self,
        motion_file: str | Path | Motion,
        body_indexes: torch.Tensor,
        device: str | torch.device = "cpu",
    ) -> None:
        motion = motion_file
        if not isinstance(motion, Motion):
            motion = Motion.load(motion)
        ids = body_indexes.cpu().numpy()
        available = motion.body_pos_w.shape[1]
        if ids.max(initial=-1) >= available:
            raise ValueError(
                f"Body {ids.max()} is selected, but {motion.source} has {available} bodies: it "
                "belongs to another robot; convert a recording of this one with "
                "`manyworlds motion convert`."
            )
        self.fps = motion.fps
        self.time_step_total = motion.num_frames
        """Number of frames."""
        self.num_joints = motion.joint_pos.shape[1]
        self.num_bodies = len(ids)
        arrays = [
            motion.joint_pos,
            motion.joint_vel,
            motion.body_pos_w[:, ids],
            motion.body_quat_w[:, ids],
            motion.body_lin_vel_w[:, ids],
            motion.body_ang_vel_w[:, ids],
        ]
        # Concatenated, so that the frames of all worlds are gathered in one operation.
        rows = np.concatenate([a.reshape(len(a), -1) for a in arrays], axis=1, dtype=np.float32)
        self.frames = torch.from_numpy(rows).to(device)
        """Concatenation of these quantities, shape [time_step_total, width]."""
        parts = self.split(self.frames)
        self.joint_pos = parts.joint_pos
        """Joint positions [rad or m], shape [time_step_total, joints]."""
        self.joint_vel = parts.joint_vel
        """Joint velocities [rad/s or m/s], shape [time_step_total, joints]."""
        self.body_pos_w = parts.body_pos_w
        """Positions in the world frame [m], shape [time_step_total, bodies, 3]."""
        self.body_quat_w = parts.body_quat_w
        """Orientations in the world frame (wxyz), shape [time_step_total, bodies, 4]."""
        self.body_lin_vel_w = parts.body_lin_vel_w
        """Linear velocities in the world frame [m/s], shape [time_step_total, bodies, 3]."""
        self.body_ang_vel_w = parts.body_ang_vel_w
        """Angular velocities in the world frame [rad/s], shape [time_step_total, bodies, 3]."""

    def split(self, rows: torch.Tensor) -> MotionFrames:
        """Return views of rows of `frames`, by quantity."""
        joints = self.num_joints
        bodies = self.num_bodies
        widths = [joints, joints, 3 * bodies, 4 * bodies, 3 * bodies, 3 * bodies]
        parts = rows.split(widths, dim=1)
        return MotionFrames(
            joint_pos=parts[0],
            joint_vel=parts[1],
            body_pos_w=parts[2].unflatten(1, (bodies, 3)),
            body_quat_w=parts[3].unflatten(1, (bodies, 4)),
            body_lin_vel_w=parts[4].unflatten(1, (bodies, 3)),
            body_ang_vel_w=parts[5].unflatten(1, (bodies, 3)),
        )
