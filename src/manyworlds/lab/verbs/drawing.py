"""Verbs that read what overlays draw, and that set the view of recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import mujoco
import numpy as np

from manyworlds.lab.verb_error import near
from manyworlds.lab.verbs.fields import Numbers, Texts, Values, VerbError
from manyworlds.lab.verbs.registry import Reply, verb
from manyworlds.viewer.browser.captures import CAPTURES, capture

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_KINDS = {kind.name: kind for kind in CAPTURES}
_VIEW = Numbers(size=6, text="position [m], pitch, yaw and roll [degrees] of the camera")


@verb(captures=Values(text="arrays by kind and name, of one moment"))
def read_captures(
    lab: LiveLab,
    kinds: Annotated[list[str], Texts(text=f"some of {', '.join(_KINDS)}")],
) -> Reply:
    """Return arrays that no snapshot has: contacts, tendons, joints, groups of bodies."""
    for name in kinds:
        if name not in _KINDS:
            raise VerbError(
                "bad_value",
                f"read_captures: kinds must be some of {', '.join(_KINDS)}, got '{name}'"
                f"{near(name, _KINDS)}.",
            )
    wanted = [_KINDS[name] for name in kinds]

    def read(model: mujoco.MjModel, data: mujoco.MjData) -> Reply:
        captured = capture(model, data, wanted)
        return {kind.name: dict(vars(arrays)) for kind, arrays in captured.items()}

    return {"captures": lab.loop.do(read, edits_model=False)}


@verb(view=_VIEW)
def set_recording_view(lab: LiveLab, view: Annotated[np.ndarray, _VIEW]) -> Reply:
    """Set the view that frames of recordings get from now on."""
    pose = tuple(view.tolist())
    lab.recorder.camera = lambda: pose
    return {"view": list(pose)}
