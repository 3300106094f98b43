"""Check that the bodies of a motion are where its joints put them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.tasks.tracking.motion import Motion
from manyworlds.validation.rules import refuse

if TYPE_CHECKING:
    from manyworlds.entity import Entity

_FRAMES = 10
_MAX_DISTANCE = 0.01
"""Mean distance that rounding and resampling may cause [m]."""
_MAX_ANGLE = 0.1
"""Mean angle that they may cause [rad]."""


def check_kinematics(motion: Motion, entity: Entity, model: mujoco.MjModel, name: str) -> None:
    """Compare the bodies of a few frames with forward kinematics of their root and joints.

    Args:
        motion: a motion with as many joints and bodies as the robot.
        entity: the robot, with a free joint.
        model: compiled model of the scene.
        name: name of the robot in messages.

    Raises:
        ValueError: a body is elsewhere; the message names the one that is farthest.
    """
    ids = entity.indexing
    data = mujoco.MjData(model)
    bodies = ids.body_ids.cpu().numpy()
    joint_adr = ids.joint_q_adr.cpu().numpy()
    free_adr = ids.free_joint_q_adr.cpu().numpy()
    frames = np.unique(np.linspace(0, motion.num_frames - 1, _FRAMES).astype(int))
    distances, angles = np.zeros((2, len(frames), len(bodies)))
    for i, frame in enumerate(frames):
        pos = motion.body_pos_w[frame]
        quat = motion.body_quat_w[frame]
        data.qpos[free_adr[:3]] = pos[ids.root_index]
        data.qpos[free_adr[3:]] = quat[ids.root_index]
        data.qpos[joint_adr] = motion.joint_pos[frame]
        mujoco.mj_kinematics(model, data)
        distances[i] = np.linalg.norm(data.xpos[bodies] - pos, axis=1)
        cosines = np.abs((data.xquat[bodies] * quat).sum(axis=1)) / np.linalg.norm(quat, axis=1)
        angles[i] = 2.0 * np.arccos(np.minimum(cosines, 1.0))
    distance = distances.mean(axis=0)
    angle = angles.mean(axis=0)
    worst = int(np.maximum(distance / _MAX_DISTANCE, angle / _MAX_ANGLE).argmax())
    if distance[worst] > _MAX_DISTANCE or angle[worst] > _MAX_ANGLE:
        refuse(
            f"The bodies of {motion.source} are not where its joints put them: body "
            f"'{entity.body_names[worst]}' of '{name}' is {distance[worst]:.3g} m and "
            f"{angle[worst]:.3g} rad away, more than {_MAX_DISTANCE} m or {_MAX_ANGLE} rad, in the "
            f"mean of {len(frames)} frames. Its bodies or joints are in another order or of "
            "another robot: convert a recording of this one with `manyworlds motion convert`."
        )
