"""Robots as tables of links: each row is a body with its joint, inertia and shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import mujoco
import numpy as np

Vec3 = tuple[float, float, float]

# Name -> color, shininess.
MATERIALS: dict[str, tuple[tuple[float, float, float, float], float]] = {
    "shell": ((0.90, 0.91, 0.93, 1.0), 0.6),
    "frame": ((0.19, 0.21, 0.25, 1.0), 0.4),
    "motor": ((0.42, 0.45, 0.50, 1.0), 0.7),
    "accent": ((0.93, 0.49, 0.13, 1.0), 0.5),
    "rubber": ((0.08, 0.08, 0.09, 1.0), 0.1),
}

_GROUP = 2  # geom group: drawn, but ignored by terrain rays
_SITE_GROUP = 5


class LinkShape(NamedTuple):
    """A geom; one whose name does not contain `_collision` is visual only."""

    name: str
    type: mujoco.mjtGeom
    size: tuple[float, ...]
    at: tuple[float, ...]
    """Its center, or the two ends of its axis [m]."""
    material: str


def sphere(name: str, radius: float, at: Vec3, material: str) -> LinkShape:
    """Describe a sphere with a radius [m] around a center [m]."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_SPHERE, (radius, 0, 0), at, material)


def box(name: str, half: Vec3, at: Vec3, material: str) -> LinkShape:
    """Describe a box along the body's axes by its half sizes [m]."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_BOX, half, at, material)


def ellipsoid(name: str, half: Vec3, at: Vec3, material: str) -> LinkShape:
    """Describe an ellipsoid along the body's axes by its half axes [m]."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_ELLIPSOID, half, at, material)


def capsule(name: str, radius: float, a: Vec3, b: Vec3, material: str) -> LinkShape:
    """Describe a capsule with a radius [m] between two points [m]."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_CAPSULE, (radius, 0, 0), (*a, *b), material)


def cylinder(name: str, radius: float, a: Vec3, b: Vec3, material: str) -> LinkShape:
    """Describe a cylinder with a radius [m] between two points [m]."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_CYLINDER, (radius, 0, 0), (*a, *b), material)


class Joint(NamedTuple):
    """A hinge or slide joint with its limits."""

    name: str
    axis: Vec3
    range: tuple[float, float]
    """Limits [rad or m]."""
    type: mujoco.mjtJoint = mujoco.mjtJoint.mjJNT_HINGE


class Inertial(NamedTuple):
    """Mass, center of mass and inertia in a body's frame."""

    mass: float
    """Mass [kg]."""
    com: Vec3
    """Center of mass [m]."""
    inertia: tuple[float, float, float, float, float, float]
    """Inertia xx, yy, zz, xy, xz, yz about the center of mass [kg m^2]."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A body with its joint, inertia, shapes and sites."""

    name: str
    parent: str | None
    """Name of the parent body; None for the root."""
    inertial: Inertial
    pos: Vec3 = (0.0, 0.0, 0.0)
    """Position in the parent's frame [m]."""
    tilt: Vec3 = (0.0, 0.0, 0.0)
    """Rotation about one axis of the parent's frame, as the axis times the angle [deg]."""
    joint: Joint | None = None
    shapes: tuple[LinkShape, ...] = ()
    sites: tuple[tuple[str, Vec3], ...] = ()
    """Names and positions [m] of sites."""


