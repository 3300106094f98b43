"""Adaptation of third-party models to tasks that expect other element names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco

from manyworlds.asset_zoo.imu import add_imu

_KINDS = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
}


@dataclass(frozen=True, kw_only=True)
class NameMap:
    """Names that tasks expect, by the names in a model.

    An element that already has the task's name is left unchanged, so that one map serves several
    models of the same robot.
    """

    body: Mapping[str, str] = field(default_factory=dict)
    joint: Mapping[str, str] = field(default_factory=dict)
    geom: Mapping[str, str] = field(default_factory=dict)
    site: Mapping[str, str] = field(default_factory=dict)
    collisions: Mapping[str, str] = field(default_factory=dict)
    """Names of unnamed collision geoms, with `{}` for their number, by task name of their body.
    Those of other bodies are `<body>_collision<number>`."""
    feet: Mapping[str, str] = field(default_factory=dict)
    """Site -> geom (task names) at whose center the site is added if the model lacks it."""
    imu: str | None = None
    """Site (task name) of the inertial measurement unit of a floating robot. Its sensors are added
    if the model lacks them."""


def apply_name_map(spec: mujoco.MjSpec, names: NameMap) -> mujoco.MjSpec:
    """Rename elements of a model, name unnamed ones, and add the sensors that tasks read.

    The model's own actuators and keyframes are removed, since the robot's config defines them.

    Args:
        spec: the model, which is edited in place.
        names: the name map.

    Returns:
        The same spec.

    Raises:
        ValueError: the model has an element under neither of its two names.
    """
    for element in (*spec.actuators, *spec.keys):
        spec.delete(element)
    spec.nkey = 0  # the size that the file allocates
    for kind in _KINDS:
        for old, new in getattr(names, kind).items():
            _rename(spec, kind, old, new)
    for body in spec.bodies[1:]:
        nameless = [g for g in body.geoms if not g.name and (g.contype or g.conaffinity)]
        name = names.collisions.get(body.name, f"{body.name}_collision{{}}")
        for number, geom in enumerate(nameless, start=1):
            geom.name = name.format(number)
    for site, name in names.feet.items():
        if spec.site(site) is None:
            geom = _find(spec, "geom", name, name)
            geom.parent.add_site(name=site, pos=geom.pos, group=5)
    if names.imu and spec.sensor("imu_lin_vel") is None:
        _find(spec, "site", names.imu, names.imu)
        add_imu(spec, site=names.imu, root=spec.worldbody.first_body().name)
    return spec


def _find(spec: mujoco.MjSpec, kind: str, old: str, new: str):
    element = getattr(spec, kind)(old)
    if element is None:
        elements = spec.bodies
        if kind != "body":
            elements = getattr(spec, f"{kind}s")
        known = sorted(element.name for element in elements if element.name)
        either = ""
        if new != old:
            either = f" and none named '{new}' either"
        raise ValueError(
            f"NameMap: the model '{spec.modelname}' has no {kind} '{old}'{either}: correct the "
            f"map. It has {known}."
        )
    return element


def _rename(spec: mujoco.MjSpec, kind: str, old: str, new: str) -> None:
    """Rename an element and all references to it."""
    if getattr(spec, kind)(new) is not None:
        return
    _find(spec, kind, old, new).name = new
    same = _KINDS[kind]
    references = [(s, "objname", s.objtype) for s in spec.sensors]
    references += [(s, "refname", s.reftype) for s in spec.sensors]
    for equality in spec.equalities:
        of = equality.objtype
        if equality.type == mujoco.mjtEq.mjEQ_JOINT:
            of = mujoco.mjtObj.mjOBJ_JOINT
        references += [(equality, "name1", of), (equality, "name2", of)]
    body = _KINDS["body"]
    geom = _KINDS["geom"]
    references += [(e, f"bodyname{i}", body) for e in spec.excludes for i in (1, 2)]
    references += [(e, f"geomname{i}", geom) for e in spec.pairs for i in (1, 2)]
    references += [(e, "targetbody", body) for e in (*spec.cameras, *spec.lights)]
    for element, attribute, of in references:
        if of == same and getattr(element, attribute) == old:
            setattr(element, attribute, new)
