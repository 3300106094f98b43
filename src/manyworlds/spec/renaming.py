"""New names of elements of a spec, in all references to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco

from manyworlds.spec.elements import copy_spec_data

_KINDS = (
    "bodies",
    "joints",
    "geoms",
    "sites",
    "cameras",
    "lights",
    "frames",
    "actuators",
    "sensors",
    "tendons",
    "equalities",
    "excludes",
    "pairs",
    "keys",
    "meshes",
    "hfields",
    "textures",
    "materials",
    "skins",
    "flexes",
    "tuples",
    "numerics",
    "texts",
    "plugins",
)
_REFERENCES = (
    "target",
    "refsite",
    "slidersite",
    "objname",
    "refname",
    "name1",
    "name2",
    "targetbody",
    "bodyname1",
    "bodyname2",
    "geomname1",
    "geomname2",
    "bodyname",
    "nodebody",
    "vertbody",
    "material",
    "meshname",
    "hfieldname",
    "textures",
    "texture",
)
_ADD_WRAP: dict[mujoco.mjtWrap, Callable[[mujoco.MjsTendon, Any, str], object]] = {
    mujoco.mjtWrap.mjWRAP_JOINT: lambda tendon, wrap, name: tendon.wrap_joint(name, wrap.coef),
    mujoco.mjtWrap.mjWRAP_PULLEY: lambda tendon, wrap, name: tendon.wrap_pulley(wrap.divisor),
    mujoco.mjtWrap.mjWRAP_SITE: lambda tendon, wrap, name: tendon.wrap_site(name),
}
"""Functions that add a wrap to a tendon, by its type; the others wrap geoms."""


def rename_elements(spec: mujoco.MjSpec, new_name: Callable[[str], str]) -> None:
    """Rename elements of a spec, and all references to them.

    The order of the elements stays. Default classes keep their names.

    Args:
        spec: the spec to edit.
        new_name: function that returns the new name of each element by its old one.

    Raises:
        ValueError: a skin's file has the names of its bodies.
    """
    for skin in spec.skins:
        if skin.file and new_name(skin.name) != skin.name:
            raise ValueError(
                f"The skin '{skin.name}' is read from a file that has the names of its bodies, "
                "which cannot be changed: add the model again under another name."
            )
    _replace_wraps(spec, new_name)
    for kind in _KINDS:
        for element in getattr(spec, kind):
            if element is spec.worldbody or getattr(element, "name", "") == "world":
                continue
            for field in _REFERENCES:
                _rename_reference(element, field, new_name)
            if element.name:
                element.name = new_name(element.name)
            plugin = getattr(element, "plugin", None)
            if plugin is not None and getattr(plugin, "name", ""):
                plugin.name = new_name(plugin.name)


def _rename_reference(element: Any, field: str, new_name: Callable[[str], str]) -> None:
    value = getattr(element, field, None)
    if isinstance(value, str):
        if value and new_name(value) != value:
            setattr(element, field, new_name(value))
    elif value is not None:
        names = list(value)
        fresh = [new_name(name) if name else name for name in names]
        if fresh != names:
            setattr(element, field, fresh)


def _replace_wraps(spec: mujoco.MjSpec, new_name: Callable[[str], str]) -> None:
    """Replace all tendons, in their order, if a path has a renamed element: MuJoCo edits none."""

    def name_of(element: Any) -> str:
        return "" if element is None else element.name

    tendons = list(spec.tendons)
    names = {name_of(wrap.target) for tendon in tendons for wrap in tendon.path}
    if all(new_name(name) == name for name in names if name):
        return
    for i, tendon in enumerate(tendons):
        copy = spec.add_tendon(tendon.default())
        copy_spec_data(tendon, copy, "path")
        for wrap in tendon.path:
            target = name_of(wrap.target) and new_name(name_of(wrap.target))
            add = _ADD_WRAP.get(mujoco.mjtWrap(wrap.type))
            if add is not None:
                add(copy, wrap, target)
            else:
                side = name_of(wrap.sidesite)
                copy.wrap_geom(target, new_name(side) if side else "")
        # What refers to the tendon by its name must not be deleted with it.
        name = tendon.name
        tendon.name = f"{i}/replaced"
        copy.name = name
        spec.delete(tendon)
