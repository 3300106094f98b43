"""Names, robots and bytes of compiled models; without the packages that build worlds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import mujoco
import numpy as np

INITIAL_KEYFRAME = "init_state"
"""Keyframe of a scene's initial state."""
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
"""State from which MuJoCo continues bit for bit."""
APPEARANCE = ("_", "bvh_", "mesh_", "oct_", "skin_", "tex_")
"""Beginnings of the names of fields that only affect appearance, which are most of a model."""


def robot_of(name: str, prefixes: Mapping[str, str]) -> str | None:
    """Return the robot with the longest prefix that a name begins with, or None."""
    robots = [robot for robot, prefix in prefixes.items() if name.startswith(prefix)]
    return max(robots, key=lambda robot: len(prefixes[robot]), default=None)


def element_names(model: mujoco.MjModel, kind: str) -> list[str]:
    """Return the names of all elements of a kind by id; empty for those without a name.

    Args:
        model: the model.
        kind: as in MuJoCo's fields of addresses: `jnt` for `name_jntadr`.
    """
    text = model.names
    addresses = getattr(model, f"name_{kind}adr").ravel().tolist()
    return [text[start : text.index(b"\0", start)].decode() for start in addresses]


def find_elements(
    model: mujoco.MjModel, kind: str, name: str, prefixes: Iterable[str]
) -> dict[str, int]:
    """Return the ids of the elements that a name may mean, by their full names.

    Args:
        model: the model.
        kind: kind of the element, as in MJCF: `body`, `joint`, `camera` ...
        name: full name, or a name without a robot's prefix.
        prefixes: prefixes of the robots.
    """
    code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    found = {}
    for prefix in ("", *prefixes):
        id = mujoco.mj_name2id(model, code, prefix + name)
        if id >= 0:
            found[prefix + name] = id
    return found


def has_prefix(model: mujoco.MjModel, prefix: str) -> bool:
    """Return True if the name of a body, joint or actuator begins with a prefix."""
    return any(name.startswith(prefix) for name in _names(model))


def _names(model: mujoco.MjModel) -> list[str]:
    """Return the names of bodies without the world, of joints, and of actuators."""
    names = [model.body(i).name for i in range(1, model.nbody)]
    names += [model.joint(i).name for i in range(model.njnt)]
    names += [model.actuator(i).name for i in range(model.nactuator)]
    return names or [""]


def binary_model(model: mujoco.MjModel) -> bytes:
    """Return a model as MuJoCo's binary file."""
    block = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, block)
    return block.tobytes()


def hash_model(model: mujoco.MjModel) -> str:
    """Return a hash of all fields of a model but the shapes of meshes and textures."""
    digest = hashlib.sha256()
    for part in (model, model.opt):
        for name in dir(part):
            if name.startswith(APPEARANCE):
                continue
            value = getattr(part, name)
            if name == "jacobian":
                value = int(mujoco.mjtJacobian.mjJAC_AUTO)  # states do not depend on it
            if isinstance(value, np.ndarray):
                digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
            elif isinstance(value, int | float | bytes):
                digest.update(f"{name} {value!r} ".encode())
    return digest.hexdigest()


def wire_name(name: str) -> str:
    """Return an element's name for network clients: `robot_hip` for `robot/hip`."""
    return name.replace("/", "_")
