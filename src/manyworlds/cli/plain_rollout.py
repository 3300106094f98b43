"""MuJoCo's own rollout, the reference of speed measurements."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
from mujoco.rollout import Rollout

from manyworlds.cli.bench_states import StateLayout, holding_controls, start_state
from manyworlds.utils.newton import avoid_sparse_newton

_SCALAR_JOINTS = [int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE)]


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
        self.rollout = Rollout(nthread=num_threads if num_threads > 1 else 0)

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
    control = np.broadcast_to(hold, (sample, nstep, hold.size)) if hold.size else None
    rollout(rows[:, layout.physics], rows[:, layout.warmstart], control)
    rows[:, layout.physics] = rollout.states[:, -1]
    rows = rows[np.arange(num_envs) % sample]
    velocities = layout.columns["qvel"]
    rows[:, velocities] += rng.normal(0.0, 0.05, (num_envs, velocities.size))
    return rows, hold
