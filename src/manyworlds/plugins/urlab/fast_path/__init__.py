"""Fast path: the publisher of a world serves programs that draw it, as MuJoCo's window."""

from manyworlds.plugins.urlab.fast_path.reader import FastPathReader, PublisherError
from manyworlds.plugins.urlab.fast_path.registry import Publisher, find_publishers
from manyworlds.plugins.urlab.fast_path.server import FastPathServer
from manyworlds.plugins.urlab.fast_path.worlds import PublishedLab, PublishedWorld

FastPathMirror = FastPathReader
"""Former name of `FastPathReader`."""
LabSource = PublishedLab
"""Former name of `PublishedLab`."""
MirrorError = PublisherError
"""Former name of `PublisherError`."""
Source = PublishedWorld
"""Former name of `PublishedWorld`."""

__all__ = [
    "FastPathMirror",
    "FastPathReader",
    "FastPathServer",
    "LabSource",
    "MirrorError",
    "PublishedLab",
    "PublishedWorld",
    "Publisher",
    "PublisherError",
    "Source",
    "find_publishers",
]
