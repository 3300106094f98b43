"""Images of cameras on the page, and the page's own view as a camera."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.pictures import KINDS, CameraImage, Subscription, quat_to_look
from manyworlds.lab.pictures.camera import MAX_FOVY, MIN_FOVY
from manyworlds.lab.pictures.cameras import FaceCameras
from manyworlds.viewer.browser.markup import note_html
from manyworlds.viewer.browser.widgets import ShownValue

if TYPE_CHECKING:
    import viser

PAGE = "page"
"""Name of the camera that follows the view of the first browser."""
_NOTHING = "nothing"
_AGAIN_S = 5.0  # time between subscriptions after the process that draws has ended
_LIST_S = 1.0  # period of the updates of the list of cameras
_PERIOD_S = 0.5
_IDLE_S = 2.0  # without a browser, nothing is drawn


class CameraImagePart:
    """Shows the stream of one camera.

    Args:
        ctx: context of the page.
    """

    period = _PERIOD_S

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        self._cameras = FaceCameras(ctx.lab.face)
        self._stream: Subscription[CameraImage] | None = None
        self._listed = -math.inf
        self._again = 0.0
        self._pose: tuple[float, ...] = ()
        gui = ctx.gui
        self.choice = gui.add_dropdown(
            "Camera", _options(self._cameras.cfgs), hint=f"'{PAGE}' is the view of this page."
        )
        self.kind = gui.add_dropdown("Image", KINDS)
        self.rate = gui.add_slider(
            "Rate [Hz]", 1, 30, 1, 10, hint="Images per simulated second, at most the camera's."
        )
        self.streams = gui.add_checkbox(
            "Streams of all cameras", True, hint="Off: no camera has images, here and for programs."
        )
        self._streams = ShownValue(self.streams)
        ctx.on_change(self.streams, self._enable_all)
        self.name = gui.add_text("New camera", "", hint="Name; empty: a free one.")
        self.add = gui.add_button("Add a camera here", hint="Where this page looks from now.")
        self.add.on_click(
            lambda event: ctx.attempt_at(self.added, lambda: self._add_here(event.client))
        )
        self.added = gui.add_html("")
        self.note = gui.add_html("")
        self.scale = gui.add_html("")
        self.image = gui.add_image(np.zeros((3, 4, 3), np.uint8), format="jpeg", visible=False)
        for handle in (self.choice, self.kind, self.rate):
            ctx.on_change(handle, lambda _: self._open())

    def update(self, snapshot: Snapshot) -> None:
        """Show the newest image."""
        now = time.monotonic()
        if now - self._listed > _LIST_S:
            self._listed = now
            cameras = self._cameras.cfgs
            names = _options(cameras)
            if names != tuple(self.choice.options):
                self.choice.options = names
            self._streams.show(all(camera.enabled for camera in cameras.values()))
        stream = self._stream
        if stream is None:
            return
        if stream.camera == PAGE:
            self._follow()
        image = stream.newest()
        self.note.content = note_html(stream.error, error=True)
        if stream.is_closed and now > self._again:  # the process that draws has ended
            self._again = now + _AGAIN_S
            self._ctx.attempt_at(self.note, self._subscribe)
        if image is not None:
            self.image.image = image.picture()
            self.scale.content = note_html(_scale(image))
            self.image.visible = True

    def close(self) -> None:
        """End the stream."""
        self._cameras.close()

    def _open(self) -> None:
        """Show the chosen camera."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self.period = _PERIOD_S
        self.image.visible = False
        self.note.content = self.scale.content = ""
        name = self.choice.value
        if name == _NOTHING:
            return
        if name == PAGE:
            self._pose = ()
            self._follow()
        self._ctx.attempt_at(self.note, self._subscribe)

    def _enable_all(self, on: bool) -> None:
        for name in self._cameras.cfgs:
            self._ctx.verbs.configure_camera(camera=name, enabled=on)

    def _subscribe(self) -> str:
        self._stream = self._cameras.subscribe(
            self.choice.value, self.kind.value, rate=self.rate.value, capacity=1, idle_s=_IDLE_S
        )
        self.period = 1.0 / self.rate.value
        return ""

    def _follow(self) -> None:
        """Put the camera of the page where the first browser looks from."""
        clients = list(self._ctx.server.get_clients().values())
        # Viser's default, before the browser has sent its camera, is an assertion.
        with contextlib.suppress(AssertionError):
            view = clients[0].camera if clients else self._ctx.server.initial_camera
            self._move(view)

    def _add_here(self, client: viser.ClientHandle | None) -> str:
        """Add a camera where a browser looks from."""
        assert client is not None  # only clients click
        pose = self._pose_of(client.camera)
        known = self._cameras.cfgs
        name = self.name.value.strip()
        if not name:
            name = next(f"view_{i}" for i in range(1, len(known) + 2) if f"view_{i}" not in known)
        self._ctx.verbs.add_camera(name, pos=pose[:3], quat=pose[3:7], fovy=pose[7])
        self.name.value = ""
        self._listed = -math.inf
        return f"The camera '{name}' looks from here."

    def _pose_of(self, view: viser.CameraHandle | viser.InitialCameraConfig) -> tuple[float, ...]:
        """Return position [m], orientation and vertical field of view [degrees] of a view."""
        pos = np.asarray(view.position, float)
        return (
            *(pos - self._ctx.view.offset).tolist(),
            *quat_to_look(pos, view.look_at),
            min(max(math.degrees(view.fov), MIN_FOVY), MAX_FOVY),
        )

    def _move(self, view: viser.CameraHandle | viser.InitialCameraConfig) -> None:
        pose = self._pose_of(view)
        if pose == self._pose:
            return
        verbs = self._ctx.verbs
        put = verbs.move_camera if PAGE in self._cameras.cfgs else verbs.add_camera
        put(PAGE, pos=pose[:3], quat=pose[3:7], fovy=pose[7])
        self._pose = pose


def _scale(image: CameraImage) -> str:
    """Return what light and dark mean in a depth image; empty for others."""
    if image.kind != "depth":
        return ""
    near, far = image.depths()
    return f"Light is {near:.3g} m, dark is {far:.3g} m, black is nothing."


def _options(cameras: Iterable[str]) -> tuple[str, ...]:
    """Return what can be chosen: nothing, the page's own view, and the other cameras."""
    return (_NOTHING, PAGE, *(name for name in cameras if name != PAGE))
