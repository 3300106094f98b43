"""Requests of users to a viewer, one message type per request."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class ViewerAction(enum.Enum):
    """Names of actions, for `BaseViewer.request_action`."""

    RESET = "reset"
    TOGGLE_PAUSE = "toggle_pause"
    SINGLE_STEP = "single_step"
    RESET_SPEED = "reset_speed"
    SPEED_UP = "speed_up"
    SPEED_DOWN = "speed_down"
    PREV_ENV = "prev_env"
    NEXT_ENV = "next_env"
    TOGGLE_PLOTS = "toggle_plots"
    TOGGLE_DEBUG_VIS = "toggle_debug_vis"
    TOGGLE_SHOW_ALL_ENVS = "toggle_show_all_envs"
    FETCH_CHECKPOINT = "fetch_checkpoint"
    GUI_RESET = "gui_reset"
    CUSTOM = "custom"


@dataclass(frozen=True)
class ViewerRequest:
    """Request to a viewer."""


@dataclass(frozen=True)
class Reset(ViewerRequest):
    """Reset all worlds."""


@dataclass(frozen=True)
class TogglePause(ViewerRequest):
    """Pause or resume."""


@dataclass(frozen=True)
class SingleStep(ViewerRequest):
    """Pause, and run one environment step."""


@dataclass(frozen=True)
class ResetSpeed(ViewerRequest):
    """Return to real time."""


@dataclass(frozen=True)
class SpeedUp(ViewerRequest):
    """Set the next higher speed."""


@dataclass(frozen=True)
class SpeedDown(ViewerRequest):
    """Set the next lower speed."""


@dataclass(frozen=True)
class SelectEnv(ViewerRequest):
    """Select a world."""

    env_idx: int


@dataclass(frozen=True)
class PreviousEnv(ViewerRequest):
    """Select the world before the selected one."""


@dataclass(frozen=True)
class NextEnv(ViewerRequest):
    """Select the world after the selected one."""


@dataclass(frozen=True)
class TogglePlots(ViewerRequest):
    """Show or hide plots."""


@dataclass(frozen=True)
class ToggleDebugVis(ViewerRequest):
    """Show or hide debug shapes."""


@dataclass(frozen=True)
class ToggleShowAllEnvs(ViewerRequest):
    """Draw debug shapes of the selected world only, or of all worlds."""


@dataclass(frozen=True)
class FetchCheckpoint(ViewerRequest):
    """Load the newest checkpoint."""


@dataclass(frozen=True)
class ApplyGuiReset(ViewerRequest):
    """Reset the selected world to the state that a user requested of command terms."""


@dataclass(frozen=True)
class SteerCommand(ViewerRequest):
    """Set the command of the selected world, or let it be sampled again."""

    term: str
    values: Sequence[float] | None


@dataclass(frozen=True)
class SeekMotion(ViewerRequest):
    """Set the selected world's robot to a frame of its motion."""

    term: str
    frame: int


@dataclass(frozen=True)
class Custom(ViewerRequest):
    """Request that a subclass of a viewer adds."""

    payload: Any = None


BY_NAME: dict[ViewerAction, ViewerRequest] = {
    ViewerAction.RESET: Reset(),
    ViewerAction.TOGGLE_PAUSE: TogglePause(),
    ViewerAction.SINGLE_STEP: SingleStep(),
    ViewerAction.RESET_SPEED: ResetSpeed(),
    ViewerAction.SPEED_UP: SpeedUp(),
    ViewerAction.SPEED_DOWN: SpeedDown(),
    ViewerAction.PREV_ENV: PreviousEnv(),
    ViewerAction.NEXT_ENV: NextEnv(),
    ViewerAction.TOGGLE_PLOTS: TogglePlots(),
    ViewerAction.TOGGLE_DEBUG_VIS: ToggleDebugVis(),
    ViewerAction.TOGGLE_SHOW_ALL_ENVS: ToggleShowAllEnvs(),
    ViewerAction.FETCH_CHECKPOINT: FetchCheckpoint(),
    ViewerAction.GUI_RESET: ApplyGuiReset(),
}
"""Messages of the actions that have a name."""


def action_of(name: str, payload: object = None) -> ViewerRequest:
    """Return the message of a named action.

    Args:
        name: value of a `ViewerAction`, in lower or upper case.
        payload: payload of 'custom'; no other action takes one.

    Raises:
        ValueError: there is no such action, or it takes no payload.
    """
    if name.upper() not in ViewerAction.__members__:
        names = ", ".join(action.value for action in ViewerAction)
        raise ValueError(f"There is no viewer action '{name}': use one of {names}.")
    kind = ViewerAction[name.upper()]
    if kind is ViewerAction.CUSTOM:
        return Custom(payload)
    if payload is not None:
        raise ValueError(f"The viewer action '{name}' takes no payload, got {payload!r}.")
    return BY_NAME[kind]


def name_of(action: ViewerRequest) -> ViewerAction:
    """Return the name of a message; `ViewerAction.CUSTOM` where it has none of its own."""
    return next((name for name, one in BY_NAME.items() if one == action), ViewerAction.CUSTOM)
