"""Camera and contents of views; defined in `manyworlds.utils.viewer_config`."""

from manyworlds.utils.viewer_config import ViewerConfig

__all__ = ["ViewerConfig"]
