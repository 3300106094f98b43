"""Configs that edit a MuJoCo spec: textures, materials, meshes, geoms, lights and cameras.

Every pattern is a regular expression that must match the whole name, and at least one name. In
fields of type dict, the keys are patterns for the selected names; the first match wins. None
keeps the model's value.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar

import mujoco
import numpy as np

from manyworlds.spec.elements import SpecElement
from manyworlds.validation.names import filter_ids, near_matches, resolve_expr

_Element = TypeVar("_Element", bound=SpecElement)
_TEXTURE_TYPES = {
    "2d": mujoco.mjtTexture.mjTEXTURE_2D,
    "cube": mujoco.mjtTexture.mjTEXTURE_CUBE,
    "skybox": mujoco.mjtTexture.mjTEXTURE_SKYBOX,
}
_BUILTINS = {
    "none": mujoco.mjtBuiltin.mjBUILTIN_NONE,
    "gradient": mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
    "checker": mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
    "flat": mujoco.mjtBuiltin.mjBUILTIN_FLAT,
}
_MARKS = {
    "none": mujoco.mjtMark.mjMARK_NONE,
    "edge": mujoco.mjtMark.mjMARK_EDGE,
    "cross": mujoco.mjtMark.mjMARK_CROSS,
    "random": mujoco.mjtMark.mjMARK_RANDOM,
}
_LIGHT_TYPES = {
    "spot": mujoco.mjtLightType.mjLIGHT_SPOT,
    "directional": mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
}
_MODES = {
    "fixed": mujoco.mjtCamLight.mjCAMLIGHT_FIXED,
    "track": mujoco.mjtCamLight.mjCAMLIGHT_TRACK,
    "trackcom": mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM,
    "targetbody": mujoco.mjtCamLight.mjCAMLIGHT_TARGETBODY,
    "targetbodycom": mujoco.mjtCamLight.mjCAMLIGHT_TARGETBODYCOM,
}
_DEFAULT_GEOM_RGBA = (0.5, 0.5, 0.5, 1.0)


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_bitmask(value: object) -> bool:
    return _is_int(value) and 0 <= value < 2**31


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))


def _is_tuple(value: object, at_least: int, at_most: int) -> bool:
    return (
        isinstance(value, Sequence | np.ndarray)
        and at_least <= len(value) <= at_most
        and all(map(_is_number, value))
    )


_Rules: TypeAlias = "dict[str, tuple[Callable[[Any], bool], str]]"
"""By field, a test of its value, and the valid values in words."""

# GeomCfg and CollisionCfg share these.
_GEOM_RULES: _Rules = {
    "group": (lambda v: _is_int(v) and v >= 0, "an integer of at least 0"),
    "contype": (_is_bitmask, "an integer of at least 0"),
    "conaffinity": (_is_bitmask, "an integer of at least 0"),
    "condim": (lambda v: v in (1, 3, 4, 6), "1, 3, 4 or 6"),
    "priority": (_is_int, "an integer"),
    "friction": (
        lambda v: _is_tuple(v, 1, 3) and min(v) >= 0,
        "1 to 3 numbers (sliding, torsional, rolling) of at least 0",
    ),
    "solref": (lambda v: _is_tuple(v, 2, 2), "2 numbers"),
    "solimp": (lambda v: _is_tuple(v, 1, 5), "1 to 5 numbers"),
    "margin": (_is_number, "a number [m]"),
    "gap": (_is_number, "a number [m]"),
    "solmix": (lambda v: _is_number(v) and v >= 0, "a number of at least 0"),
}
_MESH_RULES: _Rules = {
    "maxhullvert": (lambda v: _is_int(v) and (v == -1 or v >= 4), "-1 (no limit) or at least 4"),
}


@dataclass
class SpecCfg(ABC):
    """Base class of edits of a spec."""

    @abstractmethod
    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Validate the config and apply it to a spec."""

    def validate(self) -> None:  # noqa: B027 (optional for subclasses)
        """Raise ValueError for values that MuJoCo would reject or ignore."""

    def _check(self, ok: bool, message: str) -> None:
        if not ok:
            raise ValueError(f"{type(self).__name__}{self._label()}: {message}")

    def _check_rules(self, rules: _Rules) -> None:
        for name, (rule, words) in rules.items():
            values = [getattr(self, name, None)]
            if isinstance(values[0], dict):
                values = list(values[0].values())
            for each in values:
                self._check(each is None or rule(each), f"{name} must be {words}, got {each!r}.")

    def _label(self) -> str:
        for field in fields(self):
            if field.name.endswith("name") or field.name.endswith("_names_expr"):
                return f" {getattr(self, field.name)!r}"
        return ""


