"""Views of single elements: their rows of the model and the data."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import mujoco
import numpy as np

from manyworlds.lab.world.model_facts import find_elements
from manyworlds.spec.elements import dof_width, qpos_width

_KINDS = {
    "body": {
        "mass": "body_mass",
        "xpos": "xpos",
        "xquat": "xquat",
        "xfrc_applied": "xfrc_applied",
        "mocap_id": "body_mocapid",
    },
    "geom": {
        "xpos": "geom_xpos",
        "xmat": "geom_xmat",
        "size": "geom_size",
        "type": "geom_type",
        "contype": "geom_contype",
        "conaffinity": "geom_conaffinity",
        "dataid": "geom_dataid",
    },
    "joint": {
        "qpos": "qpos",
        "qvel": "qvel",
        "qacc": "qacc",
        "xanchor": "xanchor",
        "xaxis": "xaxis",
        "range": "jnt_range",
        "stiffness": "jnt_stiffness",
        "stiffnesspoly": "jnt_stiffnesspoly",
        "damping": "dof_damping",
        "dampingpoly": "dof_dampingpoly",
    },
    "actuator": {
        "ctrl": "ctrl",
        "force": "actuator_force",
        "length": "actuator_length",
        "velocity": "actuator_velocity",
        "gear": "actuator_gear",
        "ctrlrange": "actuator_ctrlrange",
        "gainprm": "actuator_gainprm",
        "biasprm": "actuator_biasprm",
    },
    "sensor": {
        "data": "sensordata",
        "dim": "sensor_dim",
        "adr": "sensor_adr",
        "type": "sensor_type",
    },
    "tendon": {
        "length": "ten_length",
        "velocity": "ten_velocity",
        "stiffness": "tendon_stiffness",
        "stiffnesspoly": "tendon_stiffnesspoly",
        "damping": "tendon_damping",
        "dampingpoly": "tendon_dampingpoly",
        "range": "tendon_range",
    },
    "site": {
        "xpos": "site_xpos",
        "xmat": "site_xmat",
        "size": "site_size",
        "type": "site_type",
        "body_id": "site_bodyid",
    },
}
"""MuJoCo's name of each attribute of a view, in the model or the data."""

_CHILDREN = {"body": "body_parentid", "geom": "geom_bodyid", "joint": "jnt_bodyid"}


class StaleViewError(RuntimeError):
    """Access to a view of a world that was rebuilt."""


class ElementView:
    """Rows of one element; attributes are arrays that share memory with the loop's.

    Args:
        model: the model.
        data: its data.
        kind: kind of the element.
        id: id of the element in the model.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, kind: str, id: int) -> None:
        self.model = model
        self.data = data
        self.kind = kind
        self.id = id
        self.name: str = getattr(model, kind)(id).name
        """Full name of the element; empty if it has none."""
        self._parts: weakref.WeakSet[ElementView] = weakref.WeakSet()
        ranges = _ranges(model, kind, id)
        for attribute, field in _KINDS[kind].items():
            holder = model if hasattr(model, field) else data
            array = np.asarray(getattr(holder, field))
            rows = array[ranges.get(field, slice(id, id + 1))]
            # One row of a table; a single number stays an array of one item, to share memory.
            if rows.ndim > 1 and field not in ranges:
                rows = rows[0]
            if attribute == "xmat":
                rows = rows.reshape(3, 3)
            setattr(self, attribute, rows)

    def expire(self) -> None:
        """Refuse further access: the world was rebuilt."""
        for attribute in _KINDS[self.kind]:
            self.__dict__.pop(attribute, None)
        self.stale = True
        for part in self._parts:
            part.expire()

    def __getattr__(self, attribute: str) -> np.ndarray:
        """Return one of the element's arrays."""
        if "stale" in self.__dict__:
            raise StaleViewError(
                f"The world was rebuilt: get a new view of the {self.kind} '{self.name}'."
            )
        known = ", ".join(_KINDS.get(self.__dict__.get("kind", ""), ()))
        raise AttributeError(
            f"A view of a {self.__dict__.get('kind')} has no '{attribute}': it has {known}."
        )

    def __repr__(self) -> str:
        """Return the kind, id and name."""
        return f"ElementView({self.kind} {self.id} '{self.name}')"

    def bodies(self) -> list[ElementView]:
        """Return the children of this body."""
        return self._children("body")

    def geoms(self) -> list[ElementView]:
        """Return the geoms of this body."""
        return self._children("geom")

    def joints(self) -> list[ElementView]:
        """Return the joints of this body."""
        return self._children("joint")

    def _children(self, kind: str) -> list[ElementView]:
        if self.kind != "body":
            raise AttributeError(f"A {self.kind} has no parts: only a body has.")
        parents = getattr(self.model, _CHILDREN[kind])
        # The world body is its own parent.
        ids = [i for i in np.flatnonzero(parents == self.id).tolist() if kind != "body" or i]
        parts = [ElementView(self.model, self.data, kind, i) for i in ids]
        self._parts.update(parts)
        return parts


def make_view(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    kind: str,
    name: str,
    prefixes: Mapping[str, str] | None = None,
) -> ElementView:
    """Return a view of an element.

    Args:
        model: the model.
        data: its data.
        kind: body, geom, joint, actuator, sensor, tendon or site.
        name: name of the element, full or without the prefix of the only robot that has one.
        prefixes: prefix of each robot's elements, by the robot's name.

    Raises:
        KeyError: there is no such element, or several robots have one.
        ValueError: there is no such kind.
    """
    if kind not in _KINDS:
        raise ValueError(f"There is no kind '{kind}': choose one of {', '.join(_KINDS)}.")
    found = find_elements(model, kind, name, (prefixes or {}).values())
    if not found:
        raise KeyError(f"There is no {kind} '{name}'.")
    if len(found) > 1 and name not in found:
        raise KeyError(f"Several robots have a {kind} '{name}': name one of {', '.join(found)}.")
    return ElementView(model, data, kind, next(iter(found.values())))


def _ranges(model: mujoco.MjModel, kind: str, id: int) -> dict[str, slice]:
    """Return the rows of the fields that do not have one row per element."""
    if kind == "joint":
        width = mujoco.mjtJoint(model.jnt_type[id])
        q, v = int(model.jnt_qposadr[id]), int(model.jnt_dofadr[id])
        dofs = slice(v, v + dof_width(width))
        return {
            "qpos": slice(q, q + qpos_width(width)),
            **dict.fromkeys(("qvel", "qacc", "dof_damping", "dof_dampingpoly"), dofs),
        }
    if kind == "actuator":
        start, count = int(model.actuator_ctrladr[id]), int(model.actuator_ctrlnum[id])
        return dict.fromkeys(("ctrl", "actuator_ctrlrange"), slice(start, start + count))
    if kind == "sensor":
        start = int(model.sensor_adr[id])
        return {"sensordata": slice(start, start + int(model.sensor_dim[id]))}
    return {}
