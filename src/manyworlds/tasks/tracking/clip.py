"""Generated motion, computed on demand: a biped waves, shifts its weight and squats.

The feet do not move and the center of mass stays above them; accelerations are low enough for the
robot to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
import torch

from manyworlds.entity import Entity, EntityCfg
from manyworlds.tasks.tracking.joint_motion import JointMotion, complete_motion
from manyworlds.tasks.tracking.motion import Motion

_TIMES = (0.0, 0.3, 1.7, 2.2, 2.7, 3.2, 3.7, 5.1, 5.3, 6.4, 7.5, 8.0)  # [s]
# Targets at these times; between them, they change with minimum jerk.
_TRACKS = {
    "shift": (0.0, 0.0, 0.4, 0.4, 0.4, 0.4, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0),
    "squat": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0),
    "raise": (0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "wave": (0.0, 0.0, 0.0, 1.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}
_TOLERANCE = 1e-6  # [m, rad]
_MAX_ITERATIONS = 50


@dataclass(frozen=True, kw_only=True)
class ClipRobot:
    """Description of a biped for the clip; in its initial state it stands flat on its feet."""

    entity: Callable[[], EntityCfg]
    """Function that returns the robot's configuration."""
    feet: tuple[str, str]
    """Names of the left and the right foot's bodies."""
    raised: Mapping[str, float]
    """Joint positions with a raised arm [rad]; other joints keep their initial positions."""
    waving: Mapping[str, float]
    """Amplitude of joint positions while waving [rad]."""
    squat: float = 0.12
    """Distance by which the root is lowered [m]."""


def wave_and_squat(robot: ClipRobot, fps: float = 50.0) -> Motion:
    """Compute the clip.

    Args:
        robot: the robot.
        fps: frames per second, equal to the control rate of the task.

    Raises:
        ValueError: the robot cannot do the motion with its feet on the ground.
    """
    cfg = robot.entity()
    legs = _Legs(cfg, robot.feet)
    tracks = _tracks(fps)
    arms = [
        (legs.joint_address(name), initial, robot.raised.get(name, initial), swing)
        for name in {**robot.raised, **robot.waving}
        for initial in [legs.initial[legs.joint_address(name)]]
        for swing in [robot.waving.get(name, 0.0)]
    ]
    rows = []
    for shift, squat, up, wave in zip(*tracks.values(), strict=True):
        for address, initial, raised, swing in arms:
            legs.data.qpos[address] = initial + up * (raised - initial) + wave * swing
        rows.append(legs.stand(shift, robot.squat * squat))
    qpos = torch.from_numpy(np.array(rows))
    motion = JointMotion(
        fps=fps,
        root_pos=qpos[:, :3],
        root_quat=qpos[:, 3:7],
        joint_pos=qpos[:, 7:],
        source="the clip 'wave and squat'",
    )
    return complete_motion(cfg, motion)


def _tracks(fps: float) -> dict[str, np.ndarray]:
    """Return the targets of each frame, shape [frames] each.

    Between two times at rest, minimum jerk is obtained by 10 s^3 - 15 s^4 + 6 s^5. Source:
    T. Flash and N. Hogan, "The coordination of arm movements" (1985).
    """
    at = np.arange(round(_TIMES[-1] * fps) + 1) / fps
    part = np.searchsorted(_TIMES, at, side="right").clip(max=len(_TIMES) - 1) - 1
    times = np.array(_TIMES)
    s = ((at - times[part]) / (times[part + 1] - times[part])).clip(0.0, 1.0)
    share = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    return {
        name: np.array(values)[part] * (1.0 - share) + np.array(values)[part + 1] * share
        for name, values in _TRACKS.items()
    }


