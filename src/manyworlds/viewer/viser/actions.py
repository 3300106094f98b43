"""Actions of the play page, one message type per control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco

from manyworlds.viewer.actions import Action

if TYPE_CHECKING:
    from manyworlds.viewer.browser.world_grid import GroupKind


@dataclass(frozen=True)
class Redraw(Action):
    """Draw a frame, also while the worlds are paused."""


@dataclass(frozen=True)
class LookAt(Action):
    """Point the camera at the selected world, or at all worlds shown."""

    selected: bool


@dataclass(frozen=True)
class FollowRobots(Action):
    """Keep the followed body of each world at a fixed place of the view."""

    on: bool


@dataclass(frozen=True)
class ShowWorldNumbers(Action):
    """Show or hide the labels of the worlds."""

    on: bool


@dataclass(frozen=True)
class ShowDebugShapes(Action):
    """Show or hide debug shapes."""

    on: bool


@dataclass(frozen=True)
class ShowDebugShapesOfAll(Action):
    """Draw debug shapes of all worlds shown, or of the selected one only."""

    on: bool


@dataclass(frozen=True)
class ShowOverlay(Action):
    """Show or hide an overlay of the selected world."""

    name: str
    """Name in `viewer.viser.overlays.OVERLAYS`."""
    on: bool


@dataclass(frozen=True)
class ShowMujocoOverlay(Action):
    """Show or hide an overlay of MuJoCo's visualizer over the selected world."""

    flag: mujoco.mjtVisFlag
    on: bool


@dataclass(frozen=True)
class ShowFrames(Action):
    """Draw the frames of bodies, geoms or sites of the selected world, or none."""

    frame: mujoco.mjtFrame


@dataclass(frozen=True)
class ShowGroup(Action):
    """Show or hide a group of geoms or sites in all worlds."""

    kind: GroupKind
    group: int
    on: bool


@dataclass(frozen=True)
class SteerCommand(Action):
    """Set the command of the selected world, or let it be sampled again."""

    term: str
    values: Sequence[float] | None


@dataclass(frozen=True)
class SeekMotion(Action):
    """Set the selected world's robot to a frame of its motion."""

    term: str
    frame: int


@dataclass(frozen=True)
class LoadCheckpoint(Action):
    """Play another checkpoint."""

    name: str
