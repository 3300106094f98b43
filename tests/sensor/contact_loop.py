"""Expected values of a contact sensor, computed by hand from MuJoCo's list of contacts."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

Match = Callable[[mujoco.MjModel, int], bool]


def matcher(mode: str, name: str) -> Match:
    """Tell whether a geom belongs to a named geom, body or subtree."""

    def geom(model: mujoco.MjModel, geom_id: int) -> bool:
        return geom_id == model.geom(name).id

    def body(model: mujoco.MjModel, geom_id: int) -> bool:
        return model.geom_bodyid[geom_id] == model.body(name).id

    def subtree(model: mujoco.MjModel, geom_id: int) -> bool:
        parent = model.geom_bodyid[geom_id]
        while parent != model.body(name).id:
            if parent == 0:
                return False
            parent = model.body_parentid[parent]
        return True

    return {"geom": geom, "body": body, "subtree": subtree}[mode]


def contacts(
    model: mujoco.MjModel, data: mujoco.MjData, primary: Match, secondary: Match | None
) -> list[dict[str, np.ndarray]]:
    """List contacts between two matches, seen from the primary."""
    found = []
    for i, contact in enumerate(data.contact):
        geoms = (int(contact.geom1), int(contact.geom2))
        first, second = (primary(model, geom) for geom in geoms)
        if secondary is not None:
            regular = first and secondary(model, geoms[1])
            reverse = second and secondary(model, geoms[0])
        else:
            regular, reverse = first, second
        if not regular and not reverse:
            continue
        sign = 1 if regular else -1
        wrench = np.zeros(6)
        mujoco.mj_contactForce(model, data, i, wrench)
        frame = contact.frame.reshape(3, 3)
        normal, tangent = sign * frame[0], sign * frame[1]
        axes = np.stack([normal, tangent, np.cross(normal, tangent)])
        force, torque = sign * frame.T @ wrench[:3], sign * frame.T @ wrench[3:]
        found.append(
            {
                "force": axes @ force,
                "torque": axes @ torque,
                "force_w": force,
                "torque_w": torque,
                "dist": np.array(contact.dist),
                "pos": contact.pos.copy(),
                "normal": normal,
                "tangent": tangent,
            }
        )
    return found


def reduced(
    found: list[dict[str, np.ndarray]], reduce: str, num_slots: int
) -> list[dict[str, np.ndarray]]:
    """Choose or add up contacts as MuJoCo documents it."""
    if reduce == "mindist":
        found = sorted(found, key=lambda contact: float(contact["dist"]))
    elif reduce == "maxforce":
        found = sorted(found, key=lambda contact: -float(np.linalg.norm(contact["force"])))
    elif reduce == "netforce" and found:
        weights = np.array([np.linalg.norm(contact["force"]) for contact in found])
        pos = weights @ np.stack([contact["pos"] for contact in found]) / weights.sum()
        force = sum(contact["force_w"] for contact in found)
        torque = sum(
            contact["torque_w"] + np.cross(contact["pos"] - pos, contact["force_w"])
            for contact in found
        )
        found = [{"force": force, "torque": torque, "pos": pos}]
    return found[:num_slots]
