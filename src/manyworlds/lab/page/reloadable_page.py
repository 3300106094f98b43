"""Page that can open its model again after a change, and shows compilation errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from manyworlds.lab.page.lab_page import LabPage
from manyworlds.lab.page.page_cfg import PageCfg, PageKeywords

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.page.page_server import PageServer

_LOG = logging.getLogger(__name__)


class ReloadablePage:
    """A page whose lab can be opened again.

    If the model does not compile, a card shows MuJoCo's message, and the last valid world
    continues.

    Args:
        open_lab: function that opens the lab; the page starts and stops it.
        cfg: settings of the page.
        in_process: whether this process draws the page; see `PageServer`.
        **settings: fields of `PageCfg`, in place of those of `cfg`.
    """

    def __init__(
        self,
        open_lab: Callable[[], LiveLab],
        cfg: PageCfg | None = None,
        *,
        in_process: bool = False,
        **settings: Unpack[PageKeywords],
    ) -> None:
        self.lab: LiveLab | None = None
        """The present lab; None before the first one that compiles."""
        self.error = ""
        """Reason why the last world did not compile; empty if it did."""
        self._open_lab = open_lab
        self._lock = threading.Lock()
        self.page: PageServer | LabPage
        if in_process:
            from manyworlds.lab.page.page_server import PageServer

            self.page = PageServer(cfg=cfg, on_reload=self.reload, **settings)
        else:
            self.page = LabPage(cfg=cfg, on_reload=self.reload, **settings)

    @property
    def url(self) -> str:
        """The address of the page; waits until it is served."""
        return self.page.url

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
            self.page.show(lab)
        except Exception:
            lab.stop()
            raise
        self.lab = lab
        self._show("")
        lab.start()
        self.page.start()

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
        self.page.close()
        if self.lab is not None:
            self.lab.stop()

    def _show(self, error: str, title: str = "This model does not compile") -> None:
        self.error = error
        self.page.show_card(title, error)
