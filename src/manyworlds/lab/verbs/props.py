"""Verbs that add props and sampled height fields to the world."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.scene.conversions import Conversion, ConversionState
from manyworlds.lab.scene.places import find_obstacles
from manyworlds.lab.scene.sources import plain_name
from manyworlds.lab.verbs.fields import (
    Choice,
    Content,
    Field,
    FilePath,
    Flag,
    Integer,
    Number,
    Numbers,
    Texts,
)
from manyworlds.lab.verbs.registry import Reply, verb
from manyworlds.lab.world.patterns import match_names
from manyworlds.spec.convex import THRESHOLDS, CoacdCfg
from manyworlds.spec.mesh_files import MESH_SUFFIXES
from manyworlds.spec.prop_choices import BASE_THICKNESSES, RESOLUTIONS, Primitive, PropMode

if TYPE_CHECKING:  # what describes verbs needs no torch
    from manyworlds.entity import PropCfg
    from manyworlds.lab.lab import LiveLab
    from manyworlds.terrains import HfSampledTerrainCfg

MOST_PREVIEWED = 128
"""Largest number of samples of a preview along one side."""
_MODES = tuple(get_args(PropMode))
_NUMBER = Integer(low=0, text="number of the conversion")
_Number = Annotated[int, _NUMBER]
CONVERSION: dict[str, Field] = {
    "conversion": _NUMBER,
    "name": Field(text="name of the entity in the world"),
    "state": Choice(options=get_args(ConversionState), text="state of the conversion"),
    "share": Number(low=0.0, high=1.0, text="estimated share that is done"),
    "pieces": Integer(low=0, text="number of convex pieces; 0 for none"),
    "text": Field(text="sentences about the result, or the reason of a failure"),
}
"""Reply of verbs about a conversion."""
_Name = Annotated[str, Field(text="name of the new entity; a number is added if it is taken")]
_Mode = Annotated[str, Choice(options=_MODES, text="motion of the prop")]
_Threshold = Annotated[
    float,
    Number(
        low=0.0,
        high=THRESHOLDS[1],
        text=f"threshold of CoACD from {THRESHOLDS[0]:g}; 0 lets the convex hull collide",
    ),
]
_Mass = Annotated[float, Number(low=0.0, unit="kg", text="mass; 0 for the density of water")]
_Scale = Annotated[np.ndarray, Numbers(text="factor of all coordinates, or of x, y and z")]
_Pos = Annotated[
    Sequence[float] | None,
    Numbers(size=3, unit="m", text="position in the world; a free place on the ground if left out"),
]
_Near = Annotated[
    Sequence[float],
    Numbers(size=2, unit="m", text="place at which, or beside which, a free one is chosen"),
]
_Quat = Annotated[Sequence[float], Numbers(size=4, unit="wxyz", text="orientation in the world")]
_Wait = Annotated[bool, Flag(text="true to reply when the prop is in the world")]
_ORIGIN = (0.0, 0.0)
_UPRIGHT = (1.0, 0.0, 0.0, 0.0)
_ONE = (1.0,)


@verb(reads=False, **CONVERSION)
def add_prop(
    lab: LiveLab,
    shape: Annotated[Primitive, Choice(options=get_args(Primitive), text="kind of primitive")],
    size: Annotated[np.ndarray, Numbers(unit="m", text="sizes of the primitive as in MuJoCo")],
    name: _Name = "prop",
    mode: _Mode = "dynamic",
    mass: _Mass = 0.0,
    pos: _Pos = None,
    quat: _Quat = _UPRIGHT,
    near: _Near = _ORIGIN,
) -> Reply:
    """Add a primitive to the running world."""
    from manyworlds.entity import PropCfg

    cfg = PropCfg.primitive(shape, size.tolist(), _mode(mode), mass=mass or None)
    return describe_conversion(
        lab.conversions.start(cfg, name or shape, pos, quat, near), wait=True
    )


@verb(reads=False, **CONVERSION)
def add_mesh_prop(
    lab: LiveLab,
    content: Annotated[bytes, Content(text="content of the mesh file")],
    file_name: Annotated[str, Field(text="its name, whose ending is its format")],
    name: _Name = "",
    mode: _Mode = "dynamic",
    threshold: _Threshold = 0.05,
    mass: _Mass = 0.0,
    scale: _Scale = _ONE,  # type: ignore[assignment]
    pos: _Pos = None,
    quat: _Quat = _UPRIGHT,
    near: _Near = _ORIGIN,
    wait: _Wait = True,
) -> Reply:
    """Convert an uploaded mesh to a prop with convex pieces, and add it to the world."""
    given = Path(file_name)
    if given.suffix.lower() not in MESH_SUFFIXES:
        known = ", ".join(MESH_SUFFIXES)
        raise VerbError("bad_value", f"A mesh file must end with {known}, got '{file_name}'.")
    folder = tempfile.TemporaryDirectory(prefix="manyworlds-")
    path = Path(folder.name, f"mesh{given.suffix.lower()}")
    path.write_bytes(content)
    try:
        cfg = _mesh_prop(path, mode, threshold, mass, scale)
        chosen = name or plain_name(given.stem)
        conversion = lab.conversions.start(cfg, chosen, pos, quat, near, folder.cleanup)
    except Exception:
        folder.cleanup()
        raise
    return describe_conversion(conversion, wait=wait)


@verb(reads=False, **CONVERSION)
def add_mesh_prop_from_file(
    lab: LiveLab,
    path: Annotated[Path, FilePath(text="mesh file")],
    name: _Name = "",
    mode: _Mode = "dynamic",
    threshold: _Threshold = 0.05,
    mass: _Mass = 0.0,
    scale: _Scale = _ONE,  # type: ignore[assignment]
    pos: _Pos = None,
    quat: _Quat = _UPRIGHT,
    near: _Near = _ORIGIN,
    wait: _Wait = True,
) -> Reply:
    """Convert a mesh file to a prop with convex pieces, and add it to the world."""
    cfg = _mesh_prop(path, mode, threshold, mass, scale)
    return describe_conversion(
        lab.conversions.start(cfg, name or plain_name(path.stem), pos, quat, near), wait=wait
    )


@verb(reads=True, **CONVERSION)
def read_conversion(lab: LiveLab, conversion: _Number) -> Reply:
    """Return the state of a conversion."""
    return describe_conversion(lab.conversions[conversion])


@verb(reads=False, **CONVERSION)
def cancel_conversion(lab: LiveLab, conversion: _Number) -> Reply:
    """Cancel a conversion: its process ends, and the world stays as it is."""
    found = lab.conversions[conversion]
    found.cancel()
    found.wait()
    return describe_conversion(found)


_Center = Annotated[Sequence[float], Numbers(size=2, unit="m", text="center of the region")]
_Extent = Annotated[Sequence[float], Numbers(size=2, unit="m", text="extent along x and y")]
_Counts = Annotated[
    np.ndarray, Numbers(size=2, text=f"samples along x and y, {RESOLUTIONS[0]} to {RESOLUTIONS[1]}")
]
_Fill = Annotated[float, Number(unit="m", text="height where there is no surface")]
_Include = Annotated[
    list[str], Texts(text="names of geoms or bodies to sample; empty for the ground")
]
_Exclude = Annotated[list[str], Texts(text="names of geoms or bodies to leave out, as 'robot/.*'")]
_Groups = Annotated[Sequence[float], Numbers(text="groups of geoms to sample")]
_BOTH = (10.0, 10.0)
_DEFAULT = (64, 64)
_NO_NAMES = ()
_HEIGHTS = Numbers(unit="m", text="heights row by row, the first row at the lowest y")


@verb(
    reads=True,
    heights=_HEIGHTS,
    counts=Numbers(size=2, text="samples of the preview along x and y"),
    capped=Flag(text=f"true if the field has more samples than the {MOST_PREVIEWED} of a preview"),
)
def read_region_heights(
    lab: LiveLab,
    center: _Center = (0.0, 0.0),
    size: _Extent = _BOTH,
    resolution: _Counts = _DEFAULT,  # type: ignore[assignment]
    fill: _Fill = 0.0,
    include: _Include = _NO_NAMES,  # type: ignore[assignment]
    exclude: _Exclude = _NO_NAMES,  # type: ignore[assignment]
    groups: _Groups = (0, 1, 2, 3, 4, 5),
) -> Reply:
    """Sample the heights of a region of the ground as it is, as a preview of a height field.

    Ground is what neither moves nor belongs to a robot, unless `include` names what to sample.
    """
    counts = np.minimum(resolution, MOST_PREVIEWED)
    wanted = _region(center, size, resolution, fill)
    shown = _region(center, size, counts, fill)
    heights = _sample(lab, shown, groups, include, exclude)
    return {
        "heights": heights.ravel().tolist(),
        "counts": list(shown.counts),
        "capped": shown.counts != wanted.counts,
    }


@verb(reads=False, **CONVERSION)
def add_height_field(
    lab: LiveLab,
    center: _Center = (0.0, 0.0),
    size: _Extent = _BOTH,
    resolution: _Counts = _DEFAULT,  # type: ignore[assignment]
    fill: _Fill = 0.0,
    include: _Include = _NO_NAMES,  # type: ignore[assignment]
    exclude: _Exclude = _NO_NAMES,  # type: ignore[assignment]
    groups: _Groups = (0, 1, 2, 3, 4, 5),
    base_thickness: Annotated[
        float,
        Number(
            low=BASE_THICKNESSES[0], high=BASE_THICKNESSES[1], unit="m", text="depth of the base"
        ),
    ] = 0.1,
    name: _Name = "terrain",
    pos: _Pos | None = None,
) -> Reply:
    """Sample a region of the ground as it is now, and add it as a height field."""
    from manyworlds.terrains import HeightFieldCfg

    region = _region(center, size, resolution, fill)
    heights = _sample(lab, region, groups, include, exclude)
    cfg = HeightFieldCfg.sample(heights, region.size, region.counts, base_thickness=base_thickness)
    place = [*center, 0.0] if pos is None else pos
    return describe_conversion(lab.conversions.start(cfg, name, place), wait=True)


def _mode(mode: str) -> PropMode:
    return next(known for known in get_args(PropMode) if known == mode)


def _mesh_prop(
    path: Path, mode: str, threshold: float, mass: float, scale: Sequence[float] | np.ndarray
) -> PropCfg:
    from manyworlds.entity import PropCfg

    decompose = CoacdCfg(threshold=threshold) if threshold else None
    factors = [float(factor) for factor in scale]
    return PropCfg.from_mesh(path, _mode(mode), decompose, mass=mass or None, scale=factors)


def describe_conversion(conversion: Conversion, *, wait: bool = False) -> Reply:
    """Return a conversion as plain data; raise its error if it has failed by the end of a wait."""
    if wait:
        conversion.wait()
        if conversion.error is not None:
            raise conversion.error
    return {
        "conversion": conversion.number,
        "name": conversion.name,
        "state": conversion.state,
        "share": conversion.share,
        "pieces": conversion.pieces,
        "text": conversion.text,
    }


def _region(
    center: Sequence[float],
    size: Sequence[float],
    counts: Sequence[float] | np.ndarray,
    fill: float,
) -> HfSampledTerrainCfg:
    from manyworlds.terrains import HfSampledTerrainCfg

    num_x, num_y = (int(count) for count in counts)
    return HfSampledTerrainCfg(
        source=np.zeros((2, 2)),
        source_center=(float(center[0]), float(center[1])),
        size=(float(size[0]), float(size[1])),
        resolution=(num_x, num_y),
        fill=fill,
    )


def _sample(
    lab: LiveLab,
    region: HfSampledTerrainCfg,
    groups: Sequence[float],
    include: list[str],
    exclude: list[str],
) -> np.ndarray:
    """Return the heights of a region of the present world, sampled outside the physics thread."""
    from manyworlds.terrains.height_sources import GeomFilter, cast_rays

    def take(model: mujoco.MjModel, data: mujoco.MjData) -> mujoco.MjData:
        copy = mujoco.MjData(model)
        mujoco.mj_copyData(copy, model, data)
        return copy

    model = lab.model
    numbers = [int(group) for group in groups]
    geoms = GeomFilter(groups=numbers, include=include, exclude=exclude, match=match_names)
    chosen = geoms.mask(model)
    if not include:
        chosen &= ~find_obstacles(model, lab.world.elements)
    if not chosen.any():
        raise ValueError(
            "This world has no ground to sample, only robots and what moves: name geoms or bodies "
            "to include."
        )
    data = lab.loop.do(take, edits_model=False)
    x, y = region.axes()
    heights = cast_rays(model, data, x, y, chosen)
    return np.where(np.isnan(heights), region.fill, heights)
