"""World of a publisher in MuJoCo's own window, whose mouse pushes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.plugins.urlab.fast_path.reader import (
    FastPathReader,
    Newest,
    PublishedScene,
    PublisherError,
    pose_bodies,
)
from manyworlds.utils.drawing import draw_for_robots, pose_for_drawing
from manyworlds.viewer.model_sync import copy_model_fields

if TYPE_CHECKING:
    from mujoco.viewer import Handle

_FRAME_S = 1.0 / 60.0
_CLOSE_S = 5.0
_SILENCE_S = 1.0  # time without poses after which the publisher is asked if it is there
_HELLO_S = 0.5  # shortest time between two requests for the model


class PeekWindow:
    """Shows what a publisher publishes, until the window is closed.

    Args:
        reader: connection to the publisher.
        tell: receives sentences for people.
        launch: opens a window on a model and its data; None takes MuJoCo's.
        clock: function that returns the wall clock's time [s].

    Raises:
        PublisherError: the publisher does not answer, or has nothing to show.
    """

    def __init__(
        self,
        reader: FastPathReader,
        tell: Callable[[str], None],
        launch: Callable[..., Handle] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if launch is None:
            import mujoco.viewer

            launch = mujoco.viewer.launch_passive
        self._reader = reader
        self._tell = tell
        self._launch = launch
        self._clock = clock
        self._newest = Newest()
        self._asked = self._heard = clock()
        self._problem = ""
        self._notes: set[str] = set()
        self._is_dragging = False
        self._takes_drags = True
        self._dragged: tuple[object, ...] = ()
        self.scene = reader.hello()
        """The world that is shown."""
        self._open()

    @property
    def is_open(self) -> bool:
        """True until the window is closed."""
        return self._handle.is_running()

    def run(self, seconds: float | None = None) -> None:
        """Show the world until the window is closed, or for a time [s]."""
        end = None if seconds is None else self._clock() + seconds
        while self.is_open and (end is None or self._clock() < end):
            began = self._clock()
            self.tick()
            time.sleep(max(0.0, began + _FRAME_S - self._clock()))

    def tick(self) -> None:
        """Draw the newest pose, and pass on the mouse's pull."""
        now = self._clock()
        if self._reader.read(self._newest):
            self._heard = now
            self._problem = ""
        try:
            if self._is_outdated() and now - self._asked >= _HELLO_S:
                self._asked = now
                self._show(self._reader.hello())
            elif now - self._heard >= _SILENCE_S:
                self._heard = now
                self._look_for_the_publisher()
            self._drag()
        except PublisherError as error:
            self._problem = str(error)
            self._note(str(error))
        self._draw()

    def close(self) -> None:
        """Close the window, and wait for its end: it must not draw while the program ends."""
        self._handle.close()
        for thread in self._threads:
            thread.join(_CLOSE_S)

    def _open(self) -> None:
        self.model = self.scene.model
        draw_for_robots(self.model)
        self.data = mujoco.MjData(self.model)
        before = set(threading.enumerate())
        self._handle: Handle = self._launch(
            self.model, self.data, show_left_ui=False, show_right_ui=False
        )
        self._threads = [thread for thread in threading.enumerate() if thread not in before]
        if self.scene.note:
            self._note(self.scene.note)

    def _show(self, fresh: PublishedScene) -> None:
        """Show a changed model: in the same window if only its values have changed."""
        draw_for_robots(fresh.model)
        same = _has_same_elements(self.model, fresh.model)
        self.scene = fresh
        self._takes_drags = True
        if same:
            with self._handle.lock():
                copy_model_fields(self.model, fresh.model)
            return
        self.close()
        self._open()

    def _is_outdated(self) -> bool:
        """Return True if the newest messages are those of another model."""
        geoms = self._newest.geoms
        viewer = self._newest.viewer
        model = self.model
        if geoms is not None:
            told = str(geoms.get("model_id", self.scene.model_id))
            count = len(geoms.get("bxpos", ()))  # 0 from publishers that send poses of geoms
            if told != self.scene.model_id or count not in (0, 3 * model.nbody):
                return True
        return viewer is not None and len(viewer["qpos"]) != model.nq

    def _look_for_the_publisher(self) -> None:
        """Ask a publisher that is silent; it may have been started again, with another world."""
        was_gone = bool(self._problem)
        if not self._reader.is_there():
            self._problem = f"The publisher at {self._reader.address} does not answer."
            self._note(self._problem)
        elif was_gone:
            self._show(self._reader.hello())
            self._problem = ""

    def _draw(self) -> None:
        handle = self._handle
        model = self.model
        data = self.data
        if not self._is_outdated():
            with handle.lock():
                self._pose(model, data)
        handle.set_texts(self._texts())
        handle.sync()

    def _pose(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        viewer, geoms = self._newest.viewer, self._newest.geoms
        bodies = None
        if geoms is not None and "bxpos" in geoms:
            bodies = np.reshape(geoms["bxpos"], (-1, 3)), np.reshape(geoms["bxquat"], (-1, 4))
        if bodies is not None and model.nmocap:
            mocap = np.flatnonzero(model.body_mocapid >= 0)
            ids = model.body_mocapid[mocap]
            data.mocap_pos[ids] = bodies[0][mocap]
            data.mocap_quat[ids] = bodies[1][mocap]
        if viewer is not None:
            data.time = viewer["t"]
            data.qpos[:] = viewer["qpos"]
            data.qvel[:] = viewer["qvel"]
            pose_for_drawing(model, data)
        elif bodies is not None:
            pose_bodies(model, data, *bodies)

    def _drag(self) -> None:
        """Pass on the mouse's pull; the end of it, too."""
        with self._handle.lock():
            pert = self._handle.perturb
            active = int(pert.active | pert.active2)
            body = int(pert.select)
            drag = {
                "select": body,
                "active": active,
                "localpos": pert.localpos.tolist(),
                "refselpos": pert.refselpos.tolist(),
                "refquat": pert.refquat.tolist(),
            }
        if not active or body <= 0:
            if self._is_dragging:
                self._is_dragging = False
                self._reader.request("fastpath_perturb", **{**drag, "active": 0})
            return
        if self.scene.note:
            self._problem = self.scene.note
            return
        self._is_dragging = True
        self._problem = ""
        if self._takes_drags:
            reply = self._reader.request("fastpath_perturb", **drag)
            if "error" not in reply:
                return
            if self.scene.model_id:  # a publisher that knows drags has a reason
                self._problem = str(reply["error"])
                self._note(self._problem)
                return
            self._takes_drags = False  # an older publisher, which knows forces only
        self._push(body)

    def _push(self, body: int) -> None:
        """Push a body by the force of the mouse's spring at the present pose."""
        with self._handle.lock():
            mujoco.mj_comVel(self.model, self.data)
            before = self.data.xfrc_applied[body].copy()
            self.data.xfrc_applied[body] = 0.0
            mujoco.mjv_applyPerturbForce(self.model, self.data, self._handle.perturb)
            wrench = self.data.xfrc_applied[body].tolist()
            self.data.xfrc_applied[body] = before
        reply = self._reader.request(
            "fastpath_perturb", body=body, force=wrench[:3], torque=wrench[3:]
        )
        if "error" in reply:
            self._problem = str(reply["error"])
            self._note(self._problem)

    def _note(self, text: str) -> None:
        """Tell a sentence, once."""
        if text not in self._notes:
            self._notes.add(text)
            self._tell(text)

    def _texts(self) -> tuple[int, int, str, str]:
        rows = {"World": self.scene.scene, "Publisher": self._reader.address.removeprefix("tcp://")}
        if self._newest.viewer is not None:
            rows["Time"] = f"{self._newest.viewer['t']:.2f} s"
        if self._problem:
            rows["Note"] = self._problem
        font = mujoco.mjtFontScale.mjFONTSCALE_150
        place = mujoco.mjtGridPos.mjGRID_TOPLEFT
        return int(font), int(place), "\n".join(rows), "\n".join(rows.values())


def _has_same_elements(one: mujoco.MjModel, other: mujoco.MjModel) -> bool:
    """Return True if two models differ in values only, which an open window can show."""
    same = np.array_equal(one._sizes, other._sizes) and one.names == other.names
    assets = ("mesh_vert", "mesh_face", "hfield_data", "tex_data", "geom_type", "body_parentid")
    return same and all(np.array_equal(getattr(one, a), getattr(other, a)) for a in assets)
