"""Images of cameras on the page, and the page's own view as a camera."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.pictures import KINDS, CameraImage, Kind, Subscription, quat_to_look
from manyworlds.lab.pictures.camera import MAX_FOVY, MIN_FOVY
from manyworlds.lab.pictures.cameras import FaceCameras
from manyworlds.viewer.browser.markup import note_html
from manyworlds.viewer.browser.widgets import Section, ShownValue

if TYPE_CHECKING:
    import viser

PAGE = "page"
"""Name of the camera that follows the view of the first browser."""
_NOTHING = "nothing"
_AGAIN_S = 5.0  # time between subscriptions after the process that draws has ended
_LIST_S = 1.0  # period of the updates of the list of cameras
_PERIOD_S = 0.5
_IDLE_S = 2.0  # without a browser, nothing is drawn
_MOST_IMAGES = 4
_WINDOW_PX = 680
_ICON = cast("viser.IconName", "camera")


class ImagePlace:
    """Choice of an image of a camera, its stream, and the picture on the page.

    Args:
        ctx: context of the page.
        cameras: cameras of the lab.
        number: number of the place, from 1.
        change: called when another image is chosen.
    """

    def __init__(
        self, ctx: PageContext, cameras: FaceCameras, number: int, change: Callable[[], object]
    ) -> None:
        self._ctx = ctx
        self._cameras = cameras
        self.stream: Subscription[CameraImage] | None = None
        self._again = 0.0
        self._options = _options(cameras.cfgs)
        self.choice: viser.GuiDropdownHandle[Any] = ctx.gui.add_dropdown(
            f"Image {number}", tuple(self._options), hint=f"'{PAGE}' is the view of this page."
        )
        self.note = ctx.gui.add_html("")
        self.image: viser.GuiImageHandle | None = None
        self.below: viser.GuiHtmlHandle | None = None
        ctx.on_change(self.choice, lambda _: change())

    def list(self) -> None:
        """List what can be chosen now."""
        options = _options(self._cameras.cfgs)
        if options != self._options:
            self._options = options
            self.choice.options = tuple(options)

    @property
    def camera(self) -> str:
        """Name of the chosen camera; empty for none."""
        return self._options[self.choice.value][0]

    def open(self, rate: float) -> None:
        """Show what is chosen, some images per second."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        self.note.content = ""
        if self.camera:
            self._ctx.attempt_at(self.note, lambda: self._subscribe(rate))

    def add_image(self) -> None:
        """Add the picture to the place on the page that is open."""
        self.image = self._ctx.gui.add_image(
            np.zeros((3, 4, 3), np.uint8), format="jpeg", visible=False
        )

    def add_below(self) -> None:
        """Add what stands below the picture to the place on the page that is open."""
        self.below = self._ctx.gui.add_html("")

    def update(self, rate: float) -> None:
        """Show the newest image."""
        stream = self.stream
        if stream is None or self.image is None or self.below is None:
            return
        image = stream.newest()
        self.note.content = note_html(stream.error, error=True)
        now = time.monotonic()
        if stream.is_closed and now > self._again:  # the process that draws has ended
            self._again = now + _AGAIN_S
            self._ctx.attempt_at(self.note, lambda: self._subscribe(rate))
        if image is not None:
            self.image.image = image.picture()
            self.below.content = _scale(image, self.choice.value)
            self.image.visible = True

    def _subscribe(self, rate: float) -> str:
        name, kind = self._options[self.choice.value]
        self.stream = self._cameras.subscribe(name, kind, rate=rate, capacity=1, idle_s=_IDLE_S)
        return ""


