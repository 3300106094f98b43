"""Terms: those of manipulation tasks, and our own."""

from mjlab.tasks.manipulation.mdp import *  # noqa: F403

from .actions import *  # noqa: F403
from .curriculums import *  # noqa: F403
from .recorders import *  # noqa: F403
from .rewards import *  # noqa: F403
