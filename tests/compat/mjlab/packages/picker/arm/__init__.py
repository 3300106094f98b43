"""The arm."""

from .arm_constants import ARM_ACTION_SCALE as ARM_ACTION_SCALE
from .arm_constants import get_arm_cfg as get_arm_cfg
