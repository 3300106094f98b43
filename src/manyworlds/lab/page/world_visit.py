"""One world of a batch in a lab, on the page of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from manyworlds.lab.lab import LiveLab
from manyworlds.lab.lab_cfg import LabCfg
from manyworlds.lab.page.overlay_controls import OverlayPart
from manyworlds.lab.page.page_server import PageServer
from manyworlds.viewer.browser.overlays.table import frames_label
from manyworlds.viewer.browser.widgets import on_click

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.viser.visits import VisitedWorld


class LabVisit:
    """Lab in which a world of a batch continues, with a button to leave.

    Args:
        world: the world.

    Raises:
        ValueError: the world cannot go on alone; see `LiveLab.walk_into`.
    """

    def __init__(self, world: VisitedWorld) -> None:
        self._env_id = world.env_id
        self._paused = world.paused
        self._overlays = world.overlays
        self._frames = frames_label(world.frames)
        cfg = LabCfg(speed=min(max(world.speed, 0.05), 10.0), start_paused=True)
        self.lab = LiveLab.walk_into(world.env, world.env_id, world.policy, cfg)
        assert self.lab.environment is not None
        for name, values in world.commands.items():
            self.lab.environment.steer(name, values)
        self.page: PageServer | None = None

    def show(self, server: viser.ViserServer, leave: Callable[[], None]) -> None:
        """Serve the lab's page, and let the world run if the batch did."""

        def add_controls() -> None:
            label = f"Leave world {self._env_id}"
            button = server.gui.add_button(label, order=-1.0, color="gray")
            on_click(button, leave)

        self.page = PageServer(
            self.lab, server=server, on_build=add_controls, more_keys={"walk_in": leave}
        )
        part = self.page.parts["OverlayPart"]
        assert isinstance(part, OverlayPart)
        for name in self._overlays:
            part.boxes[name].value = True
        part.frames.value = self._frames
        self.lab.start()
        self.page.start()
        if not self._paused:
            self.lab.play()

    def close(self) -> None:
        """Stop the lab, and clear the page."""
        if self.page is not None:
            self.page.close()
        self.lab.stop()


def walk_in(world: VisitedWorld) -> LabVisit:
    """Open a world of a batch in a lab, for `ViserPlayViewer(walk_in=walk_in)`."""
    return LabVisit(world)
