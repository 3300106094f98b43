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

    selected: bool | None
    """None changes between the two."""


@dataclass(frozen=True)
class FollowRobots(ViewerRequest):
    """Keep the followed body of each world at a fixed place of the view."""

    on: bool | None
    """None changes between on and off."""


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
    """Name in `viewer.browser.overlays.table.OVERLAYS`."""
    on: bool


@dataclass(frozen=True)
class ToggleOverlays(ViewerRequest):
    """Show overlays of the selected world, or hide them if the first of them is shown."""

    names: tuple[str, ...]


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
class WalkIn(ViewerRequest):
    """Open the selected world on the page, in place of the batch."""


@dataclass(frozen=True)
class Leave(ViewerRequest):
    """Return from an opened world to the batch."""


@dataclass(frozen=True)
class LoadCheckpoint(ViewerRequest):
    """Play another checkpoint."""

    name: str
