"""Motion to track, as tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from manyworlds.tasks.tracking.motion import Motion

Parts = tuple["torch.Tensor", ...]
JOINTS = ("joint_pos", "joint_vel")
"""Quantities of joints in the rows of a motion."""
BODIES = (("body_pos_w", 3), ("body_quat_w", 4), ("body_lin_vel_w", 3), ("body_ang_vel_w", 3))
"""Quantities of bodies, after those of joints, with their widths."""


class MotionLoader:
    """Motion as tensors, restricted to some bodies.

    Args:
        motion_file: NPZ file, or a motion in memory.
        body_indexes: indices of the selected bodies, in the order of the result.
        device: device of the tensors.

    Raises:
        ValueError: the file is invalid (see `Motion`), or has fewer bodies.
    """

    joint_pos: torch.Tensor
    """Joint positions [rad or m], shape [time_step_total, joints]."""
    joint_vel: torch.Tensor
    """Joint velocities [rad/s or m/s], shape [time_step_total, joints]."""
    body_pos_w: torch.Tensor
    """Positions in the world frame [m], shape [time_step_total, bodies, 3]."""
    body_quat_w: torch.Tensor
    """Orientations in the world frame (wxyz), shape [time_step_total, bodies, 4]."""
    body_lin_vel_w: torch.Tensor
    """Linear velocities in the world frame [m/s], shape [time_step_total, bodies, 3]."""
    body_ang_vel_w: torch.Tensor
    """Angular velocities in the world frame [rad/s], shape [time_step_total, bodies, 3]."""

    def __init__(
        self,
        motion_file: str | Path | Motion,
        body_indexes: torch.Tensor,
        device: str | torch.device = "cpu",
    ) -> None:
        motion = motion_file if isinstance(motion_file, Motion) else Motion.load(motion_file)
        ids, available = body_indexes.cpu().numpy(), motion.body_pos_w.shape[1]
        if ids.max(initial=-1) >= available:
            raise ValueError(
                f"Body {ids.max()} is selected, but {motion.source} has {available} bodies: it "
                "belongs to another robot; convert a recording of this one with "
                "`manyworlds motion convert`."
            )
        self.fps = motion.fps
        self.time_step_total = motion.num_frames
        """Number of frames."""
        self.num_joints, self.num_bodies = motion.joint_pos.shape[1], len(ids)
        arrays = [getattr(motion, name) for name in JOINTS]
        arrays += [getattr(motion, name)[:, ids] for name, _ in BODIES]
        # Concatenated, so that the frames of all worlds are gathered in one operation.
        rows = np.concatenate([a.reshape(len(a), -1) for a in arrays], axis=1, dtype=np.float32)
        self.frames = torch.from_numpy(rows).to(device)
        """Concatenation of these quantities, shape [time_step_total, width]."""
        names = [*JOINTS, *(name for name, _ in BODIES)]
        for name, part in zip(names, self.split(self.frames), strict=True):
            setattr(self, name, part)

    def split(self, rows: torch.Tensor) -> Parts:
        """Split rows of `frames` into views: joint positions, joint velocities, body quantities."""
        widths = [self.num_joints] * 2 + [self.num_bodies * width for _, width in BODIES]
        parts = rows.split(widths, dim=1)
        return (*parts[:2], *(part.unflatten(1, (self.num_bodies, -1)) for part in parts[2:]))