@dataclass
class TextureCfg(SpecCfg):
    """Adds a texture: a built-in pattern, one image file, or six files of a cube."""

    name: str
    """Name of the texture."""
    type: Literal["2d", "cube", "skybox"]
    """Mapping: onto a plane, onto an object, or as the sky."""
    builtin: Literal["checker", "gradient", "flat", "none"] = "none"
    """Pattern that MuJoCo generates; `none` requires `file` or `cubefiles`."""
    rgb1: tuple[float, float, float] | None = None
    """First color of the pattern."""
    rgb2: tuple[float, float, float] | None = None
    """Second color of the pattern."""
    width: int | None = None
    """Width of the pattern [pixels]."""
    height: int | None = None
    """Height of the pattern [pixels]; for a cube or skybox, MuJoCo uses 6 times the width."""
    mark: Literal["edge", "cross", "random", "none"] = "none"
    """Marks drawn on the pattern."""
    markrgb: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Color of the marks."""
    random: float = 0.01
    """Probability of a mark at each pixel, for `mark="random"`."""
    file: str | None = None
    """Image file, relative to the model's texture folder."""
    cubefiles: tuple[str, ...] | None = None
    """Image files of a cube: right, left, up, down, front, back; an empty name shows `rgb1`."""
    gridsize: tuple[int, int] | None = None
    """Rows and columns of faces in `file`, for a cube or a skybox."""
    gridlayout: str | None = None
    """Faces in the cells of the grid, row by row: one of `RLUDFB` each, or `.` for none."""
    nchannel: int = 3
    """Number of channels."""
    hflip: bool = False
    """Flip image files horizontally."""
    vflip: bool = False
    """Flip image files vertically."""

    def validate(self) -> None:
        """Raise ValueError unless there is exactly one complete source of pixels."""
        for name, choices in (("type", _TEXTURE_TYPES), ("builtin", _BUILTINS), ("mark", _MARKS)):
            value = getattr(self, name)
            self._check(value in choices, f"{name} must be one of {list(choices)}, got {value!r}.")
        sources = (self.builtin != "none", self.file is not None, self.cubefiles is not None)
        self._check(
            sum(sources) == 1,
            "give exactly one of builtin, file and cubefiles, "
            f"got builtin={self.builtin!r}, file={self.file!r}, cubefiles={self.cubefiles!r}.",
        )
        size = (self.width, self.height)
        self._check(
            self.builtin == "none" or all(n is not None and n > 0 for n in size),
            f"builtin '{self.builtin}' needs a positive width and height [pixels], got {size}.",
        )
        self._check(
            self.cubefiles is None
            or (self.type != "2d" and len(self.cubefiles) == 6 and any(self.cubefiles)),
            "cubefiles needs type 'cube' or 'skybox' and six names (right, left, up, down, front, "
            f"back; empty for none), got type '{self.type}' and {self.cubefiles}.",
        )
        self._check(1 <= self.nchannel <= 4, f"nchannel must be 1 to 4, got {self.nchannel}.")
        self._check(0 <= self.random <= 1, f"random must be within 0 and 1, got {self.random}.")
        self._check_grid()

    def _check_grid(self) -> None:
        if self.gridsize is None and self.gridlayout is None:
            return
        rows, columns = self.gridsize or (0, 0)
        self._check(
            self.type != "2d" and self.file is not None and rows > 0 and columns > 0,
            "a grid of faces needs type 'cube' or 'skybox', a file, and a gridsize (rows, columns) "
            f"of at least 1, got type '{self.type}', file={self.file!r}, gridsize={self.gridsize}.",
        )
        layout = self.gridlayout
        self._check(
            rows * columns <= 12
            and (layout is None or (len(layout) == rows * columns and {*layout} <= {*".RLUDFB"})),
            f"gridlayout must hold one of '.RLUDFB' for each of the {rows} x {columns} cells "
            f"(12 at most), got {layout!r}.",
        )

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add the texture."""
        self.validate()
        _check_new(spec.textures, self.name, "texture")
        given = {
            name: getattr(self, name)
            for name in ("rgb1", "rgb2", "width", "height", "file", "cubefiles", "gridsize")
            if getattr(self, name) is not None
        }
        if self.gridlayout is not None:
            given["gridlayout"] = self.gridlayout.ljust(12, ".")
        spec.add_texture(
            name=self.name,
            type=_TEXTURE_TYPES[self.type],
            builtin=_BUILTINS[self.builtin],
            mark=_MARKS[self.mark],
            markrgb=self.markrgb,
            random=self.random,
            nchannel=self.nchannel,
            hflip=self.hflip,
            vflip=self.vflip,
            **given,
        )


@dataclass
class MaterialCfg(SpecCfg):
    """Adds a material and assigns it to geoms."""

    name: str
    """Name of the material."""
    rgba: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """Color, which is multiplied with the texture."""
    texuniform: bool = False
    """Repeat the texture per meter instead of per object."""
    texrepeat: tuple[float, float] = (1.0, 1.0)
    """Number of repetitions of the texture along each axis."""
    reflectance: float = 0.0
    """Reflectance, from 0 to 1."""
    texture: str | None = None
    """Name of a texture in the spec."""
    geom_names_expr: tuple[str, ...] | None = None
    """Geoms that use the material. Their own color is removed, since it would take precedence."""

    def validate(self) -> None:
        """Raise ValueError if color, reflectance or repetition is out of bounds."""
        self._check(
            _is_tuple(self.rgba, 4, 4) and min(self.rgba) >= 0 and max(self.rgba) <= 1,
            f"rgba must be 4 numbers within 0 and 1, got {self.rgba}.",
        )
        self._check(
            0 <= self.reflectance <= 1,
            f"reflectance must be within 0 and 1, got {self.reflectance}.",
        )
        self._check(
            _is_tuple(self.texrepeat, 2, 2) and min(self.texrepeat) > 0,
            f"texrepeat must be 2 positive numbers, got {self.texrepeat}.",
        )

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add the material and assign it to the geoms."""
        self.validate()
        _check_new(spec.materials, self.name, "material")
        if self.texture is not None:
            _check_known(self, "texture", self.texture, [t.name for t in spec.textures])
        geoms: Sequence[mujoco.MjsGeom] = ()
        if self.geom_names_expr is not None:
            geoms = _select(spec.geoms, self.geom_names_expr)
        material = spec.add_material(
            name=self.name,
            rgba=self.rgba,
            texuniform=self.texuniform,
            texrepeat=self.texrepeat,
            reflectance=self.reflectance,
        )
        if self.texture is not None:
            material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = self.texture
        for geom in geoms:
            geom.material = self.name
            geom.rgba[:] = _DEFAULT_GEOM_RGBA


