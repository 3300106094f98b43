"""Web page of a lab, served and drawn by this process.

Its lab may change; a card shows errors, and a button opens the model again.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from manyworlds.lab.errors import LabEndedError
from manyworlds.lab.page.camera_controls import find_target
from manyworlds.lab.page.drive_part import DrivePart
from manyworlds.lab.page.lab_keys import lab_keys
from manyworlds.lab.page.mouse_perturbation import PullPart
from manyworlds.lab.page.page_boxes import box_html
from manyworlds.lab.page.page_cfg import PageCfg, PageKeywords
from manyworlds.lab.page.page_context import PageContext, Part
from manyworlds.lab.page.page_parts import PageParts
from manyworlds.lab.page.plots import PlotMomentPart
from manyworlds.lab.page.selection import SelectionPart
from manyworlds.lab.page.shown_lab import ShownLab
from manyworlds.lab.page.tabs import PartMaker, find_parts
from manyworlds.lab.page.top_bar import PANEL_PX, TASK_PANEL_PX, TopBar
from manyworlds.lab.page.transport_bar import TransportPart
from manyworlds.lab.page.tree_lines import TreeClicksPart
from manyworlds.lab.page.world_view import WorldView
from manyworlds.viewer.browser.cameras import keep_fitted
from manyworlds.viewer.browser.kept_tabs import keep_tabs
from manyworlds.viewer.browser.markup import error_card_html
from manyworlds.viewer.browser.server import (
    clear,
    entitle,
    new_server,
    page_url,
    route,
    stop_server,
)
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

_NETWORK_PATH = "/lab-network"
_SYNC_S = 0.25
"""Shortest time between two readings of the model's values [s]."""
_PROBE_PX = 16
"""Size of the picture by which a browser shows that it has drawn the world [pixel]."""


