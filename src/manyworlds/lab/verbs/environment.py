"""Verbs of the environment that drives a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from manyworlds.lab.verbs.fields import Field, Flag, Integer, Numbers, VerbError
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.env_driver import EnvironmentDriver
    from manyworlds.lab.lab import LiveLab

_TERM = Field(text="name of a command term of the task")


@verb()
def steer_command(
    lab: LiveLab,
    term: Annotated[str, _TERM],
    values: Annotated[
        np.ndarray | None, Numbers(text="values; left out, the task samples it again")
    ] = None,
) -> Reply:
    """Hold a command of the environment's task at values."""
    _environment(lab).steer(term, None if values is None else values.tolist())
    return {}


@verb()
def seek_motion(
    lab: LiveLab,
    term: Annotated[str, _TERM],
    frame: Annotated[int, Integer(low=0, text="frame of the motion")],
) -> Reply:
    """Set the robot to a frame of the motion that a command of the task plays."""
    _environment(lab).seek(term, frame)
    return {}


@verb(on=Flag())
def set_auto_reset(
    lab: LiveLab, on: Annotated[bool, Flag(text="true to reset at the end of an episode")]
) -> Reply:
    """Let the end of an episode reset the world, or be shown only."""
    _environment(lab).auto_reset = on
    return {"on": on}


def _environment(lab: LiveLab) -> EnvironmentDriver:
    if lab.environment is None:
        raise VerbError(
            "not_ready",
            "no environment drives this world: open it by its task with --driver environment, or "
            "by LiveLab.driven_by.",
        )
    return lab.environment
