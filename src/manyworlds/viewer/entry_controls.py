"""Controls of a training's page that open the selected world in a lab."""

from __future__ import annotations

import html
import logging
import threading
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.training_view import WorldLab

_LOG = logging.getLogger(__name__)


class EntryControls:
    """The button *Walk in*, and a link to the lab.

    The lab is prepared when the first browser opens the page.

    Args:
        server: server of the page.
        walk_in: the lab.
    """

    def __init__(self, server: viser.ViserServer, walk_in: WorldLab) -> None:
        self._lab = walk_in
        self._world = 0
        self._busy = threading.Lock()
        self.button = server.gui.add_button(
            "", icon=cast("viser.IconName", "door-enter"), hint=_HINT
        )
        """The button."""
        self.text = server.gui.add_html("")
        """Link to the lab, or the reason why there is none."""
        self.show(0)
        self.button.on_click(lambda _: self.enter())
        self._warming = False
        server.on_client_connect(lambda _: self._warm())

    def show(self, world: int) -> None:
        """Name the world that the button opens."""
        self._world = world
        self.button.label = f"Walk in to world {world}"

    def enter(self) -> None:
        """Open the selected world, and show the link; do nothing while one is being opened."""
        if not self._busy.acquire(blocking=False):
            return
        world = self._world
        try:
            self.button.disabled = True
            self.text.content = f"<p>Opening world {world} ...</p>"
            url = html.escape(self._lab.enter(world), quote=True)
            self.text.content = (
                f'<p><a href="{url}" target="_blank" rel="noopener">World {world} in the lab</a>: '
                "it continues from its present state, with the current policy, as does the "
                "training.</p>"
            )
        except RuntimeError as error:
            self.text.content = f"<p>{html.escape(str(error))}</p>"
        finally:
            self.button.disabled = False
            self._busy.release()

    def _warm(self) -> None:
        """Start a lab in the background, so that a world opens faster."""
        if self._warming:
            return
        self._warming = True

        def warm() -> None:
            try:
                self._lab.warm()
            except RuntimeError as error:  # the button says it again
                _LOG.warning("The lab for worlds of the training could not start: %s", error)

        threading.Thread(target=warm, name="warm lab", daemon=True).start()


_HINT = "Open this world in a lab; only what is sent there reaches the training"
