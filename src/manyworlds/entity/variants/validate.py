"""Checks that the variants of one entity can share one model."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, TypeAlias

import mujoco
import numpy as np

from manyworlds.entity.variants.metadata import GeomRole, InertialMode
from manyworlds.spec.elements import dof_width, qpos_width

RESERVED_NAME_PREFIXES: tuple[str, ...] = ("manyworlds/pad/", "mjlab/pad/")
"""Beginnings of names that merged geoms may get."""

_NAMED = (
    "bodies",
    "joints",
    "geoms",
    "sites",
    "cameras",
    "lights",
    "meshes",
    "materials",
    "textures",
    "tendons",
    "actuators",
    "sensors",
    "equalities",
    "pairs",
    "excludes",
)
_REFUSED = ("hfields", "flexes", "skins", "plugins")
_SHOWN = 200  # characters of a value in a message
# Elements of a spec by kind, each with the attributes of its kind.
_Lists: TypeAlias = "dict[str, list[Any]]"
_GEOM = mujoco.mjtObj.mjOBJ_GEOM
_WRAPPED = (mujoco.mjtWrap.mjWRAP_SPHERE, mujoco.mjtWrap.mjWRAP_CYLINDER)


@dataclass(frozen=True)
class JointSignature:
    """Attributes of a joint that must be equal in all variants."""

    name: str
    type: int
    qpos_width: int
    qvel_width: int


@dataclass(frozen=True)
class BodySignature:
    """Attributes of a body that must be equal in all variants; its geoms may differ."""

    path: str
    name: str
    joints: tuple[JointSignature, ...]
    _: KW_ONLY
    mocap: bool
    children: tuple[str, ...]
    inertial_mode: InertialMode


def variant_error(variant: str, problem: str, hint: str) -> ValueError:
    """Return an error that states the problem of a variant and the remedy."""
    return ValueError(f"manyworlds.entity: VariantEntityCfg '{variant}': {problem}. Hint: {hint}.")


def geom_role(geom: mujoco.MjsGeom) -> GeomRole:
    """Return the role of a geom: collision or visual."""
    if geom.contype or geom.conaffinity:
        return "collision"
    return "visual"


def inertial_mode(body: mujoco.MjsBody) -> InertialMode:
    """Return the source of a body's inertia."""
    if not body.explicitinertial:
        return "mesh-derived"
    if np.isnan(body.fullinertia[0]):
        return "diagonal"
    return "fullinertia"


def body_paths(spec: mujoco.MjSpec) -> dict[str, mujoco.MjsBody]:
    """Return the bodies by the names on the way to them, such as '/prop/lid'; the world's is ''."""
    return dict(_paths(spec.worldbody))


def _paths(body: mujoco.MjsBody, path: str = "") -> Iterator[tuple[str, mujoco.MjsBody]]:
    yield path, body
    for child in body.bodies:
        yield from _paths(child, f"{path}/{child.name}")


def validate_variant_specs(names: Sequence[str], specs: Sequence[mujoco.MjSpec]) -> None:
    """Raise ValueError for variants that cannot share one model.

    Args:
        names: of the variants, for messages.
        specs: the specs of the variants; the others are compared with the first.

    Raises:
        ValueError: names the first variant that does not fit, and in what.
    """
    reference: dict[str, object] = {}
    for name, spec in zip(names, specs, strict=True):
        facts = topology_of(name, spec)
        reference = reference or facts
        for what, value in facts.items():
            if value != reference[what]:
                raise_mismatch(names[0], name, what, reference[what], value)


def topology_of(name: str, spec: mujoco.MjSpec) -> dict[str, object]:
    """Return what must be equal in the specs of all variants, by what it is about.

    Raises:
        ValueError: the spec cannot be a variant; the message begins with its name.
    """
    lists = {kind: list(getattr(spec, kind)) for kind in (*_NAMED, *_REFUSED)}
    _check_alone(name, lists)
    return _facts(lists)


def _check_alone(name: str, lists: _Lists) -> None:
    roots = [body.name or "without a name" for body in lists["bodies"][0].bodies]
    if len(roots) != 1:
        raise variant_error(
            name,
            f"it must have exactly one root body, but it has {len(roots)} ({', '.join(roots)})",
            "make what moves by itself an entity of its own",
        )
    for kind in _REFUSED:
        if lists[kind]:
            raise variant_error(
                name, f"it has {kind}, which variants cannot have", "make it an entity of its own"
            )
    for attribute, kind in (("meshname", "sites"), ("texture", "lights")):
        found = [e.name for e in lists[kind] if getattr(e, attribute)]
        if found:
            what = attribute.removesuffix("name")
            raise variant_error(
                name,
                f"it has {kind} with a {what}, which variants cannot have ({', '.join(found)})",
                f"leave their {what} out",
            )
    for element in chain.from_iterable(lists[kind] for kind in _NAMED if lists[kind]):
        if element.name.startswith(RESERVED_NAME_PREFIXES):
            raise variant_error(
                name,
                f"the name '{element.name}' begins with a reserved prefix",
                "rename it: merged geoms get such names",
            )