class CameraImagePart:
    """Shows the streams of up to four cameras beside each other.

    Args:
        ctx: context of the page.
    """

    period = _PERIOD_S

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        self._cameras = FaceCameras(ctx.lab.face)
        self._listed = -math.inf
        self._outdated = True
        self._pose: tuple[float, ...] = ()
        gui = ctx.gui
        self.places = [
            ImagePlace(ctx, self._cameras, number, self._open)
            for number in range(1, _MOST_IMAGES + 1)
        ]
        self.rate = gui.add_slider(
            "Rate [Hz]", 1, 30, 1, 10, hint="Images per simulated second, at most the camera's."
        )
        ctx.on_change(self.rate, lambda _: self._open())
        self.apart = gui.add_checkbox(
            "Own window", False, hint="In a window of the page, which can be moved and docked."
        )
        ctx.on_change(self.apart, lambda _: self._lay_out_again())
        self._section = Section(gui)
        self._window: viser.PanelHandle | None = None
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
        self._show_places()

    def update(self, snapshot: Snapshot) -> None:
        """Show the newest images."""
        now = time.monotonic()
        if now - self._listed > _LIST_S:
            self._listed = now
            for place in self.places:
                place.list()
            self._streams.show(all(camera.enabled for camera in self._cameras.cfgs.values()))
        if self._outdated:  # here, because a picture that is gone cannot be shown
            self._outdated = False
            self._lay_out()
        if any(place.camera == PAGE for place in self._used):
            self._follow()
        for place in self._used:
            place.update(self.rate.value)

    def close(self) -> None:
        """End the streams."""
        self._close_window()
        self._cameras.close()

    @property
    def _used(self) -> list[ImagePlace]:
        return [place for place in self.places if place.camera]

    def _open(self) -> None:
        """Show the chosen images."""
        self._pose = ()
        if any(place.camera == PAGE for place in self._used):
            self._follow()
        for place in self.places:
            place.open(self.rate.value)
        streams = any(place.stream for place in self.places)
        self.period = 1.0 / self.rate.value if streams else _PERIOD_S
        self._show_places()
        self._lay_out_again()

    def _show_places(self) -> None:
        """Offer one more choice than there are images."""
        last = max((i for i, place in enumerate(self.places) if place.camera), default=-1)
        for i, place in enumerate(self.places):
            place.choice.visible = place.note.visible = i <= last + 1
        self.apart.visible = last >= 0

    def _lay_out_again(self) -> None:
        self._outdated = True

    def _lay_out(self) -> None:
        """Make room for all images, in the tab or in a window of the page."""
        self._close_window()
        gui = self._ctx.gui
        used = self._used
        with self._section.empty():
            if used and self.apart.value:
                self._window = gui.add_panel()
                self._window.float(x=12, y=12, width=_WINDOW_PX)
                area = self._window.add_tab("Images", _ICON)
            else:
                area = gui.add_folder("Images", visible=bool(used))
        with area:
            if len(used) > 1:
                gui.add_html('<i class="lab-images" hidden></i>')  # see `shell.css`
            for first in range(0, len(used), 2):
                row = used[first : first + 2]
                for place in row:
                    place.add_image()
                if len(row) == 1 and first:
                    gui.add_html("&nbsp;")  # in the second column
                for place in row:
                    place.add_below()

    def _close_window(self) -> None:
        if self._window is not None:
            self._window.remove()
            self._window = None

    def _enable_all(self, on: bool) -> None:
        for name in self._cameras.cfgs:
            self._ctx.verbs.configure_camera(camera=name, enabled=on)

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


def _scale(image: CameraImage, title: str) -> str:
    """Return HTML below an image: what it is, and what light and dark mean in a depth image."""
    if image.kind != "depth":
        return note_html(title)
    near, far = image.depths()
    ends = f"<span>{near:.3g} m</span><span>{far:.3g} m</span>"
    return (
        f'{note_html(title)}<div style="margin:0 1em .5em;font-size:11px;line-height:1.3">'
        '<div style="height:8px;background:linear-gradient(to right,#fff,#333);'
        'border:1px solid #adb5bd"></div><div style="display:flex;'
        f'justify-content:space-between">{ends}</div></div>'
    )


def _options(cameras: Iterable[str]) -> dict[str, tuple[str, Kind]]:
    """Return camera and kind of what can be chosen: nothing, the page's own view, the cameras."""
    options: dict[str, tuple[str, Kind]] = {_NOTHING: ("", "rgb")}
    for name in (PAGE, *(name for name in cameras if name != PAGE)):
        for kind in KINDS:
            options[name if kind == "rgb" else f"{name} {kind}"] = name, kind
    return options
