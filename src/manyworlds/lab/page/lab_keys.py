"""Keys of the lab's page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyworlds.lab.page.camera_controls import CameraPart
from manyworlds.lab.page.overlay_controls import OverlayPart
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.page.top_bar import TopBar
from manyworlds.viewer.browser.keys import Key, add_keys, ignore_repeats


class LabKeys:
    """Registers all keys of the page; a key that is held down acts once.

    Args:
        ctx: context of the page.
        top_bar: part with the play button.
        overlays: part with the overlays; None for none.
        camera: part that moves the camera; None for none.
        collapsed: whether the panel is hidden at first.
    """

    def __init__(
        self,
        ctx: PageContext,
        top_bar: TopBar,
        overlays: OverlayPart | None,
        camera: CameraPart | None,
        collapsed: bool = False,
    ) -> None:
        self._panel = ctx.gui.main_panel
        self._collapsed = False
        keys = [
            Key("P", "Pause or play", ctx.toggle_pause),
            Key("space", "Pause or play", ctx.toggle_pause),
            Key("N", "Single step", lambda: ctx.call("step")),
            Key("R", "Reset", top_bar.reset),
            Key("tab", "Show or hide the panel", self._collapse),
        ]
        if camera is not None:
            keys.append(Key("F", "Frame the selected body, or all", camera.frame))
        if overlays is not None:
            keys += _overlay_keys(overlays)
        self.actions: dict[str, Callable[[], Any]] = {key.name: key.action for key in keys}
        """Actions by the name of their key."""
        ignore_repeats(ctx.gui)
        add_keys(ctx.gui, keys, ctx.attempt)
        if collapsed:
            self._collapse()

    def _collapse(self) -> None:
        self._collapsed = not self._collapsed
        if self._collapsed:
            self._panel.minimize()
        else:
            self._panel.expand()


def _overlay_keys(overlays: OverlayPart) -> list[Key]:
    return [
        Key("1", "Contacts", lambda: overlays.toggle("contact_forces", "contact_points")),
        Key("2", "Visual geoms", overlays.toggle_visuals),
        Key("3", "Collision geoms of robots", lambda: overlays.toggle("collision")),
        Key("4", "Joint axes and ranges", lambda: overlays.toggle("joints")),
        Key("5", "Other collision geoms", lambda: overlays.toggle("other_collision")),
        Key("6", "Color by island, body or robot", overlays.next_coloring),
        Key("7", "Tendons", lambda: overlays.toggle("tendons")),
    ]
