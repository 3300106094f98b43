"""How a viewer looks at the worlds; owned by `manyworlds.utils.viewer_config`."""

from manyworlds.utils.viewer_config import ViewerConfig

__all__ = ["ViewerConfig"]
