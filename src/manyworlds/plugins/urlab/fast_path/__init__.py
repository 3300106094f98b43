"""Fast path: the publisher of a world serves programs that draw it, such as MuJoCo's window."""

from manyworlds.plugins.urlab.fast_path.mirror import FastPathMirror, MirrorError
from manyworlds.plugins.urlab.fast_path.registry import Publisher, find_publishers
from manyworlds.plugins.urlab.fast_path.server import FastPathServer
from manyworlds.plugins.urlab.fast_path.sources import LabSource, Source

__all__ = [
    "FastPathMirror",
    "FastPathServer",
    "LabSource",
    "MirrorError",
    "Publisher",
    "Source",
    "find_publishers",
]