@dataclass
class MeshCfg(SpecCfg):
    """Edits meshes."""

    mesh_names_expr: tuple[str, ...]
    """Meshes to edit, by name, or by the stem of the file if they have no name."""
    maxhullvert: int | dict[str, int] | None = None
    """Maximum number of vertices of the convex hull: at least 4, or -1 for no limit."""

    def validate(self) -> None:
        """Raise ValueError for an invalid `maxhullvert`."""
        self._check_rules(_MESH_RULES)

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Edit the meshes."""
        self.validate()
        selected = _select(spec.meshes, self.mesh_names_expr)
        for mesh, value in _by_name(self.maxhullvert, selected):
            mesh.maxhullvert = value


@dataclass
class _GeomFieldsCfg(SpecCfg):
    """Common fields of `GeomCfg` and `CollisionCfg`."""

    geom_names_expr: tuple[str, ...]
    """Geoms to edit; unnamed geoms are matched as ''."""
    contype: int | dict[str, int] | None = None
    """Bit mask of the collision types of a geom."""
    conaffinity: int | dict[str, int] | None = None
    """Bit mask of the collision types with which a geom collides."""
    condim: int | dict[str, int] | None = None
    """Dimensions of the contact space: 1, 3, 4 or 6."""
    priority: int | dict[str, int] | None = None
    """Contact priority; the geom with the higher one determines friction and solver parameters."""
    friction: tuple[float, ...] | dict[str, tuple[float, ...]] | None = None
    """Sliding, torsional [m] and rolling [m] friction; missing numbers keep their values."""
    solref: tuple[float, ...] | dict[str, tuple[float, ...]] | None = None
    """Reference parameters of the contact solver, 2 numbers."""
    solimp: tuple[float, ...] | dict[str, tuple[float, ...]] | None = None
    """Impedance parameters of the contact solver; missing numbers of 5 keep their values."""
    margin: float | dict[str, float] | None = None
    """Distance at which contacts are generated [m]."""
    gap: float | dict[str, float] | None = None
    """Part of the margin in which contacts are inactive [m]."""
    solmix: float | dict[str, float] | None = None
    """Weight in the average of two geoms' solver parameters."""

    def validate(self) -> None:
        """Raise ValueError for a field with an invalid value."""
        self._check_rules(_GEOM_RULES)

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Edit the geoms."""
        geoms = list(spec.geoms)
        for (i, name), value in self._edits(geoms).items():
            if isinstance(value, Sequence | np.ndarray):
                getattr(geoms[i], name)[: len(value)] = value
            else:
                setattr(geoms[i], name, value)

    def _edits(self, geoms: Sequence[mujoco.MjsGeom]) -> dict[tuple[int, str], object]:
        """Validate, and return the new values by geom and field."""
        self.validate()
        selected = _select(geoms, self.geom_names_expr)
        index = {id(geom): i for i, geom in enumerate(geoms)}
        defaults = {field.name: field.default for field in fields(self)}
        return {
            (index[id(geom)], name): value
            for name in _GEOM_RULES
            if name in defaults
            for geom, value in _by_name(getattr(self, name), selected, defaults[name])
        }


@dataclass
class _GroupCfg(SpecCfg):
    """Fields of `GeomCfg` that precede those of `_GeomFieldsCfg`."""

    geom_names_expr: tuple[str, ...]
    group: int | dict[str, int] | None = None
    """Group for rendering and ray casting."""


@dataclass
class GeomCfg(_GeomFieldsCfg, _GroupCfg):
    """Edits geoms; fields that are None, or names without a matching key, are unchanged."""


@dataclass
class CollisionCfg(_GeomFieldsCfg):
    """Selects the geoms that collide, and their contact parameters.

    The selected geoms get all of `contype`, `conaffinity`, `condim` and `priority`, regardless of
    the model's values. With a dict for one of these, names without a matching key get the default
    (1, 1, 3, 0), as if the field were omitted. The other fields keep the model's values where they
    are None or not matched.
    """

    contype: int | dict[str, int] | None = 1
    """Bit mask of the collision types of a geom; None keeps the model's."""
    conaffinity: int | dict[str, int] | None = 1
    """Bit mask of the collision types with which a geom collides; None keeps the model's."""
    condim: int | dict[str, int] | None = 3
    """Dimensions of the contact space (1, 3, 4 or 6); None keeps the model's."""
    priority: int | dict[str, int] | None = 0
    """Priority of the geom's parameters in a contact; None keeps the model's."""
    disable_other_geoms: bool = True
    """Disable collisions of all other geoms of the spec."""

    def _edits(self, geoms: Sequence[mujoco.MjsGeom]) -> dict[tuple[int, str], object]:
        edits = super()._edits(geoms)
        if self.disable_other_geoms:
            selected = {id(geom) for geom in _select(geoms, self.geom_names_expr)}
            others = [i for i, geom in enumerate(geoms) if id(geom) not in selected]
            edits |= {(i, name): 0 for i in others for name in ("contype", "conaffinity")}
        return edits


