"""Sleep of bodies: MuJoCo does not compute kinematic trees that are at rest."""

from __future__ import annotations

import mujoco
import numpy as np

_ASLEEP_NEXT = -1  # MuJoCo counts up to it while a tree is at rest
_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)


def wake(model: mujoco.MjModel, data: mujoco.MjData, body: int = 0) -> int:
    """Wake the kinematic tree of a body, and those that sleep in contact with it.

    Args:
        model: the model.
        data: its data.
        body: id of the body; 0 for all.

    Returns:
        The number of trees that slept.

    Raises:
        ValueError: sleeping is switched off, or the body cannot move.
    """
    slept: set[int] = set()
    for tree in _trees(model, body):
        while data.tree_asleep[tree] >= 0 and tree not in slept:  # a cycle of trees
            slept.add(tree)
            tree = int(data.tree_asleep[tree])
    for tree in slept:
        # MuJoCo wakes what has a velocity with any bit, and keeps lists of what is awake.
        data.qvel[model.dof_treeid == tree] = -0.0
    return len(slept)


def put_to_sleep(model: mujoco.MjModel, data: mujoco.MjData, body: int = 0) -> int:
    """Stop the kinematic tree of a body; it sleeps from the next step on if it stays at rest.

    What falls or is pushed does not stay at rest, so that MuJoCo does not let it sleep.

    Args:
        model: the model.
        data: its data.
        body: id of the body; 0 for all.

    Returns:
        The number of trees that were awake.

    Raises:
        ValueError: sleeping is switched off, the body cannot move, or its tree may never sleep.
    """
    trees = [tree for tree in _trees(model, body) if data.tree_asleep[tree] < 0]
    policies = mujoco.mjtSleepPolicy
    never = (int(policies.mjSLEEP_NEVER), int(policies.mjSLEEP_AUTO_NEVER))
    may = [tree for tree in trees if model.tree_sleep_policy[tree] not in never]
    if body and trees and not may:
        raise ValueError(
            f"'{model.body(body).name}' may never sleep: MuJoCo lets no tree sleep that actuators "
            "or tendons move, unless the sleep policy of its body allows it."
        )
    for tree in may:
        data.qvel[np.flatnonzero(model.dof_treeid == tree)] = 0.0
        data.tree_asleep[tree] = _ASLEEP_NEXT
    return len(may)


def _trees(model: mujoco.MjModel, body: int) -> list[int]:
    if not model.opt.enableflags & _SLEEP:
        raise ValueError("Bodies do not sleep in this world: switch on MuJoCo's flag 'sleep'.")
    if not body:
        return list(range(model.ntree))
    tree = int(model.body_treeid[body])
    if tree < 0:
        raise ValueError(f"'{model.body(body).name}' has no joint, so it neither sleeps nor wakes.")
    return [tree]
