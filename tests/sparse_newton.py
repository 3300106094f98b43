"""Models that MuJoCo 4.0.0 steps wrongly with sparse Jacobians, found by trying random trees."""

from __future__ import annotations

from itertools import combinations

import mujoco
import numpy as np

_PARENTS = (-1, 0, 0, 1, 3, 3, 4)
_TENDON = (0, 2, 4)


def branching_trees(count: int) -> mujoco.MjSpec:
    """Make trees of 7 hinges each; in each a stretched tendon joins two of the branches."""
    spec = mujoco.MjSpec()
    for tree in range(count):
        bodies: list[mujoco.MjsBody] = []
        for i, parent in enumerate(_PARENTS):
            above = spec.worldbody if parent < 0 else bodies[parent]
            bodies.append(above.add_body(name=f"link{tree}_{i}", pos=[0.1, 0, 0.05]))
            bodies[-1].add_joint(name=f"hinge{tree}_{i}", axis=[0, 1, 0.2 * i])
            bodies[-1].add_geom(size=[0.05, 0, 0], contype=0, conaffinity=0)
        tendon = spec.add_tendon(name=f"tendon{tree}", limited=True, range=[-2, -1])
        for i in _TENDON:
            tendon.wrap_joint(f"hinge{tree}_{i}", 1.0)
    return spec


def dense(model: mujoco.MjModel) -> np.ndarray:
    """Accelerations at the model's default state, computed with a dense Jacobian, shape [nv]."""
    before, model.opt.jacobian = model.opt.jacobian, mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    model.opt.jacobian = before
    return data.qacc.copy()


# Bodies of which constraints join each pair: with single degrees of freedom, the factor is wrong.
_CLIQUES = ((2, 3, 6), (0, 1, 3, 5))


def joined_bodies(count: int, joints: int) -> mujoco.MjSpec:
    """Make bodies with slides, and hinges beyond three, of which connects join some.

    Args:
        count: the number of bodies.
        joints: the degrees of freedom of each; 6 gives free joints instead.
    """
    spec = mujoco.MjSpec()
    for i in range(count):
        body = spec.worldbody.add_body(name=f"body{i}", pos=[0.3 * i, 0.1 * (i % 3), 0])
        body.add_geom(size=[0.1, 0, 0], contype=0, conaffinity=0, mass=1 + 0.1 * i)
        if joints == 6:
            body.add_freejoint()
            continue
        for axis in np.eye(3)[:joints]:
            body.add_joint(name=f"{i} {axis}", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
    for clique in _CLIQUES:
        for first, second in combinations(clique, 2):
            join = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT)
            join.objtype = mujoco.mjtObj.mjOBJ_BODY
            join.name1, join.name2 = f"body{first}", f"body{second}"
            join.data[:3] = [0.1, 0.2, 0.05]
    return spec
