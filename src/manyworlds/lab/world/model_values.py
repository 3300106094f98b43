"""Values of one compiled model in another one of the same sizes."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np


def write_values(
    model: mujoco.MjModel, arrays: Mapping[str, np.ndarray], options: Mapping[str, np.ndarray]
) -> bool:
    """Write arrays and options into a model, if all arrays have the model's shapes.

    Returns:
        False if one does not, because they are those of another world; nothing is written then.
    """
    if any(getattr(model, name).shape != value.shape for name, value in arrays.items()):
        return False
    for name, value in arrays.items():
        np.copyto(getattr(model, name), value)
    for name, value in options.items():
        setattr(model.opt, name, value if value.ndim else value.item())
    return True
