"""Compiler settings of a spec that is attached to another one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import mujoco
import numpy as np

from manyworlds.spec.references import copy_spec
from manyworlds.utils.mujoco_messages import MujocoWarnings

_SETTINGS = (
    "alignfree",
    "autolimits",
    "balanceinertia",
    "boundinertia",
    "boundmass",
    "inertiafromgeom",
    "inertiagrouprange",
)
"""Settings for which MuJoCo refuses to write a spec whose parts differ."""
_INFERRED = 2  # mjtLimited, mjtAlignFree, mjtInertiaFromGeom
_WITHOUT_EFFECT: dict[str, Any] = {
    "autolimits": True,
    "balanceinertia": False,
    "boundinertia": 0.0,
    "boundmass": 0.0,
    "inertiafromgeom": _INFERRED,
    "inertiagrouprange": (0, mujoco.mjNGROUP - 1),
    "settotalmass": -1.0,
}
"""Settings that change nothing where elements have their own inertias and limits."""


def adopt_settings(part: mujoco.MjSpec, whole: mujoco.MjSpec) -> None:
    """Give a part the compiler settings of the spec that gets it, where this changes nothing.

    A file has one `<compiler>`, so that a spec whose parts have settings of their own cannot be
    written exactly. Most parts compile to the same model with either setting.

    Args:
        part: the spec to attach; it is changed.
        whole: the spec that it will be attached to.
    """
    different = [
        name
        for name in _SETTINGS
        if not np.array_equal(getattr(part.compiler, name), getattr(whole.compiler, name))
    ]
    if not different:
        return
    before = _compiled(part)
    if before is None:
        return
    for name in different:
        own = np.array(getattr(part.compiler, name)).tolist()
        setattr(part.compiler, name, getattr(whole.compiler, name))
        if _compiled(part) != before:
            setattr(part.compiler, name, own)


@contextlib.contextmanager
def spelled_out(spec: mujoco.MjSpec) -> Iterator[None]:
    """Write what compiler settings lead to into the elements; all parts then have the same ones.

    The compiled model does not change. A free joint of a part whose `alignfree` differs from that
    of the spec gets an `align` of its own, which MJCF cannot express beside other attributes.

    Args:
        spec: the spec; it is changed. Copies share the settings of attached parts, which are
            restored at the end.
    """
    model = spec.compile()
    # Its bodies are in the frames of the file, which alignment replaces.
    copy = copy_spec(spec)
    for joint in copy.joints:
        joint.align = False
    unaligned = copy.compile()
    for body in spec.bodies[1:]:
        pin_inertia(body, unaligned)
    for joint in spec.joints:
        of_part = joint.parent.compiler.alignfree
        if int(joint.align) == _INFERRED and of_part != spec.compiler.alignfree:
            joint.align = of_part
    movable = [joint for joint in spec.joints if joint.type != mujoco.mjtJoint.mjJNT_FREE]
    for elements, kind, limits in (
        (movable, "jnt", ("limited", "actfrclimited")),
        (spec.tendons, "tendon", ("limited", "actfrclimited")),
        (spec.actuators, "actuator", ("ctrllimited", "forcelimited", "actlimited")),
    ):
        for element in elements:
            for name in limits:
                setattr(element, name, getattr(model, f"{kind}_{name}")[element.id])
    same = {**_WITHOUT_EFFECT, "alignfree": spec.compiler.alignfree}
    parts = [part.compiler for part in (spec, *spec.bodies)]
    former = [{name: np.array(getattr(part, name)).tolist() for name in same} for part in parts]
    try:
        for part in parts:
            _set(part, same)
        yield
    finally:
        for part, values in zip(parts, former, strict=True):
            _set(part, values)


def _set(compiler: mujoco.MjsCompiler, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(compiler, name, value)


def pin_inertia(body: mujoco.MjsBody, model: mujoco.MjModel) -> None:
    """Give a body the inertia that it has in the compiled model."""
    body.explicitinertial = True
    body.fullinertia = np.full(6, np.nan)
    body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    body.mass = float(model.body_mass[body.id])
    for name in ("ipos", "iquat", "inertia"):
        setattr(body, name, getattr(model, f"body_{name}")[body.id].copy())


def _compiled(spec: mujoco.MjSpec) -> bytes | None:
    """Return the model that a spec compiles to, as MuJoCo saves it; None if it does not."""
    with MujocoWarnings(lambda text: None):
        try:
            model = spec.copy().compile()
        except (ValueError, mujoco.FatalError):
            return None
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()
