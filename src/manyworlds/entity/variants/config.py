"""An entity that is another object in each world."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.actuator.builtin_actuator import is_passthrough
from manyworlds.entity.entity import Entity, EntityArticulationInfoCfg, EntityCfg
from manyworlds.entity.variants.assignment import Assignment, allocate_worlds, variant_ids
from manyworlds.entity.variants.merge import merge_variants
from manyworlds.entity.variants.metadata import VariantMetadata
from manyworlds.entity.variants.validate import raise_mismatch
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

    variants: dict[str, Callable[[], mujoco.MjSpec] | EntityCfg | None] = field(
        default_factory=dict
    )
    """Functions that return a spec of the object alone, by the variant's name, to which the other
    fields apply; or configurations of the object, which then all variants have. These may also
    differ in the pose and velocity of the root at reset, and in the numbers of actuators that
    MuJoCo simulates. None is a variant without the object: its geoms are neither seen nor touched,
    and gravity does not pull it; it keeps its place, and the mass and inertia of the first variant
    that has a spec. So what holds on to it, an equality or an actuator for instance, still finds a
    body there."""
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
        self._check_kinds()
        self._check_assignment()

    def _check_kinds(self) -> None:
        """Check that all variants are functions, or all are configurations."""
        given = {name: variant for name, variant in self.variants.items() if variant is not None}
        own = {n: cfg for n, cfg in given.items() if isinstance(cfg, EntityCfg)}
        for name, variant in given.items():
            where = f"Variant '{name}' of a VariantEntityCfg"
            if isinstance(variant, VariantEntityCfg):
                raise ValueError(f"{where} has variants itself: list all of them in one.")
            if not isinstance(variant, EntityCfg) and not callable(variant):
                raise TypeError(
                    f"{where} is of type {type(variant).__name__}: give a function that returns a "
                    "spec, an EntityCfg, or None."
                )
            if own and name not in own:
                raise ValueError(
                    f"{where} is a function, but '{min(own)}' is a configuration: give all "
                    "variants in the same form."
                )
        if not own:
            return
        first = next(iter(own.values()))
        usual = EntityCfg()
        for name in (each.name for each in fields(EntityCfg) if each.name != "spec_fn"):
            value = getattr(self, name)
            if value not in (getattr(usual, name), getattr(first, name)):
                raise ValueError(
                    f"VariantEntityCfg.{name} has no effect, because its variants are "
                    "configurations: set it in each of them."
                )
        for name, cfg in own.items():
            if cfg.init_state.joint_pos is None:
                raise ValueError(
                    f"Variant '{name}' of a VariantEntityCfg has init_state.joint_pos=None, but "
                    "variants have no keyframes: give joint positions."
                )

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
        variant = self.variants.get(name)
        if variant is None:
            raise ValueError(f"'{name}' is not a variant with a spec.")
        if isinstance(variant, EntityCfg):
            return variant
        own = {f.name: getattr(self, f.name) for f in fields(EntityCfg)}
        return EntityCfg(**{**own, "spec_fn": variant})

    def _of_first(self) -> VariantEntityCfg:
        """Return a copy that has the fields of its first variant, if variants have their own."""
        cfg = copy.copy(self)
        first = next(variant for variant in self.variants.values() if variant)
        if isinstance(first, EntityCfg):
            for each in fields(EntityCfg):
                if each.name != "spec_fn":
                    setattr(cfg, each.name, getattr(first, each.name))
        return cfg

    def build(self) -> Entity:
        """Make the entity."""
        return VariantEntity(self)


class _Alone(Entity):
    """One variant; only its spec and its actuators are used."""

    def _index_elements(self) -> None:
        if self.cfg.articulation is None:
            self.actuators = []
        else:
            super()._index_elements()


class VariantEntity(Entity):
    """An entity whose variants share one spec; each world's rows make it one of them."""

    cfg: VariantEntityCfg
    variant_metadata: VariantMetadata

    def __init__(self, cfg: VariantEntityCfg) -> None:
        cfg.check()
        super().__init__(cfg._of_first())
        self.variant_metadata.find_in(self.spec)

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the entity in the compiled scene and allocate its data."""
        metadata = self.variant_metadata
        if metadata.worlds is None:
            raise ValueError(
                "The simulation does not know of this entity's variants: build it with "
                "Simulation(..., variant_info=scene.collect_variant_info())."
            )
        super().initialize(mj_model, model, data, device)
        metadata.on_assigned = self._place_root
        self._place_root(slice(None))

    def _place_root(self, rows: slice | np.ndarray) -> None:
        """Give worlds the root state at reset of their variants, if these differ."""
        states = self._root_states
        if (states == states[0]).all():
            return
        assert self.variant_metadata.worlds is not None
        variants = self.variant_metadata.worlds[rows]
        default = self.data.default_root_state
        default[rows] = torch.tensor(states, dtype=default.dtype, device=default.device)[variants]

    def _prepare_spec(self) -> None:
        cfg = self.cfg
        specs: dict[str, mujoco.MjSpec | None] = {}
        states: dict[str, list[float]] = {}
        reference: dict[str, object] = {}
        for name, variant in cfg.variants.items():
            specs[name] = None
            if variant is None:
                continue
            alone = _Alone(cfg.of_variant(name))
            specs[name] = alone.spec
            states[name] = alone.initial_root_state()
            settings = settings_of(alone)
            reference = reference or settings
            for what, value in settings.items():
                if value != reference[what]:
                    raise_mismatch(next(iter(states)), name, what, reference[what], value)
        first = next(iter(states.values()))
        self._root_states = np.array([states.get(name, first) for name in cfg.variants])
        super()._prepare_spec()
        self.spec, self.variant_metadata = merge_variants(
            self.spec, specs, cfg.resolved_assignment()
        )

    def _spec_fn(self) -> mujoco.MjSpec:
        first = next(name for name, variant in self.cfg.variants.items() if variant is not None)
        return self.cfg.of_variant(first).spec_fn()


def settings_of(entity: Entity) -> dict[str, object]:
    """Return what is not in a spec, and must be equal in all variants of an entity, by name."""
    cfg = entity.cfg
    init = cfg.init_state
    articulation = cfg.articulation or EntityArticulationInfoCfg()
    # What a passthrough actuator does is in the spec.
    actuators: list[object] = []
    for actuator in entity.actuators:
        law: object = actuator.cfg
        if is_passthrough(actuator) and not actuator.has_delay:
            law = (type(actuator), actuator.cfg.transmission_type, actuator.command_fields)
        actuators.append((law, actuator.target_names))
    pose: object = None
    if entity.is_fixed_base:
        pose = (init.pos, init.rot)
    return {
        "initial joint state": (init.joint_pos, init.joint_vel, init.ball_joint_quat),
        "soft joint limits": articulation.soft_joint_pos_limit_factor,
        "actuator configurations": actuators,
        "order of actuators": cfg.sort_actuators,
        "pose of a fixed base": pose,
    }


@dataclass
class MergedEntityCfg(VariantEntityCfg):
    """Entities of merged buckets, whose worlds keep the variant of their bucket."""


def build_merged_variant_spec(cfg: VariantEntityCfg) -> tuple[mujoco.MjSpec, VariantMetadata]:
    """Return the merged spec of an entity, without actuators, and how its variants differ.

    Raises:
        ValueError: the variants cannot take turns.
    """
    entity = VariantEntity(cfg)
    return entity.spec, entity.variant_metadata
