"""Many worlds in a browser, stepped by a policy."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.utils.extras import require_extra
from manyworlds.viewer.base import (
    BaseViewer,
    EnvProtocol,
    PolicyProtocol,
    VerbosityLevel,
    ViewerAction,
)
from manyworlds.viewer.camera import tracked_body_id
from manyworlds.viewer.viser.layout import camera_to_see, static_body
from manyworlds.viewer.viser.panel import ControlPanel, PanelState
from manyworlds.viewer.viser.scene import WorldGrid

if TYPE_CHECKING:
    import viser

_FOVY = 45.0
# Width by height of what a usual window leaves beside the controls.
_ASPECT = 1.2
_STATUS_SECONDS = 0.2


class ViserPlayViewer(BaseViewer):
    """Shows worlds side by side in a browser, with controls to pause, step, reset and select.

    Keys: space pauses, N takes a single step, Enter resets, - and = change the speed, comma and
    full stop select the previous and the next world.

    Args:
        env: the environment.
        policy: maps observations to actions.
        frame_rate: frames to send per second at most [1/s].
        verbosity: how much to say on the terminal.
        num_shown: how many worlds to show at once; of more, the page with the selected one is
            shown.
        host: the address to listen on. Only programs on this machine can connect to the default;
            '0.0.0.0' lets everyone on the network in, without a password.
        port: the port to listen on; if it is taken, the next free one is used. See `url`.
        viser_server: draw in this server instead of a new one; it is not stopped on `close`.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: `num_shown` is below 1, or what `BaseViewer` and the camera's names ask for.
    """

    def __init__(
        self,
        env: EnvProtocol,
        policy: PolicyProtocol,
        frame_rate: float = 30.0,
        verbosity: int = VerbosityLevel.SILENT,
        *,
        num_shown: int = 9,
        host: str = "127.0.0.1",
        port: int = 8080,
        viser_server: viser.ViserServer | None = None,
    ) -> None:
        super().__init__(env, policy, frame_rate, verbosity)
        if num_shown < 1:
            raise ValueError(f"num_shown must be at least 1, got {num_shown}: show one world.")
        self.num_shown = min(num_shown, env.num_envs)
        self._viser: Any = require_extra("viser", "lab")
        model = env.sim.mj_model
        self._tracked = tracked_body_id(model, self.cfg)
        self._follow = self._tracked != 0 and not static_body(model, self._tracked)
        if not self._follow:
            self._tracked = _first_free_body(model)
        self._address = (host, port)
        self._own_server = viser_server is None
        self._server = viser_server
        self._lock = threading.RLock()
        self._grid: WorldGrid | None = None
        self._panel: ControlPanel | None = None
        self._look_at_selected = False
        self._camera_of: tuple[int, bool] | None = None
        self._labels_of: tuple[range, int] | None = None
        self._next_status = 0.0

    @property
    def server(self) -> viser.ViserServer:
        """The server, for drawing more.

        Raises:
            RuntimeError: the viewer was not set up, or was closed.
        """
        if self._server is None:
            raise RuntimeError("This viewer serves no page now: call setup() first.")
        return self._server

    @property
    def url(self) -> str:
        """The address of the page."""
        host = self.server.get_host()
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.server.get_port()}"

    @property
    def shown_worlds(self) -> range:
        """The worlds on the page."""
        first = self.env_idx // self.num_shown * self.num_shown
        # The last page is full too: it begins earlier.
        first = min(first, self.env.num_envs - self.num_shown)
        return range(first, first + self.num_shown)

    def setup(self) -> None:
        """Start the server if there is none, and draw the worlds."""
        with self._lock:
            if self._grid is None:
                self._open()

    def _open(self) -> None:
        if self._server is None:
            host, port = self._address
            self._own_server = True
            self._server = self._viser.ViserServer(host, port, label="manyworlds", verbose=False)
        server = self.server
        if self._own_server:
            server.gui.configure_theme(show_logo=False, show_share_button=False)
            server.gui.main_panel.dock_right()
        self._camera_of = self._labels_of = None
        self._grid = WorldGrid(server, self.env.sim.mj_model, self.cfg, self.num_shown)
        self._panel = ControlPanel(
            server,
            self,
            can_follow=self._tracked != 0,
            follow=self._follow,
            num_shown=self.num_shown,
        )
        self.sync_env_to_viewer()

    def sync_env_to_viewer(self) -> None:
        """Send the poses of the worlds shown, the camera if it is to move, and the status."""
        with self._lock:
            if self._grid is not None and self._panel is not None:
                self._draw(self._grid, self._panel)

    def _draw(self, grid: WorldGrid, panel: ControlPanel) -> None:
        shown = self.shown_worlds
        selected = self.env_idx - shown.start
        data = self.env.sim.data
        rows = slice(shown.start, shown.stop)
        positions = _numpy(data.xpos[rows])
        quaternions = _numpy(data.xquat[rows])
        anchors = self._anchors(grid, positions, rows, selected)
        grid.update(positions, quaternions, anchors, selected)
        if (shown, self.env_idx) != self._labels_of:
            self._labels_of = (shown, self.env_idx)
            grid.set_labels([f"world {i}" for i in shown])
            self._next_status = 0.0
        self._move_camera(grid, selected)
        now = self._clock()
        if now >= self._next_status or self._paused:
            self._next_status = now + _STATUS_SECONDS
            self._show_status(panel)

    def close(self) -> None:
        """Stop the server, or leave one that was given as it was found."""
        # Not while another thread draws.
        with self._lock:
            server, self._server = self._server, None
            grid, self._grid = self._grid, None
            panel, self._panel = self._panel, None
            if self._own_server and server is not None:
                server.stop()
            elif grid is not None and panel is not None:
                panel.remove()
                grid.remove()

    def is_running(self) -> bool:
        """Whether the page is being served."""
        return self._grid is not None

    def _handle_custom_action(self, action: ViewerAction, payload: Any) -> bool:
        if action is not ViewerAction.CUSTOM or not isinstance(payload, tuple):
            return False
        name, value = payload
        if name == "select":
            self.select_env(value)
        elif name == "look":
            self._look_at_selected = value
            self._camera_of = None
        elif name == "follow":
            self._follow = value
        elif name == "labels" and self._grid is not None:
            self._grid.show_labels(value)
        else:
            return False
        return True

    def _anchors(
        self, grid: WorldGrid, positions: np.ndarray, rows: slice, selected: int
    ) -> np.ndarray:
        """The point of each world shown that is drawn at its place [m], shape (num_shown, 3)."""
        anchors = np.zeros((self.num_shown, 3))
        if self._follow:
            anchors[:, :2] = positions[:, self._tracked, :2]
            if grid.landscape:
                anchors[:] = anchors[selected]
        elif not grid.landscape:
            scene = getattr(self.env.unwrapped, "scene", None)
            origins = getattr(scene, "env_origins", None)
            if isinstance(origins, torch.Tensor):
                anchors[:] = _numpy(origins[rows])
        return anchors

    def _move_camera(self, grid: WorldGrid, selected: int) -> None:
        """Look at all worlds or at the selected one, when that choice changes."""
        # A landscape's worlds are far apart, so a new page needs a new look.
        place = selected if self._look_at_selected else 0
        if grid.landscape:
            place = self.env_idx if self._look_at_selected else self.shown_worlds.start
        if self._camera_of == (place, self._look_at_selected):
            return
        self._camera_of = (place, self._look_at_selected)
        fovy = self.cfg.fovy or _FOVY
        elevation = float(np.clip(self.cfg.elevation, -89.0, 89.0))
        box = grid.shown_box(selected if self._look_at_selected else None)
        position, look_at = camera_to_see(box, self.cfg.azimuth, elevation, fovy, _ASPECT)
        initial = self.server.initial_camera
        initial.fov = np.radians(fovy)
        initial.position, initial.look_at = position, look_at
        for client in self.server.get_clients().values():
            with client.atomic():
                client.camera.position, client.camera.look_at = position, look_at

    def _show_status(self, panel: ControlPanel) -> None:
        time = float(self.env.sim.data.time[self.env_idx])
        finite = bool(torch.isfinite(self.env.sim.data.qpos[self.env_idx]).all())
        panel.update(
            PanelState(
                status=self.get_status(),
                env_idx=self.env_idx,
                shown=self.shown_worlds,
                num_envs=self.env.num_envs,
                time=time,
                diverged=not finite,
            )
        )


def _first_free_body(model: mujoco.MjModel) -> int:
    """The first body that floats freely; 0 if there is none."""
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    return int(model.jnt_bodyid[free[0]]) if free.size else 0


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(np.float64)
