"""Web page of a lab."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyworlds.lab.lab import LiveLab
from manyworlds.lab.page.body_tree import TreePart
from manyworlds.lab.page.camera_controls import CameraPart
from manyworlds.lab.page.camera_images import CameraImagePart
from manyworlds.lab.page.keyframes import KeyframePart
from manyworlds.lab.page.lab_keys import LabKeys
from manyworlds.lab.page.mocap_handles import MocapPart
from manyworlds.lab.page.mouse_perturbation import PullPart
from manyworlds.lab.page.overlay_controls import OverlayPart
from manyworlds.lab.page.page_context import PageContext, Part
from manyworlds.lab.page.physics_options import OptionsPart
from manyworlds.lab.page.plots import PlotPart
from manyworlds.lab.page.pose_sequences import SequencePart
from manyworlds.lab.page.readouts import ReadoutPart
from manyworlds.lab.page.record_and_replay import RecordPart
from manyworlds.lab.page.robot_sliders import RobotPart
from manyworlds.lab.page.saved_states import SavedStatePart
from manyworlds.lab.page.top_bar import PANEL_PX, TASK_PANEL_PX, TopBar
from manyworlds.lab.page.world_view import WorldView
from manyworlds.viewer.browser.server import clear, new_server, page_url, stop_server
from manyworlds.viewer.cpu_share import CpuShare

if TYPE_CHECKING:
    import viser

_LOG = logging.getLogger(__name__)
PartMaker = Callable[[PageContext], Part]
TABS: dict[str, tuple[PartMaker, ...]] = {
    "Robot": (RobotPart, SequencePart),
    "Watch": (PlotPart, ReadoutPart),
    "View": (CameraPart, OverlayPart, MocapPart),
    "Cameras": (CameraImagePart,),
    "World": (TreePart, OptionsPart),
    "States": (KeyframePart, SavedStatePart),
    "Record": (RecordPart,),
}
"""Parts of each tab, by its title."""
_SHARE_BESIDE_STEPS = 0.01
"""Share of a core for drawing while a caller waits for steps, because drawing delays them: each
unit of drawing time costs about four of the steps."""

_PROBE_PX = 16
"""Size of the picture by which a browser shows that it has drawn the world [pixel]."""


class LabPage:
    """Serves a page that shows and controls a lab.

    Parts read snapshots, at most once per frame, and change the world only by methods of the lab;
    the loop does not depend on the page.

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
        on_build: called when the parts were created, at first and after each `LiveLab.rebuild`.
        play_when_drawn: whether a paused lab plays as soon as a browser has drawn the world.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: this machine cannot serve at that address.
    """

    def __init__(
        self,
        lab: LiveLab,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        frame_rate: float = 30.0,
        collapsed: bool = False,
        tabs: dict[str, tuple[PartMaker, ...]] = TABS,
        server: viser.ViserServer | None = None,
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
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._tabs, self._collapsed = dict(tabs), collapsed
        self._on_build = on_build
        self._waits = play_when_drawn
        self._build()
        self.context.view.look(lab.snapshot, move_open=True)
        self.server.on_client_connect(self._welcome)

    def _build(self) -> None:
        """Create all parts for the present world."""
        lab, self._world = self.lab, self.lab.world
        with self.server.atomic():
            width = PANEL_PX if lab.environment is None else TASK_PANEL_PX
            self.server.gui.main_panel.set_width(width)
            view = WorldView(self.server, lab.world.model, lab.snapshot)
            self.context = PageContext(lab, self.server, view)
            top_bar, pull = TopBar(self.context), PullPart(self.context)
            self.parts: dict[str, Part] = {"WorldView": view, "TopBar": top_bar, "PullPart": pull}
            group = self.server.gui.add_tab_group()
            for title, makers in {**_task_tab(lab), **self._tabs}.items():
                with group.add_tab(title):
                    for make in makers:
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
                self.lab.play()

    def start(self) -> None:
        """Keep the page up to date, from its own thread, while a browser is connected."""
        self._thread = threading.Thread(target=self._run, name="manyworlds-page", daemon=True)
        self._thread.start()

    def update(self) -> None:
        """Show the newest snapshot in all parts that are due."""
        if self.lab.world is not self._world:  # it was rebuilt
            self._close_parts()
            clear(self.server)
            self._build()
        snapshot, now = self.lab.snapshot, time.monotonic()
        for name, due in list(self._due.items()):
            if now < due:
                continue
            self._due[name] = now + self.parts[name].period
            try:
                self.parts[name].update(snapshot)
            except Exception:
                self._report(name)
                del self._due[name]

    def close(self) -> None:
        """Stop serving, or clear a given server; a second call does nothing."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(3.0)
            self._thread = None
        self._close_parts()
        if self._own_server:
            stop_server(self.server)
        else:
            clear(self.server)

    def _close_parts(self) -> None:
        """End the threads of parts that have some."""
        for part in self.parts.values():
            if (close := getattr(part, "close", None)) is not None:
                close()

    def _report(self, name: str) -> None:
        """Log the present exception, and show it on the page from now on."""
        _LOG.exception("%s failed.", name)
        self.errors.append(traceback.format_exc())
        self.context.failures.append(f"{name} failed: {self.errors[-1].splitlines()[-1]}")

    def _run(self) -> None:
        budget = CpuShare(_SHARE_BESIDE_STEPS, self._period)
        while not self._stopping.is_set():
            begun, busy = time.monotonic(), time.thread_time()
            if self.server.get_clients():
                try:
                    self.update()
                except Exception:  # of a part that cannot show the rebuilt world
                    self._report("The page")
            rest = begun + self._period - time.monotonic()
            if self.lab.loop.has_requests:
                rest = budget.rest(time.thread_time() - busy)
            self._stopping.wait(max(0.0, rest))


def _task_tab(lab: LiveLab) -> dict[str, tuple[PartMaker, ...]]:
    """Return the tab of the task whose environment drives the world, if one does."""
    driver = lab.environment
    if driver is None:
        return {}
    from manyworlds.lab.page.task_panel import TaskPart

    return {"Task": (lambda ctx: TaskPart(ctx, driver),)}
