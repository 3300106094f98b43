"""Start states and controls of a benchmark, for any model, and the layout of state rows."""

from __future__ import annotations

import mujoco
import numpy as np

_STATE = mujoco.mjtState


class StateLayout:
    """Columns of the parts of a state row, shape (mj_stateSize(mjSTATE_INTEGRATION),)."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self.size = mujoco.mj_stateSize(model, _STATE.mjSTATE_INTEGRATION)
        self.physics = self._columns(_STATE.mjSTATE_FULLPHYSICS)
        self.warmstart = self._columns(_STATE.mjSTATE_WARMSTART)
        self.columns = {
            "qpos": self._columns(_STATE.mjSTATE_QPOS),
            "qvel": self._columns(_STATE.mjSTATE_QVEL),
            "act": self._columns(_STATE.mjSTATE_ACT),
            "ctrl": self._columns(_STATE.mjSTATE_CTRL),
        }

    def row(self, data: mujoco.MjData) -> np.ndarray:
        """Return the state row of one MjData, shape (mj_stateSize(mjSTATE_INTEGRATION),)."""
        row = np.empty(self.size)
        mujoco.mj_getState(self.model, data, row, _STATE.mjSTATE_INTEGRATION)
        return row

    def _columns(self, part: mujoco.mjtState) -> np.ndarray:
        columns = np.empty(mujoco.mj_stateSize(self.model, part))
        whole = np.arange(self.size, dtype=float)
        mujoco.mj_extractState(self.model, whole, _STATE.mjSTATE_INTEGRATION, columns, part)
        return columns.astype(int)


def start_state(model: mujoco.MjModel) -> mujoco.MjData:
    """Return the first keyframe, else `qpos0`, with floating bodies lifted out of the ground."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.mocap_pos[:], data.mocap_quat[:] = _default_mocap(model)
        data.time = 0.0
    mujoco.mj_forward(model, data)
    depth = _depth_below_ground(model, data)
    if depth > 0:
        free = model.jnt_type == mujoco.mjtJoint.mjJNT_FREE
        data.qpos[model.jnt_qposadr[free] + 2] += depth
        mujoco.mj_forward(model, data)
    return data


def holding_controls(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return controls that hold a state, shape (nu,).

    Position servos get their present length. Others get the value of `data.ctrl`, which a keyframe
    may have set.
    """
    # MuJoCo's `position` and equals: force = kp * (ctrl - length) - kv * velocity.
    servo = (model.actuator_gainprm[:, 0] > 0) & (
        model.actuator_gainprm[:, 0] == -model.actuator_biasprm[:, 1]
    )
    hold = np.where(servo & (data.ctrl == 0), data.actuator_length, data.ctrl)
    return _clip(model, hold)


def control_sequence(
    model: mujoco.MjModel, hold: np.ndarray, num_envs: int, calls: int, rng: np.random.Generator
) -> np.ndarray:
    """Return random controls around holding ones, shape (num_envs, calls, nu)."""
    low, high = model.actuator_ctrlrange.T
    limited = model.actuator_ctrllimited.astype(bool)
    scale = np.where(limited, np.minimum(0.05 * (high - low), 0.05), 0.05)
    noise = rng.normal(size=(num_envs, calls, model.nu)) * scale
    # The simulation takes float32; the rollout gets the very same numbers.
    return _clip(model, hold + noise).astype(np.float32).astype(float)


def _depth_below_ground(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the depth of the deepest contact with a plane [m]."""
    depths = [
        -contact.dist
        for contact in data.contact
        if mujoco.mjtGeom.mjGEOM_PLANE in model.geom_type[contact.geom]
    ]
    return max(depths, default=0.0)


def _default_mocap(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    # The rollout starts with these, whatever the keyframe says.
    bodies = np.flatnonzero(model.body_mocapid >= 0)
    bodies = bodies[np.argsort(model.body_mocapid[bodies])]
    return model.body_pos[bodies], model.body_quat[bodies]


def _clip(model: mujoco.MjModel, controls: np.ndarray) -> np.ndarray:
    low, high = model.actuator_ctrlrange.T
    limited = model.actuator_ctrllimited.astype(bool)
    return np.where(limited, np.clip(controls, low, high), controls)
