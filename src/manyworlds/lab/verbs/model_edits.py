"""Verbs of fields of the model, of its names, and of the positions of single joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import mujoco
import numpy as np

from manyworlds.lab.edits.editable_fields import EDITABLE, name_of
from manyworlds.lab.errors import VerbError
from manyworlds.lab.verbs.fields import (
    Anything,
    Choice,
    Field,
    Flag,
    Integer,
    Listing,
    Numbers,
    Texts,
)
from manyworlds.lab.verbs.registry import Reply, verb
from manyworlds.spec.elements import dof_width, qpos_width

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_ELEMENT = Field(text="element as KIND:NAME, with the id for a name if it has none: body:cup")
_Element = Annotated[str, _ELEMENT]


@verb(
    element=_ELEMENT,
    value=Anything(text="the new value"),
    model_version=Integer(text="number of changes of the model"),
)
def set_model(
    lab: LiveLab,
    element: _Element,
    field: Annotated[str, Field(text="field as in MJCF or in the compiled model: mass")],
    value: Annotated[object, Anything(text="number, list of numbers, or name")],
) -> Reply:
    """Change a field of an element from the next step on, in the spec, too.

    Values are those of the compiled model: radians, and frames of bodies. `undo` takes it back.
    """
    new = lab.set_model(element, field, value)
    label = lab.edits.label_of(lab.edits.find(element))
    return {"element": label, "value": new, "model_version": lab.loop.model_version}


@verb(fields=Texts(text="fields that were set"))
def reset_model(
    lab: LiveLab,
    element: _Element,
    field: Annotated[str, Field(text="field; all of them if empty")] = "",
) -> Reply:
    """Set a field of an element, or all of them, to what the model had before all edits."""
    return {"fields": lab.edits.reset(element, field)}


@verb(
    reads=True,
    element=_ELEMENT,
    type=Field(text="kind of the joint, geom, actuator ... as in the model's file"),
    fields=Listing(text="name, value, model_value, unit, bounds, choices, consequence of each"),
)
def read_element(lab: LiveLab, element: _Element) -> Reply:
    """Return the fields of an element that can change, and their values in the compiled model."""
    place = lab.edits.find(element)
    return {
        "element": lab.edits.label_of(place),
        "type": lab.edits.type_of(place),
        "fields": lab.edits.read(element),
    }


@verb(reads=True, names=Listing(text="kind, name, robot, original name, source of each element"))
def read_names(
    lab: LiveLab,
    kind: Annotated[
        str, Choice(options=("", *EDITABLE), text="kind of element; all if empty")
    ] = "",
) -> Reply:
    """Return the names of elements in this world beside those in the robots' own files."""
    return {"names": lab.edits.names(kind)}


@verb(joint=Field(text="full name of the joint"), qpos=Numbers(text="its positions"))
def set_joint_qpos(
    lab: LiveLab,
    joint: Annotated[str, Field(text="joint by its name, or its id if it has none")],
    qpos: Annotated[
        np.ndarray, Numbers(text="1 value of a hinge or slide, 4 of a ball, 7 of a free joint")
    ],
    still: Annotated[bool, Flag(text="true to set its velocities to zero")] = False,
) -> Reply:
    """Set the positions of one joint; quaternions are normalized."""
    _, id = lab.edits.find(("joint", joint))
    model = lab.model
    kind = int(model.jnt_type[id])
    label = name_of(model, "joint", id)
    width = qpos_width(kind)
    q = int(model.jnt_qposadr[id])
    v = int(model.jnt_dofadr[id])
    if qpos.size != width:
        raise VerbError("dim_mismatch", f"The joint '{label}' has {width} values, got {qpos.size}.")
    if width > 1:
        length = float(np.linalg.norm(qpos[-4:]))
        if not length:
            raise VerbError("bad_value", f"The quaternion of '{label}' must not be zero.")
        qpos[-4:] /= length

    def put(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        data.qpos[q : q + width] = qpos
        if still:
            data.qvel[v : v + dof_width(kind)] = 0.0
        mujoco.mj_forward(model, data)

    lab.loop.do(put, edits_model=False)
    return {"joint": label, "qpos": qpos.tolist()}
