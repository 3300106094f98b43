"""Configs of `manyworlds.spec.config` at the path that the project's specification names."""

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
