"""Scenes: entities attached to one spec, compiled, with an origin for each world."""

from manyworlds.scene.scene import Scene, SceneCfg

__all__ = ["Scene", "SceneCfg"]
