"""Web page of a lab, served and drawn by this process."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyworlds.lab.page.lab_keys import LabKeys
from manyworlds.lab.page.lab_mirror import LabMirror
from manyworlds.lab.page.mouse_perturbation import PullPart
from manyworlds.lab.page.page_context import PageContext, Part
from manyworlds.lab.page.tabs import TABS, PartMaker, Tabs, find_parts
from manyworlds.lab.page.top_bar import PANEL_PX, TASK_PANEL_PX, TopBar
from manyworlds.lab.page.world_view import WorldView
from manyworlds.lab.verb_error import LabEndedError
from manyworlds.viewer.browser.server import clear, new_server, page_url, stop_server
from manyworlds.viewer.browser.typed_fields import wait_for_commits
from manyworlds.viewer.cpu_share import CpuShare

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.face import LabFace

_LOG = logging.getLogger(__name__)
_SHARE_BESIDE_STEPS = 0.01
"""Share of a core for drawing while a caller waits for steps, because drawing delays them: each
unit of drawing time costs about four of the steps."""

_SYNC_S = 0.25
"""Shortest time between two readings of the model's values [s]."""
_PROBE_PX = 16
"""Size of the picture by which a browser shows that it has drawn the world [pixel]."""


class InProcessPage:
    """Serves a page that shows and controls a lab of this process, or of another one.

    Parts read snapshots, at most once per frame, and change the world only by verbs; the loop does
    not depend on the page. Beside the loop of a lab in real time, use `LabPage`: here, drawing
    delays its steps.

    Args:
        lab: lab to show; the page does not start or stop it.
        host: address of the page; '0.0.0.0' accepts connections from the whole network, without a
            password.
        port: port of the page; if it is in use, the next free one is taken. See `url`.
        frame_rate: largest number of frames per second [1/s]; while a caller waits for steps, as
            many as take a hundredth of a core.
        collapsed: whether the panel is hidden until a user presses Tab.
        tabs: parts of each tab; see `TABS`.
        server: draw in this server instead of a new one; it is not stopped on `close`.
        on_failure: called with the name of a part that failed, and the traceback.
        on_build: called when the parts were created, at first and after each `LiveLab.rebuild`.
        play_when_drawn: whether a paused lab plays as soon as a browser has drawn the world.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: this machine cannot serve at that address.
    """

    def __init__(
        self,
        lab: LabFace,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        frame_rate: float = 30.0,
        collapsed: bool = False,
        tabs: Tabs = TABS,
        server: viser.ViserServer | None = None,
        on_failure: Callable[[str, str], None] = lambda name, text: None,
        on_build: Callable[[], None] = lambda: None,
        play_when_drawn: bool = False,
    ) -> None:
        self.lab = lab
        self._own_server = server is None
        self.server: viser.ViserServer = new_server(host, port) if server is None else server
        self.url = page_url(self.server)
        """The address of the page."""
        self.errors: list[str] = []
        """Tracebacks of parts that failed; these are not updated any more."""
        self._period = 1.0 / frame_rate
        self._next_sync = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._collapsed = collapsed
        self._tabs = {title: find_parts(parts) for title, parts in tabs.items()}
        self._on_build, self._on_failure = on_build, on_failure
        self._waits = play_when_drawn
        self._build()
        self.context.view.look(lab.snapshot, move_open=True)
        self.server.on_client_connect(self._welcome)

    def _build(self) -> None:
        """Create all parts for the present world."""
        lab, self._model = LabMirror(self.lab), self.lab.model
        with self.server.atomic():
            width = PANEL_PX if lab.environment is None else TASK_PANEL_PX
            self.server.gui.main_panel.set_width(width)
            wait_for_commits(self.server.gui)
            view = WorldView(self.server, lab.model, lab.snapshot)
            self.context = PageContext(lab, self.server, view)
            top_bar, pull = TopBar(self.context), PullPart(self.context)
            self.parts: dict[str, Part] = {"WorldView": view, "TopBar": top_bar, "PullPart": pull}
            group = self.server.gui.add_tab_group()
            for title, makers in {**_task_tab(lab), **self._tabs}.items():
                with group.add_tab(title):
                    for make in find_parts(makers):
                        part = make(self.context)
                        self.parts[type(part).__name__] = part
            overlays: Any = self.parts.get("OverlayPart")
            camera: Any = self.parts.get("CameraPart")
            self.keys = LabKeys(self.context, top_bar, overlays, camera, self._collapsed)
            self._on_build()
        self._due = dict.fromkeys(self.parts, 0.0)
        self.update()

    def _welcome(self, client: viser.ClientHandle) -> None:
        """Point the camera of a new browser at the present state; play when it has drawn that."""
        if self._stopping.is_set():
            return  # another page uses the server
        snapshot = self.lab.snapshot
        self.context.view.look(snapshot)
        self.context.view.look_from(client, snapshot)
        if not self._waits:
            return
        try:
            client.get_render(_PROBE_PX, _PROBE_PX)  # a tab in the background draws nothing
        except RuntimeError:
            return  # the browser was closed
        if self._waits and not self._stopping.is_set():
            self._waits = False
            if self.lab.snapshot.step == 0:  # no step was made before
                self.lab.call("set_paused", paused=False)

    def start(self) -> None:
        """Keep the page up to date, from its own thread, while a browser is connected.

        A second call does nothing.
        """
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name="manyworlds-page", daemon=True)
        self._thread.start()

    def update(self) -> None:
        """Show the newest snapshot in all parts that are due."""
        now = time.monotonic()
        if now >= self._next_sync:
            self._next_sync = now + _SYNC_S
            self.lab.sync_model()
        if self.lab.model is not self._model:  # it was rebuilt
            clear(self.server)
            self._build()
            return
        snapshot = self.lab.snapshot
        for name, due in list(self._due.items()):
            if now < due:
                continue
            self._due[name] = now + self.parts[name].period
            try:
                self.parts[name].update(snapshot)
            except LabEndedError:
                raise
            except Exception:
                self._report(name)
                del self._due[name]

    def close(self) -> None:
        """Stop serving, or clear a given server; a second call does nothing."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(3.0)
            self._thread = None
        if self._own_server:
            stop_server(self.server)
        else:
            clear(self.server)

    def _delays_steps(self) -> bool:
        """Return True while a caller waits for steps of a loop in this process."""
        loop = getattr(self.lab, "loop", None)
        return loop is not None and loop.has_requests

    def _report(self, name: str) -> None:
        """Log the present exception, and show it on the page from now on."""
        _LOG.exception("%s failed.", name)
        self.errors.append(traceback.format_exc())
        self._on_failure(name, self.errors[-1])
        self.context.failures.append(f"{name} failed: {self.errors[-1].splitlines()[-1]}")

    def _run(self) -> None:
        budget = CpuShare(_SHARE_BESIDE_STEPS, self._period)
        while not self._stopping.is_set():
            begun, busy = time.monotonic(), time.thread_time()
            if self.server.get_clients():
                try:
                    self.update()
                except LabEndedError:
                    return
                except Exception:  # of a part that cannot show the rebuilt world
                    self._report("The page")
            rest = begun + self._period - time.monotonic()
            if self._delays_steps():
                rest = budget.rest(time.thread_time() - busy)
            self._stopping.wait(max(0.0, rest))


def _task_tab(lab: LabMirror) -> dict[str, tuple[PartMaker, ...]]:
    """Return the tab of the task whose environment drives the world, if one does."""
    task = lab.environment
    if task is None:
        return {}
    from manyworlds.lab.page.task_panel import TaskPart

    return {"Task": (lambda ctx: TaskPart(ctx, task),)}
