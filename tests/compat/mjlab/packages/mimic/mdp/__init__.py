"""Terms: those of tracking tasks, and our own."""

from mjlab.tasks.tracking.mdp import *  # noqa: F403

from .commands import *  # noqa: F403
from .observations import *  # noqa: F403
from .rewards import *  # noqa: F403
from .terminations import *  # noqa: F403
