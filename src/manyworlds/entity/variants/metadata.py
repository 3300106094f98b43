"""What merging the variants of an entity leaves for the simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import mujoco
import numpy as np

from manyworlds.entity.variants.assignment import Assignment, assign_worlds
from manyworlds.sim.fields.element_rows import list_elements

GeomRole = Literal["visual", "collision"]
"""A geom that neither `contype` nor `conaffinity` lets collide is visual."""

InertialMode = Literal["mesh-derived", "diagonal", "fullinertia"]
"""Where a body's inertia comes from: its geoms, or numbers of one of two kinds."""


@dataclass(frozen=True)
class SlotKey:
    """Which geom of an entity variants take turns in."""

    body_path: str
    role: GeomRole
    ordinal: int


@dataclass(frozen=True)
class VariantGeomSpec:
    """What one variant puts into a slot, as its spec says it."""

    mesh_name: str
    geom_name: str | None
    contype: int
    conaffinity: int
    condim: int
    group: int
    priority: int
    material: str | None
    rgba: tuple[float, float, float, float]
    friction: tuple[float, float, float]
    margin: float
    gap: float
    solref: tuple[float, float]
    solimp: tuple[float, float, float, float, float]
    mass: float
    density: float

    @classmethod
    def read(cls, geom: mujoco.MjsGeom) -> VariantGeomSpec:
        """Read what a geom of a spec says."""
        return cls(
            mesh_name=geom.meshname,
            geom_name=geom.name or None,
            contype=geom.contype,
            conaffinity=geom.conaffinity,
            condim=geom.condim,
            group=geom.group,
            priority=geom.priority,
            material=geom.material or None,
            rgba=tuple(geom.rgba.tolist()),
            friction=tuple(geom.friction.tolist()),
            margin=geom.margin,
            gap=geom.gap,
            solref=tuple(geom.solref.tolist()),
            solimp=tuple(geom.solimp.tolist()),
            mass=geom.mass,
            density=geom.density,
        )


@dataclass(frozen=True)
class VariantSlot:
    """A geom of the merged entity, and which geom of each variant it stands for."""

    key: SlotKey
    template_geom_name: str
    source_geom_names: tuple[str | None, ...]
    """By variant; None where the variant has no such geom."""


@dataclass(kw_only=True, eq=False)
class VariantMetadata:
    """How an entity's variants differ, element by element of the merged spec."""

    variant_names: tuple[str, ...]
    assignment: Assignment
    """A weight for each variant, the index of each world's variant, or a function."""
    slots: tuple[VariantSlot, ...] = ()
    variant_slot_specs: tuple[tuple[VariantGeomSpec | None, ...], ...] = ()
    """By variant and slot; None where the variant has no such geom."""
    geom_names: tuple[str, ...] = ()
    """Names of the merged spec's geoms, in the order of the columns of `rows`."""
    rows: dict[str, np.ndarray] = field(default_factory=dict)
    """Compiled values of the fields in which variants differ, each [variant, element, ...]."""
    filled: np.ndarray = field(default_factory=lambda: np.ones((1, 0), bool))
    """Whether a variant has a geom, [variant, geom]."""
    meshes: tuple[tuple[str | None, ...], ...] = ()
    """Names of the meshes of each variant's geoms; None for a primitive."""
    materials: dict[str, tuple[tuple[str | None, ...], ...]] = field(default_factory=dict)
    """By kind of element, names of the materials of each variant's elements."""
    elements: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """The merged spec's elements by kind, in the order of the columns of `rows`."""
    assets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The merged spec's meshes and materials by kind and name."""
    in_use: bool = False
    """Whether a simulation gives its worlds their variants."""

    def find_in(self, spec: mujoco.MjSpec) -> None:
        """Take note of the elements of the merged spec, which is then attached to a scene."""
        geoms = {geom.name: geom for geom in spec.geoms}
        self.elements = list_elements(spec)
        self.elements["geom"] = tuple(geoms[name] for name in self.geom_names)
        self.assets = {
            "mesh": {mesh.name: mesh for mesh in spec.meshes},
            "material": {material.name: material for material in spec.materials},
        }

    @property
    def has_primitive(self) -> np.ndarray:
        """Which geoms are a primitive in some variant, [geom]."""
        without = np.array([[name is None for name in row] for row in self.meshes])
        return np.any(self.filled & without, axis=0)

    @property
    def variant_mesh_names(self) -> tuple[tuple[str | None, ...], ...]:
        """Names of the meshes by variant and slot; None where there is none."""
        return tuple(
            tuple(spec.mesh_name or None if spec else None for spec in specs)
            for specs in self.variant_slot_specs
        )

    @property
    def num_mesh_geoms(self) -> int:
        """How many geoms the variants take turns in."""
        return len(self.slots)

    def world_variants(self, entity: str, num_envs: int) -> np.ndarray:
        """Return the variant of each world.

        Raises:
            ValueError: the assignment is no such list.
        """
        return assign_worlds(self.assignment, entity, len(self.variant_names), num_envs)
