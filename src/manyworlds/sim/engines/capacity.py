"""Estimates of a model's contacts and constraints, counted with MuJoCo C before allocation.

MuJoCo Warp allocates contacts and constraints once. Their number cannot be read from a model, so
it is measured in short trials, in which one world falls, tumbles, and receives random controls.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import mujoco
import numpy as np

from manyworlds.sim.diagnostics.status import quiet_mujoco
from manyworlds.utils.newton import avoid_sparse_newton

_SECONDS = 1.0
"""Simulated time of each trial [s], long enough to fall from the height of a robot."""
_MAX_STEPS = 500
_TUMBLES = 2
"""Trials in which every floating body starts in a random orientation."""
_KEYFRAMES = 8
_KEYFRAME_STEPS = 50
_HOLD = 10
"""Steps during which random controls are held."""
_SAFETY = 2
"""Safety factor: worlds vary more than the trials do."""
_MULTIPLE = 16

# Rows per equality constraint; those of other types are counted where they are active.
_EQUALITY_ROWS = {
    int(mujoco.mjtEq.mjEQ_CONNECT): 3,
    int(mujoco.mjtEq.mjEQ_WELD): 6,
    int(mujoco.mjtEq.mjEQ_JOINT): 1,
    int(mujoco.mjtEq.mjEQ_TENDON): 1,
}


def estimate_capacity(model: mujoco.MjModel) -> tuple[int, int]:
    """Estimate the contacts and constraints to allocate per world.

    The trials start from `qpos0`, from `qpos0` with random orientations of floating bodies, and
    from the first keyframes; they are the same in every run. They take up to 1900 steps in total.

    Args:
        model: the model, with MuJoCo's automatic reset of diverged worlds enabled.

    Returns:
        Contacts (`nconmax`) and constraint rows (`njmax`): twice the contacts, pairs of nearby
        geoms and constraint rows found in the trials, plus all limits, frictions and equalities
        that can be active at once.
    """
    model = copy.copy(model)  # the caller's Jacobian option must not change
    avoid_sparse_newton(model)
    near = _NearPairs(model)
    contacts = contact_rows = other_rows = 0
    rng = np.random.default_rng(0)
    limited = model.actuator_ctrllimited.astype(bool)[:, None]
    low, high = np.where(limited, model.actuator_ctrlrange, [-1.0, 1.0]).T
    with quiet_mujoco():
        for data, steps in _trials(model, rng):
            for step in range(steps):
                if step % _HOLD == 0:
                    data.ctrl[:] = rng.uniform(low, high)
                mujoco.mj_step(model, data)
                others = data.ne + data.nf + data.nl
                if step % (5 * _HOLD) == 0:
                    contacts = max(contacts, near.count(data))
                contacts = max(contacts, data.ncon)
                contact_rows = max(contact_rows, data.nefc - others)
                other_rows = max(other_rows, others)
    # Rows that do not depend on contacts, with every constraint active.
    rows = sum(_EQUALITY_ROWS.get(kind, 0) for kind in model.eq_type.tolist())
    rows += np.count_nonzero(model.jnt_limited)
    rows += np.count_nonzero(model.tendon_limited)
    rows += np.count_nonzero(model.dof_frictionloss)
    rows += np.count_nonzero(model.tendon_frictionloss)
    other_rows = max(other_rows, int(rows))
    return _round_up(_SAFETY * contacts), _round_up(_SAFETY * contact_rows + other_rows)


def _trials(model: mujoco.MjModel, rng: np.random.Generator) -> Iterator[tuple[mujoco.MjData, int]]:
    """Yield start states with the number of steps to take from each."""
    steps = int(np.clip(_SECONDS / model.opt.timestep, _KEYFRAME_STEPS, _MAX_STEPS))
    data = mujoco.MjData(model)
    yield data, steps
    free = model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
    if free.size:
        for _ in range(_TUMBLES):
            mujoco.mj_resetData(model, data)
            data.qpos[free[:, None] + np.arange(3, 7)] = rng.normal(size=(free.size, 4))
            yield data, steps
    for key in range(min(model.nkey, _KEYFRAMES)):
        mujoco.mj_resetDataKeyframe(model, data, key)
        yield data, _KEYFRAME_STEPS


def _round_up(count: float) -> int:
    return max(1, int(np.ceil(count / _MULTIPLE))) * _MULTIPLE


class _NearPairs:
    """Pairs of geoms with overlapping bounds: MuJoCo Warp stores them in its contact buffer."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        weld = model.body_weldid[model.geom_bodyid]
        parent = model.body_weldid[model.body_parentid[weld]]
        plane = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
        first = np.flatnonzero((weld != 0) & ~plane)[:, None]
        second = np.arange(model.ngeom)[None]
        still = (weld == 0) | plane
        related = (parent[first] == weld[second]) | (parent[second] == weld[first])
        related &= (weld[first] != 0) & (weld[second] != 0)
        touching = (model.geom_contype[first] & model.geom_conaffinity[second]) | (
            model.geom_contype[second] & model.geom_conaffinity[first]
        )
        pairs = (touching != 0) & (still[second] | (first < second)) & ~related
        pairs &= weld[first] != weld[second]
        rows, self.second = np.nonzero(pairs)
        self.first = first[rows, 0]
        self.plane = plane[self.second]
        self.reach = model.geom_rbound + model.geom_margin + model.geom_gap

    def count(self, data: mujoco.MjData) -> int:
        """Count the pairs that are near each other, and the model's explicit pairs."""
        a = self.first
        b = self.second
        model = self.model
        offset = data.geom_xpos[a] - data.geom_xpos[b]
        above = np.einsum("ij,ij->i", offset, data.geom_xmat[b][:, 2::3])
        distance = np.where(self.plane, above, np.linalg.norm(offset, axis=1))
        near = distance <= self.reach[a] + self.reach[b]
        a = a[near]
        b = b[near]
        rotation = data.geom_xmat.reshape(-1, 3, 3)
        center = data.geom_xpos + np.einsum("nij,nj->ni", rotation, model.geom_aabb[:, :3])
        extent = np.einsum("nij,nj->ni", np.abs(rotation), model.geom_aabb[:, 3:])
        extent += (model.geom_margin + model.geom_gap)[:, None]
        boxes_meet = (np.abs(center[a] - center[b]) <= extent[a] + extent[b]).all(axis=1)
        return int((self.plane[near] | boxes_meet).sum()) + model.npair
