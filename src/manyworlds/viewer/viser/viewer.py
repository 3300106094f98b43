"""Viewer of many worlds in a browser, stepped by a policy."""

from __future__ import annotations

import enum
import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from manyworlds.utils.extras import require_extra
from manyworlds.utils.seeding import rng_state, set_rng_state
from manyworlds.viewer import requests
from manyworlds.viewer.base import BaseViewer, EnvProtocol, PolicyProtocol, VerbosityLevel
from manyworlds.viewer.browser.cameras import FOVY, FittedView
from manyworlds.viewer.browser.command_sliders import CommandTab
from manyworlds.viewer.browser.layout import own_origins, static_body
from manyworlds.viewer.browser.server import clear, new_server, page_url, stop_server
from manyworlds.viewer.browser.widgets import on_change
from manyworlds.viewer.browser.world_grid import GroupKind, WorldGrid
from manyworlds.viewer.camera import first_free_body, tracked_body_id
from manyworlds.viewer.requests import ViewerRequest
from manyworlds.viewer.viser import requests as page_requests
from manyworlds.viewer.viser.checkpoints import CheckpointManager, format_time_ago
from manyworlds.viewer.viser.overlays import (
    SelectedWorldOverlays,
    ViserCameraOverlays,
    ViserContactOverlays,
    ViserDebugOverlays,
    ViserTermOverlays,
)
from manyworlds.viewer.viser.run_controls import PanelState, RunControls
from manyworlds.viewer.viser.tabs import CheckpointTab, VisualizationTab
from manyworlds.viewer.viser.visits import OpenVisit, VisitedWorld, WalkIn

if TYPE_CHECKING:
    import viser

    from manyworlds.managers import CommandTerm
    from manyworlds.viewer.browser.command_sliders import Seekable, Steerable

__all__ = ["CheckpointManager", "UpdateReason", "ViserPlayViewer", "format_time_ago"]

_FEW = 4
_GRID_ELEVATION = -35.0
_STATUS_SECONDS = 0.2
_APPEARANCE_SECONDS = 0.5
_DEBUG_WORLDS = 16  # up to here the goals of all worlds are drawn
_CHECKPOINT_SECONDS = 2.0
_TERM_FRAMES = 3
_PANEL_PX = 324
"""Width of viser's panel, which the page of a visited world changes [pixel]."""
_MAX_BYTES_PER_SECOND = 20e6
"""Data rate at which browsers keep up on one connection."""


class UpdateReason(enum.Enum):
    """Reason for a frame although nothing moves."""

    ACTION = enum.auto()
    ENV_SWITCH = enum.auto()
    SCENE_REQUEST = enum.auto()


