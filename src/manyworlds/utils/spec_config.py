"""Configs of `manyworlds.spec.config` under their public import path."""

from manyworlds.spec.config import (
    CameraCfg,
    CollisionCfg,
    GeomCfg,
    LightCfg,
    MaterialCfg,
    MeshCfg,
    SpecCfg,
    TextureCfg,
)

__all__ = [
    "CameraCfg",
    "CollisionCfg",
    "GeomCfg",
    "LightCfg",
    "MaterialCfg",
    "MeshCfg",
    "SpecCfg",
    "TextureCfg",
]
