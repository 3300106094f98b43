"""Props: objects made of one mesh file or of one primitive."""

from __future__ import annotations

import abc
import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import get_args

import mujoco
import numpy as np

from manyworlds.entity.entity import EntityCfg
from manyworlds.spec.convex import CoacdCfg, Progress, convex_pieces
from manyworlds.spec.mesh_files import MeshPart, check_mesh_file
from manyworlds.spec.meshes import (
    Triangles,
    check_thickness,
    has_hull,
    has_surface,
    hull_properties,
    is_closed,
    mass_properties,
    obj_file,
    read_solid,
    weld,
)
from manyworlds.spec.prop_choices import PRIMITIVE_SIZES, Primitive, PropMode
from manyworlds.utils.cache import content_key
from manyworlds.utils.extras import MissingExtraError

BODY = "prop"
"""Name of the body of every prop, so that props can be variants of each other."""
FREE_JOINT = "floating_base_joint"
_VISUAL = 2  # group of geoms
_COLLISION = 3  # group of geoms
_DENSITY = 1000.0  # MuJoCo's default [kg/m^3]
_Type = mujoco.mjtGeom


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
            fits = len(values) <= most and all(_is_number(value) for value in values)
            if name == "rgba":
                fits = fits and len(values) == most
            if values and not fits:
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
    """The file: OBJ, STL, PLY, OFF, GLB, glTF, or MuJoCo's MSH."""
    decompose: CoacdCfg | None = field(default_factory=CoacdCfg)
    """Settings of the decomposition into convex pieces, which collide in place of the mesh; None
    lets its convex hull collide."""
    scale: float | Sequence[float] = 1.0
    """Factor of all coordinates, or of x, y and z; 0.001 for a file in millimeters."""

    def add_geoms(self, spec: mujoco.MjSpec, body: mujoco.MjsBody) -> None:
        """Add the mesh and its convex pieces; see base class.

        The mesh is drawn, in group 2. Its pieces collide, in group 3; without decomposition, the
        mesh does. The geoms have no mass: the body has that of the solid.
        """
        parts, whole = self._read()
        pieces = self._pieces(whole)
        alone = not pieces and len(parts) == 1
        for i, part in enumerate(parts):
            name = "mesh"
            if i > 0:
                name = f"mesh_{i}"
            geom = self._add_mesh(spec, body, name, (part.vertices, part.faces), part)
            geom.group = _VISUAL
            if alone:
                self.set_contacts(geom)
            else:
                geom.contype = geom.conaffinity = 0
        if not alone:
            for i, piece in enumerate(pieces or [whole]):
                geom = self._add_mesh(spec, body, f"hull_{i}", piece)
                geom.group = _COLLISION
                self.set_contacts(geom)
        self._set_inertia(body, whole, pieces)

    def prepare(self, on_progress: Progress | None = None) -> int:
        """Decompose the mesh, so that a later build takes the pieces from the cache.

        Args:
            on_progress: see `convex_pieces`; an exception that it raises ends the decomposition.

        Returns:
            The number of pieces; 0 if the convex hull of the mesh collides.
        """
        self.check()
        return len(self._pieces(self._read()[1], on_progress))

    def _read(self) -> tuple[list[MeshPart], Triangles]:
        """Return the parts of the file, and the surface that they form together.

        Parts without a surface, such as a single triangle, are no meshes for MuJoCo.
        """
        parts = read_solid(self.path)
        kept = [part for part in parts if has_hull(part) or has_surface(part)]
        left_out = [part.name for part in parts if part not in kept]
        if left_out:
            warnings.warn(
                f"The mesh '{self.path}' has flat parts that MuJoCo refuses, which are left out: "
                f"{', '.join(left_out)}.",
                stacklevel=2,
            )
        whole = weld(kept or parts)
        check_thickness(str(self.path), whole[0])
        return kept, whole

    def _pieces(self, whole: Triangles, on_progress: Progress | None = None) -> list[Triangles]:
        if self.decompose is None:
            return []
        try:
            return convex_pieces(*whole, self.decompose, on_progress)
        except MissingExtraError as error:
            warnings.warn(f"The convex hull of '{self.path}' collides: {error}", stacklevel=2)
            return []

    def _scaled(self, triangles: Triangles) -> Triangles:
        vertices, faces = triangles
        factors = np.broadcast_to(np.asarray(_numbers(self.scale), float), 3)
        if np.prod(factors) < 0:  # mirrored, which turns the surface inside out
            faces = faces[:, ::-1]
        return vertices * factors, faces

    def _add_mesh(
        self,
        spec: mujoco.MjSpec,
        body: mujoco.MjsBody,
        name: str,
        triangles: Triangles,
        look: MeshPart | None = None,
    ) -> mujoco.MjsGeom:
        """Add a mesh, as a file within the spec, and a geom of it without mass."""
        uv = None
        if look is not None:
            uv = look.uv
        file = _add_file(spec, obj_file(*self._scaled(triangles), uv), "obj")
        mesh = spec.add_mesh(name=name, file=file)
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # that open surfaces have, too
        geom = body.add_geom(name=name, type=_Type.mjGEOM_MESH, meshname=name, mass=0.0)
        if look is not None and look.rgba is not None:
            geom.rgba[:] = look.rgba
        if look is not None and look.image is not None:
            texture = spec.add_texture(name=name, file=_add_file(spec, look.image, "png"))
            texture.type = mujoco.mjtTexture.mjTEXTURE_2D
            material = spec.add_material(name=name)
            material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
            geom.material = name
        self.set_color(geom)
        return geom

    def _set_inertia(self, body: mujoco.MjsBody, whole: Triangles, pieces: list[Triangles]) -> None:
        """Set the mass and inertia of the solid; those of its pieces or hull if it is open."""
        taken = ""
        if is_closed(whole[1]):
            volume, center, inertia = mass_properties([self._scaled(whole)])
        elif pieces:
            taken = "pieces"
            volume, center, inertia = mass_properties([self._scaled(piece) for piece in pieces])
        else:
            taken = "hull"
            volume, center, inertia = hull_properties(self._scaled(whole)[0])
        if taken:
            warnings.warn(
                f"The mesh '{self.path}' is not the closed surface of a solid: its mass and "
                f"inertia are those of its convex {taken}.",
                stacklevel=2,
            )
        density = _DENSITY
        if self.density is not None:
            density = self.density
        if self.mass is not None:
            density = self.mass / volume
        body.explicitinertial = True
        body.mass = density * volume
        body.ipos = center
        xx, yy, zz = density * np.diag(inertia)
        xy, xz, yz = density * inertia[[0, 0, 1], [1, 2, 2]]
        body.fullinertia[:] = [xx, yy, zz, xy, xz, yz]

    def check(self) -> None:
        """Check the settings; see base class."""
        super().check()
        check_mesh_file(Path(self.path))
        if self.decompose is not None:
            self.decompose.check()
        scale = _numbers(self.scale)
        if len(scale) not in (1, 3) or not all(_is_number(s) and s != 0 for s in scale):
            raise ValueError(
                f"MeshProp.scale must be one or three numbers other than zero, got {self.scale}."
            )


