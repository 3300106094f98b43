"""Names, robots and bytes of compiled models; without the packages that build worlds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from manyworlds.validation.names import free_name

INITIAL_KEYFRAME = "init_state"
"""Keyframe of a scene's initial state."""
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
"""State from which MuJoCo continues bit for bit."""
APPEARANCE = ("_", "bvh_", "mesh_", "oct_", "skin_", "tex_")
"""Beginnings of the names of fields that only affect appearance, which are most of a model."""


_KINDS_OF_BODIES = ("jnt", "geom", "site", "cam", "light")
"""Kinds of elements that are parts of bodies."""
_TRANSMISSION, _OBJECT = mujoco.mjtTrn, mujoco.mjtObj
_MOVED = {
    int(_TRANSMISSION.mjTRN_JOINT): "jnt",
    int(_TRANSMISSION.mjTRN_JOINTINPARENT): "jnt",
    int(_TRANSMISSION.mjTRN_SLIDERCRANK): "site",
    int(_TRANSMISSION.mjTRN_TENDON): "tendon",
    int(_TRANSMISSION.mjTRN_SITE): "site",
    int(_TRANSMISSION.mjTRN_BODY): "body",
}
"""Kind of what an actuator moves, by its transmission."""
_MEASURED = {
    int(_OBJECT.mjOBJ_BODY): "body",
    int(_OBJECT.mjOBJ_XBODY): "body",
    int(_OBJECT.mjOBJ_JOINT): "jnt",
    int(_OBJECT.mjOBJ_GEOM): "geom",
    int(_OBJECT.mjOBJ_SITE): "site",
    int(_OBJECT.mjOBJ_CAMERA): "cam",
    int(_OBJECT.mjOBJ_TENDON): "tendon",
    int(_OBJECT.mjOBJ_ACTUATOR): "actuator",
}
"""Kind of what a sensor measures, by the type of the object."""


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


def find_owners(model: mujoco.MjModel, robots: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Return the robot that each element belongs to, None for none, by kind and id.

    The beginning of an element's name tells it. Without a name, an element belongs to the robot of
    its body, an actuator or a sensor to that of what it moves or measures, and a body to that of
    its elements, of its parent, or of its children.

    Args:
        model: the model.
        robots: prefix of the elements of each robot, by the robot's name.
    """

    def find(kind: str, otherwise: Sequence[str | None]) -> list[str | None]:
        names = element_names(model, kind)
        return [
            robot_of(name, robots) if name else owner or robot_of("", robots)
            for name, owner in zip(names, otherwise, strict=True)
        ]

    bodies = _owners_of_bodies(model, robots)
    owners = {"body": bodies}
    for kind in _KINDS_OF_BODIES:
        carriers = getattr(model, f"{kind}_bodyid").tolist()
        owners[kind] = find(kind, [bodies[body] for body in carriers])
    owners["tendon"] = find("tendon", [None] * model.ntendon)
    moved = zip(model.actuator_trntype.tolist(), model.actuator_trnid[:, 0].tolist(), strict=True)
    owners["actuator"] = find("actuator", [_owner_at(owners, _MOVED.get(k), i) for k, i in moved])
    measured = zip(model.sensor_objtype.tolist(), model.sensor_objid.tolist(), strict=True)
    owners["sensor"] = find("sensor", [_owner_at(owners, _MEASURED.get(k), i) for k, i in measured])
    return owners


def _owners_of_bodies(model: mujoco.MjModel, robots: Mapping[str, str]) -> list[str | None]:
    names, parents = element_names(model, "body"), model.body_parentid.tolist()
    inside: list[str | None] = [None] * model.nbody
    for kind in _KINDS_OF_BODIES:
        carriers = getattr(model, f"{kind}_bodyid").tolist()
        for body, name in zip(carriers, element_names(model, kind), strict=True):
            if name:
                inside[body] = inside[body] or robot_of(name, robots)
    for body in range(model.nbody - 1, 0, -1):
        own = robot_of(names[body], robots) if names[body] else inside[body]
        inside[parents[body]] = inside[parents[body]] or own
    owners: list[str | None] = [None]  # the world belongs to nobody
    for body in range(1, model.nbody):
        parent = owners[parents[body]]
        unnamed = inside[body] or parent or robot_of("", robots)
        owners.append(robot_of(names[body], robots) if names[body] else unnamed)
    return owners


def _owner_at(
    owners: Mapping[str, Sequence[str | None]], kind: str | None, index: int
) -> str | None:
    known = [] if kind is None else owners[kind]
    return known[index] if 0 <= index < len(known) else None


def has_prefix(model: mujoco.MjModel, prefix: str) -> bool:
    """Return True if the name of a body, joint or actuator begins with a prefix."""
    return any(name.startswith(prefix) for name in _names(model))


def _names(model: mujoco.MjModel) -> list[str]:
    """Return the names of bodies without the world, of joints, and of actuators."""
    kinds = ((model.body, 1, model.nbody), (model.joint, 0, model.njnt))
    kinds += ((model.actuator, 0, model.nactuator),)
    return [find(i).name for find, first, end in kinds for i in range(first, end)] or [""]


def body_frames(names: Sequence[str]) -> list[str]:
    """Return a different name for the frame of each body: its own, `world`, or `body_ID`.

    Args:
        names: names of all bodies by id; empty for those without one.
    """
    frames = ["world", *names[1:]]
    taken = set(frames)
    for body, name in enumerate(frames):
        if not name:
            frames[body] = free_name(f"body_{body}", taken)
            taken.add(frames[body])
    return frames


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
            value = None if name.startswith(APPEARANCE) else getattr(part, name)
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
