"""The reference's import paths."""

from manyworlds.utils import lab_api, math
from manyworlds.utils.lab_api import math as lab_math
from manyworlds.utils.lab_api.math import quat_apply


def test_the_reference_imports_work():
    """Find every function under the reference's path, the same object."""
    assert lab_api.__doc__
    assert quat_apply is math.quat_apply
    assert all(getattr(lab_math, name) is getattr(math, name) for name in math.__all__)
    assert lab_math.__all__ == math.__all__
