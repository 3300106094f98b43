"""Giving a fixed base a place of its own in each world."""

from __future__ import annotations

import functools
from collections.abc import Callable

import mujoco

MOCAP_BASE = "mocap_base"
"""The body that carries a wrapped spec."""

# Settings of a whole spec, which attaching leaves behind.
_SETTINGS = (
    *("option", "visual", "stat", "compiler", "modelname", "modelfiledir", "comment", "memory"),
    *("nconmax", "njmax", "nemax", "nstack", "nuserdata", "nuser_actuator", "nuser_body"),
    *("nuser_cam", "nuser_geom", "nuser_jnt", "nuser_sensor", "nuser_site", "nuser_tendon"),
)


def auto_wrap_fixed_base_mocap(
    spec_fn: Callable[[], mujoco.MjSpec],
) -> Callable[[], mujoco.MjSpec]:
    """Put what a function returns on a mocap body, unless it moves or is on one already.

    All that is in the world of a fixed-base spec comes under one body `mocap_base` at the spec's
    origin: every top-level body, and the geoms, sites, lights and cameras beside them. Nothing
    changes its place, and who moves `mocap_base` moves everything. Connections to the world and
    exclusions of it become those of `mocap_base`; sensors still measure in the world.

    One thing differs in physics. MuJoCo lets the children of a static body collide with it, but not
    those of a mocap body with theirs; and a mocap body can touch the floor, without effect.

    Args:
        spec_fn: returns a new spec.

    Returns:
        A function that returns a new spec: as it is where it is empty, has a free joint, or has a
        mocap body in the world.
    """

    @functools.wraps(spec_fn)
    def wrapped() -> mujoco.MjSpec:
        spec = spec_fn()
        free = any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in spec.joints)
        empty = len(spec.bodies) < 2 and not spec.worldbody.geoms
        if free or empty or any(body.mocap for body in spec.worldbody.bodies):
            return spec
        return _on_mocap_body(spec)

    return wrapped


def _on_mocap_body(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    parent = mujoco.MjSpec()
    for name in _SETTINGS:
        setattr(parent, name, getattr(spec, name))
    base = parent.worldbody.add_body(name=MOCAP_BASE, mocap=True)
    parent.attach(spec, prefix="", frame=base.add_frame())
    for exclude in parent.excludes:
        exclude.bodyname1 = _not_world(exclude.bodyname1)
        exclude.bodyname2 = _not_world(exclude.bodyname2)
    for equality in parent.equalities:
        if equality.objtype == mujoco.mjtObj.mjOBJ_BODY:
            equality.name1 = _not_world(equality.name1)
            equality.name2 = _not_world(equality.name2)
    # The original would warn of the empty prefix whenever it compiles. Defaults that are set for a
    # whole spec do collide then, so MuJoCo writes them with every element instead.
    return parent.copy()


def _not_world(body: str) -> str:
    return MOCAP_BASE if body in ("", "world") else body
