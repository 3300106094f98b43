"""Program that serves the page of a lab; see `ReaderProgram`."""

from __future__ import annotations

import time

from manyworlds.lab.errors import LabEndedError
from manyworlds.lab.page.page_shell import PageShell
from manyworlds.lab.page.tabs import find_parts
from manyworlds.lab.readers.reader_program import ReaderProgram, run_program
from manyworlds.lab.readers.wire import Message

_FAREWELL_S = 1.0  # time for browsers to get the last message


class PageProgram(ReaderProgram):
    """Serves the page, and does what the lab's process says."""

    _shell: PageShell | None = None

    def open(self, settings: Message) -> dict[str, object]:
        """Serve an empty page, and return its address."""
        for names in settings["tabs"].values():
            find_parts(names)  # a wrong name fails before the page has an address
        self._shell = PageShell(
            (lambda: self.lab.tell("reload")) if settings["reloads"] else None,
            lambda name, text: self.lab.tell("part_failed", name=name, text=text),
            tabs=settings["tabs"],
            **settings["page"],
        )
        return {"url": self._shell.url}

    def show(self) -> None:
        """Show the lab in place of the one before."""
        assert self._shell is not None
        self._shell.end_page()
        self.lab.sync_model()
        self._shell.show(self.lab)

    def take(self, message: Message) -> bool:
        """Start, point the cameras, or show an error."""
        shell = self._shell
        assert shell is not None
        match message["event"]:
            case "start":
                shell.start()
            case "look_at":
                assert shell.page is not None, "a lab is shown"
                shell.page.look_at(message["body"], follow=message["follow"])
            case "card":
                shell.show_card(message["title"], message["text"])
            case _:
                return False
        return True

    def close(self) -> None:
        """Tell the browsers that the lab has ended."""
        if self._shell is not None:
            self._shell.show_card("The lab has ended", str(LabEndedError()))
            time.sleep(_FAREWELL_S)


def main() -> None:
    """Serve a page until SIGTERM; the only argument is the file descriptor of the wire."""
    run_program(PageProgram)