class PageServer:
    """Serves and draws a page in this process: of a lab of it, or of another process.

    Parts read snapshots, at most once per frame, and change the world only by verbs; the loop does
    not depend on the page. Beside the loop of a lab in real time, use `LabPage`: here, drawing
    delays its steps.

    Args:
        lab: lab to show; the page does not start or stop it. None for none yet: `show` gives one.
        cfg: settings of the page.
        server: draw in this server instead of a new one; it is not stopped on `close`. Unlike a new
            one, a server that viser made answers pages of any web site.
        on_reload: called by the button *Reload*; None for no button.
        on_failure: called with the name of a part that failed, and the traceback.
        on_build: called when the parts were created; they stay after a `LiveLab.rebuild`.
        more_keys: functions of further keys, by name of the action in `viewer.browser.keys.KEYS`.
        **settings: fields of `PageCfg`, in place of those of `cfg`.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: this machine cannot serve at that address, or a part cannot be imported.
    """

    lab: LabFace
    """The lab that is shown."""
    context: PageContext
    parts: dict[str, Part]
    """Parts of the page, by their class's name."""

    def __init__(
        self,
        lab: LabFace | None = None,
        cfg: PageCfg | None = None,
        *,
        server: viser.ViserServer | None = None,
        on_reload: Callable[[], None] | None = None,
        on_failure: Callable[[str, str], None] = lambda name, text: None,
        on_build: Callable[[], None] = lambda: None,
        more_keys: Mapping[str, Callable[[], object]] | None = None,
        **settings: Unpack[PageKeywords],
    ) -> None:
        self._cfg = cfg = replace(cfg or PageCfg(), **settings)
        # A wrong name fails before the page has an address.
        self._tabs = {title: find_parts(parts) for title, parts in cfg.tabs.items()}
        self._own_server = server is None
        if server is None:
            server = new_server(cfg.host, cfg.port, cfg.token, cfg.web_origins)
        self.server: viser.ViserServer = server
        self.url = page_url(server)
        """The address of the page."""
        self.errors: list[str] = []
        """Tracebacks of parts that failed; these are not updated any more."""
        self._on_reload = on_reload
        self._on_failure = on_failure
        self._on_build = on_build
        self._more_keys = dict(more_keys or {})
        self._period = 1.0 / cfg.frame_rate
        self._next_sync = 0.0
        self._waits = cfg.play_when_drawn
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._shown: PageParts | None = None
        """Parts of the present lab; None before the first one."""
        self._card = ("", "")
        if lab is None:
            self._add_card()
        else:
            self.show(lab)

    def show(self, lab: LabFace) -> None:
        """Show a lab in place of the one before; `start` keeps it up to date."""
        self.end_lab()
        if self._own_server:
            clear(self.server)  # of the card and the button, which come again below the parts
        self.lab = lab
        self._stopping = threading.Event()
        self._waits = self._cfg.play_when_drawn
        try:
            shown = self._build()
        except Exception:
            self._shown = None
            clear(self.server)
            self._add_card()
            raise
        self.context.view.look(lab.snapshot, move_open=True)
        self.server.on_client_connect(lambda client: self._welcome(client, shown))

    def _build(self) -> PageParts:
        """Create all parts for the present world."""
        with self.server.atomic():
            lab = self._read_lab()
            wait_for_commits(self.server.gui)
            keep_tabs(self.server.gui)
            view = WorldView(self.server, lab.model, lab.snapshot)
            self.context = PageContext(lab, self.server, view)
            self.context.note = "; ".join(lab.facts.world_warnings)
            top_bar = TopBar(self.context)
            pull = PullPart(self.context)
            drive = DrivePart(self.context)
            first: dict[str, Part] = {
                "WorldView": view,
                "TopBar": top_bar,
                "PullPart": pull,
                "SelectionPart": SelectionPart(self.context),
                "DrivePart": drive,
                "TransportPart": TransportPart(self.context, drive.address, top_bar.below),
                "TreeClicksPart": TreeClicksPart(self.context, drive.address),
                "PlotMomentPart": PlotMomentPart(self.context, drive.address),
            }
            self._shown = PageParts(self.context, first, {**_task_tabs(lab), **self._tabs})
            self.parts = self._shown.by_name
            self.keys = lab_keys(self.context, top_bar, self.parts, self._cfg.collapsed)
            self.keys.add(self._more_keys)
            self._add_card()
            self._on_build()
        self._due = dict.fromkeys(self.parts, 0.0)
        self.update()
        return self._shown

    def _renew(self, snapshot: Snapshot, shown: PageParts) -> None:
        """Show the rebuilt world; what a user has chosen stays, and a note says what is gone."""
        with self.server.atomic():
            lab = self._read_lab()
            self.server.scene.reset()
            self.server.scene.remove_click_callback()
            view = WorldView(self.server, lab.model, snapshot, self.context.view)
            gone = self.context.renew(lab, view)
            self.parts["WorldView"] = view
            self._due = dict.fromkeys(self.parts, 0.0)
            gone += shown.renew({**_task_tabs(lab), **self._tabs})
            self._due = dict.fromkeys(self.parts, 0.0)
        notes = ["the world was rebuilt", *gone, *lab.facts.rebuild_notes]
        self.context.note = "; ".join(notes)

    def _read_lab(self) -> ShownLab:
        """Read the lab with its present world, and make the panel as wide as its parts need."""
        self._model = self.lab.model
        lab = ShownLab(self.lab)
        task = lab.environment
        title = self._cfg.title or (task is not None and task.name) or _name_of(self._model)
        entitle(self.server, title)
        width = PANEL_PX if task is None else TASK_PANEL_PX
        self.server.gui.main_panel.set_width(width)
        return lab

    def _welcome(self, client: viser.ClientHandle, shown: PageParts) -> None:
        """Point the camera of a new browser at the present state; play when it has drawn that."""
        if self._shown is not shown:
            return  # another lab is shown, or another page uses the server
        self.context.view.look(self.lab.snapshot)
        initial = self.server.initial_camera.position.copy()
        keep_fitted(client, initial, lambda: self._fit(client, shown))
        if not self._waits:
            return
        try:
            client.get_render(_PROBE_PX, _PROBE_PX)  # a tab in the background draws nothing
        except RuntimeError:
            return  # the browser was closed
        if self._waits and self._shown is shown:
            self._waits = False
            if self.lab.snapshot.step == 0:  # no step was made before
                self.lab.verbs.set_paused(paused=False)

    def _fit(self, client: viser.ClientHandle, shown: PageParts) -> None:
        snapshot = self.lab.snapshot
        view = self.context.view
        if self._shown is shown and _fits(snapshot, view.model):
            view.look_from(client, snapshot)

    def show_card(self, title: str, text: str) -> None:
        """Show an error at the top of the page; none if the text is empty."""
        self._card = (title, text)
        content = error_card_html(title, text) if text else ""
        self.card.content = content
        # The button is below all tabs, from where the top of the page may be out of sight.
        self.note.content = "" if self._shown is None else content

    def _add_card(self) -> None:
        """Add what is on the page of every lab: the card, who drives, and the button *Reload*."""
        gui = self.server.gui
        self.card = gui.add_html("", order=-1.0)
        self.note = gui.add_html("", order=1e12 - 1.0)
        self.show_card(*self._card)
        if self._cfg.network_port:
            address = route(self.server, _NETWORK_PATH, self._cfg.network_port)
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

    def start(self) -> None:
        """Keep the page up to date, from its own thread, while a browser is connected.

        A second call does nothing.
        """
        if self._thread is not None or self._shown is None:
            return
        self._thread = threading.Thread(target=self._run, name="manyworlds-page", daemon=True)
        self._thread.start()

    def update(self) -> None:
        """Show the newest snapshot in all parts that are due."""
        if self._shown is None:
            return
        now = time.monotonic()
        if now >= self._next_sync:
            self._next_sync = now + _SYNC_S
            self.lab.sync_model()
        model = self.lab.model
        snapshot = self.lab.snapshot
        if model is not self.lab.model or not _fits(snapshot, model):
            return  # the world is being replaced: the next snapshot is of the new one
        if model is not self._model:  # it was rebuilt
            self._renew(snapshot, self._shown)
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
        self.look_at(find_target(self.context.lab.elements, name), follow=False)

    def follow(self, name: str = "") -> None:
        """Keep a robot or a body in the center of the view; see `LabPage.follow`."""
        self.look_at(find_target(self.context.lab.elements, name), follow=True)

    def look_at(self, body: int, *, follow: bool) -> None:
        """Point all cameras at a body, 0 for everything, or let them follow it, 0 for none."""
        if follow:
            self.context.view.follow = body
        else:
            self.context.view.look(self.lab.snapshot, body, move_open=True)

    def end_lab(self) -> None:
        """Remove the present lab from the page."""
        if self._shown is not None:
            self._end_parts(self._shown)
            self._clear()
            self._add_card()

    def close(self) -> None:
        """Stop serving, or clear a given server; a second call does nothing."""
        shown = self._shown
        if shown is not None:
            self._end_parts(shown)
        if self._own_server:
            stop_server(self.server)
        elif shown is not None:
            self._clear()

    def _end_parts(self, shown: PageParts) -> None:
        self._shown = None
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(3.0)
            self._thread = None
        shown.close()

    def _clear(self) -> None:
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
        stopping = self._stopping  # another lab has another one
        budget = CpuShare(_SHARE_BESIDE_STEPS, self._period)
        while not stopping.is_set():
            begun = time.monotonic()
            busy = time.thread_time()
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
            stopping.wait(max(0.0, rest))


InProcessPage = PageServer
"""Former name."""


def _name_of(model: mujoco.MjModel) -> str:
    """Return the name of a model, the first one in its table of names; 'world' for none."""
    name = model.names.partition(b"\0")[0].decode()
    return "world" if name in ("", "MuJoCo Model") else name


def _fits(snapshot: Snapshot, model: mujoco.MjModel) -> bool:
    """Return True if a snapshot has the sizes of a model."""
    sizes = {"qpos": model.nq, "xpos": model.nbody, "geom_xpos": model.ngeom}
    return all(len(getattr(snapshot, name)) == size for name, size in sizes.items())


def _task_tabs(lab: ShownLab) -> dict[str, tuple[PartMaker, ...]]:
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
