"""Recording and replay of a world."""

from __future__ import annotations

import contextlib
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyworlds.lab.facts import RecordingFacts, ReplayFacts
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.transport_bar import RECORD
from manyworlds.viewer.browser.markup import note_html
from manyworlds.viewer.browser.widgets import PLAY, Section

if TYPE_CHECKING:
    import viser

_RATES = (-1.0, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
ROLES: dict[str, tuple[bool, bool | None]] = {
    "default": (True, None),
    "as recorded": (True, False),
    "from initial pose": (True, True),
    "excluded": (False, None),
}
"""Roles of a robot in a replay: `Binding.enabled` and `Binding.relative`, by label."""
_LOOK_M = 2.0  # distance of the camera from the point it looks at, which is not recorded
_SCAN_S = 1.0


class RecordPart(PagePart):
    """Names recordings of the world and the view, chooses what is played, and exchanges files.

    The bar in the header starts and stops recordings, and has the time of a replay.
    """

    period = 0.1

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._view: tuple[float, ...] = ()
        self._scanned = -math.inf
        self._follow(ctx.server.initial_camera)
        gui = ctx.gui
        with gui.add_folder("Record"):
            self.file = gui.add_text(
                "Next file", "", hint="NAME.mcap; empty: named by the date. Record: at the top."
            )
            ctx.answers[RECORD] = self._answer
            self.recorded = gui.add_html("")
        with gui.add_folder("Replay"):
            self._add_replay(gui)
        with gui.add_folder("Files", expand_by_default=False):
            self.name = gui.add_text(
                "Save as", "recording.csv", hint="The suffix sets the format: .mcap, .csv or .json."
            )
            self.save = ctx.add_button(
                "Save session", lambda: ctx.attempt_at(self.imported, self._save)
            )
            self.download = gui.add_button("Download session")
            self.download.on_click(lambda event: ctx.attempt(lambda: self._download(event.client)))
            self.upload = gui.add_upload_button("Import file", mime_type=".mcap,.csv,.json")
            self.upload.on_upload(lambda _: ctx.attempt_at(self.imported, self._import))
            self.imported = gui.add_html("")

    def _add_replay(self, gui: viser.GuiApi) -> None:
        ctx = self._ctx
        replay = self._replay
        active = self._recording.active_session
        self.session = gui.add_dropdown("Session", self._sessions(), initial_value=active)
        ctx.on_change(self.session, self._choose)
        self.start = ctx.add_button("Start replay", self._start, icon=PLAY)
        rates = {f"{rate:g}x": rate for rate in _RATES}
        self.rate = gui.add_dropdown("Playback speed", tuple(rates), initial_value="1x")
        ctx.on_change(self.rate, lambda name: ctx.verbs.set_replay(rate=rates[name]))
        self.loop = gui.add_checkbox("Loop", replay.loop)
        ctx.on_change(self.loop, lambda on: ctx.verbs.set_replay(loop=on))
        self.look = gui.add_checkbox(
            "Recorded camera", False, hint="Look from where the page looked.", disabled=True
        )
        with gui.add_folder("Robots in the replay", expand_by_default=False):
            self._robots = Section(gui)
        self.roles: dict[str, viser.GuiDropdownHandle[str]] = {}
        self._add_roles()
        self.report = gui.add_html("")

    @property
    def _recording(self) -> RecordingFacts:
        return self._ctx.lab.facts.recording

    @property
    def _replay(self) -> ReplayFacts:
        return self._ctx.lab.facts.replay

    def _sessions(self) -> tuple[str, ...]:
        """Return the names of the recordings."""
        return tuple(self._ctx.verbs.replay_list_sessions()["sessions"])

    def _add_roles(self) -> None:
        """Add a choice for each robot; robots of the same name keep theirs."""
        chosen = {robot: choice.value for robot, choice in self.roles.items()}
        self.roles = {}
        with self._robots.empty():
            for robot in self._ctx.lab.elements.robots:
                role = self._ctx.gui.add_dropdown(
                    robot,
                    tuple(ROLES),
                    initial_value=chosen.get(robot, next(iter(ROLES))),
                    hint="For the next replay.",
                )
                self.roles[robot] = self._ctx.on_change(
                    role, lambda name, robot=robot: self._bind(robot, name)
                )

    def renew(self) -> list[str]:
        """List the robots of the new world."""
        self._add_roles()
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Show the progress of recording and replay; record or show the view."""
        recording = self._recording
        now = time.monotonic()
        if now - self._scanned > _SCAN_S:
            self._scanned = now
            self._list()
        self.recorded.content = note_html(_told(recording), error=bool(recording.error))
        self.report.content = note_html(self._replay.report)
        self._look()

    def _list(self) -> None:
        names = self._sessions()
        if tuple(self.session.options) != names:
            self.session.options = names

    def _answer(self, browser: str, message: dict[str, Any]) -> dict[str, object]:
        """Carry out what the bar in the header asks for."""
        self.toggle_recording()
        return {}

    def toggle_recording(self) -> None:
        """Start a recording, or stop the present one."""
        if self._recording.is_recording:
            self._ctx.verbs.recording_stop()
        else:
            self._ctx.verbs.recording_start(name=_with_suffix(self.file.value))
            self.file.value = ""

    def _choose(self, name: str) -> None:
        self._ctx.verbs.replay_set_active(name=name)
        if self._replay.is_active:
            self._start()

    def _start(self) -> None:
        self._ctx.verbs.replay_start(session=self.session.value)

    def _bind(self, robot: str, role: str) -> None:
        enabled, relative = ROLES[role]
        self._ctx.verbs.set_replay_role(robot=robot, enabled=enabled, relative=relative)

    def _save(self) -> str:
        path = _with_suffix(self.name.value)
        reply = self._ctx.verbs.recording_save(path=path, session=self.session.value)
        self._list()
        return f"The session '{self.session.value}' was written to {reply['absolute_path']}."

    def _download(self, client: viser.ClientHandle | None) -> None:
        assert client is not None  # only clients click
        name = _with_suffix(self.name.value)
        reply = self._ctx.verbs.recording_export(path=name, session=self.session.value)
        assert isinstance(reply["content"], bytes)
        client.send_file_download(name, reply["content"], save_immediately=True)

    def _import(self) -> str:
        file = self.upload.value
        self._ctx.verbs.recording_import(path=file.name, content=file.content)
        self._list()
        self.session.value = file.name
        return f"'{file.name}' is imported."

    def _look(self) -> None:
        """Note the view of the first browser, or set all views to the recorded one."""
        recorded = self._replay.camera
        offset = self._ctx.view.offset
        if self.look.disabled != (recorded is None):
            self.look.disabled = recorded is None
        clients = list(self._ctx.server.get_clients().values())
        if recorded is not None and self.look.value:
            position = np.array(recorded[:3]) + offset
            for client in clients:
                with client.atomic():
                    client.camera.position = position
                    client.camera.look_at = position + _LOOK_M * _direction(*recorded[3:5])
        elif clients:
            with contextlib.suppress(
                AssertionError
            ):  # viser's default, before the browser has sent its camera
                self._follow(clients[0].camera)

    def _follow(self, camera: viser.CameraHandle | viser.InitialCameraConfig) -> None:
        position = np.asarray(camera.position, float)
        along = np.asarray(camera.look_at, float) - position
        yaw = math.degrees(math.atan2(along[1], along[0]))
        pitch = math.degrees(math.atan2(along[2], math.hypot(along[0], along[1])))
        view = (*(position - self._ctx.view.offset).tolist(), pitch, yaw, 0.0)
        if view != self._view:
            self._view = view
            self._ctx.verbs.set_recording_view(view=view)


def _with_suffix(name: str) -> str:
    """Return the name of a recording's file, with the suffix `.mcap` if it has none."""
    name = name.strip()
    if name and not Path(name).suffix:
        name += ".mcap"
    return name


def _told(recording: RecordingFacts) -> str:
    """Return how much was recorded, or why it is incomplete."""
    if recording.error:
        return recording.error
    if not recording.num_frames:
        return ""
    where = f", {recording.file}" if recording.file else ""
    return f"{recording.num_frames} frames, {recording.duration_s:.2f} s{where}"


def _direction(pitch: float, yaw: float) -> np.ndarray:
    """Return the direction of a view from its pitch and yaw [degrees], shape [3]."""
    pitch = math.radians(pitch)
    yaw = math.radians(yaw)
    flat = math.cos(pitch)
    return np.array([flat * math.cos(yaw), flat * math.sin(yaw), math.sin(pitch)])
