"""An entity that is another object in each world."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.entity.entity import Entity, EntityCfg
from manyworlds.entity.variants.assignment import Assignment, allocate_worlds, variant_ids
from manyworlds.entity.variants.merge import merge_variants
from manyworlds.entity.variants.metadata import VariantMetadata
from manyworlds.sim.views import DataView, ModelView
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any  # the command line reads the types of fields without loading torch


def _unset() -> mujoco.MjSpec:
    raise ValueError("A VariantEntityCfg has no spec_fn: see its variants.")


@dataclass
class VariantEntityCfg(EntityCfg):
    """One object whose appearance and mass differ between worlds.

    All variants have the same bodies, joints, sites, actuators, sensors, tendons and equalities.
    Their geoms may differ, and so may the numbers that describe all else; see `docs/variants.md`
    for what an engine cannot give to each world.
    """

    variants: dict[str, Callable[[], mujoco.MjSpec] | None] = field(default_factory=dict)
    """Functions that return a spec of the object alone, by the variant's name; None for a variant
    without the object. Its geoms are neither seen nor touched, and gravity does not pull it; it
    keeps its place, and the mass and inertia of the first variant that has a spec. So what holds
    on to it, an equality or an actuator for instance, still finds a body there."""
    assignment: (
        dict[str, float]
        | Sequence[int]
        | np.ndarray
        | Tensor
        | Callable[[int], Sequence[int]]
        | None
    ) = None
    """Assignment of variants to worlds: weights by name (1 for variants that are not named); the
    variant index of each world; or a function that returns these indices for a number of worlds.
    None gives all variants equal weights."""
    spec_fn: Callable[[], mujoco.MjSpec] = _unset
    """Not used: `variants` replaces it."""

    def __post_init__(self) -> None:
        """Check what can be checked without building anything.

        Raises:
            ValueError: `spec_fn` is set, there is no variant, or `assignment` makes no sense.
        """
        super().__post_init__()
        self.check()

    def check(self) -> None:
        """Check variants and weights."""
        if self.spec_fn is not _unset:
            raise ValueError("spec_fn cannot be set on a VariantEntityCfg: name it in variants.")
        if not any(self.variants.values()):
            raise ValueError("VariantEntityCfg.variants needs at least one function: add a spec.")
        for name in self.variants:
            if not name or "/" in name:
                raise ValueError(
                    f"Variant '{name}' of a VariantEntityCfg: a name must not be empty or have a "
                    "slash in it."
                )
        self._check_assignment()

    def _check_assignment(self) -> None:
        where = "VariantEntityCfg.assignment"
        given = self.assignment
        if given is None or callable(given):
            return
        if not isinstance(given, Mapping):
            if isinstance(given, str) or not isinstance(
                given, Sequence | np.ndarray | torch.Tensor
            ):
                raise ValueError(
                    f"{where} is {given!r}: give weights by name, an index for each world, or a "
                    "function of the number of worlds."
                )
            variant_ids(given, len(self.variants), f"{where} has", f"{where} is")
            return
        for name, weight in given.items():
            if name not in self.variants:
                raise ValueError(
                    f"{where} names {name!r}, which is no variant."
                    + near_matches(str(name), self.variants)
                )
            if not isinstance(weight, Real) or not 0 <= weight < math.inf:
                raise ValueError(
                    f"{where}[{name!r}] is {weight!r}: give a finite, non-negative number."
                )
        allocate_worlds(self.weights(), 1)

    def weights(self) -> tuple[float, ...]:
        """Return the weight of each variant."""
        if not isinstance(self.assignment, Mapping):
            return (1.0,) * len(self.variants)
        return tuple(float(self.assignment.get(name, 1.0)) for name in self.variants)

    def resolved_assignment(self) -> Assignment:
        """Return the function, the index of each world's variant, or the weight of each variant."""
        given = self.assignment
        if given is None or isinstance(given, Mapping):
            return self.weights()
        if callable(given):
            return given
        return variant_ids(given, len(self.variants), "assignment has", "assignment is")

    def of_variant(self, name: str) -> EntityCfg:
        """Return the configuration of an entity that is this variant in all worlds.

        Raises:
            ValueError: the variant is none, or it is the absent one.
        """
        spec_fn = self.variants.get(name)
        if spec_fn is None:
            raise ValueError(f"'{name}' is not a variant with a spec.")
        own = {f.name: getattr(self, f.name) for f in fields(EntityCfg)}
        return EntityCfg(**{**own, "spec_fn": spec_fn})

    def build(self) -> Entity:
        """Make the entity."""
        return VariantEntity(self)


class _Alone(Entity):
    """One variant; only its spec is used."""

    def _index_elements(self) -> None:
        if self.cfg.articulation is not None:
            super()._index_elements()


class VariantEntity(Entity):
    """An entity whose variants share one spec; each world's rows make it one of them."""

    cfg: VariantEntityCfg
    variant_metadata: VariantMetadata

    def __init__(self, cfg: VariantEntityCfg) -> None:
        cfg.check()
        super().__init__(cfg)
        self.variant_metadata.find_in(self.spec)

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the entity in the compiled scene and allocate its data."""
        if not self.variant_metadata.in_use:
            raise ValueError(
                "The simulation does not know of this entity's variants: build it with "
                "Simulation(..., variant_info=scene.collect_variant_info())."
            )
        super().initialize(mj_model, model, data, device)

    def _prepare_spec(self) -> None:
        cfg = self.cfg
        alone = cfg.of_variant(next(name for name, fn in cfg.variants.items() if fn))
        specs: dict[str, mujoco.MjSpec | None] = {}
        for name, spec_fn in cfg.variants.items():
            specs[name] = None
            if spec_fn is not None:
                alone.spec_fn = spec_fn
                specs[name] = _Alone(alone).spec
        super()._prepare_spec()
        self.spec, self.variant_metadata = merge_variants(
            self.spec, specs, cfg.resolved_assignment()
        )

    def _spec_fn(self) -> mujoco.MjSpec:
        return next(fn for fn in self.cfg.variants.values() if fn is not None)()


def build_merged_variant_spec(cfg: VariantEntityCfg) -> tuple[mujoco.MjSpec, VariantMetadata]:
    """Return the merged spec of an entity, without actuators, and how its variants differ.

    Raises:
        ValueError: the variants cannot take turns.
    """
    entity = VariantEntity(cfg)
    return entity.spec, entity.variant_metadata