class _Legs:
    """Inverse kinematics of a biped's root and legs, for fixed feet and a given center of mass.

    The first 7 elements of `data.qpos` are the root's, the others the entity's joints in order.
    """

    def __init__(self, cfg: EntityCfg, feet: tuple[str, str]) -> None:
        entity = Entity(cfg)
        floor = entity.spec.worldbody.add_geom(
            name="clip_floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1.0, 1.0, 0.1]
        )
        self.model = model = entity.spec.compile()
        self.data = mujoco.MjData(model)
        self.feet = [model.body(name).id for name in feet]
        for name, values in entity.initial_qpos().items():
            start = self.joint_address(name)
            self.data.qpos[start : start + len(values)] = values
        mujoco.mj_kinematics(model, self.data)
        soles = [
            mujoco.mj_geomDistance(model, self.data, geom, floor.id, 1.0, None)
            for geom in range(model.ngeom)
            if model.geom_bodyid[geom] in self.feet
            and (model.geom_contype[geom] or model.geom_conaffinity[geom])
        ]
        self.data.qpos[2] -= min(soles)
        self.initial = self.data.qpos.copy()
        self._update()
        self._placed = [self._pose(body) for body in self.feet]
        self._upright = self._pose(1)
        self._stance = 0.5 * (self._placed[0][0] - self._placed[1][0])[:2]
        self._middle = 0.5 * (self._placed[0][0] + self._placed[1][0])[:2]
        # At rest, the center of mass is above the center of the soles, not above the ankles.
        contacts = [model.geom_bodyid == body for body in self.feet]
        soles_x = np.concatenate([self.data.geom_xpos[mask, 0] for mask in contacts])
        self._middle[0] = 0.5 * (soles_x.min() + soles_x.max())
        # Degrees of freedom of the root and of all joints between it and the feet.
        bodies = set()
        for body in self.feet:
            while body:
                bodies.add(body)
                body = int(model.body_parentid[body])
        self._dofs = np.flatnonzero(np.isin(model.dof_bodyid, list(bodies)))

    def joint_address(self, name: str) -> int:
        """Return the address of a joint in `qpos`."""
        return int(self.model.joint(name).qposadr[0])

    def stand(self, shift: float, sink: float) -> np.ndarray:
        """Solve for the root and the legs; return `qpos`, shape [nq].

        Args:
            shift: lateral position of the center of mass: 1 above the left foot, -1 above the
                right.
            sink: distance of the root below its initial height [m].

        Raises:
            ValueError: the posture cannot be reached.
        """
        target = self._middle + shift * self._stance
        for _ in range(_MAX_ITERATIONS):
            self._update()
            error, jacobian = self._task(target, self._upright[0][2] - sink)
            if np.abs(error).max() < _TOLERANCE:
                if self._within_limits():
                    return self.data.qpos.copy()
                break
            step = np.zeros(self.model.nv)
            step[self._dofs] = np.linalg.lstsq(jacobian[:, self._dofs], error, rcond=1e-6)[0]
            mujoco.mj_integratePos(self.model, self.data.qpos, step, 1.0)
        raise ValueError(
            f"The robot cannot shift its weight by {shift:.2f} and lower its root by {sink:.2f} m "
            "with its feet fixed: choose a smaller ClipRobot.squat."
        )

    def _task(self, com: np.ndarray, height: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the errors of the targets, shape [n], and their Jacobian, shape [n, nv]."""
        nv = self.model.nv
        errors = []
        rows = []
        jac_pos = np.zeros((3, nv))
        jac_rot = np.zeros((3, nv))
        for body, (pos, quat) in zip(self.feet, self._placed, strict=True):
            mujoco.mj_jacBody(self.model, self.data, jac_pos, jac_rot, body)
            errors += [pos - self.data.xpos[body], self._turn(body, quat)]
            rows += [jac_pos.copy(), jac_rot.copy()]
        mujoco.mj_jacBody(self.model, self.data, jac_pos, jac_rot, 1)
        errors += [[height - self.data.xpos[1][2]], self._turn(1, self._upright[1])]
        rows += [jac_pos[2:].copy(), jac_rot.copy()]
        mujoco.mj_jacSubtreeCom(self.model, self.data, jac_pos, 1)
        errors.append(com - self.data.subtree_com[1][:2])
        rows.append(jac_pos[:2].copy())
        return np.concatenate(errors), np.concatenate(rows)

    def _within_limits(self) -> bool:
        limited = self.model.jnt_limited.astype(bool)
        low, high = self.model.jnt_range[limited].T
        position = self.data.qpos[self.model.jnt_qposadr[limited]]
        return bool(((low <= position) & (position <= high)).all())

    def _update(self) -> None:
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)

    def _pose(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        return self.data.xpos[body].copy(), self.data.xquat[body].copy()

    def _turn(self, body: int, quat: np.ndarray) -> np.ndarray:
        """Return the rotation vector from a body's orientation to its target in the world [rad]."""
        inverse = np.zeros(4)
        difference = np.zeros(4)
        vector = np.zeros(3)
        mujoco.mju_negQuat(inverse, self.data.xquat[body])
        mujoco.mju_mulQuat(difference, quat, inverse)
        mujoco.mju_quat2Vel(vector, difference, 1.0)
        return vector