@dataclass(kw_only=True)
class PrimitiveProp(PropSpec):
    """Spec of a prop from one primitive."""

    shape: Primitive
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
        if self.shape not in PRIMITIVE_SIZES:
            raise ValueError(
                f"There is no primitive '{self.shape}': use {', '.join(PRIMITIVE_SIZES)}."
            )
        size = _numbers(self.size)
        count = PRIMITIVE_SIZES[self.shape]
        if len(size) != count or not all(_is_number(s) and s > 0 for s in size):
            what = "1 positive number"
            if count > 1:
                what = f"{count} positive numbers"
            raise ValueError(f"The size of a {self.shape} must be {what} [m], got {self.size}.")
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
        decompose: CoacdCfg | None = CoacdCfg(),  # noqa: B008  it is copied
        *,
        mass: float | None = None,
        density: float | None = None,
        friction: float | Sequence[float] | None = None,
        solref: Sequence[float] | None = None,
        solimp: Sequence[float] | None = None,
        scale: float | Sequence[float] = 1.0,
        rgba: Sequence[float] | None = None,
        init_state: EntityCfg.InitialStateCfg | None = None,
    ) -> PropCfg:
        """Make a prop from a mesh file; see `MeshProp` for the arguments.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: a setting is out of bounds.
        """
        spec_fn = MeshProp(
            path=path,
            mode=mode,
            decompose=copy.copy(decompose),
            mass=mass,
            density=density,
            friction=friction,
            solref=solref,
            solimp=solimp,
            scale=scale,
            rgba=rgba,
        )
        return cls(init_state=init_state or EntityCfg.InitialStateCfg(), spec_fn=spec_fn)

    @classmethod
    def primitive(
        cls,
        shape: Primitive,
        size: float | Sequence[float],
        mode: PropMode = "dynamic",
        *,
        mass: float | None = None,
        density: float | None = None,
        friction: float | Sequence[float] | None = None,
        solref: Sequence[float] | None = None,
        solimp: Sequence[float] | None = None,
        rgba: Sequence[float] | None = None,
        init_state: EntityCfg.InitialStateCfg | None = None,
    ) -> PropCfg:
        """Make a prop from a primitive; see `PrimitiveProp` for the arguments.

        Raises:
            ValueError: a setting is out of bounds.
        """
        spec_fn = PrimitiveProp(
            shape=shape,
            size=size,
            mode=mode,
            mass=mass,
            density=density,
            friction=friction,
            solref=solref,
            solimp=solimp,
            rgba=rgba,
        )
        return cls(init_state=init_state or EntityCfg.InitialStateCfg(), spec_fn=spec_fn)


def _add_file(spec: mujoco.MjSpec, content: bytes, suffix: str) -> str:
    """Add a file to the assets of a spec, and return its name, which is that of its content."""
    name = f"{content_key(None, content)[:16]}.{suffix}"
    spec.assets[name] = content
    return name


def _numbers(value: float | Sequence[float] | None) -> list[float]:
    if value is None:
        return []
    if isinstance(value, Sequence | np.ndarray):
        return list(value)
    return [value]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
