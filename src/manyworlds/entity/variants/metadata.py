"""Results of merging an entity's variants, for the simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import mujoco
import numpy as np
import torch

from manyworlds.entity.variants.assignment import Assignment, assign_worlds
from manyworlds.sim.fields.element_rows import list_elements
from manyworlds.spec.elements import SpecElement

GeomRole = Literal["visual", "collision"]
"""Role of a geom: visual if `contype` and `conaffinity` are 0."""

InertialMode = Literal["mesh-derived", "diagonal", "fullinertia"]
"""Source of a body's inertia: its geoms, or one of two forms of explicit numbers."""


@dataclass(frozen=True)
class SlotKey:
    """Place of a geom in an entity, filled by a geom of each variant."""

    body_path: str
    role: GeomRole
    ordinal: int


@dataclass(frozen=True)
class VariantGeomSpec:
    """Geom that one variant puts into a slot, as its spec defines it."""

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
        """Read the attributes of a geom of a spec."""
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
    """Geom of the merged entity, and the geom of each variant that it represents."""

    key: SlotKey
    template_geom_name: str
    source_geom_names: tuple[str | None, ...]
    """By variant; None where the variant has no such geom."""


@dataclass(eq=False)
class VariantMetadata:
    """Differences between an entity's variants, for each element of the merged spec."""

    variant_names: tuple[str, ...]
    assignment: Assignment = ()
    """A weight for each variant, the index of each world's variant, or a function."""
    slots: tuple[VariantSlot, ...] = ()
    variant_slot_specs: tuple[tuple[VariantGeomSpec | None, ...], ...] = ()
    """By variant and slot; None where the variant has no such geom."""
    _: KW_ONLY
    geom_names: tuple[str, ...] = ()
    """Names of the merged spec's geoms, in the order of the columns of `rows`."""
    rows: dict[str, np.ndarray] = field(default_factory=dict)
    """Compiled values of the fields in which variants differ, each [variant, element, ...]."""
    filled: np.ndarray = field(default_factory=lambda: np.ones((1, 0), bool))
    """Mask of the geoms that each variant has, shape [num_variants, num_geoms]."""
    present: np.ndarray = field(default_factory=lambda: np.ones(1, bool))
    """Mask of the variants with the object, shape [num_variants]."""
    meshes: tuple[tuple[str | None, ...], ...] = ()
    """Names of the meshes of each variant's geoms; None for a primitive."""
    materials: dict[str, tuple[tuple[str | None, ...], ...]] = field(default_factory=dict)
    """By kind of element, names of the materials of each variant's elements."""
    elements: dict[str, tuple[SpecElement, ...]] = field(default_factory=dict)
    """The merged spec's elements by kind, in the order of the columns of `rows`."""
    assets: dict[str, dict[str, SpecElement]] = field(default_factory=dict)
    """The merged spec's meshes and materials by kind and name."""
    worlds: torch.Tensor | None = None
    """The variant of each world of the simulation that writes their values into its worlds, int64,
    shape [num_envs]; None before there is one."""
    on_assigned: Callable[[np.ndarray], None] | None = None
    """Callback with the ids of worlds whose variants have changed."""
    first_world: int = 0
    """Id of the simulation's first world; see `SceneCfg`."""
    total_envs: int | None = None
    """Number of worlds over which the variants are divided; None for those of the simulation."""

    def find_in(self, spec: mujoco.MjSpec) -> None:
        """Store the elements of the merged spec, before it is attached to a scene."""
        geoms = {geom.name: geom for geom in spec.geoms}
        self.elements = list_elements(spec)
        self.elements["geom"] = tuple(geoms[name] for name in self.geom_names)
        self.assets = {
            "mesh": {mesh.name: mesh for mesh in spec.meshes},
            "material": {material.name: material for material in spec.materials},
        }

    @property
    def has_primitive(self) -> np.ndarray:
        """Mask of the geoms that are a primitive in some variant, shape [num_geoms]."""
        without = np.array([[name is None for name in row] for row in self.meshes])
        return np.any(self.filled & without, axis=0)

    @property
    def variant_mesh_names(self) -> tuple[tuple[str | None, ...], ...]:
        """Names of the meshes by variant and slot; None where there is none."""
        rows: list[tuple[str | None, ...]] = []
        for specs in self.variant_slot_specs:
            names: list[str | None] = []
            for spec in specs:
                name = None
                if spec is not None:
                    name = spec.mesh_name or None
                names.append(name)
            rows.append(tuple(names))
        return tuple(rows)

    @property
    def num_mesh_geoms(self) -> int:
        """Number of slots."""
        return len(self.slots)

    def world_variants(self, entity: str, num_envs: int) -> np.ndarray:
        """Return the variant index of each world, shape [num_envs].

        Raises:
            ValueError: the assignment does not fit the number of worlds or of variants.
        """
        total = self.total_envs or num_envs
        what = f"The assignment of entity '{entity}'"
        every = assign_worlds(self.assignment, what, len(self.variant_names), total)
        return every[self.first_world : self.first_world + num_envs]
