"""The page of a lab in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from manyworlds.lab.page.tabs import Tabs, name_parts
from manyworlds.lab.readers.reader_process import ReaderProcess
from manyworlds.lab.readers.wire import Message
from manyworlds.utils.extras import check_extra


class PageProcess(ReaderProcess):
    """A page in a process of its own; it starts at once, beside what the caller does next.

    If the page's process ends by itself, a message of the log says so, and the lab goes on.

    Args:
        page: arguments of `PageShell`: `host`, `port` ...
        tabs: parts of each tab, as classes or by name `module:Class`.
        on_reload: called by the page's button *Reload*; None for no button.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: another process cannot import a part.
    """

    def __init__(
        self,
        page: Mapping[str, object],
        tabs: Tabs,
        on_reload: Callable[[], None] | None = None,
    ) -> None:
        check_extra("viser", "lab")
        self.errors: list[str] = []
        """Tracebacks of parts that failed; these are not updated any more."""
        self._on_reload = on_reload
        settings = {"page": page, "tabs": name_parts(tabs), "reloads": on_reload is not None}
        super().__init__(str(__package__), "page", settings)

    @property
    def url(self) -> str:
        """The address of the page; waits until it is served.

        Raises:
            ValueError: this machine cannot serve at the address that was asked for.
            RuntimeError: the page's process ended.
        """
        return self.wait_until_ready()["url"]

    @property
    def place(self) -> str:
        """The address of the page; empty while it is not known."""
        return self._ready["url"] if self._ready is not None else ""

    def start(self) -> None:
        """Keep the page up to date from now on, while a browser is connected."""
        self._tell("start")

    def look_at(self, body: int, *, follow: bool) -> None:
        """Point all cameras at a body, or let them follow it; see `InProcessPage.look_at`."""
        self._tell("look_at", body=body, follow=follow)

    def show_card(self, title: str, text: str) -> None:
        """Show an error at the top of the page; none if the text is empty."""
        self._tell("card", title=title, text=text)

    def hear(self, message: Message) -> bool:
        """Note a part that failed, or open the model again."""
        match message["tell"]:
            case "part_failed":
                self.errors.append(message["text"])
            case "reload":
                assert self._on_reload is not None and self._link is not None
                # Not in the thread of the link, which the new lab needs.
                self._link.submit(self._on_reload)
            case _:
                return False
        return True
