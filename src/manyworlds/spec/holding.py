"""Controls and activations with which servos hold a pose."""

from __future__ import annotations

import mujoco
import numpy as np

_POSITION = int(mujoco.mjtCtrlInput.mjINPUT_POS)
_FILTERS = (mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT)
# Where the parameters of each kind of controller have the largest rate of its setpoint. If there
# is one, the setpoint is the first activation.
_SLEW_RATES = {mujoco.mjtDyn.mjDYN_DCMOTOR: 7, mujoco.mjtDyn.mjDYN_PID: 1}


def holding_values(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Return `ctrl` and `act` with which servos pull to the pose that they have, at rest.

    The values of other actuators, such as motors and muscles, are zero.

    Args:
        model: the model.
        data: its data, with lengths of actuators at the pose.
    """
    ctrl = np.zeros(model.nu)
    act = np.zeros(model.na)
    for actuator in range(len(model.actuator_trntype)):
        setpoint = _setpoint(model, data, actuator)
        if setpoint is None:
            continue
        dynamics = mujoco.mjtDyn(model.actuator_dyntype[actuator])
        first = model.actuator_actadr[actuator]
        if dynamics == mujoco.mjtDyn.mjDYN_INTEGRATOR:
            if model.actuator_actlimited[actuator]:
                setpoint = np.clip(setpoint, *model.actuator_actrange[actuator])
            act[first] = setpoint
            continue
        ctrl[model.actuator_ctrladr[actuator]] = setpoint
        slew_rate = _SLEW_RATES.get(dynamics)
        slews = slew_rate is not None and model.actuator_dynprm[actuator, slew_rate] > 0.0
        if dynamics in _FILTERS or slews:
            act[first] = setpoint
    return ctrl, act


def _setpoint(model: mujoco.MjModel, data: mujoco.MjData, actuator: int) -> float | None:
    """Return the input at which a servo has no force at its length; None for other actuators."""
    length = float(data.actuator_length[model.actuator_outadr[actuator]])
    gain_type = mujoco.mjtGain(model.actuator_gaintype[actuator])
    if gain_type in (mujoco.mjtGain.mjGAIN_DCMOTOR, mujoco.mjtGain.mjGAIN_PID):
        if model.actuator_ctrlspec[actuator] & _POSITION:
            return length
        return None
    fixed = gain_type == mujoco.mjtGain.mjGAIN_FIXED
    affine = mujoco.mjtBias(model.actuator_biastype[actuator]) == mujoco.mjtBias.mjBIAS_AFFINE
    gain = float(model.actuator_gainprm[actuator, 0])
    constant, slope = model.actuator_biasprm[actuator, :2].tolist()
    if not (fixed and affine and gain and slope):
        return None
    if constant == 0.0 and gain == -slope:
        return length  # without rounding
    return -(constant + slope * length) / gain
