"""Operations that draw into the view: the lab's shapes under URLab's names."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Annotated

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.server.operations import ClientOperation, Request
from manyworlds.lab.verbs.fields import Anything, Field, Number, Numbers
from manyworlds.lab.verbs.registry import Reply, check_fields
from manyworlds.plugins.urlab.clients import OPERATIONS

_OTHER_NAMES = {
    "pos": ("position", "location", "center", "origin"),
    "start": ("from",),
    "end": ("to",),
    "size": ("radius", "extent", "length", "thickness", "scale"),
    "quat": ("rotation", "orientation"),
    "name": ("id",),
    "text": ("label",),
    "ttl": ("duration", "duration_s", "lifetime"),
}
"""Further names by which programs call a field."""
_OVERLAY = "overlay"  # the one text of `set_overlay_text`
_numbers = itertools.count(1)

_POINT = Numbers(size=3, unit="m", text="position in the world")
_PLACES: dict[str, Field] = {"pos": _POINT, "start": _POINT, "end": _POINT}
_LOOKS: dict[str, Field] = {
    "size": Anything(text="radius, width or length, or the side lengths of a box [m]"),
    "quat": Numbers(size=4, unit="wxyz", text="orientation"),
    "color": Numbers(text="red, green, blue, and perhaps alpha, which does not matter, 0 to 1"),
    "name": Field(text="name of the shape; one of the same name is replaced"),
    "text": Field(text="text at the shape"),
    "ttl": Number(low=0.0, unit="s", text="time until it vanishes; never if left out"),
}


def _register(name: str, kind: str, *places: str) -> None:
    """Register an operation that draws a shape.

    Args:
        name: name of the operation.
        kind: kind of the shape.
        *places: fields with its points.
    """
    declared = {place: _PLACES[place] for place in places} | _LOOKS
    for field, others in _OTHER_NAMES.items():
        if field in declared:
            text = f"{declared[field].text} (also {', '.join(others)})"
            declared[field] = dataclasses.replace(declared[field], text=text)
    optional = dict.fromkeys(declared)  # a place may come under another name

    def call(request: Request, given: Mapping[str, object]) -> Reply:
        values = check_fields(name, declared, optional, _renamed(given), None, strict=False)
        points = [values.pop(place) for place in places]
        if any(point is None for point in points):
            raise VerbError("missing_field", f"{name} needs {' and '.join(places)} [m].")
        values["name"] = values["name"] or f"{kind}_{next(_numbers)}"
        if values["size"] is not None:
            values["size"] = np.ravel(values["size"]).tolist()  # type: ignore[arg-type]
        if values["color"] is not None:
            values["color"] = np.asarray(values["color"])[:3]
        request.call("draw_shape", kind=kind, points=np.ravel(points), **values)  # type: ignore[arg-type]
        return {"name": values["name"]}

    OPERATIONS[name] = ClientOperation(
        name=name,
        text=f"Draw {'an' if kind[0] == 'a' else 'a'} {kind} into the view of the page.",
        fields=declared,
        defaults=optional,
        reply={"name": _LOOKS["name"]},
        call=call,
        namespace="debug",
        verb="draw_shape",
    )


def _renamed(given: Mapping[str, object]) -> dict[str, object]:
    """Return the fields under this module's names."""
    fields = dict(given)
    for name, others in _OTHER_NAMES.items():
        for other in others:
            if fields.get(name) is None and other in fields:
                fields[name] = fields[other]
    return fields


_register("draw_marker", "marker", "pos")
_register("draw_line", "line", "start", "end")
_register("draw_box", "box", "pos")
_register("draw_axes", "axes", "pos")
_register("draw_arrow", "arrow", "start", "end")


@OPERATIONS.operation("debug")
def set_overlay_text(
    request: Request,
    text: Annotated[str, Field(text="the text; an empty one removes it")] = "",
    color: Annotated[np.ndarray | None, _LOOKS["color"]] = None,
) -> Reply:
    """Show a text above the world, in place of the one before."""
    if not text:
        request.verbs.clear_drawings(name=_OVERLAY)
        return {}
    stat = request.face.model.stat
    above = stat.center + np.array([0.0, 0.0, 0.5 * stat.extent])
    look = {}
    if color is not None:
        look["color"] = color[:3]
    request.verbs.draw_shape(name=_OVERLAY, kind="text", points=above, text=text, **look)
    return {}


@OPERATIONS.operation("debug")
def clear_markers(request: Request) -> Reply:
    """Remove all shapes from the view."""
    request.verbs.clear_drawings()
    return {}
