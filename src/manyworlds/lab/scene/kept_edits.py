"""Values of a model that were changed while it ran, in another model of the same elements."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from manyworlds.lab.scene.draft import compile_copy
from manyworlds.lab.world.model_facts import hash_model
from manyworlds.lab.world.world import CompileError, World

_KINDS = {
    "body_": ("nbody", mujoco.mjtObj.mjOBJ_BODY),
    "jnt_": ("njnt", mujoco.mjtObj.mjOBJ_JOINT),
    "geom_": ("ngeom", mujoco.mjtObj.mjOBJ_GEOM),
    "site_": ("nsite", mujoco.mjtObj.mjOBJ_SITE),
    "cam_": ("ncam", mujoco.mjtObj.mjOBJ_CAMERA),
    "light_": ("nlight", mujoco.mjtObj.mjOBJ_LIGHT),
    "mat_": ("nmat", mujoco.mjtObj.mjOBJ_MATERIAL),
    "tendon_": ("ntendon", mujoco.mjtObj.mjOBJ_TENDON),
    "actuator_": ("nactuator", mujoco.mjtObj.mjOBJ_ACTUATOR),
    "pair_": ("npair", mujoco.mjtObj.mjOBJ_PAIR),
}
"""Sizes and kinds of elements, by the beginning of the names of their fields."""


def carry_model_values(before: World, after: World, rename: Callable[[str], str]) -> list[str]:
    """Copy what differs between a running model and its spec to another model, by name.

    Gains, masses, frictions and the like that were set while the world ran, or that a task has
    randomized, stay so in a world that is compiled from a changed spec.

    Args:
        before: the running world.
        after: the other world, whose model is changed.
        rename: returns the new name of each element by its present one.

    Returns:
        Sentences about what is lost.
    """
    try:
        compiled = compile_copy(before.spec)
    except CompileError as error:
        return [
            "values of the model that were changed while it ran are those of its source again, "
            f"because its spec before the edit does not compile: {error}"
        ]
    if hash_model(compiled) != hash_model(before.model):
        _carry(compiled, before.model, after.model, rename)
    return []


def _carry(
    compiled: mujoco.MjModel,
    live: mujoco.MjModel,
    fresh: mujoco.MjModel,
    rename: Callable[[str], str],
) -> None:
    dof_ids = _dofs(live, fresh, _places(live, fresh, "njnt", mujoco.mjtObj.mjOBJ_JOINT, rename))
    places = {
        prefix: _places(live, fresh, size, kind, rename) for prefix, (size, kind) in _KINDS.items()
    }
    places["dof_"] = dof_ids
    for name in dir(live):
        prefix = f"{name.partition('_')[0]}_"
        now = getattr(live, name)
        if prefix not in places or not isinstance(now, np.ndarray) or now.dtype.kind != "f":
            continue
        was, new = getattr(compiled, name), getattr(fresh, name)
        if was.shape != now.shape:
            continue
        for old, target in places[prefix]:
            if old < len(now) and target < len(new) and not np.array_equal(was[old], now[old]):
                new[target] = now[old]


def _places(
    live: mujoco.MjModel,
    fresh: mujoco.MjModel,
    size: str,
    kind: mujoco.mjtObj,
    rename: Callable[[str], str],
) -> list[tuple[int, int]]:
    """Return the ids of elements of the same name in both models."""
    pairs = []
    for old in range(getattr(live, size)):
        name = mujoco.mj_id2name(live, kind, old)
        if not name:
            continue
        new = mujoco.mj_name2id(fresh, kind, rename(name))
        if new >= 0:
            pairs.append((old, new))
    return pairs


def _dofs(
    live: mujoco.MjModel, fresh: mujoco.MjModel, joints: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    pairs = []
    for old, new in joints:
        if live.jnt_type[old] == fresh.jnt_type[new]:
            first, target = int(live.jnt_dofadr[old]), int(fresh.jnt_dofadr[new])
            count = np.count_nonzero(live.dof_jntid == old)
            pairs += [(first + i, target + i) for i in range(count)]
    return pairs