@dataclass
class _MountedCfg(SpecCfg):
    """Common fields of elements that are attached to a body and may track or target a body."""

    name: Any  # a str, or None for an unnamed light
    body: str = "world"
    """Body to which the element is attached."""
    mode: str = "fixed"
    """Mode: fixed, track, trackcom, targetbody or targetbodycom."""
    target: str | None = None
    """Body to point at, for the two target modes."""

    def validate(self) -> None:
        """Raise ValueError for an unknown mode, or a target that does not fit the mode."""
        self._check(self.mode in _MODES, f"mode must be one of {list(_MODES)}, got '{self.mode}'.")
        self._check(
            (self.target is not None) == self.mode.startswith("target"),
            f"modes 'targetbody' and 'targetbodycom' need a target, the others take none, "
            f"got mode '{self.mode}' and target {self.target!r}.",
        )

    def _mount(self, spec: mujoco.MjSpec) -> tuple[mujoco.MjsBody, dict[str, Any]]:
        """Validate; return the body and the common arguments of lights and cameras."""
        self.validate()
        bodies = [body.name for body in spec.bodies]
        for body in (self.body, self.target):
            if body is not None:
                _check_known(self, "body", body, bodies)
        common = {"mode": _MODES[self.mode], "targetbody": self.target or ""}
        if self.name:
            common["name"] = self.name
        return spec.body(self.body), common


