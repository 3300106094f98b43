"""Web page of a lab, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from manyworlds.lab.page.page_cfg import PageCfg, PageKeywords
from manyworlds.lab.page.tabs import name_parts
from manyworlds.lab.readers.reader_process import ReaderProcess
from manyworlds.lab.readers.wire import Message
from manyworlds.utils.extras import check_extra

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab


class LabPage(ReaderProcess):
    """Serves a page that shows and controls a lab, from a process of its own.

    The page reads snapshots from shared memory, and changes the world only by verbs, so that it
    does not delay the steps. If its process ends, the lab keeps running; if the lab's process ends,
    the page shows that, and ends.

    Args:
        lab: lab to show; the page does not start or stop it. Without one, the process starts
            beside what the caller does next, and `show` gives it a lab.
        cfg: settings of the page.
        on_reload: called by the page's button *Reload*; None for no button.
        **settings: fields of `PageCfg`, in place of those of `cfg`.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: this machine cannot serve at that address, or a part cannot be imported.
        RuntimeError: the page's process ended.
    """

    lab: LiveLab
    """The lab that is shown."""

    def __init__(
        self,
        lab: LiveLab | None = None,
        cfg: PageCfg | None = None,
        *,
        on_reload: Callable[[], None] | None = None,
        **settings: Unpack[PageKeywords],
    ) -> None:
        check_extra("viser", "lab")
        cfg = replace(cfg or PageCfg(), **settings)
        self.errors: list[str] = []
        """Tracebacks of parts that failed; these are not updated any more."""
        self._on_reload = on_reload
        page = {**vars(cfg), "tabs": name_parts(cfg.tabs), "web_origins": list(cfg.web_origins)}
        super().__init__(str(__package__), "page", {"page": page, "reloads": on_reload is not None})
        if lab is not None:
            try:
                self.show(lab)
            except BaseException:
                self.close()
                raise

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

    @property
    def pid(self) -> int:
        """Id of the page's process."""
        return self.process.pid

    def show(self, lab: LiveLab) -> None:
        """Show a lab in place of the one before, and wait until the page has taken it."""
        super().show(lab)
        self.lab = lab

    def start(self) -> None:
        """Keep the page up to date from now on, while a browser is connected."""
        self._tell("start")

    def frame(self, name: str = "") -> None:
        """Point the cameras of all browsers at a robot or a body, or at everything that moves.

        The camera belongs to the page, not to the world, so that this is no verb of the lab.

        Args:
            name: name of the robot or body; everything if empty.

        Raises:
            KeyError: there is no such robot or body.
        """
        self._look_at(name, follow=False)

    def follow(self, name: str = "") -> None:
        """Keep a robot or a body in the center of the view, from the next frame on.

        Args:
            name: name of the robot or body; nothing is followed if empty.

        Raises:
            KeyError: there is no such robot or body.
        """
        self._look_at(name, follow=True)

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

    def _look_at(self, name: str, *, follow: bool) -> None:
        from manyworlds.lab.page.camera_controls import find_target

        body = find_target(self.lab.world.elements, name)
        self._tell("look_at", body=body, follow=follow)
