"""Robots as tables of links: each row is a body with its joint, its inertia and its shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import mujoco
import numpy as np

Vec3 = tuple[float, float, float]

# Name -> colour, shininess.
MATERIALS: dict[str, tuple[tuple[float, float, float, float], float]] = {
    "shell": ((0.90, 0.91, 0.93, 1.0), 0.6),
    "frame": ((0.19, 0.21, 0.25, 1.0), 0.4),
    "motor": ((0.42, 0.45, 0.50, 1.0), 0.7),
    "accent": ((0.93, 0.49, 0.13, 1.0), 0.5),
    "rubber": ((0.08, 0.08, 0.09, 1.0), 0.1),
}

_GROUP = 2  # of geoms: drawn, and not what rays that look for the ground hit
_SITE_GROUP = 5


class LinkShape(NamedTuple):
    """A geom; one whose name does not contain `_collision` is for the eye only."""

    name: str
    type: mujoco.mjtGeom
    size: tuple[float, ...]
    at: tuple[float, ...]
    """Its center, or the two ends of its axis [m]."""
    material: str


def sphere(name: str, radius: float, at: Vec3, material: str) -> LinkShape:
    """A ball around a point."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_SPHERE, (radius, 0, 0), at, material)


def box(name: str, half: Vec3, at: Vec3, material: str) -> LinkShape:
    """A box along the body's axes, by its half sizes."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_BOX, half, at, material)


def ellipsoid(name: str, half: Vec3, at: Vec3, material: str) -> LinkShape:
    """An ellipsoid along the body's axes, by its half sizes."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_ELLIPSOID, half, at, material)


def capsule(name: str, radius: float, a: Vec3, b: Vec3, material: str) -> LinkShape:
    """A rod between two points, with round ends around them."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_CAPSULE, (radius, 0, 0), (*a, *b), material)


def cylinder(name: str, radius: float, a: Vec3, b: Vec3, material: str) -> LinkShape:
    """A rod between two points."""
    return LinkShape(name, mujoco.mjtGeom.mjGEOM_CYLINDER, (radius, 0, 0), (*a, *b), material)


class Joint(NamedTuple):
    """A hinge, or a slide, with its limits."""

    name: str
    axis: Vec3
    range: tuple[float, float]
    """[rad or m]"""
    type: mujoco.mjtJoint = mujoco.mjtJoint.mjJNT_HINGE


class Inertial(NamedTuple):
    """How mass is spread in a body's frame."""

    mass: float
    """[kg]"""
    com: Vec3
    """Center of mass [m]."""
    inertia: tuple[float, float, float, float, float, float]
    """xx, yy, zz, xy, xz, yz about the center of mass [kg m^2]."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A body and what belongs to it."""

    name: str
    parent: str | None
    """Name of the body that carries it; None for the root."""
    inertial: Inertial
    pos: Vec3 = (0.0, 0.0, 0.0)
    """In the parent's frame [m]."""
    tilt: Vec3 = (0.0, 0.0, 0.0)
    """Rotation from the parent's frame about one axis of it, as that axis times the angle [deg]."""
    joint: Joint | None = None
    shapes: tuple[LinkShape, ...] = ()
    sites: tuple[tuple[str, Vec3], ...] = ()
    """Name and position [m]."""


def mirrored(link: Link, old: str, new: str) -> Link:
    """Reflect a link of the left side in the plane y = 0.

    Axes of joints stay, so that angles about x and z change their signs.

    Args:
        link: a link of the left side.
        old: what says in a name that it is of the left side.
        new: what says so of the right side.
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
    """Make a model of a table of links, each after the one that carries it.

    Args:
        name: of the model.
        links: the table.
        floating: the root is free to move; else it is fixed to the world.
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
    """Add what a floating robot measures of itself, named as tasks look for it.

    Args:
        spec: the robot.
        site: where its inertial measurement unit sits.
        root: the body whose subtree is the robot.
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