@dataclass
class LightCfg(_MountedCfg):
    """Adds a light to a body."""

    name: str | None = None
    """Name of the light."""
    type: Literal["spot", "directional"] = "spot"
    """Type: a spotlight, or parallel rays."""
    castshadow: bool = True
    """Enable shadows."""
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position in the body's frame [m]."""
    dir: tuple[float, float, float] = (0.0, 0.0, -1.0)
    """Direction in the body's frame."""
    cutoff: float = 45.0
    """Half of a spotlight's cone angle [degrees]."""
    exponent: float = 10.0
    """Exponent of a spotlight's falloff toward its edge."""
    diffuse: tuple[float, float, float] | None = None
    """Diffuse color."""
    specular: tuple[float, float, float] | None = None
    """Specular color."""
    ambient: tuple[float, float, float] | None = None
    """Ambient color."""
    active: bool = True
    """Switch the light on."""
    attenuation: tuple[float, float, float] = (1.0, 0.0, 0.0)
    """Constant, linear and quadratic attenuation with distance."""

    def validate(self) -> None:
        """Raise ValueError for an unknown mode or type."""
        super().validate()
        self._check(
            self.type in _LIGHT_TYPES,
            f"type must be one of {list(_LIGHT_TYPES)}, got {self.type!r}.",
        )

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add the light."""
        body, common = self._mount(spec)
        _check_new(spec.lights, self.name, "light")
        names = ("castshadow", "pos", "dir", "cutoff", "exponent", "active", "attenuation")
        colors = ("diffuse", "specular", "ambient")
        given = {n: getattr(self, n) for n in names + colors if getattr(self, n) is not None}
        body.add_light(type=_LIGHT_TYPES[self.type], **common, **given)


@dataclass
class CameraCfg(_MountedCfg):
    """Adds a camera to a body."""

    name: str
    """Name of the camera."""
    fovy: float = 45.0
    """Vertical field of view [degrees]."""
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position in the body's frame [m]."""
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation in the body's frame (wxyz); a camera looks along its -z."""

    def validate(self) -> None:
        """Raise ValueError for an unknown mode or an invalid field of view."""
        super().validate()
        self._check(0 < self.fovy < 180, f"fovy must be within 0 and 180, got {self.fovy}.")

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add the camera."""
        body, common = self._mount(spec)
        _check_new(spec.cameras, self.name, "camera")
        body.add_camera(fovy=self.fovy, pos=self.pos, quat=self.quat, **common)


def warn_overlapping_geom_edits(
    geom_cfgs: Sequence[GeomCfg], collision_cfgs: Sequence[CollisionCfg], spec: mujoco.MjSpec
) -> None:
    """Warn if a later config overwrites values of an earlier one; geoms precede collisions.

    Disabling all other geoms counts as well: only one of several `CollisionCfg` should do it.
    """
    geoms = list(spec.geoms)
    cfgs = [*geom_cfgs, *collision_cfgs]
    edits = [cfg._edits(geoms) for cfg in cfgs]
    for j, later in enumerate(cfgs):
        for i, earlier in enumerate(cfgs[:j]):
            both = sorted(edits[i].keys() & edits[j].keys())
            if both:
                names = list(dict.fromkeys(geoms[k].name or f"geom {k}" for k, _ in both))
                more = f" and {len(names) - 3} more" if len(names) > 3 else ""
                warnings.warn(
                    f"{type(later).__name__} {later.geom_names_expr} overwrites "
                    f"{', '.join(dict.fromkeys(name for _, name in both))} that "
                    f"{type(earlier).__name__} {earlier.geom_names_expr} sets, "
                    f"for {', '.join(names[:3])}{more}: make their patterns exclude each other, "
                    "and let one CollisionCfg at most disable the other geoms.",
                    stacklevel=2,
                )


def _name(element: SpecElement) -> str:
    # MuJoCo names an unnamed mesh after its file, but only at compilation.
    return element.name or Path(getattr(element, "file", "")).stem


def _select(elements: Iterable[_Element], exprs: Sequence[str]) -> list[_Element]:
    """Return the elements whose names match any of the patterns, each of which must match one."""
    elements = list(elements)
    names = [_name(element) for element in elements]
    return [elements[i] for i in filter_ids(exprs, names)]


def _by_name(
    value: Any, elements: Sequence[_Element], default: Any = None
) -> list[tuple[_Element, Any]]:
    """Return pairs of elements and values, without elements that have no value."""
    if isinstance(value, dict):
        values = resolve_expr(value, [_name(element) for element in elements], default)
    else:
        values = [value] * len(elements)
    return [(e, v) for e, v in zip(elements, values, strict=True) if v is not None]


def _check_new(elements: Iterable[SpecElement], name: str | None, kind: str) -> None:
    if name and name in {element.name for element in elements}:
        raise ValueError(f"The spec already has a {kind} '{name}': choose another name.")


def _check_known(cfg: SpecCfg, kind: str, name: str, names: Sequence[str]) -> None:
    cfg._check(
        name in names, f"the spec has no {kind} '{name}', only {names}.{near_matches(name, names)}"
    )
