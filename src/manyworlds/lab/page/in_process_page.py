"""Web page of a lab, served and drawn by this process."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from manyworlds.lab.errors import LabEndedError
from manyworlds.lab.page.camera_controls import find_target
from manyworlds.lab.page.drive_part import DrivePart
from manyworlds.lab.page.lab_keys import lab_keys
from manyworlds.lab.page.lab_mirror import LabMirror
from manyworlds.lab.page.mouse_perturbation import PullPart
from manyworlds.lab.page.page_context import PageContext, Part
from manyworlds.lab.page.page_parts import PageParts
from manyworlds.lab.page.tabs import TABS, PartMaker, Tabs, find_parts
from manyworlds.lab.page.timeline_bar import TimelinePart
from manyworlds.lab.page.top_bar import PANEL_PX, TASK_PANEL_PX, TopBar
from manyworlds.lab.page.tree_lines import TreeClicksPart
from manyworlds.lab.page.world_view import WorldView
from manyworlds.viewer.browser.cameras import keep_fitted
from manyworlds.viewer.browser.kept_tabs import keep_tabs
from manyworlds.viewer.browser.server import clear, new_server, page_url, stop_server
from manyworlds.viewer.browser.typed_fields import wait_for_commits
from manyworlds.viewer.cpu_share import CpuShare

if TYPE_CHECKING:
    import mujoco
    import viser

    from manyworlds.lab.face import LabFace
    from manyworlds.lab.loop.snapshot import Snapshot

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
        host: address of the page; '0.0.0.0' accepts connections from the whole network, with the
            token that `url` has.
        port: port of the page; if it is in use, the next free one is taken. See `url`.
        frame_rate: largest number of frames per second [1/s]; while a caller waits for steps, as
            many as take a hundredth of a core.
        collapsed: whether the panel is hidden until a user presses Tab.
        tabs: parts of each tab; see `TABS`.
        server: draw in this server instead of a new one; it is not stopped on `close`. Unlike a new
            one, a server that viser made answers pages of any web site.
        on_failure: called with the name of a part that failed, and the traceback.
        on_build: called when the parts were created; they stay after a `LiveLab.rebuild`.
        play_when_drawn: whether a paused lab plays as soon as a browser has drawn the world.
        more_keys: functions of further keys, by name of the action in `viewer.browser.keys.KEYS`.
        token: token of a page that other machines may open; a random one if empty.
        web_origins: further origins of pages that may talk to this one, and show it in a frame,
            such as `https://hub.example.org` of a proxy or a notebook.

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
        more_keys: Mapping[str, Callable[[], object]] | None = None,
        token: str = "",
        web_origins: Sequence[str] = (),
    ) -> None:
        self.lab = lab
        self._own_server = server is None
        self.server: viser.ViserServer = server or new_server(host, port, token, web_origins)
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
        self._more_keys = dict(more_keys or {})
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
            keep_tabs(self.server.gui)
            view = WorldView(self.server, lab.world.model, lab.snapshot)
            self.context = PageContext(lab, self.server, view)
            self.context.note = "; ".join(lab.facts.world_warnings)
            top_bar, pull = TopBar(self.context), PullPart(self.context)
            first: dict[str, Part] = {"WorldView": view, "TopBar": top_bar, "PullPart": pull}
            first["DrivePart"] = drive = DrivePart(self.context)
            first["TimelinePart"] = TimelinePart(self.context, drive.address)
            first["TreeClicksPart"] = TreeClicksPart(self.context, drive.address)
            self._parts = PageParts(self.context, first, {**_task_tabs(lab), **self._tabs})
            self.parts = self._parts.by_name
            self.keys = lab_keys(self.context, top_bar, self.parts, self._collapsed)
            self.keys.add(self._more_keys)
            self._on_build()
        self._due = dict.fromkeys(self.parts, 0.0)
        self.update()

    def _renew(self, snapshot: Snapshot) -> None:
        """Show the rebuilt world; what a user has chosen stays, and a note says what is gone."""
        lab, self._model = LabMirror(self.lab), self.lab.model
        with self.server.atomic():
            width = PANEL_PX if lab.environment is None else TASK_PANEL_PX
            self.server.gui.main_panel.set_width(width)
            self.server.scene.reset()
            self.server.scene.remove_click_callback()
            view = WorldView(self.server, lab.world.model, snapshot, self.context.view)
            gone = self.context.renew(lab, view)
            self.parts["WorldView"] = view
            self._due = dict.fromkeys(self.parts, 0.0)
            gone += self._parts.renew({**_task_tabs(lab), **self._tabs})
            self._due = dict.fromkeys(self.parts, 0.0)
        notes = ["the world was rebuilt", *gone, *lab.facts.rebuild_notes]
        self.context.note = "; ".join(notes)

    def _welcome(self, client: viser.ClientHandle) -> None:
        """Point the camera of a new browser at the present state; play when it has drawn that."""
        if self._stopping.is_set():
            return  # another page uses the server
        self.context.view.look(self.lab.snapshot)
        initial = self.server.initial_camera.position.copy()
        keep_fitted(client, initial, lambda: self._fit(client))
        if not self._waits:
            return
        try:
            client.get_render(_PROBE_PX, _PROBE_PX)  # a tab in the background draws nothing
        except RuntimeError:
            return  # the browser was closed
        if self._waits and not self._stopping.is_set():
            self._waits = False
            if self.lab.snapshot.step == 0:  # no step was made before
                self.lab.verbs.set_paused(paused=False)

    def _fit(self, client: viser.ClientHandle) -> None:
        snapshot, view = self.lab.snapshot, self.context.view
        if not self._stopping.is_set() and _fits(snapshot, view.model):
            view.look_from(client, snapshot)

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
        model, snapshot = self.lab.model, self.lab.snapshot
        if model is not self.lab.model or not _fits(snapshot, model):
            return  # the world is being replaced: the next snapshot is of the new one
        if model is not self._model:  # it was rebuilt
            self._renew(snapshot)
        for name, due in list(self._due.items()):
            if now < due:
                continue
            self._due[name] = now + self.parts[name].period
            try:
                self.parts[name].update(snapshot)
            except LabEndedError:
                raise
            except Exception:
                if self.lab.model is not self._model:
                    return  # it was rebuilt during this update: the next one shows the new world
                self._report(name)
                del self._due[name]

    def frame(self, name: str = "") -> None:
        """Point the cameras of all browsers at a robot or a body; see `LabPage.frame`."""
        self.look_at(find_target(self.context.lab.world.elements, name), follow=False)

    def follow(self, name: str = "") -> None:
        """Keep a robot or a body in the center of the view; see `LabPage.follow`."""
        self.look_at(find_target(self.context.lab.world.elements, name), follow=True)

    def look_at(self, body: int, *, follow: bool) -> None:
        """Point all cameras at a body, 0 for everything, or let them follow it, 0 for none."""
        if follow:
            self.context.view.follow = body
        else:
            self.context.view.look(self.lab.snapshot, body, move_open=True)

    def close(self) -> None:
        """Stop serving, or clear a given server; a second call does nothing."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(3.0)
            self._thread = None
        self._parts.close()
        if self._own_server:
            stop_server(self.server)
        else:
            self.context.view.remove()
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


def _fits(snapshot: Snapshot, model: mujoco.MjModel) -> bool:
    """Return True if a snapshot has the sizes of a model."""
    sizes = {"qpos": model.nq, "xpos": model.nbody, "geom_xpos": model.ngeom}
    return all(len(getattr(snapshot, name)) == size for name, size in sizes.items())


def _task_tabs(lab: LabMirror) -> dict[str, tuple[PartMaker, ...]]:
    """Return the tabs of the task whose environment steps the world, and of its training."""
    task = lab.environment
    if task is None:
        return {}
    from manyworlds.lab.page.task_details import TaskDetailsPart
    from manyworlds.lab.page.task_panel import TaskPart
    from manyworlds.lab.page.terrain_cell import TerrainCellPart
    from manyworlds.lab.page.training_part import TrainingPart

    tabs: dict[str, tuple[PartMaker, ...]] = {}
    tabs["Task"] = (lambda ctx: TaskPart(ctx, task), TaskDetailsPart)
    if task.terrain_cells:
        tabs["Task"] += (lambda ctx: TerrainCellPart(ctx, task),)
    if task.is_entered:
        tabs["Training"] = (TrainingPart,)
    return tabs
