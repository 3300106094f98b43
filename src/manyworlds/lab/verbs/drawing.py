"""Verbs that draw into the view, read what overlays draw, and set the view of recordings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError, near
from manyworlds.lab.play.drawings import KINDS
from manyworlds.lab.play.series import LONGEST_S
from manyworlds.lab.verbs.fields import Choice, Field, Listing, Number, Numbers, Texts, Values
from manyworlds.lab.verbs.registry import Reply, verb
from manyworlds.viewer.browser.overlays.captures import CAPTURES, capture

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_COLOR = Numbers(size=3, text="red, green and blue, 0 to 1")
_KINDS = {kind.name: kind for kind in CAPTURES}
_VIEW = Numbers(size=6, text="position [m], pitch, yaw and roll [degrees] of the camera")


@verb(reads=True, captures=Values(text="arrays by kind and name, of one moment"))
def read_captures(
    lab: LiveLab,
    kinds: Annotated[list[str], Texts(text=f"some of {', '.join(_KINDS)}")],
) -> Reply:
    """Return arrays that no snapshot has: contacts, tendons, joints, groups of bodies."""
    for name in kinds:
        if name not in _KINDS:
            raise VerbError(
                "bad_value",
                f"read_captures: kinds must be some of {', '.join(_KINDS)}, got '{name}'"
                f"{near(name, _KINDS)}",
            )
    wanted = [_KINDS[name] for name in kinds]

    def read(model: mujoco.MjModel, data: mujoco.MjData) -> Reply:
        captured = capture(model, data, wanted)
        return {kind.name: dict(vars(arrays)) for kind, arrays in captured.items()}

    return {"captures": lab.loop.do(read, edits_model=False)}


@verb(reads=True, quantities=Listing(text="name and unit of each"))
def list_quantities(lab: LiveLab) -> Reply:
    """Return what can be plotted: joints, sensors, actuators, contacts, rewards."""
    known = lab.series.quantities().values()
    return {"quantities": [{"name": each.name, "unit": each.unit} for each in known]}


@verb(reads=True, series=Values(text="times [s] and values of each, by name"))
def read_series(
    lab: LiveLab,
    names: Annotated[list[str], Texts(text="some of `list_quantities`")],
    seconds: Annotated[
        float, Number(low=0.0, high=LONGEST_S, unit="s", text="time before now")
    ] = 10.0,
) -> Reply:
    """Return values after each physics step; a quantity is kept from its first reading on."""
    return {"series": lab.series.read(names, seconds)}


@verb(view=_VIEW)
def set_recording_view(lab: LiveLab, view: Annotated[np.ndarray, _VIEW]) -> Reply:
    """Set the view that frames of recordings get from now on."""
    pose = tuple(view.tolist())
    lab.recorder.camera = lambda: pose
    return {"view": list(pose)}


@verb()
def draw_shape(
    lab: LiveLab,
    name: Annotated[str, Field(text="name of the shape; one of the same name is replaced")],
    kind: Annotated[str, Choice(options=KINDS, text="kind of the shape")],
    points: Annotated[
        np.ndarray,
        Numbers(unit="m", text="3 numbers for the center, each point of a line, or both ends"),
    ],
    size: Annotated[
        Sequence[float], Numbers(unit="m", text="side lengths of a box, or one size")
    ] = (0.05,),
    quat: Annotated[Sequence[float], Numbers(size=4, unit="wxyz", text="orientation")] = (
        *(1.0, 0.0, 0.0),
        0.0,
    ),
    color: Annotated[Sequence[float], _COLOR] = (1.0, 0.4, 0.1),
    text: Annotated[str, Field(text="text at the first point")] = "",
    ttl: Annotated[
        float | None, Number(low=0.0, unit="s", text="time until it vanishes; never if left out")
    ] = None,
) -> Reply:
    """Draw a marker, line, box, axes, arrow or text into the view of the page."""
    if points.size % 3:
        raise VerbError("bad_value", f"draw_shape: points must be 3 numbers each, got {points}.")
    lab.drawings.draw(
        name,
        kind,  # type: ignore[arg-type]  # one of KINDS
        points.reshape(-1, 3).tolist(),
        size=size,
        quat=quat,
        color=color,
        text=text,
        ttl=math.inf if ttl is None else ttl,
    )
    return {}


@verb()
def clear_drawings(
    lab: LiveLab, name: Annotated[str, Field(text="name of the shape; all if left out")] = ""
) -> Reply:
    """Remove a shape from the view, or all of them."""
    lab.drawings.clear(name)
    return {}


@verb(
    reads=True,
    shapes=Values(text="kind, points, size, quat, color and text of each shape, by name"),
)
def read_drawings(lab: LiveLab) -> Reply:
    """Return the shapes that programs draw into the view."""
    return {"shapes": {name: asdict(shape) for name, shape in lab.drawings.shapes.items()}}
