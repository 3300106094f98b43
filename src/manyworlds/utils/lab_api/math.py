"""The functions of `manyworlds.utils.math`, under the reference's import path."""

from manyworlds.utils.math import *  # noqa: F403
from manyworlds.utils.math import __all__ as __all__