def _facts(lists: _Lists) -> dict[str, object]:
    """List the attributes that must be equal, in the order in which mismatches are reported."""
    bodies = {path: _body_signature(path, body) for path, body in _paths(lists["bodies"][0])}
    return {
        "body tree": {path: (s.children, s.mocap) for path, s in bodies.items()},
        "joints": {path: s.joints for path, s in bodies.items()},
        "inertial representation": {path: s.inertial_mode for path, s in bodies.items()},
        "sites": [(site.name, site.parent.name) for site in lists["sites"]],
        "cameras": [_mounted(camera) for camera in lists["cameras"]],
        "lights": [_mounted(light) for light in lists["lights"]],
        "actuators": [
            (a.name, a.trntype, a.target, a.refsite, a.slidersite) for a in lists["actuators"]
        ],
        "sensors": [_sensor(sensor) for sensor in lists["sensors"]],
        "tendons": [(t.name, [_wrap(w) for w in t.path]) for t in lists["tendons"]],
        "equalities": [(e.name, e.type, e.objtype, e.name1, e.name2) for e in lists["equalities"]],
        "contact pairs": [pair.name for pair in lists["pairs"]],
        "contact excludes": [(e.bodyname1, e.bodyname2) for e in lists["excludes"]],
    }


def _mounted(element: mujoco.MjsCamera | mujoco.MjsLight) -> tuple[object, ...]:
    return (element.name, element.parent.name, element.mode, element.targetbody)


def _wrap(wrap: mujoco.MjsWrap) -> tuple[object, ...]:
    target = ""
    # The geoms of variants may have other names.
    if wrap.type not in _WRAPPED and wrap.target is not None:
        target = wrap.target.name
    return (wrap.type, target, wrap.sidesite and wrap.sidesite.name)


def geom_uses(spec: mujoco.MjSpec) -> list[tuple[str, str]]:
    """List references to geoms, such as "sensor 'touch'", and the geom's name."""
    uses: list[tuple[str, str]] = []
    for pair in spec.pairs:
        uses += [(f"contact pair '{pair.name}'", g) for g in (pair.geomname1, pair.geomname2)]
    for sensor in spec.sensors:
        ends = ((sensor.objtype, sensor.objname), (sensor.reftype, sensor.refname))
        uses += [(f"sensor '{sensor.name}'", geom) for kind, geom in ends if kind == _GEOM]
    for tendon in spec.tendons:
        wraps = [wrap for wrap in tendon.path if wrap.type in _WRAPPED]
        uses += [(f"tendon '{tendon.name}'", wrap.target.name) for wrap in wraps]
    return uses


def _body_signature(path: str, body: mujoco.MjsBody) -> BodySignature:
    joints = tuple(
        JointSignature(j.name, int(j.type), qpos_width(j.type), dof_width(j.type))
        for j in body.joints
    )
    children = tuple(child.name for child in body.bodies)
    return BodySignature(
        path,
        body.name,
        joints,
        mocap=bool(body.mocap),
        children=children,
        inertial_mode=inertial_mode(body),
    )


def _sensor(sensor: mujoco.MjsSensor) -> tuple[object, ...]:
    named = []
    for kind, name in ((sensor.objtype, sensor.objname), (sensor.reftype, sensor.refname)):
        if kind == _GEOM:  # those of variants may have other names
            name = ""
        named.append((kind, name))
    return (sensor.name, sensor.type, tuple(named))


_HINTS = {
    "body tree": "give all variants the same bodies, by name and order",
    "joints": "give all variants the same joints, by name, type and order",
    "inertial representation": "give inertias in the same way in all variants, or in none",
}


def raise_mismatch(first: str, other: str, what: str, wanted: object, found: object) -> None:
    """Raise ValueError about a property of a variant that is not that of the first."""
    where = ""
    if isinstance(wanted, dict) and isinstance(found, dict):
        path = next(p for p in [*wanted, *found] if wanted.get(p) != found.get(p))
        where = f" at body '{path or 'world'}'"
        wanted = wanted.get(path)
        found = found.get(path)
    raise variant_error(
        other,
        f"its {what} must be those of variant '{first}', but{where} it has {_show(found)} "
        f"instead of {_show(wanted)}",
        _HINTS.get(what, f"give all variants the same {what}, by name and order"),
    )


def _show(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, tuple) and value and isinstance(value[0], JointSignature):
        return ", ".join(f"{mujoco.mjtJoint(j.type).name} '{j.name}'" for j in value)
    return textwrap.shorten(str(value), _SHOWN, placeholder=" ...")
