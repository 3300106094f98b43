"""MuJoCo's own rollout, the reference of speed measurements; its start states and controls."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
from mujoco.rollout import Rollout

from manyworlds.utils.newton import avoid_sparse_newton

_STATE = mujoco.mjtState
_SCALAR_JOINTS = [int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE)]


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


class PlainRollout:
    """Rollout of state rows (mjSTATE_INTEGRATION) of many worlds in one call, which is fastest.

    Args:
        model: the model.
        num_threads: threads that step.
    """

    def __init__(self, model: mujoco.MjModel, num_threads: int) -> None:
        self.model = model = copy.copy(model)
        avoid_sparse_newton(model)
        self.layout = StateLayout(model)
        self.datas = [mujoco.MjData(model) for _ in range(num_threads)]
        nthread = num_threads
        if num_threads == 1:
            nthread = 0  # steps in the calling thread
        self.rollout = Rollout(nthread=nthread)

    def prepare(self, num_envs: int, nstep: int) -> None:
        """Allocate and fill the results, so that no turn pays for the first touch of memory."""
        self.states = np.full((num_envs, nstep, self.layout.physics.size), 0.0)
        self._sensors = np.full((num_envs, nstep, self.model.nsensordata), 0.0)

    def __call__(
        self, state: np.ndarray, warmstart: np.ndarray, control: np.ndarray | None
    ) -> None:
        """Step from states and warmstarts; write the new states to `states`.

        Args:
            state: columns `layout.physics` of rows.
            warmstart: columns `layout.warmstart` of rows.
            control: shape [num_envs, nstep, nu]; None where the model has no actuators.
        """
        self.rollout.rollout(
            self.model,
            self.datas,
            state,
            control,
            nstep=self.states.shape[1],
            initial_warmstart=warmstart,
            state=self.states,
            sensordata=self._sensors,
        )


def settled_rows(
    rollout: PlainRollout, sample: int, num_envs: int, seconds: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Let a few worlds settle from the start state, and copy them to all worlds.

    Args:
        rollout: rollout that steps the worlds.
        sample: number of worlds to settle.
        num_envs: number of rows to return.
        seconds: simulated time of settling [s].
        rng: generator of the noise.

    Returns:
        State rows, shape (num_envs, nstate), and holding controls, shape (nu,).
    """
    model = rollout.model
    layout = rollout.layout
    data = start_state(model)
    hold = holding_controls(model, data)
    rows = np.tile(layout.row(data), (sample, 1))
    scalar = np.isin(model.jnt_type, _SCALAR_JOINTS)
    joints = layout.columns["qpos"][model.jnt_qposadr[scalar]]
    rows[:, joints] += rng.normal(0.0, 0.02, (sample, joints.size))
    nstep = int(np.clip(seconds / max(model.opt.timestep, 1e-6), 1, 1000))
    rollout.prepare(sample, nstep)
    control = None
    if hold.size:
        control = np.broadcast_to(hold, (sample, nstep, hold.size))
    rollout(rows[:, layout.physics], rows[:, layout.warmstart], control)
    rows[:, layout.physics] = rollout.states[:, -1]
    rows = rows[np.arange(num_envs) % sample]
    velocities = layout.columns["qvel"]
    rows[:, velocities] += rng.normal(0.0, 0.05, (num_envs, velocities.size))
    return rows, hold


def start_state(model: mujoco.MjModel) -> mujoco.MjData:
    """Return the first keyframe, else `qpos0`, with floating bodies lifted out of the ground."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
        # The rollout starts with the default mocap poses, whatever the keyframe says.
        bodies = np.flatnonzero(model.body_mocapid >= 0)
        bodies = bodies[np.argsort(model.body_mocapid[bodies])]
        data.mocap_pos[:] = model.body_pos[bodies]
        data.mocap_quat[:] = model.body_quat[bodies]
        data.time = 0.0
    mujoco.mj_forward(model, data)
    # Depth of the deepest contact with a plane.
    depth = 0.0
    for contact in data.contact:
        if mujoco.mjtGeom.mjGEOM_PLANE in model.geom_type[contact.geom]:
            depth = max(depth, -contact.dist)
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


def _clip(model: mujoco.MjModel, controls: np.ndarray) -> np.ndarray:
    low, high = model.actuator_ctrlrange.T
    limited = model.actuator_ctrllimited.astype(bool)
    return np.where(limited, np.clip(controls, low, high), controls)
