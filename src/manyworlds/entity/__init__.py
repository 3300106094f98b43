"""Physical objects, whose elements are found by name, and read and written as tensors."""

from manyworlds.entity.data import EntityData
from manyworlds.entity.entity import (
    Entity,
    EntityArticulationInfoCfg,
    EntityCfg,
    SecondActuatorsWarning,
)
from manyworlds.entity.indexing import ELEMENT_KINDS, EntityIndexing
from manyworlds.entity.props import PropCfg
from manyworlds.entity.variants import VariantEntityCfg, VariantMetadata

__all__ = [
    "ELEMENT_KINDS",
    "Entity",
    "EntityArticulationInfoCfg",
    "EntityCfg",
    "EntityData",
    "EntityIndexing",
    "PropCfg",
    "SecondActuatorsWarning",
    "VariantEntityCfg",
    "VariantMetadata",
]
