"""Tokens of joints in plain MuJoCo, for exported policies."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.envs.mdp.joint_tokens import JOINT_TOKEN_COLUMNS, JOINT_TOKEN_SIZE
from manyworlds.rl.policy_description import EntityDescription


def joint_tokens(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    entity: EntityDescription,
    names: list[str],
    targets: list[float],
) -> np.ndarray:
    """Return what `mdp.joint_tokens` observes, shape [joints, 15].

    Args:
        model: the compiled model.
        data: its state.
        entity: the entity of the joints.
        names: names of the joints.
        targets: position targets of these joints [rad or m].
    """
    defaults = dict(zip(entity["joint_names"], entity["default_joint_pos"], strict=True))
    velocities = dict(zip(entity["joint_names"], entity["default_joint_vel"], strict=True))
    pose = mujoco.MjData(model)
    for name, default in defaults.items():
        pose.joint(name).qpos[0] = default
    mujoco.mj_kinematics(model, pose)
    root = model.body(entity["root_body"]).id
    frame = pose.xmat[root].reshape(3, 3)
    tokens = np.zeros((len(names), JOINT_TOKEN_SIZE))
    for token, name, target in zip(tokens, names, targets, strict=True):
        joint = model.joint(name)
        default = defaults[name]
        is_hinge = joint.type[0] == mujoco.mjtJoint.mjJNT_HINGE
        limits = np.zeros(2)
        if model.jnt_limited[joint.id]:
            limits = joint.range - default
        values = {
            "present": 1.0,
            "hinge": is_hinge,
            "slide": not is_hinge,
            "axis": frame.T @ pose.xaxis[joint.id],
            "anchor": frame.T @ (pose.xanchor[joint.id] - pose.xpos[root]),
            "limits": limits,
            "default": default,
            "position": data.qpos[joint.qposadr[0]] - default,
            "velocity": data.qvel[joint.dofadr[0]] - velocities[name],
            "target": target - default,
        }
        for column, value in values.items():
            token[JOINT_TOKEN_COLUMNS[column]] = value
    return tokens
