"""Verbs that build articulations, one element at a time, and that decompose meshes of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, get_args

from manyworlds.lab.scene import building
from manyworlds.lab.scene.building import ActuatorKind, ElementKind, JointKind, Shape, ShapeKind
from manyworlds.lab.verbs.fields import Choice, Field, Flag, Integer, Number, Numbers, Texts
from manyworlds.lab.verbs.props import CONVERSION, describe_conversion
from manyworlds.lab.verbs.registry import Reply, verb
from manyworlds.spec.convex import THRESHOLDS, CoacdCfg

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_Name = Annotated[str, Field(text="name of the new element in its item")]
_Body = Annotated[str, Field(text="name of the body")]
_Pos = Annotated[Sequence[float], Numbers(size=3, unit="m", text="position in the parent")]
_Quat = Annotated[Sequence[float], Numbers(size=4, unit="wxyz", text="orientation in the parent")]
_Shape = Annotated[ShapeKind, Choice(options=get_args(ShapeKind), text="shape of the geom")]
_Size = Annotated[
    Sequence[float],
    Numbers(size=3, unit="m", text="sizes as in MuJoCo; those that the shape does not have are 0"),
]
_Mass = Annotated[float, Number(low=0.0, unit="kg", text="mass; 0 for the density of water")]
_ADDED = Field(text="full name of the new element")
_NOTES = Texts(text="sentences about what the edit did besides what was asked")
_ORIGIN = (0.0, 0.0, 0.0)
_UPRIGHT = (1.0, 0.0, 0.0, 0.0)
_SMALL = (0.05, 0.05, 0.05)
_UP = (0.0, 0.0, 1.0)
_NO_LIMITS = (0.0, 0.0)


@verb(name=_ADDED, notes=_NOTES)
def add_body(
    lab: LiveLab,
    name: Annotated[
        str, Field(text="name of the body in its item, or of a new item, whose base it is")
    ],
    parent: Annotated[str, Field(text="body that it is fixed to; empty for the world")] = "",
    pos: _Pos = _ORIGIN,
    quat: _Quat = _UPRIGHT,
    shape: _Shape = "box",
    size: _Size = _SMALL,
    mass: _Mass = 0.0,
) -> Reply:
    """Add a body with a geom to a body of an item; without one, to the world as a new item."""
    geom = Shape(kind=shape, size=size, mass=mass)
    return _added(lab, building.add_body(lab.scene, name, parent, pos, quat, geom))


@verb(name=_ADDED, notes=_NOTES)
def add_geom(
    lab: LiveLab,
    body: _Body,
    name: _Name,
    shape: _Shape = "box",
    size: _Size = _SMALL,
    pos: _Pos = _ORIGIN,
    quat: _Quat = _UPRIGHT,
    mass: _Mass = 0.0,
) -> Reply:
    """Add a geom to a body of an item."""
    geom = Shape(kind=shape, size=size, pos=pos, quat=quat, mass=mass)
    return _added(lab, building.add_geom(lab.scene, body, name, geom))


@verb(name=_ADDED, notes=_NOTES)
def add_joint(
    lab: LiveLab,
    body: _Body,
    name: _Name,
    kind: Annotated[JointKind, Choice(options=get_args(JointKind), text="kind of joint")] = "hinge",
    axis: Annotated[
        Sequence[float], Numbers(size=3, text="axis of a hinge or slide in the body")
    ] = _UP,
    range: Annotated[
        Sequence[float],
        Numbers(size=2, unit="rad or m", text="limits; twice the same number for none"),
    ] = _NO_LIMITS,
    damping: Annotated[
        float, Number(low=0.0, unit="N m s/rad or N s/m", text="damping of the joint")
    ] = 0.1,
) -> Reply:
    """Add a joint between a body of an item and its parent."""
    return _added(lab, building.add_joint(lab.scene, body, name, kind, axis, range, damping))


@verb(name=_ADDED, notes=_NOTES)
def add_actuator(
    lab: LiveLab,
    joint: Annotated[str, Field(text="name of the joint")],
    name: Annotated[str, Field(text="name in the item; that of the joint if left out")] = "",
    kind: Annotated[
        ActuatorKind, Choice(options=get_args(ActuatorKind), text="kind of actuator, as in MJCF")
    ] = "position",
    gain: Annotated[
        float, Number(low=0.0, text="stiffness, damping or gear, by the kind of actuator")
    ] = 20.0,
    limit: Annotated[
        float, Number(low=0.0, unit="N m or N", text="largest effort; 0 for none")
    ] = 0.0,
) -> Reply:
    """Add an actuator to a joint; its item is a robot from then on."""
    return _added(lab, building.add_actuator(lab.scene, joint, name, kind, gain, limit))


@verb(notes=_NOTES)
def remove_element(
    lab: LiveLab,
    kind: Annotated[ElementKind, Choice(options=get_args(ElementKind), text="kind of the element")],
    name: Annotated[str, Field(text="full name of the element")],
) -> Reply:
    """Remove an element of an item, and what refers to it; a body with all that is below it."""
    building.remove_element(lab.scene, kind, name)
    return {"notes": list(lab.scene.notes)}


@verb(reads=False, **CONVERSION)
def decompose_mesh(
    lab: LiveLab,
    geom: Annotated[str, Field(text="name of a geom with a mesh")],
    threshold: Annotated[
        float, Number(low=THRESHOLDS[0], high=THRESHOLDS[1], text="threshold of CoACD")
    ] = 0.05,
    max_pieces: Annotated[int, Integer(low=0, text="largest number of pieces; 0 for any")] = 0,
    wait: Annotated[bool, Flag(text="true to reply when the pieces are in the world")] = True,
) -> Reply:
    """Let convex pieces of a geom's mesh collide in its place; the geom is drawn as before."""
    cfg = CoacdCfg(threshold=threshold, max_pieces=max_pieces or None)
    conversion = lab.conversions.run(
        geom, lambda report: building.decompose_mesh(lab.scene, geom, cfg, report)
    )
    return describe_conversion(conversion, wait=wait)


@verb(notes=_NOTES)
def remove_decomposition(
    lab: LiveLab, geom: Annotated[str, Field(text="name of a geom with convex pieces")]
) -> Reply:
    """Remove the convex pieces of a geom, which collides by itself again."""
    building.remove_decomposition(lab.scene, geom)
    return {"notes": list(lab.scene.notes)}


def _added(lab: LiveLab, name: str) -> Reply:
    return {"name": name, "notes": list(lab.scene.notes)}
