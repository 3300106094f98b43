"""The whole: entities put together, compiled, and given origins."""

from manyworlds.scene.scene import Scene, SceneCfg

__all__ = ["Scene", "SceneCfg"]
