"""Moves of items in the running model: only values change, so that everything else goes on."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.moments.recording import state_columns
from manyworlds.lab.scene.draft import compile_copy
from manyworlds.lab.scene.rebuild import StateRow, Transition, read_state
from manyworlds.lab.world.model_facts import STATE
from manyworlds.lab.world.model_values import STATISTICS, compute_derived, differences
from manyworlds.lab.world.world import CompileError, World

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab


def move_in_place(
    lab: LiveLab, world: World, transition: Transition, label: str
) -> StateRow | None:
    """Give the running world the poses of another one with the same elements.

    The running model then has all values that the other one has and its own spec did not compile
    to, so that it is the other one, bit for bit, unless fields were changed while it ran: these
    stay. A replay ends.

    Args:
        lab: the lab.
        world: the other world.
        transition: state that is to be set.
        label: text of the edit, for the timeline.

    Returns:
        The state before; None if nothing was done, because the world must be rebuilt: a task's
        environment steps it, or its elements are others.
    """
    model = lab.model
    present = lab.world
    if lab.environment is not None:
        return None
    try:
        compiled = compile_copy(present.spec)
    except CompileError:
        return None
    if not (_same_elements(compiled, model) and _same_elements(compiled, world.model)):
        return None
    changes = differences(compiled, world.model)
    scratch = None
    if differences(compiled, model):
        scratch = mujoco.MjData(model)  # values that follow from what was edited, too

    def write(model: mujoco.MjModel, data: mujoco.MjData) -> StateRow:
        lab.replay.stop()
        before = read_state(model, data)
        for name, (at, value) in changes.items():
            getattr(model, name)[at] = value
        for name in STATISTICS:
            setattr(model.stat, name, getattr(world.model.stat, name))
        if scratch is not None:
            mujoco.mj_setConst(model, scratch)
        columns, row = before[0], before[1].copy()
        transition.place((columns, row))
        mujoco.mj_setState(model, data, row, STATE)
        compute_derived(model, data)
        lab.loop.limits.read(model)
        lab.timeline.note_edit(label)
        return before

    before = lab.loop.do(write)
    show_spec(lab, world)
    return before


def show_spec(lab: LiveLab, world: World) -> None:
    """Let a lab's world have the spec of another one, and what is known about its items."""
    present = lab.world
    present.spec = world.spec
    present.items = world.items
    present.start = world.start
    lab.gathered.expire()


def placed_start(world: World, transition: Transition) -> np.ndarray | None:
    """Return the initial state of a world with the new poses, shape [num_values], or None."""
    start = copy.copy(world.start)
    if start is not None:
        transition.place((state_columns(world.model), start))
    return start


def _same_elements(one: mujoco.MjModel, other: mujoco.MjModel) -> bool:
    """Return True if two models have the same elements, in the same order."""
    return np.array_equal(one._sizes, other._sizes) and one.names == other.names
