"""Program that serves the page of a lab; see `ReaderProgram`."""

from __future__ import annotations

from manyworlds.lab.page.page_cfg import PageCfg
from manyworlds.lab.page.page_server import PageServer
from manyworlds.lab.readers.reader_program import ReaderProgram, run_program
from manyworlds.lab.readers.wire import Message


class PageProgram(ReaderProgram):
    """Serves the page, and does what the lab's process says."""

    _page: PageServer

    def open(self, settings: Message) -> dict[str, object]:
        """Serve an empty page, and return its address."""
        on_reload = None
        if settings["reloads"]:
            on_reload = lambda: self.lab.tell("reload")  # noqa: E731
        self._page = PageServer(
            cfg=PageCfg(**settings["page"]),
            on_reload=on_reload,
            on_failure=lambda name, text: self.lab.tell("part_failed", name=name, text=text),
        )
        return {"url": self._page.url}

    def show(self) -> None:
        """Show the lab in place of the one before."""
        self._page.end_lab()
        self.lab.sync_model()
        self._page.show(self.lab)

    def take(self, message: Message) -> bool:
        """Start, point the cameras, or show an error."""
        match message["event"]:
            case "start":
                self._page.start()
            case "look_at":
                self._page.look_at(message["body"], follow=message["follow"])
            case "card":
                self._page.show_card(message["title"], message["text"])
            case _:
                return False
        return True


def main() -> None:
    """Serve a page until SIGTERM; the only argument is the file descriptor of the wire."""
    run_program(PageProgram)
