"""What the actuators' tests share with others."""

from tests.sim.conftest import quick_compilation
from tests.utils.conftest import settings

__all__ = ["quick_compilation", "settings"]
