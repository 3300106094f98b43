"""Properties of MuJoCo's fields that both engines share.

Shapes are MuJoCo Warp's, which differ from MuJoCo C's where C stores matrices flat.
"""

from __future__ import annotations

from collections.abc import Collection

import mujoco
import numpy as np

from manyworlds.validation.names import near_matches

# State that a world carries from one step to the next; other arrays of data are derived from it.
STATE_FIELDS = (
    "time",
    "qpos",
    "qvel",
    "act",
    "history",
    "plastic",
    "qacc_warmstart",
    "ctrl",
    "qfrc_applied",
    "xfrc_applied",
    "eq_active",
    "mocap_pos",
    "mocap_quat",
    "userdata",
    "plugin_state",
    "tree_asleep",
)

# Trailing dimensions in MuJoCo Warp of fields that MuJoCo C stores as one flat row.
MATRIX_SHAPES: dict[str, tuple[int, int]] = {
    "xmat": (3, 3),
    "ximat": (3, 3),
    "geom_xmat": (3, 3),
    "site_xmat": (3, 3),
    "cam_xmat": (3, 3),
    "cam_mat0": (3, 3),
    "geom_aabb": (2, 3),
}

# Options that both engines show as one value per world; other options are plain numbers.
OPTION_FIELDS = frozenset(
    f"opt.{name}"
    for name in (
        "timestep",
        "tolerance",
        "ls_tolerance",
        "noslip_tolerance",
        "ccd_tolerance",
        "sleep_tolerance",
        "gravity",
        "wind",
        "magnetic",
        "density",
        "viscosity",
        "impratio",
    )
)

_RNE_POST = (
    mujoco.mjtSensor.mjSENS_ACCELEROMETER,
    mujoco.mjtSensor.mjSENS_FORCE,
    mujoco.mjtSensor.mjSENS_TORQUE,
    mujoco.mjtSensor.mjSENS_FRAMELINACC,
    mujoco.mjtSensor.mjSENS_FRAMEANGACC,
)
_SUBTREE_VEL = (
    mujoco.mjtSensor.mjSENS_SUBTREELINVEL,
    mujoco.mjtSensor.mjSENS_SUBTREEANGMOM,
)

# Fields that a physics step computes only when one of these sensors asks for them (None: never).
CONDITIONAL_FIELDS: dict[str, tuple[mujoco.mjtSensor, ...] | None] = {
    "qfrc_inverse": None,
    "energy": None,
    "cacc": _RNE_POST,
    "cfrc_int": _RNE_POST,
    "cfrc_ext": _RNE_POST,
    "subtree_linvel": _SUBTREE_VEL,
    "subtree_angmom": _SUBTREE_VEL,
}


def conditional_field_reason(model: mujoco.MjModel, field: str) -> str | None:
    """Return the reason why a step of `model` does not compute `field`; None if it does."""
    if field not in CONDITIONAL_FIELDS:
        return None
    sensors = CONDITIONAL_FIELDS[field]
    if sensors is None:
        if field == "energy" and model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY:
            return None
        return f"a physics step does not compute '{field}' with this model's options"
    if set(model.sensor_type.tolist()) & {int(sensor) for sensor in sensors}:
        return None
    names = ", ".join(sensor.name.removeprefix("mjSENS_").lower() for sensor in sensors)
    return f"a physics step computes '{field}' only if the model has a sensor of type {names}"


def field_shape(field: str, array_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that MuJoCo Warp gives one world's values of a field of MuJoCo C."""
    if field in MATRIX_SHAPES:
        return (array_shape[0], *MATRIX_SHAPES[field])
    return array_shape


def check_model_fields(
    mj_model: mujoco.MjModel, fields: Collection[str], known: Collection[str]
) -> None:
    """Check that names are arrays or options of a model.

    Args:
        mj_model: the compiled model.
        fields: the names; options are named 'opt.<name>'.
        known: the model's fields except assets, which only the model itself lists.

    Raises:
        ValueError: some are not; the message names all of these.
    """
    unknown = [
        name
        for name in fields
        if name not in known and not isinstance(getattr(mj_model, name, None), np.ndarray)
    ]
    if unknown:
        hints = "".join(near_matches(name, known) for name in unknown)
        raise ValueError(f"Fields not found in model: {', '.join(map(repr, unknown))}.{hints}")
