"""Mocap bodies for fixed-base models, so that each world can place them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mujoco

from manyworlds.utils.mujoco_messages import MujocoWarnings

MOCAP_BASE = "mocap_base"
"""Name of the body that carries a wrapped spec."""

# Settings of a whole spec, which attaching does not copy.
_SETTINGS = (
    "option",
    "visual",
    "stat",
    "compiler",
    "modelname",
    "modelfiledir",
    "comment",
    "memory",
    "nconmax",
    "njmax",
    "nemax",
    "nstack",
    "nuserdata",
    "nuser_actuator",
    "nuser_body",
    "nuser_cam",
    "nuser_geom",
    "nuser_jnt",
    "nuser_sensor",
    "nuser_site",
    "nuser_tendon",
)

_KEY_FIELDS = ("qpos", "qvel", "act", "ctrl")


def auto_wrap_fixed_base_mocap(
    spec_fn: Callable[[], mujoco.MjSpec],
) -> Callable[[], mujoco.MjSpec]:
    """Attach a fixed-base spec to a mocap body, unless it already has one.

    All elements in the world of a fixed-base spec become children of one body `mocap_base` at the
    spec's origin: every top-level body, and the geoms, sites, lights and cameras of the world. All
    poses are unchanged, and moving `mocap_base` moves everything. Connections and exclusions with
    the world become those with `mocap_base`; sensors still measure in the world frame.

    Physics differs in one respect: in MuJoCo, a static body can collide with its children, but a
    body below a mocap body cannot collide with its own, like any other parent.

    Args:
        spec_fn: function that returns a new spec.

    Returns:
        A function that returns a new spec, unmodified if it is empty, has a free joint, or has a
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
    # Attached keyframes would stay pending until the parent is compiled, so they are copied here.
    keys: list[dict[str, Any]] = [
        {"name": key.name, "time": key.time}
        | {name: list(getattr(key, name)) for name in _KEY_FIELDS}
        for key in spec.keys
    ]
    for key in list(spec.keys):
        spec.delete(key)
    # MuJoCo warns about the empty prefix, since the defaults of a whole spec conflict with those of
    # the parent; it writes them with every element instead. The copy is compiled, as the original
    # would repeat the warning at every compilation.
    with MujocoWarnings(lambda _: None):
        parent.attach(spec, prefix="", frame=base.add_frame())
    for exclude in parent.excludes:
        exclude.bodyname1 = _not_world(exclude.bodyname1)
        exclude.bodyname2 = _not_world(exclude.bodyname2)
    for equality in parent.equalities:
        if equality.objtype == mujoco.mjtObj.mjOBJ_BODY:
            equality.name1 = _not_world(equality.name1)
            equality.name2 = _not_world(equality.name2)
    wrapped = parent.copy()
    for key in keys:
        wrapped.add_key(**key, mpos=[0.0, 0.0, 0.0], mquat=[1.0, 0.0, 0.0, 0.0])
    return wrapped


def _not_world(body: str) -> str:
    return MOCAP_BASE if body in ("", "world") else body