def mirrored(link: Link, old: str, new: str) -> Link:
    """Return the mirror image of a link of the left side in the plane y = 0.

    Joint axes are kept, so that angles about x and z change sign.

    Args:
        link: a link of the left side.
        old: part of the names that marks the left side.
        new: its replacement on the right side.
    """

    def rename(name: str) -> str:
        return name.replace(old, new, 1)

    def reflect(points: Any) -> Any:
        return tuple(-x if i % 3 == 1 else x for i, x in enumerate(points))

    xx, yy, zz, xy, xz, yz = link.inertial.inertia
    x, y, z = link.tilt
    joint = link.joint
    if joint is not None:
        low, high = joint.range
        turns = joint.type == mujoco.mjtJoint.mjJNT_HINGE
        same = bool(joint.axis[1]) == turns
        joint = joint._replace(
            name=rename(joint.name), range=(low, high) if same else (-high, -low)
        )
    return replace(
        link,
        name=rename(link.name),
        parent=link.parent and rename(link.parent),
        inertial=Inertial(
            link.inertial.mass, reflect(link.inertial.com), (xx, yy, zz, -xy, xz, -yz)
        ),
        pos=reflect(link.pos),
        tilt=(-x, y, -z),
        joint=joint,
        shapes=tuple(s._replace(name=rename(s.name), at=reflect(s.at)) for s in link.shapes),
        sites=tuple((rename(name), reflect(pos)) for name, pos in link.sites),
    )


def build_spec(name: str, links: Iterable[Link], floating: bool) -> mujoco.MjSpec:
    """Build a spec from a table of links, parents before children.

    Args:
        name: name of the model.
        links: the table.
        floating: give the root a free joint; else it is fixed to the world.
    """
    spec = mujoco.MjSpec()
    spec.modelname = name
    spec.compiler.degree = False
    for material, (rgba, shininess) in MATERIALS.items():
        spec.add_material(name=material, rgba=rgba, shininess=shininess, specular=shininess / 2)
    for link in links:
        _add_link(spec, link, floating)
    return spec


def _add_link(spec: mujoco.MjSpec, link: Link, floating: bool) -> None:
    parent = spec.body(link.parent) if link.parent else spec.worldbody
    mass, com, inertia = link.inertial
    body = parent.add_body(
        name=link.name,
        pos=link.pos,
        quat=_quat(link.tilt),
        explicitinertial=True,
        mass=mass,
        ipos=com,
        fullinertia=inertia,
    )
    if link.parent is None and floating:
        body.add_freejoint(name="floating_base_joint")
    if (joint := link.joint) is not None:
        body.add_joint(
            name=joint.name, type=joint.type, axis=joint.axis, range=joint.range, limited=True
        )
    for shape in link.shapes:
        collides = int("_collision" in shape.name)
        place: dict[str, Any] = {"pos" if len(shape.at) == 3 else "fromto": shape.at}
        body.add_geom(
            name=shape.name,
            type=shape.type,
            size=shape.size,
            material=shape.material,
            group=_GROUP,
            contype=collides,
            conaffinity=collides,
            **place,
        )
    for site, pos in link.sites:
        body.add_site(name=site, pos=pos, size=(0.01, 0.01, 0.01), group=_SITE_GROUP)


def _quat(tilt: Vec3) -> list[float]:
    quat, angle = np.array([1.0, 0.0, 0.0, 0.0]), math.radians(math.hypot(*tilt))
    if angle:
        mujoco.mju_axisAngle2Quat(quat, np.radians(tilt) / angle, angle)
    return quat.tolist()


def add_imu(spec: mujoco.MjSpec, site: str, root: str) -> None:
    """Add the sensors of a floating robot, with the names that tasks expect.

    Args:
        spec: the robot.
        site: site of the inertial measurement unit.
        root: root body of the robot.
    """
    for name, sensor in (
        ("imu_ang_vel", mujoco.mjtSensor.mjSENS_GYRO),
        ("imu_lin_vel", mujoco.mjtSensor.mjSENS_VELOCIMETER),
        ("imu_lin_acc", mujoco.mjtSensor.mjSENS_ACCELEROMETER),
    ):
        spec.add_sensor(name=name, type=sensor, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)
    spec.add_sensor(
        name="imu_upvector",
        type=mujoco.mjtSensor.mjSENS_FRAMEZAXIS,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        objname="world",
        reftype=mujoco.mjtObj.mjOBJ_SITE,
        refname=site,
    )
    spec.add_sensor(
        name="root_angmom",
        type=mujoco.mjtSensor.mjSENS_SUBTREEANGMOM,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        objname=root,
    )
