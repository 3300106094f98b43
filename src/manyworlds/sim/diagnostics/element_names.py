"""Names of the model elements that the entries of MuJoCo's arrays belong to."""

from __future__ import annotations

import mujoco
import numpy as np

# Arrays whose elements are found by the address of each object's first entry.
_BY_ADDRESS = {
    "qpos": ("joint", "jnt_qposadr"),
    "act": ("actuator", "actuator_actadr"),
    "sensordata": ("sensor", "sensor_adr"),
}
_DOF = ("qvel", "qacc", "qacc_smooth", "qacc_warmstart")
_PREFIXES = {
    "body": "body",
    "jnt": "joint",
    "geom": "geom",
    "site": "site",
    "cam": "camera",
    "light": "light",
    "mesh": "mesh",
    "hfield": "hfield",
    "eq": "equality",
    "tendon": "tendon",
    "actuator": "actuator",
    "sensor": "sensor",
    "pair": "pair",
}
_BODY = ("xpos", "xquat", "xipos", "cinert", "cvel", "cacc", "xfrc_applied")


def element_name(model: mujoco.MjModel, field: str, index: int) -> str:
    """Describe the model element that one entry of an MjData or MjModel field belongs to.

    Args:
        model: the model.
        field: name of the field, such as `qvel` or `body_mass`.
        index: index into the flattened array.
    """
    if field in _BY_ADDRESS:
        kind, addresses = _BY_ADDRESS[field]
        starts = np.asarray(getattr(model, addresses))
        starts = np.where(starts < 0, np.iinfo(np.int32).max, starts)
        return _named(model, kind, int(np.flatnonzero(starts <= index)[-1]))
    if field in _DOF or field.startswith(("qfrc_", "dof_")):
        width = 1
        if field.startswith("dof_"):
            width = max(getattr(model, field).size // model.nv, 1)
        return _named(model, "joint", int(model.dof_jntid[index // width]))
    if field.startswith("mocap_"):
        width = {"mocap_pos": 3, "mocap_quat": 4}[field]
        mocap = index // width
        return _named(model, "body", int(np.flatnonzero(model.body_mocapid == mocap)[0]))
    if field in _BODY:
        width = {"xpos": 3, "xipos": 3, "xquat": 4, "cinert": 10}.get(field, 6)
        return _named(model, "body", index // width)
    if field in ("ctrl", "actuator_force"):
        return _named(model, "actuator", index)
    if field == "qpos0" or field == "qpos_spring":
        return element_name(model, "qpos", index)
    kind = _PREFIXES.get(field.partition("_")[0])
    array = getattr(model, field, None)
    if kind is None or not isinstance(array, np.ndarray) or not len(array):
        return f"element {index}"
    return _named(model, kind, index // (array.size // len(array)))


def _named(model: mujoco.MjModel, kind: str, index: int) -> str:
    name = mujoco.mj_id2name(model, mujoco.mju_str2Type(kind), index)
    if name:
        return f"{kind} '{name}'"
    if kind in ("joint", "geom", "site"):
        ids = {"joint": model.jnt_bodyid, "geom": model.geom_bodyid, "site": model.site_bodyid}
        return f"{kind} {index} of {_named(model, 'body', int(ids[kind][index]))}"
    return f"{kind} {index}"
