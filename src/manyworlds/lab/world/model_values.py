"""Values of one compiled model in another one of the same sizes."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from manyworlds.lab.world.model_facts import STATE

_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
STATISTICS = ("center", "extent", "meaninertia", "meanmass", "meansize")
"""Fields of `mujoco.MjModel.stat`."""

Differences = dict[str, tuple[tuple[np.ndarray, ...], np.ndarray]]
"""Elements of arrays of a model, by the name of the array: where, and their values."""


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


def differences(before: mujoco.MjModel, after: mujoco.MjModel) -> Differences:
    """Return the elements in which arrays of two models of the same sizes differ, of the second.

    Bits are compared: -0.0 is not 0.0, and NaN is NaN.
    """
    found: Differences = {}
    for name in dir(after):
        new = getattr(after, name)
        if name.startswith("_") or not isinstance(new, np.ndarray):
            continue
        bits = f"u{new.itemsize}"
        at = np.nonzero(getattr(before, name).view(bits) != new.view(bits))
        if len(at[0]):
            found[name] = (at, new[at])
    return found


def compute_derived(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Compute what follows from model and state; the state stays as it is to the last bit.

    Bodies that sleep wake: MuJoCo would neither move them nor what is fixed.
    """
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    flags = model.opt.enableflags
    model.opt.enableflags = flags & ~_SLEEP
    mujoco.mj_forward(model, data)
    model.opt.enableflags = flags
    mujoco.mj_setState(model, data, state, STATE)  # the solver's warm start, too
