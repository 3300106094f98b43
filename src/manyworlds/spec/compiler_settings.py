"""Compiler settings of a spec that is attached to another one."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.utils.mujoco_messages import mujoco_warnings

_SETTINGS = (
    "alignfree",
    "autolimits",
    "balanceinertia",
    "boundinertia",
    "boundmass",
    "inertiafromgeom",
    "inertiagrouprange",
)
"""Settings for which MuJoCo refuses to write a spec whose parts differ."""


def adopt_settings(part: mujoco.MjSpec, whole: mujoco.MjSpec) -> None:
    """Give a part the compiler settings of the spec that gets it, where this changes nothing.

    A file has one `<compiler>`, so that a spec whose parts have settings of their own cannot be
    written exactly. Most parts compile to the same model with either setting.

    Args:
        part: the spec to attach; it is changed.
        whole: the spec that it will be attached to.
    """
    different = [
        name
        for name in _SETTINGS
        if not np.array_equal(getattr(part.compiler, name), getattr(whole.compiler, name))
    ]
    before = _compiled(part) if different else None
    if before is None:
        return
    for name in different:
        own = np.array(getattr(part.compiler, name)).tolist()
        setattr(part.compiler, name, getattr(whole.compiler, name))
        if _compiled(part) != before:
            setattr(part.compiler, name, own)


def _compiled(spec: mujoco.MjSpec) -> bytes | None:
    """Return the model that a spec compiles to, as MuJoCo saves it; None if it does not."""
    with mujoco_warnings(lambda text: None):
        try:
            model = spec.copy().compile()
        except (ValueError, mujoco.FatalError):
            return None
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()
