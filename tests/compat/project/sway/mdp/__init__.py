"""Terms: those that come with the framework, and our own."""

from mjlab.envs.mdp import *  # noqa: F403

from .events import *  # noqa: F403
from .rewards import *  # noqa: F403
