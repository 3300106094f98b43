"""Server of a page whose lab may change, with a card for errors and a button to open it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from manyworlds.lab.page.in_process_page import InProcessPage
from manyworlds.lab.page.page_boxes import box_html
from manyworlds.lab.page.tabs import TABS, Tabs
from manyworlds.viewer.browser.markup import error_card_html
from manyworlds.viewer.browser.server import clear, new_server, page_url, route, stop_server

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.face import LabFace

_NETWORK_PATH = "/lab-network"


class PageShell:
    """Serves a page in this process: of a lab, of another one after it, or of none yet.

    Args:
        on_reload: called by the button *Reload*; None for no button.
        on_failure: see `InProcessPage`.
        host: see `InProcessPage`.
        port: see `InProcessPage`.
        frame_rate: see `InProcessPage`.
        collapsed: see `InProcessPage`.
        tabs: see `InProcessPage`.
        play_when_drawn: see `InProcessPage`.
        token: see `InProcessPage`.
        web_origins: see `InProcessPage`.
        network_port: port of the WebSocket of the lab's server; 0 if there is none.
    """

    def __init__(
        self,
        on_reload: Callable[[], None] | None = None,
        on_failure: Callable[[str, str], None] = lambda name, text: None,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        frame_rate: float = 30.0,
        collapsed: bool = False,
        tabs: Tabs = TABS,
        play_when_drawn: bool = False,
        token: str = "",
        web_origins: Sequence[str] = (),
        network_port: int = 0,
    ) -> None:
        self.server: viser.ViserServer = new_server(host, port, token, web_origins)
        self.url = page_url(self.server)
        """The address of the page."""
        self.page: InProcessPage | None = None
        """The page of the present lab; None before the first one."""
        self._on_reload, self._on_failure = on_reload, on_failure
        self._frame_rate, self._collapsed, self._tabs = frame_rate, collapsed, tabs
        self._play_when_drawn = play_when_drawn
        self._card = "", ""
        self._network_port = network_port
        self._add_card()

    def show(self, lab: LabFace) -> None:
        """Show a lab in place of the one before; `start` keeps it up to date."""
        self.end_page()
        clear(self.server)  # of the card and the button, which the page adds below its own parts
        try:
            self.page = InProcessPage(
                lab,
                server=self.server,
                frame_rate=self._frame_rate,
                collapsed=self._collapsed,
                tabs=self._tabs,
                on_failure=self._on_failure,
                on_build=self._add_card,
                play_when_drawn=self._play_when_drawn,
            )
        except Exception:
            clear(self.server)
            self._add_card()
            raise

    def start(self) -> None:
        """Keep the page up to date, while a browser is connected."""
        if self.page is not None:
            self.page.start()

    def show_card(self, title: str, text: str) -> None:
        """Show an error at the top of the page; none if the text is empty."""
        self._card = title, text
        content = error_card_html(title, text) if text else ""
        self.card.content = content
        # The button is below all tabs, from where the top of the page may be out of sight.
        self.note.content = content if self.page is not None else ""

    def end_page(self) -> None:
        """Remove the present lab from the page."""
        if self.page is not None:
            self.page.close()
            self.page = None
            self._add_card()

    def close(self) -> None:
        """Stop serving; a second call does nothing."""
        self.end_page()
        stop_server(self.server)

    def _add_card(self) -> None:
        gui = self.server.gui
        self.card = gui.add_html("", order=-1.0)
        self.note = gui.add_html("", order=1e12 - 1.0)
        self.show_card(*self._card)
        if self._network_port:
            address = route(self.server, _NETWORK_PATH, self._network_port)
            gui.add_html(box_html("network_box", f'"{address}"'))
        if self._on_reload is not None:
            reload = self._on_reload
            self.button = gui.add_button(
                "Reload",
                order=1e12,
                color="gray",
                hint="Read the model again from where it came; the page stays as it is.",
            )
            self.button.on_click(lambda _: reload())