class ViserPlayViewer(BaseViewer):
    """Shows worlds side by side in a browser, with controls to pause, step, reset and select.

    Keys are those of `viewer.browser.keys.KEYS`; H lists them. A click on a world selects it.

    Poses are sent at every second frame, and less often if they exceed the data rate of a
    browser.

    Args:
        env: the environment, bare or in a wrapper such as `RslRlVecEnvWrapper`.
        policy: maps observations to actions.
        frame_rate: largest number of frames per second [1/s].
        verbosity: amount of output on the terminal.
        viser_server: draw in this server instead of a new one; it is not stopped on `close`. Unlike
            a new one, it answers pages of any web site.
        checkpoint_manager: source of other checkpoints of the policy.
        num_shown: number of worlds to show at once; of more worlds, those around the selected one
            are shown.
        host: address of the page; the default accepts connections from this machine only,
            '0.0.0.0' those from the whole network, with the token that `url` has.
        port: port of the page; if it is in use, the next free one is taken. See `url`.
        web_origins: further origins of pages that may talk to this one, and show it in a frame,
            such as `https://hub.example.org` of a proxy or a notebook.
        walk_in: function that opens the selected world on the page, such as
            `manyworlds.lab.page.walk_in`; None for no such button.
        buckets: names of the task's buckets, among which the page lets choose. The viewer ends
            with a `chosen_bucket`, for the caller to show.
        bucket: the bucket that is shown.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: `num_shown` is below 1, or an argument of `BaseViewer` is invalid.
    """

    def __init__(
        self,
        env: EnvProtocol,
        policy: PolicyProtocol,
        frame_rate: float = 60.0,
        verbosity: int = VerbosityLevel.SILENT,
        viser_server: viser.ViserServer | None = None,
        checkpoint_manager: CheckpointManager | None = None,
        *,
        num_shown: int = 1024,
        host: str = "127.0.0.1",
        port: int = 8080,
        web_origins: Sequence[str] = (),
        walk_in: WalkIn | None = None,
        buckets: Sequence[str] = (),
        bucket: str = "",
    ) -> None:
        super().__init__(env, policy, frame_rate, verbosity)
        if num_shown < 1:
            raise ValueError(f"num_shown must be at least 1, got {num_shown}: show one world.")
        self.num_shown = min(num_shown, env.num_envs)
        require_extra("viser", "lab")
        model = self._sim.mj_model
        self._tracked = tracked_body_id(model, self.cfg)
        self._follow = self._tracked != 0 and not static_body(model, self._tracked)
        if not self._follow:
            self._tracked = first_free_body(model)
        movable = (i for i in range(model.nbody) if not static_body(model, i))
        self._root = next(movable, 0)
        self._address = (host, port)
        self._web_origins = web_origins
        self._own_server = viser_server is None
        self._server = viser_server
        self._checkpoints = checkpoint_manager
        self._lock = threading.RLock()
        self._grid: WorldGrid | None = None
        self._look_at_selected = False
        self._camera_of: tuple[int, bool] | None = None
        self._labels_of: tuple[range, int] | None = None
        self._pending: set[UpdateReason] = set()
        self._frame = 0
        self._next_status = self._next_appearance = self._next_checkpoint = 0.0
        self._walk_in = walk_in
        self._buckets = tuple(buckets)
        self._bucket = bucket
        self.chosen_bucket: str | None = None
        """Bucket that was chosen on the page; None while none was."""
        self._visit: OpenVisit | None = None
        self._steered: dict[tuple[int, str], Sequence[float]] = {}

    def _choose_bucket(self, name: str) -> None:
        """End, for the caller to show another bucket."""
        self.chosen_bucket = name

    @property
    def server(self) -> viser.ViserServer:
        """The server, for additional drawing.

        Raises:
            RuntimeError: the viewer was not set up, or was closed.
        """
        if self._server is None:
            raise RuntimeError("This viewer serves no page now: call setup() first.")
        return self._server

    @property
    def url(self) -> str:
        """The address of the page."""
        return page_url(self.server)

    @property
    def shown_worlds(self) -> range:
        """Indices of the worlds that are shown."""
        first = self.env_idx // self.num_shown * self.num_shown
        # At the end of the range as many worlds are shown: the first one is earlier.
        first = min(first, self.env.num_envs - self.num_shown)
        return range(first, first + self.num_shown)

    @property
    def groups(self) -> dict[GroupKind, list[bool]]:
        """Groups of geoms and sites that are drawn."""
        return self.grid.groups

    @property
    def grid(self) -> WorldGrid:
        """Drawing of the worlds.

        Raises:
            RuntimeError: the viewer was not set up, or was closed.
        """
        if self._grid is None:
            raise RuntimeError("This viewer draws no worlds now: call setup() first.")
        return self._grid

    def request_redraw(self) -> None:
        """Request a frame, also while the worlds are paused."""
        self.request(page_requests.Redraw())

    def setup(self) -> None:
        """Start the server if there is none, and draw the worlds.

        Raises:
            ValueError: this machine cannot serve at that address.
        """
        with self._lock:
            if self._grid is None:
                self._open()

    def _open(self, before: OpenVisit | None = None) -> None:
        """Draw the worlds, with the choices that a user has made before a visit."""
        if self._server is None:
            self._own_server = True
            self._server = new_server(*self._address, web_origins=self._web_origins, noun="viewer")
        server = self.server
        sim = self._sim
        per_world = {"sim_model": sim.model, "expanded_fields": sim.expanded_fields}
        self._camera_of = self._labels_of = None
        self._view = FittedView(server)
        self._grid = WorldGrid(
            server,
            sim.mj_model,
            self.cfg,
            self.num_shown,
            on_click=lambda i: self.request(requests.SelectEnv(self.shown_worlds.start + i)),
            **per_world,
        )
        self._overlays = SelectedWorldOverlays(server, sim.mj_model, **per_world)
        self._debug = ViserDebugOverlays(self.env, self._overlays.mujoco)
        self._overlays.mujoco.debug.show_all_envs = self.num_shown <= _DEBUG_WORLDS
        if before is not None:
            self._overlays.take_choices(before.overlays)
            self._debug.enabled = before.debug
            self._grid.groups.update(before.groups)
            self._grid.rebuild()
        self._contacts = ViserContactOverlays(self._overlays)
        self.cameras = ViserCameraOverlays(server, self.env, sim.mj_model)
        self._panel = RunControls(
            server,
            self,
            can_follow=self._tracked != 0,
            follow=self._follow,
            num_shown=self.num_shown,
            can_walk_in=self._walk_in is not None,
        )
        if self._bucket:
            choice = server.gui.add_dropdown(
                "Bucket", self._buckets, initial_value=self._bucket, order=-1.0
            )
            on_change(choice, self._choose_bucket)
        self._add_tabs(server, self._panel.tabs)
        if before is not None:
            self._visualization.update(self._overlays, self._debug.enabled)
        self.sync_env_to_viewer()

    def _add_tabs(self, server: viser.ViserServer, tabs: viser.GuiTabGroupHandle) -> None:
        """Add the tabs of the page."""
        self._terms = ViserTermOverlays(
            server,
            self.env,
            self,
            self.frame_time * _TERM_FRAMES,
            self.cfg.reward_bar_max_terms,
        )
        with server.atomic():
            self._visualization = VisualizationTab(server, self, tabs)
            self._terms.setup_tabs(tabs)
            self._commands = CommandTab(server, self, tabs)
            self._checkpoint_tab = None
            if self._checkpoints is not None:
                self._checkpoint_tab = CheckpointTab(server, self, tabs, self._checkpoints)

    @staticmethod
    def _should_update_cameras(paused: bool, has_pending_updates: bool) -> bool:
        """Return True if camera images are due: they change only with the worlds."""
        return has_pending_updates or not paused

    @staticmethod
    def _should_submit_scene_update(counter: int, paused: bool, has_pending_updates: bool) -> bool:
        """Return True if poses are due: at every second frame, and after a request."""
        return has_pending_updates or (not paused and counter % 2 == 0)

    def sync_env_to_viewer(self) -> None:
        """Send updates that are due: poses, a requested camera, terms, and the status."""
        with self._lock:
            if self._grid is None:
                return
            now = self._clock()
            self._poll_checkpoints(now)
            pending = bool(self._pending) or self._labels_of is None
            rate = self._grid.bytes_per_update / (2 * self.frame_time)
            stride = 2 * max(math.ceil(rate / _MAX_BYTES_PER_SECOND), 1)
            due = self._should_submit_scene_update(self._frame, self._paused, pending)
            if due and (pending or self._frame % stride == 0):
                self._draw(self._grid, now)
            if self._frame % _TERM_FRAMES == 0:
                self._terms.update(self._paused)
            if now >= self._next_status or self._paused:
                self._next_status = now + _STATUS_SECONDS
                self._commands.update()
                self._show_status()
            self._pending.clear()
            self._frame += 1

    def _draw(self, grid: WorldGrid, now: float) -> None:
        """Draw the worlds shown."""
        shown = self.shown_worlds
        selected = self.env_idx - shown.start
        data = self._sim.data
        rows = slice(shown.start, shown.stop)
        new_worlds = (shown, self.env_idx) != self._labels_of
        if now >= self._next_appearance or new_worlds:
            self._next_appearance = now + _APPEARANCE_SECONDS
            grid.sync_appearance(rows)
        positions = _numpy(data.xpos[rows])
        anchors = self._anchors(grid, positions, rows, selected)
        grid.update(positions, _numpy(data.xquat[rows]), anchors, selected)
        if new_worlds:
            self._labels_of = (shown, self.env_idx)
            grid.set_labels([f"world {i}" for i in shown])
            self._next_status = 0.0
        self._draw_over(grid.offsets(anchors), shown, selected)
        self._move_camera(grid, selected)

    def _draw_over(self, offsets: np.ndarray, shown: range, selected: int) -> None:
        """Draw overlays and camera images of the selected world."""
        data = self._sim.data
        debug = self._overlays.mujoco.debug
        debug.env_idx = self.env_idx
        debug.shown = shown
        debug.offsets = offsets
        self._debug.queue()
        self._overlays.show(data, self.env_idx, offsets[selected])
        if self._should_update_cameras(self._paused, bool(self._pending)):
            self.cameras.update(data, self.env_idx, offsets[selected])

    def select_env(self, env_idx: int) -> None:
        """Select a world; ids beyond the last continue at 0."""
        super().select_env(env_idx)
        self._pending.add(UpdateReason.ENV_SWITCH)
        if self._grid is not None:
            self._terms.on_env_switch()
            self._terms.update(paused=False)  # show the last step of this world
            self._debug.on_env_switch()
            self._contacts.on_env_switch()

    def reset_environment(self) -> None:
        """Reset all worlds and the policy's memory; clears the last error and all plots."""
        super().reset_environment()
        self._pending.add(UpdateReason.ACTION)
        if self._grid is not None:
            self._terms.clear_histories()

    def pause(self) -> None:
        """Stop stepping; the last state is drawn."""
        super().pause()
        self._pending.add(UpdateReason.ACTION)
        self._tell_commands()

    def resume(self) -> None:
        """Resume stepping; clears the last error."""
        super().resume()
        self._tell_commands()

    def _tell_commands(self) -> None:
        manager = getattr(self.env.unwrapped, "command_manager", None)
        if manager is not None:
            manager.on_viewer_pause(self._paused)

    def _execute_step(self) -> bool:
        stepped = super()._execute_step()
        if self._paused:
            self._pending.add(UpdateReason.ACTION)
            if self._grid is not None:
                self._terms.update(paused=False)  # a single step has terms, too
        return stepped

    def close(self) -> None:
        """Stop the server, or clear a given one."""
        # Not while another thread draws.
        with self._lock:
            server = self._server
            self._server = None
            grid = self._grid
            self._grid = None
            visit = self._visit
            self._visit = None
            if visit is not None:
                visit.visit.close()
            if grid is not None:
                self._view.close()
            if self._own_server and server is not None:
                stop_server(server)
            elif grid is not None:
                self.cameras.cleanup()
                self._terms.cleanup()
                self._panel.remove()
                self._overlays.remove()
                grid.remove()

    def is_running(self) -> bool:
        """Return True if the page is being served."""
        if self.chosen_bucket is not None:
            return False
        return self._grid is not None or self._visit is not None

    def _enter(self) -> None:
        """Open the selected world on the page; the batch pauses meanwhile.

        Raises:
            ValueError: this viewer cannot open worlds, or this world cannot be opened.
        """
        if self._walk_in is None:
            raise ValueError("This viewer cannot open a world: give it walk_in.")
        held = {term: v for (world, term), v in self._steered.items() if world == self.env_idx}
        was_paused = self._paused
        rng = rng_state()
        self._panel.show_entering(True)
        try:
            world = VisitedWorld(
                self.env.unwrapped,
                self.env_idx,
                self.policy,
                held,
                self.target_realtime,
                was_paused,
                self._overlays.enabled,
                int(self._overlays.mujoco.option.frame),
            )
            visit = self._walk_in(world)
        finally:
            self._panel.show_entering(False)
        self.pause()
        drawn = self._overlays, self._debug.enabled, self.groups
        self._visit = OpenVisit(visit, was_paused, rng, *drawn)
        with self._lock:
            self._grid = None
            self._view.close()
            self._overlays.remove()
            clear(self.server)
        try:
            visit.show(self.server, lambda: self.request(page_requests.Leave()))
        except Exception:
            self._leave()
            raise

    def _leave(self) -> None:
        """Return from the opened world to the batch, which continues unaffected."""
        if self._visit is None:
            return
        before = self._visit
        self._visit = None
        before.visit.close()
        set_rng_state(before.rng)
        with self._lock:
            panel = self.server.gui.main_panel
            panel.set_width(_PANEL_PX)
            panel.expand()
            self._open(before)
        if not before.was_paused:
            self.resume()

    def carry_out(self, action: ViewerRequest) -> None:
        """Carry out an action, in the thread that ticks.

        Raises:
            ValueError: this viewer has no such action, or cannot carry it out.
            RuntimeError: the page is closed.
        """
        if self._visit is not None and not isinstance(action, page_requests.Leave):
            raise ValueError(f"World {self.env_idx} is open on the page: leave it first.")
        if self._change_drawing(action):
            self._visualization.update(self._overlays, self._debug.enabled)
            self._pending.add(UpdateReason.SCENE_REQUEST)
            return
        match action:
            case page_requests.WalkIn():
                self._enter()
            case page_requests.Leave():
                self._leave()
            case requests.SteerCommand(term, values):
                cast("Steerable", self._command_term(term)).steer(self.env_idx, values)
                self._steered.pop((self.env_idx, term), None)
                if values is not None:
                    self._steered[self.env_idx, term] = values
            case requests.SeekMotion(term, frame):
                cast("Seekable", self._command_term(term)).seek(self.env_idx, frame)
            case requests.ApplyGuiReset():
                ids = torch.tensor([self.env_idx], device=self.env.unwrapped.device)
                self.env.unwrapped.command_manager.apply_gui_reset(ids)
            case page_requests.LoadCheckpoint(name):
                self._load_checkpoint(name)
            case requests.FetchCheckpoint():
                self._load_checkpoint(self._newest_checkpoint())
            case _:
                super().carry_out(action)
                return
        self._pending.add(UpdateReason.SCENE_REQUEST)

    def _change_drawing(self, action: ViewerRequest) -> bool:  # noqa: C901 - a table of cases
        """Carry out an action that only changes what the page shows; return True if it is one."""
        match action:
            case page_requests.Redraw():
                pass
            case page_requests.LookAt(selected):
                if selected is None:
                    selected = not self._look_at_selected
                self._look_at_selected = selected
                self._camera_of = None
            case page_requests.FollowRobots(on):
                if on is None:
                    on = not self._follow
                self._follow = on
                self._panel.show_following(self._follow)
            case page_requests.ShowWorldNumbers(on):
                self.grid.show_labels(on)
            case page_requests.ShowDebugShapes(on):
                self._debug.enabled = on
            case requests.ToggleDebugVis():
                self._debug.enabled = not self._debug.enabled
            case page_requests.ShowDebugShapesOfAll(on):
                self._overlays.mujoco.debug.show_all_envs = on
            case requests.ToggleShowAllEnvs():
                debug = self._overlays.mujoco.debug
                debug.show_all_envs = not debug.show_all_envs
            case page_requests.ShowOverlay(name, on):
                self._overlays.switch(name, on)
            case page_requests.ToggleOverlays(names):
                self._overlays.toggle(names)
            case page_requests.ShowFrames(frame):
                self._overlays.mujoco.option.frame = frame
            case page_requests.ShowGroup(kind, group, on):
                self.groups[kind][group] = on
                self.grid.rebuild()
            case _:
                return False
        return True

    def _command_term(self, name: str) -> CommandTerm:
        return self.env.unwrapped.command_manager.get_term(name)

    def _newest_checkpoint(self) -> str:
        available = []
        if self._checkpoints is not None:
            available = self._checkpoints.fetch_available()
        if not available:
            raise ValueError("There is no checkpoint to load: give a checkpoint_manager.")
        return available[0][0]

    def _load_checkpoint(self, name: str) -> None:
        """Replace the policy by that of a checkpoint."""
        manager = self._checkpoints
        if manager is None:
            raise ValueError(f"Cannot load checkpoint '{name}': give a checkpoint_manager.")

        def load() -> None:
            self.policy = manager.load_checkpoint(name)
            manager.current_name = name

        if self._guarded(load):
            self._next_checkpoint = 0.0

    def _poll_checkpoints(self, now: float) -> None:
        """List new checkpoints, and load the newest if the page follows them."""
        manager = self._checkpoints
        tab = self._checkpoint_tab
        if manager is None or tab is None or now < self._next_checkpoint:
            return
        self._next_checkpoint = now + _CHECKPOINT_SECONDS
        available = manager.fetch_available()
        if manager.follow and available and available[0][0] != manager.current_name:
            self._load_checkpoint(available[0][0])
        tab.update(available)

    def _anchors(
        self, grid: WorldGrid, positions: np.ndarray, rows: slice, selected: int
    ) -> np.ndarray:
        """Return the point of each world that is drawn at its place [m], shape (num_shown, 3)."""
        anchors = np.zeros((self.num_shown, 3))
        if self._follow:
            anchors[:, :2] = positions[:, self._tracked, :2]
            if grid.landscape:
                anchors[:] = anchors[selected]
        elif not grid.landscape:
            scene = getattr(self.env.unwrapped, "scene", None)
            origins = getattr(scene, "env_origins", None)
            if isinstance(origins, torch.Tensor):
                anchors[:] = own_origins(_numpy(origins[rows]), positions[:, self._root])
        return anchors

    def _move_camera(self, grid: WorldGrid, selected: int) -> None:
        """Point the camera at all worlds or at the selected one, when that choice changes."""
        # Worlds on a landscape are far apart, so another set of worlds needs another view.
        world = None
        place = 0
        if self._look_at_selected:
            world = selected
            place = selected
        if grid.landscape:
            place += self.shown_worlds.start
        if self._camera_of == (place, self._look_at_selected):
            return
        self._camera_of = (place, self._look_at_selected)
        fovy = self.cfg.fovy or FOVY
        elevation = float(np.clip(self.cfg.elevation, -89.0, 89.0))
        if self.num_shown > _FEW and not self._look_at_selected:
            # From a low camera, worlds hide those behind them.
            elevation = min(elevation, _GRID_ELEVATION)
        self._view.look(grid.shown_box(world), self.cfg.azimuth, elevation, fovy)

    def _show_status(self) -> None:
        """Show the state of the selected world."""
        time = float(self._sim.data.time[self.env_idx])
        finite = bool(torch.isfinite(self._sim.data.qpos[self.env_idx]).all())
        self._panel.update(
            PanelState(
                status=self.get_status(),
                env_idx=self.env_idx,
                shown=self.shown_worlds,
                num_envs=self.env.num_envs,
                time=time,
                diverged=not finite,
            )
        )


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(np.float64)
