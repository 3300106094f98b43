"""What MuJoCo does not take from a URDF file, which it says nothing about."""

from __future__ import annotations

import re

from manyworlds.spec.model_text import ModelText

_MACRO = re.compile(r"\$\{|\$\(")
_NAMED = ("link", "joint", "parent", "child", "mesh")


def unexpanded(text: ModelText) -> str | None:
    """Return the first xacro call in a URDF file that nobody expanded, and its place, or None.

    MuJoCo would leave out what it stands for.
    """
    if not text.is_urdf:
        return None
    for element in text.elements:
        call = element.tag.startswith("xacro:")
        names = (element.attributes.get(key, "") for key in ("name", "link", "filename"))
        if call or (element.tag in _NAMED and any(map(_MACRO.search, names))):
            shown = f"a macro in <{element.tag}>"
            if call:
                shown = f"<{element.tag}>"
            return f"{shown} ({text.where(element)})"
    return None


def left_out(text: ModelText) -> list[str]:
    """Return a sentence about the visual shapes of a URDF file if MuJoCo leaves them out."""
    compilers = text.find("compiler")
    discarded = all(one.attributes.get("discardvisual") != "false" for one in compilers)
    shapes = [
        element
        for element in text.elements
        if element.tag == "geometry"
        and element.parent is not None
        and element.parent.tag == "visual"
    ]
    if not (text.is_urdf and discarded and shapes):
        return []
    count = f"{len(shapes)} visual shapes"
    if len(shapes) == 1:
        count = "1 visual shape"
    return [
        f"{text.path.name} opens without its {count}, as MuJoCo does with URDF: to see them, add "
        '<mujoco><compiler discardvisual="false"/></mujoco> to its <robot>.'
    ]
