"""Requests of the play page, one message type per control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco

from manyworlds.viewer.requests import ViewerRequest

if TYPE_CHECKING:
    from manyworlds.viewer.browser.world_grid import GroupKind


@dataclass(frozen=True)
class Redraw(ViewerRequest):
    """Draw a frame, also while the worlds are paused."""


@dataclass(frozen=True)
class LookAt(ViewerRequest):
    """Point the camera at the selected world, or at all worlds shown."""

    selected: bool


@dataclass(frozen=True)
class FollowRobots(ViewerRequest):
    """Keep the followed body of each world at a fixed place of the view."""

    on: bool


@dataclass(frozen=True)
class ShowWorldNumbers(ViewerRequest):
    """Show or hide the labels of the worlds."""

    on: bool


@dataclass(frozen=True)
class ShowDebugShapes(ViewerRequest):
    """Show or hide debug shapes."""

    on: bool


@dataclass(frozen=True)
class ShowDebugShapesOfAll(ViewerRequest):
    """Draw debug shapes of all worlds shown, or of the selected one only."""

    on: bool


@dataclass(frozen=True)
class ShowOverlay(ViewerRequest):
    """Show or hide an overlay of the selected world."""

    name: str
    """Name in `viewer.viser.overlays.OVERLAYS`."""
    on: bool


@dataclass(frozen=True)
class ShowMujocoOverlay(ViewerRequest):
    """Show or hide an overlay of MuJoCo's visualizer over the selected world."""

    flag: mujoco.mjtVisFlag
    on: bool


@dataclass(frozen=True)
class ShowFrames(ViewerRequest):
    """Draw the frames of bodies, geoms or sites of the selected world, or none."""

    frame: mujoco.mjtFrame


@dataclass(frozen=True)
class ShowGroup(ViewerRequest):
    """Show or hide a group of geoms or sites in all worlds."""

    kind: GroupKind
    group: int
    on: bool


@dataclass(frozen=True)
class LoadCheckpoint(ViewerRequest):
    """Play another checkpoint."""

    name: str
