"""Entities that differ from world to world: validate, compile, merge, assign."""

from manyworlds.entity.variants.assignment import allocate_worlds
from manyworlds.entity.variants.config import (
    VariantEntity,
    VariantEntityCfg,
    build_merged_variant_spec,
)
from manyworlds.entity.variants.metadata import (
    GeomRole,
    InertialMode,
    SlotKey,
    VariantGeomSpec,
    VariantMetadata,
    VariantSlot,
)
from manyworlds.entity.variants.validate import (
    RESERVED_NAME_PREFIXES,
    BodySignature,
    JointSignature,
    validate_variant_specs,
)
from manyworlds.sim.fields.element_rows import VARIANT_DEPENDENT_FIELDS

__all__ = [
    "RESERVED_NAME_PREFIXES",
    "VARIANT_DEPENDENT_FIELDS",
    "BodySignature",
    "GeomRole",
    "InertialMode",
    "JointSignature",
    "SlotKey",
    "VariantEntity",
    "VariantEntityCfg",
    "VariantGeomSpec",
    "VariantMetadata",
    "VariantSlot",
    "allocate_worlds",
    "build_merged_variant_spec",
    "validate_variant_specs",
]
