"""Poses of an arm in which its hand holds an object, surrounds it, or is above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
import torch

from manyworlds.entity import Entity, EntityCfg

_TURNING = 25
_PLACING = 10
"""Number of iterations with the hand's orientation, and with its position alone."""
_TOLERANCE = 1e-3  # [m]
_DAMPING = 1e-4
_MAX_STEP = 0.3  # [rad]


@dataclass(frozen=True)
class HandPoses:
    """Poses of an arm; all tensors have one row per pose."""

    joint_pos: torch.Tensor
    """Joint positions, in the order of the entity [rad or m], shape [n, joints]."""
    hand_pos: torch.Tensor
    """Positions of the grasp site relative to the arm's root [m], shape [n, 3]."""
    hand_quat: torch.Tensor
    """Orientations of the grasp site relative to the arm's root (wxyz), shape [n, 4]."""


def hand_poses(
    cfg: EntityCfg, site: str, posture: Mapping[str, float], positions: np.ndarray
) -> HandPoses:
    """Solve for joint positions that bring a hand to positions.

    The hand keeps its inclination of the given posture as far as possible, and points away from
    the root. Positions that cannot be reached within the joint limits, or at which the arm would
    collide with itself or with the ground, are left out.

    Args:
        cfg: the arm, with a fixed base at the origin; z points up.
        site: name of the grasp site.
        posture: joint positions that the solution starts from, by name [rad or m].
        positions: positions relative to the root [m], shape [n, 3].

    Raises:
        ValueError: no position can be reached.
    """
    solver = _Hand(cfg, site, posture)
    solved = []
    for position in positions:
        pose = solver.solve(position)
        if pose is not None:
            solved.append(pose)
    if not solved:
        raise ValueError(
            f"The hand '{site}' reaches none of {len(positions)} positions from the given posture."
        )
    joints, pos, quat = (torch.tensor(np.array(part)).float() for part in zip(*solved, strict=True))
    return HandPoses(joints, pos, quat)


class _Hand:
    """Inverse kinematics of an arm above the ground."""

    def __init__(self, cfg: EntityCfg, site: str, posture: Mapping[str, float]) -> None:
        entity = Entity(cfg)
        entity.spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2.0, 2.0, 0.1])
        self.model = model = entity.spec.compile()
        self.data = mujoco.MjData(model)
        self.site = model.site(site).id
        for name, values in {**entity.initial_qpos(), **posture}.items():
            address = int(model.joint(name).qposadr[0])
            self.data.qpos[address : address + np.size(values)] = values
        self._addresses = [int(model.joint(name).qposadr[0]) for name in entity.joint_names]
        hinges = model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
        self._dofs = model.jnt_dofadr[hinges]
        self._start = self.data.qpos.copy()
        mujoco.mj_forward(model, self.data)
        self._contacts = self.data.ncon
        position = self.data.site_xpos[self.site]
        self._azimuth = np.arctan2(position[1], position[0])
        self._orientation = self.data.site_xmat[self.site].copy()

    def solve(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Solve for one position [m], shape [3].

        Returns:
            Joint positions, shape [joints], and the hand's position, shape [3], and quaternion
            (wxyz), shape [4]; None if the hand cannot be there.
        """
        model = self.model
        data = self.data
        data.qpos[:] = self._start
        turn = np.zeros(4)
        wanted = np.zeros(4)
        now = np.zeros(4)
        angle = np.arctan2(position[1], position[0]) - self._azimuth
        mujoco.mju_axisAngle2Quat(turn, np.array([0.0, 0.0, 1.0]), angle)
        mujoco.mju_mat2Quat(now, self._orientation)
        mujoco.mju_mulQuat(wanted, turn, now)
        for i in range(_TURNING + _PLACING):
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            error = position - data.site_xpos[self.site]
            turn_error = None
            if i < _TURNING:
                turn_error = self._rotation(wanted)
            self._step(error, turn_error)
        mujoco.mj_forward(model, data)
        if np.abs(position - data.site_xpos[self.site]).max() > _TOLERANCE:
            return None
        if data.ncon > self._contacts:  # something touches that does not in the starting posture
            return None
        mujoco.mju_mat2Quat(now, data.site_xmat[self.site])
        return data.qpos[self._addresses].copy(), position, now

    def _rotation(self, wanted: np.ndarray) -> np.ndarray:
        """Return the rotation vector from the hand's orientation to another one [rad]."""
        now = np.zeros(4)
        inverse = np.zeros(4)
        difference = np.zeros(4)
        vector = np.zeros(3)
        mujoco.mju_mat2Quat(now, self.data.site_xmat[self.site])
        mujoco.mju_negQuat(inverse, now)
        mujoco.mju_mulQuat(difference, wanted, inverse)
        mujoco.mju_quat2Vel(vector, difference, 1.0)
        return vector

    def _step(self, error: np.ndarray, turn: np.ndarray | None) -> None:
        """Move the hinges toward a position, and as far as this leaves freedom, an orientation."""
        model = self.model
        data = self.data
        jac_pos = np.zeros((3, model.nv))
        jac_rot = np.zeros((3, model.nv))
        mujoco.mj_jacSite(model, data, jac_pos, jac_rot, self.site)
        jac_pos = jac_pos[:, self._dofs]
        jac_rot = jac_rot[:, self._dofs]
        inverse = _damped_inverse(jac_pos)
        solution = inverse @ error
        if turn is not None:
            free = np.eye(len(self._dofs)) - inverse @ jac_pos
            solution += free @ _damped_inverse(jac_rot @ free) @ (turn - jac_rot @ solution)
        change = np.zeros(model.nv)
        change[self._dofs] = solution.clip(-_MAX_STEP, _MAX_STEP)
        mujoco.mj_integratePos(model, data.qpos, change, 1.0)
        limited = model.jnt_limited.astype(bool)
        address = model.jnt_qposadr[limited]
        low, high = model.jnt_range[limited].T
        data.qpos[address] = data.qpos[address].clip(low, high)

    def _is_free(self) -> bool:
        """Return True if nothing touches that does not touch in the starting posture."""
        return self.data.ncon <= self._contacts


def _damped_inverse(jacobian: np.ndarray) -> np.ndarray:
    """Return a pseudoinverse that stays finite at singular postures."""
    square = jacobian @ jacobian.T + _DAMPING * np.eye(len(jacobian))
    return jacobian.T @ np.linalg.inv(square)
