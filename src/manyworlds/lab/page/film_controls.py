"""Films and moving cameras on the page: orbit, camera path, and the Film button."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import mujoco
import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.verb_form import VerbForm
from manyworlds.lab.pictures.film.camera_path import CameraPath, Waypoint
from manyworlds.lab.pictures.film.shots import OrbitShot, everything, fit_radius
from manyworlds.viewer.browser.markup import note_html
from manyworlds.viewer.browser.widgets import add_choice, relabel

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.browser.overlays.shapes import Poses

_SOURCES = {"last seconds": "last", "next seconds": "next", "present state": "now"}
_SHOTS = ("this view", "orbit", "camera path", "follow", "first person")
_SIZES = {"640 x 480": (640, 480), "1280 x 720": (1280, 720), "1920 x 1080": (1920, 1080)}
_READ_S = 0.25  # period in which the progress of a film is read
_SLOW_S = 5.0  # time for a frame from which the drawing is called slow
_STEP_S = 2.0  # time from a captured waypoint to the next one
_AIM_M = 2.0  # distance of the point that the camera looks at
_LINE = "/camera_path"


class FilmPart(PagePart):
    """Orbit and path for the cameras of all browsers, and films of the world."""

    period = 1.0 / 30.0

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._mode = ""
        self._begun = 0.0
        self._read = -math.inf
        self._orbit: OrbitShot | None = None
        self._line: viser.LineSegmentsHandle | None = None
        self._path = CameraPath()
        gui = ctx.gui
        with gui.add_folder("Film"):
            self._add_film(gui)
        with gui.add_folder("Moving camera"):
            self._add_camera(gui)
        self._take(ctx.verbs.read_camera_path()["camera_path"])
        if self._path.autoplay and self._path.waypoints:
            self._play("path")

    def _add_film(self, gui: viser.GuiApi) -> None:
        ctx = self._ctx
        self.source = gui.add_dropdown("Film the", tuple(_SOURCES))
        form = VerbForm(ctx, "film_start")
        self.seconds = form.add("seconds", "Length", 5.0)
        self.shot = gui.add_dropdown("Camera", _SHOTS)
        self.size = gui.add_dropdown("Size", tuple(_SIZES))
        self.fps = form.add("fps", "Frame rate")
        self.format = gui.add_dropdown("Format", ("best", "mp4", "gif"))
        self.film = ctx.add_button(
            "Film", self._toggle_film, hint="Into a file, beside the recordings."
        )
        self.progress = gui.add_html("")

    def _add_camera(self, gui: viser.GuiApi) -> None:
        ctx = self._ctx
        moves = {"Orbit": lambda: self._toggle("orbit"), "Path": lambda: self._toggle("path")}
        self.moves = add_choice(gui, "Move along", moves, ctx.attempt)
        edits = {"Add this view": self._capture, "Remove last": self._remove}
        self.edits = add_choice(gui, "Path", edits, ctx.attempt)
        self.curve = gui.add_dropdown("Curve", ("cubic", "linear"))
        ctx.on_change(self.curve, lambda curve: self._set(replace(self._path, curve=curve)))
        self.loop = gui.add_checkbox("Loop", False)
        ctx.on_change(self.loop, lambda on: self._set(replace(self._path, loop=on)))
        self.file = gui.add_text("Path file", "path", hint="NAME.camera.json, with the recordings.")
        files = {
            "Save": lambda: ctx.verbs.save_camera_path(path=self.file.value.strip()),
            "Load": self._load,
        }
        self.files = add_choice(gui, "File", files, ctx.attempt)
        self.told = gui.add_html("")

    def renew(self) -> list[str]:
        """Stop moving the camera: its target may be gone; the path stays."""
        self._mode = ""
        self._line = None
        self._preview()
        return []

    def toggle(self) -> None:
        """Start or stop the camera path, or the orbit if there is no path."""
        self._toggle("path" if self._path.waypoints else "orbit")

    def update(self, snapshot: Snapshot) -> None:
        """Move the cameras of all browsers; show the progress of a film."""
        now = time.monotonic()
        if self._mode:
            self._move(snapshot, now - self._begun)
        if now - self._read >= _READ_S:
            self._read = now
            film = self._ctx.verbs.read_film()["film"]
            running = film.get("state") in ("waiting", "drawing")
            relabel(self.film, "Cancel the film" if running else "Film", None)
            self.progress.content = note_html(_told(film), error=bool(film.get("error")))

    def _toggle_film(self) -> None:
        film = self._ctx.verbs.read_film()["film"]
        if film.get("state") in ("waiting", "drawing"):
            self._ctx.verbs.film_cancel()
            return
        width, height = _SIZES[self.size.value]
        seconds = None  # those of the path
        if self.shot.value != "camera path":
            seconds = self.seconds.value
        format = self.format.value
        self._ctx.verbs.film_start(
            source=_SOURCES[self.source.value],
            seconds=seconds,
            shot=self._shot(),
            fps=self.fps.value,
            width=width,
            height=height,
            format="" if format == "best" else format,
        )
        self._read = -math.inf

    def _shot(self) -> dict[str, object]:
        kind = self.shot.value
        ctx = self._ctx
        target = ctx.view.name_of(ctx.body or ctx.view.follow)
        if kind == "orbit":
            return {"kind": "orbit", "target": target}
        if kind == "camera path":
            return {"kind": "path", "path": self._path.to_plain()}
        if kind in ("follow", "first person"):
            if not target and (ctx.body or ctx.view.follow):
                raise ValueError("The selected body has no name: select one that has a name.")
            if not target:
                raise ValueError("No body is selected: click one, or choose it in the tab World.")
            return {"kind": kind.replace(" ", "_"), "body": target}
        pos, look_at = self._view()
        return {"kind": "fixed", "pos": pos.tolist(), "look_at": look_at.tolist()}

    def _view(self) -> tuple[np.ndarray, np.ndarray]:
        """Return position and aim of the first browser's camera in the world [m]."""
        clients = list(self._ctx.server.get_clients().values())
        if not clients:
            raise ValueError("No browser is connected: there is no view.")
        camera = clients[0].camera
        offset = self._ctx.view.offset
        return np.asarray(camera.position) - offset, np.asarray(camera.look_at) - offset

    def _toggle(self, mode: str) -> None:
        if self._mode:
            self._mode = ""
        else:
            self._play(mode)

    def _play(self, mode: str) -> None:
        if mode == "path" and not self._path.waypoints:
            raise ValueError("The camera path has no waypoints: add this view first.")
        self._orbit = None
        self._mode = mode
        self._begun = time.monotonic()

    def _move(self, snapshot: Snapshot, elapsed: float) -> None:
        offset = self._ctx.view.offset
        if self._mode == "path":
            pos, quat = self._path.pose(elapsed)
            if not self._path.loop and elapsed > self._path.duration:
                self._mode = ""
            axes = np.empty(9)
            mujoco.mju_quat2Mat(axes, quat)
            aim = pos - _AIM_M * axes.reshape(3, 3)[:, 2]
        else:
            body = self._ctx.body or self._ctx.view.follow
            if self._orbit is None:
                self._orbit = OrbitShot(radius=self._fit(body))
            if body:
                target = snapshot.xpos[body]
            else:
                poses = cast("Poses", snapshot)  # its fields are those of `mujoco.MjData`
                target = everything(self._ctx.lab.model, poses).mean(axis=0)
            aim = self._orbit.ease(np.array(target, float), elapsed)
            pos = aim + self._orbit.around(elapsed)
        for client in list(self._ctx.server.get_clients().values()):
            with client.atomic():
                client.camera.position = pos + offset
                client.camera.look_at = aim + offset

    def _fit(self, body: int) -> float:
        model = self._ctx.lab.model
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        return fit_radius(model, data, model.body(body).name if body else "")

    def _capture(self) -> None:
        pos, look_at = self._view()
        points = self._path.waypoints
        moment = points[-1].time + _STEP_S if points else 0.0
        here = Waypoint(time=moment, pos=tuple(pos.tolist()), look_at=tuple(look_at.tolist()))
        self._set(replace(self._path, waypoints=(*points, here)))

    def _remove(self) -> None:
        self._set(replace(self._path, waypoints=self._path.waypoints[:-1]))

    def _set(self, path: CameraPath) -> None:
        self._take(self._ctx.verbs.set_camera_path(camera_path=path.to_plain())["camera_path"])

    def _load(self) -> None:
        reply = self._ctx.verbs.load_camera_path(path=self.file.value.strip())
        self._take(reply["camera_path"])

    def _take(self, plain: dict[str, Any]) -> None:
        self._path = CameraPath.from_plain(plain)
        self.curve.value = self._path.curve
        self.loop.value = self._path.loop
        count = len(self._path.waypoints)
        self.told.content = note_html(
            f"{count} waypoints, {self._path.duration:.1f} s" if count else "no waypoints"
        )
        self._preview()

    def _preview(self) -> None:
        """Draw the path into the scene."""
        if self._line is not None:
            self._line.remove()
            self._line = None
        points = self._path.line() + self._ctx.view.offset
        if len(points) > 1:
            self._line = self._ctx.server.scene.add_line_segments(
                _LINE,
                np.stack([points[:-1], points[1:]], axis=1),
                (255, 140, 0),
                thickness=2.0,
                thickness_units="screen",
            )


def _told(film: dict[str, Any]) -> str:
    if not film:
        return ""
    if film["error"]:
        return film["error"]
    drawing = [f"{film['drawn']} of {film['frames']} frames after {film['elapsed']:.0f} s"]
    if film["left"] is not None:
        drawing.append(f"about {film['left']:.0f} s left")
    if film["elapsed"] > (film["drawn"] + 2) * _SLOW_S:
        drawing.append("slow, because drawing gives way to other programs")
    texts = {
        "waiting": f"waiting until the world has moved on by {film['seconds']:g} s",
        "drawing": ", ".join(drawing),
        "done": f"{film['frames']} frames: {film['path']}",
        "canceled": "canceled",
    }
    return ". ".join(filter(None, (texts[film["state"]], film["note"])))
