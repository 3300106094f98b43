"""Debug shapes; defined in `manyworlds.utils.debug_visualizer`."""

from manyworlds.utils.debug_visualizer import DebugVisualizer, NullDebugVisualizer

__all__ = ["DebugVisualizer", "NullDebugVisualizer"]
