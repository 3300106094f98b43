"""Contacts of a world as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError, near

_KINDS = {
    "body1": mujoco.mjtObj.mjOBJ_BODY,
    "body2": mujoco.mjtObj.mjOBJ_BODY,
    "geom1": mujoco.mjtObj.mjOBJ_GEOM,
    "geom2": mujoco.mjtObj.mjOBJ_GEOM,
    "subtree": mujoco.mjtObj.mjOBJ_BODY,
}


def check_filter(model: mujoco.MjModel, names: Mapping[str, Any]) -> dict[str, int]:
    """Return the ids of the bodies and geoms that contacts must have.

    Args:
        model: the model.
        names: `body1`, `body2`, `geom1`, `geom2`: sides of the contact, in any order; `subtree`: a
            body that, or a descendant of which, is on one side. None leaves one out.

    Raises:
        VerbError: a key or a name is unknown.
    """
    wanted = {}
    for key, name in names.items():
        if key not in _KINDS:
            raise VerbError(
                "bad_value", f"get_contacts: filter has no '{key}'; it has {', '.join(_KINDS)}."
            )
        if name is None:
            continue
        found = -1
        if isinstance(name, str):
            found = mujoco.mj_name2id(model, _KINDS[key], name)
        if found < 0:
            code = "bad_value"
            hint = "."
            if _KINDS[key] == mujoco.mjtObj.mjOBJ_BODY:
                code = "unknown_body"
                hint = near(name, [model.body(i).name for i in range(model.nbody)])
            raise VerbError(
                code,
                f"get_contacts: {key} must be the name of a {key[:4]}, got {name!r}{hint}",
            )
        wanted[key] = found
    return wanted


def matches(model: mujoco.MjModel, contact: mujoco.MjContact, wanted: Mapping[str, int]) -> bool:
    """Return True if a contact has what `check_filter` returned."""
    geoms = contact.geom.tolist()
    bodies = _bodies_of(model, geoms)
    named = dict(wanted)
    root = named.pop("subtree", None)
    there = {"geom1": geoms[0], "geom2": geoms[1], "body1": bodies[0], "body2": bodies[1]}
    swapped = {"geom1": geoms[1], "geom2": geoms[0], "body1": bodies[1], "body2": bodies[0]}
    if not (named.items() <= there.items() or named.items() <= swapped.items()):
        return False
    return root is None or any(_is_below(model, body, root) for body in bodies)


def read_contact(model: mujoco.MjModel, data: mujoco.MjData, index: int) -> dict[str, object]:
    """Return a contact as plain data.

    Returns:
        Names of geoms and bodies, empty for flexes; position [m] and unit normal in the world;
        distance [m], negative in penetration; force and torque in the contact's frame, whose first
        axis is the normal [N, N m].
    """
    contact = data.contact[index]
    force = np.empty(6)
    mujoco.mj_contactForce(model, data, index, force)
    geoms = contact.geom.tolist()
    bodies = _bodies_of(model, geoms)
    return {
        **{f"geom{i}": _name(model.geom, geom) for i, geom in enumerate(geoms, 1)},
        **{f"body{i}": _name(model.body, body) for i, body in enumerate(bodies, 1)},
        "pos": contact.pos.tolist(),
        "normal": contact.frame[:3].tolist(),
        "dist": float(contact.dist),
        "force": force.tolist(),
    }


def _bodies_of(model: mujoco.MjModel, geoms: list[int]) -> list[int]:
    """Return the bodies of geoms; -1 for flexes."""
    return [int(model.geom_bodyid[geom]) if geom >= 0 else -1 for geom in geoms]


def _name(element: Any, index: int) -> str:
    return element(index).name if index >= 0 else ""


def _is_below(model: mujoco.MjModel, body: int, root: int) -> bool:
    while body > root:  # parents have lower ids
        body = int(model.body_parentid[body])
    return body == root
