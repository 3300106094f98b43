"""Page that can open its model again after a change, and shows compilation errors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from manyworlds.lab.lab import LiveLab
from manyworlds.lab.page.lab_page import LabPage
from manyworlds.lab.world import CompileError
from manyworlds.viewer.browser.markup import error_card_html
from manyworlds.viewer.browser.server import clear, new_server, page_url, stop_server

if TYPE_CHECKING:
    import viser

_LOG = logging.getLogger(__name__)


class ReloadablePage:
    """A page whose lab can be opened again.

    If the model does not compile, a card shows MuJoCo's message, and the last valid world
    continues.

    Args:
        open_lab: function that opens the lab; the page starts and stops it.
        host: see `LabPage`.
        port: see `LabPage`.
        collapsed: see `LabPage`.
        play_when_drawn: see `LabPage`.
    """

    def __init__(
        self,
        open_lab: Callable[[], LiveLab],
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        collapsed: bool = False,
        play_when_drawn: bool = False,
    ) -> None:
        self.server: viser.ViserServer = new_server(host, port)
        self.url = page_url(self.server)
        """The address of the page."""
        self.page: LabPage | None = None
        """The page of the present lab; None before the first one that compiles."""
        self.error = ""
        """Reason why the last world did not compile; empty if it did."""
        self._open_lab, self._collapsed = open_lab, collapsed
        self._play_when_drawn = play_when_drawn
        self._add_card()

    def open(self) -> None:
        """Open the lab for the first time, or show why it does not compile.

        Raises:
            ValueError: the lab cannot be opened for another reason.
        """
        try:
            lab = self._open_lab()
        except CompileError as error:
            self._show(str(error))
            return
        if lab.source is None:
            lab.source = self._open_lab
        try:
            self.page = LabPage(
                lab,
                server=self.server,
                collapsed=self._collapsed,
                play_when_drawn=self._play_when_drawn,
            )
        except Exception:
            lab.stop()
            clear(self.server)
            self._add_card()
            raise
        self._show("")
        lab.start()
        self.page.start()

    def reload(self) -> None:
        """Rebuild the world from its source, which keeps the page; see `LiveLab.reload`.

        The present world continues if that fails.
        """
        try:
            if self.page is None:
                self.open()
            else:
                error = self.page.lab.reload().error
                self._show(error, "This model cannot be opened")
        except (ValueError, OSError) as error:
            self._show(str(error), "This model cannot be opened")
        except Exception as error:
            _LOG.exception("The model cannot be opened again.")
            self._show(f"{type(error).__name__}: {error}", "This model cannot be opened")

    def close(self) -> None:
        """Stop the lab, and stop serving."""
        self._end()
        stop_server(self.server)

    def _show(self, error: str, title: str = "This model does not compile") -> None:
        self.error = error
        self.card.content = error_card_html(title, error) if error else ""

    def _add_card(self) -> None:
        gui = self.server.gui
        self.card = gui.add_html("", order=-1.0)
        self.button = gui.add_button("Reload", order=1e12, color="gray")
        self.button.on_click(lambda _: self.reload())

    def _end(self) -> None:
        if self.page is not None:
            self.page.close()
            self.page.lab.stop()
            self.page = None
        else:
            clear(self.server)
