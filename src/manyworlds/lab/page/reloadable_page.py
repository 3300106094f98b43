"""Page that can open its model again after a change, and shows compilation errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from manyworlds.lab.page.page_process import PageProcess
from manyworlds.lab.page.tabs import TABS

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.page.page_shell import PageShell

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
        in_process: whether this process draws the page; see `InProcessPage`.
        token: see `LabPage`.
        web_origins: see `LabPage`.
        network_port: see `LabPage`.
    """

    def __init__(
        self,
        open_lab: Callable[[], LiveLab],
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        collapsed: bool = False,
        play_when_drawn: bool = False,
        in_process: bool = False,
        token: str = "",
        web_origins: Sequence[str] = (),
        network_port: int = 0,
    ) -> None:
        self.lab: LiveLab | None = None
        """The present lab; None before the first one that compiles."""
        self.error = ""
        """Reason why the last world did not compile; empty if it did."""
        self._open_lab = open_lab
        self._lock = threading.Lock()
        self.shell: PageShell | PageProcess
        if in_process:
            from manyworlds.lab.page.page_shell import PageShell

            self.shell = PageShell(
                self.reload,
                host=host,
                port=port,
                collapsed=collapsed,
                play_when_drawn=play_when_drawn,
                token=token,
                web_origins=web_origins,
                network_port=network_port,
            )
        else:
            page = {"host": host, "port": port, "collapsed": collapsed, "token": token}
            page |= {"web_origins": list(web_origins)}
            page |= {"play_when_drawn": play_when_drawn, "network_port": network_port}
            self.shell = PageProcess(page, TABS, self.reload)

    @property
    def url(self) -> str:
        """The address of the page; waits until it is served."""
        return self.shell.url

    def open(self) -> None:
        """Open the lab for the first time, or show why it does not compile.

        Raises:
            ValueError: the lab cannot be opened for another reason.
            RuntimeError: the page's process ended.
        """
        from manyworlds.lab.world.world import CompileError

        try:
            lab = self._open_lab()
        except CompileError as error:
            self._show(str(error))
            return
        if lab.source is None:
            lab.source = self._open_lab
        try:
            self.shell.show(lab)
        except Exception:
            lab.stop()
            raise
        self.lab = lab
        self._show("")
        lab.start()
        self.shell.start()

    def reload(self) -> None:
        """Rebuild the world from its source, which keeps the page; see `LiveLab.reload`.

        The present world continues if that fails.
        """
        with self._lock:
            try:
                if self.lab is None:
                    self.open()
                else:
                    error = self.lab.reload().error
                    self._show(error, "This model cannot be opened")
            except (ValueError, OSError) as error:
                self._show(str(error), "This model cannot be opened")
            except Exception as error:
                _LOG.exception("The model cannot be opened again.")
                self._show(f"{type(error).__name__}: {error}", "This model cannot be opened")

    def close(self) -> None:
        """Stop the lab, and stop serving."""
        self.shell.close()
        if self.lab is not None:
            self.lab.stop()

    def _show(self, error: str, title: str = "This model does not compile") -> None:
        self.error = error
        self.shell.show_card(title, error)
