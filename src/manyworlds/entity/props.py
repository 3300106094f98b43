"""Props: objects made of one mesh file or of one primitive."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, Literal, get_args

import mujoco

from manyworlds.entity.entity import EntityCfg
from manyworlds.spec.convex import CoacdCfg

BODY = "prop"
"""Name of the body of every prop, so that props can be variants of each other."""
FREE_JOINT = "floating_base_joint"
PropMode = Literal["dynamic", "static", "mocap"]
_Type = mujoco.mjtGeom
_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3, "plane": 3}
PRIMITIVES = tuple(_SIZES)
"""Kinds of primitives."""


@dataclass(kw_only=True)
class PropSpec(abc.ABC):
    """Function that makes the spec of a prop; subclasses add its geoms.

    The spec has one body `prop`, so that any two props of the same mode can be variants of one
    `VariantEntityCfg`.
    """

    mode: PropMode = "dynamic"
    """`dynamic` moves freely, `static` stays where it is placed, and `mocap` is moved by commands
    and pushes other things."""
    mass: float | None = None
    """Mass [kg]; None uses the density."""
    density: float | None = None
    """Density [kg/m^3]; None for MuJoCo's 1000, or to use the mass."""
    friction: float | Sequence[float] | None = None
    """Sliding, torsional and rolling friction, or as many of the first of these as given; None for
    MuJoCo's defaults."""
    solref: Sequence[float] | None = None
    """Time constant [s] and damping ratio of contacts; None for MuJoCo's defaults."""
    solimp: Sequence[float] | None = None
    """Impedance of contacts; None for MuJoCo's defaults."""
    rgba: Sequence[float] | None = None
    """Color; None for that of the file, or MuJoCo's default."""

    def __post_init__(self) -> None:
        self.check()

    def __call__(self) -> mujoco.MjSpec:
        """Make the spec."""
        self.check()
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name=BODY, mocap=self.mode == "mocap")
        if self.mode == "dynamic":
            body.add_freejoint(name=FREE_JOINT)
        self.add_geoms(spec, body)
        return spec

    @abc.abstractmethod
    def add_geoms(self, spec: mujoco.MjSpec, body: mujoco.MjsBody) -> None:
        """Add the geoms and their assets."""

    def check(self) -> None:
        """Check the settings.

        Raises:
            ValueError: a setting is out of bounds, or mass and density are both given.
        """
        kind = type(self).__name__
        if self.mode not in get_args(PropMode):
            raise ValueError(
                f"{kind}.mode must be one of {', '.join(get_args(PropMode))}, got '{self.mode}'."
            )
        if self.mass is not None and self.density is not None:
            raise ValueError(
                f"{kind} has a mass of {self.mass} kg and a density of {self.density} kg/m^3: give "
                "one of them."
            )
        for name in ("mass", "density"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                raise ValueError(f"{kind}.{name} must be a positive number, got {value}.")
        for name, most in (("friction", 3), ("solref", 2), ("solimp", 5), ("rgba", 4)):
            values = _numbers(getattr(self, name))
            least = 4 if name == "rgba" else 0 if getattr(self, name) is None else 1
            if values and not (least <= len(values) <= most and all(map(_is_number, values))):
                raise ValueError(f"{kind}.{name} must be {most} finite numbers, got {values}.")

    def set_contacts(self, geom: mujoco.MjsGeom) -> None:
        """Set the contact parameters of a geom that collides."""
        for name in ("friction", "solref", "solimp"):
            values = _numbers(getattr(self, name))
            getattr(geom, name)[: len(values)] = values

    def set_color(self, geom: mujoco.MjsGeom) -> None:
        """Set the color of a geom that is drawn."""
        if self.rgba is not None:
            geom.rgba[:] = self.rgba


@dataclass(kw_only=True)
class MeshProp(PropSpec):
    """Spec of a prop from a mesh file."""

    path: str | Path
    """The file, in a format of MuJoCo (OBJ, STL, MSH) or, with the extra `meshes`, of trimesh."""
    decompose: CoacdCfg | None = field(default_factory=CoacdCfg)
    """Settings of the decomposition into convex pieces, which collide in place of the mesh; None
    lets its convex hull collide."""
    scale: float | Sequence[float] = 1.0
    """Factor of all coordinates, or of x, y and z."""

    def add_geoms(self, spec: mujoco.MjSpec, body: mujoco.MjsBody) -> None:
        """Add the mesh; see base class."""
        scale = _numbers(self.scale)
        spec.add_mesh(name="mesh", file=str(Path(self.path).absolute()), scale=(scale * 3)[:3])
        geom = body.add_geom(name="mesh", type=_Type.mjGEOM_MESH, meshname="mesh", group=2)
        self.set_contacts(geom)
        self.set_color(geom)

    def check(self) -> None:
        """Check the settings; see base class."""
        super().check()
        if not Path(self.path).is_file():
            raise ValueError(f"There is no mesh file '{self.path}'.")
        scale = _numbers(self.scale)
        if len(scale) not in (1, 3) or not all(_is_number(s) and s != 0 for s in scale):
            raise ValueError(
                f"MeshProp.scale must be one or three numbers other than zero, got {self.scale}."
            )


@dataclass(kw_only=True)
class PrimitiveProp(PropSpec):
    """Spec of a prop from one primitive."""

    shape: str
    """Kind of primitive: sphere, capsule, cylinder, ellipsoid, box, or plane."""
    size: float | Sequence[float]
    """MuJoCo's sizes [m]: radius of a sphere; radius and half length of a capsule or cylinder; half
    lengths of an ellipsoid, box or plane."""

    def add_geoms(self, spec: mujoco.MjSpec, body: mujoco.MjsBody) -> None:
        """Add the primitive; see base class."""
        size = _numbers(self.size)
        geom = body.add_geom(
            name=self.shape,
            type=getattr(_Type, f"mjGEOM_{self.shape.upper()}"),
            size=[*size, *[0.0] * (3 - len(size))],
        )
        if self.mass is not None:
            geom.mass = self.mass
        elif self.density is not None:
            geom.density = self.density
        self.set_contacts(geom)
        self.set_color(geom)

    def check(self) -> None:
        """Check the settings; see base class."""
        super().check()
        if self.shape not in _SIZES:
            raise ValueError(f"There is no primitive '{self.shape}': use {', '.join(_SIZES)}.")
        size, count = _numbers(self.size), _SIZES[self.shape]
        if len(size) != count or not all(_is_number(s) and s > 0 for s in size):
            raise ValueError(
                f"The size of a {self.shape} must be {count} positive number"
                f"{'s' if count > 1 else ''} [m], got {self.size}."
            )
        if self.shape == "plane" and self.mode == "dynamic":
            raise ValueError("A plane cannot move freely: set mode='static', or use a box.")


@dataclass
class PropCfg(EntityCfg):
    """Configuration of a prop; its `spec_fn` is a `PropSpec`, whose fields may be edited."""

    @classmethod
    def from_mesh(
        cls,
        path: str | Path,
        mode: PropMode = "dynamic",
        decompose: CoacdCfg | None = CoacdCfg(),  # noqa: B008 (copied below)
        **fields: Any,
    ) -> PropCfg:
        """Make a prop from a mesh file.

        Args:
            path: the file.
            mode: see `PropSpec.mode`.
            decompose: see `MeshProp.decompose`.
            fields: further fields of `MeshProp`, such as `mass`, `density`, `friction`, `solref`,
                `solimp`, `scale` and `rgba`, and of `EntityCfg`, such as `init_state`.

        Raises:
            ValueError: a setting is out of bounds, or there is no such file.
        """
        decompose = None if decompose is None else CoacdCfg(**decompose.settings())
        return cls._of(MeshProp, fields, path=path, mode=mode, decompose=decompose)

    @classmethod
    def primitive(
        cls,
        shape: str,
        size: float | Sequence[float],
        mode: PropMode = "dynamic",
        **fields: Any,
    ) -> PropCfg:
        """Make a prop from a primitive.

        Args:
            shape: see `PrimitiveProp.shape`.
            size: see `PrimitiveProp.size`.
            mode: see `PropSpec.mode`.
            fields: further fields of `PrimitiveProp` and of `EntityCfg`.

        Raises:
            ValueError: a setting is out of bounds.
        """
        return cls._of(PrimitiveProp, fields, shape=shape, size=size, mode=mode)

    @classmethod
    def _of(cls, kind: type[PropSpec], given: dict[str, Any], **own: Any) -> PropCfg:
        of_entity = {name: given[name] for name in given if name in cls.__dataclass_fields__}
        of_spec = {name: given[name] for name in given if name not in of_entity}
        return cls(spec_fn=kind(**own, **of_spec), **of_entity)


def _numbers(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, Real) else [*value]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
