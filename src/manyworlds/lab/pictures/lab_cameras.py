"""Cameras of a lab: those of its model, and those added at run time."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import mujoco

from manyworlds.lab.errors import VerbError
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import Kind, LabCameraCfg, model_cameras
from manyworlds.lab.pictures.frame import Frame, JpegFrame
from manyworlds.lab.pictures.hub import CLOSED, check_wish, unknown_camera
from manyworlds.lab.pictures.subscription import Subscription

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.pictures.camera_process import CameraProcess

_POSE = ("body", "pos", "quat", "fovy", "intrinsics")
_FIXED = ("name", "source")


class LabCameras(Mapping[str, "LabCamera"]):
    """Cameras of a lab, by name; all methods may be called from any thread.

    Cameras that were added, and settings of the model's cameras, outlive rebuilds of the world.
    Images are drawn in a process of its own, which the first subscription or image starts.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        # A cycle of references would keep the lab's shared memory until it is collected.
        self._present = weakref.ref(lab)
        self._lock = threading.RLock()
        self._model: mujoco.MjModel | None = None
        self._of_model: dict[str, LabCameraCfg] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._added: dict[str, LabCameraCfg] = {}
        self._starting = threading.Lock()
        self._process: CameraProcess | None = None
        self._closed = False

    @property
    def _lab(self) -> LiveLab:
        lab = self._present()
        if lab is None:
            raise ReferenceError("These are the cameras of a lab that was deleted.")
        return lab

    @property
    def cfgs(self) -> dict[str, LabCameraCfg]:
        """Settings of all cameras, by name: those of the model first."""
        with self._lock:
            model = self._lab.model
            if model is not self._model:
                self._model, self._of_model = model, model_cameras(model)
            cfgs = dict(self._of_model)
            for name, settings in self._settings.items():
                if name in cfgs:
                    cfgs[name] = dataclasses.replace(cfgs[name], **settings)
            return cfgs | self._added

    @property
    def num_drawn(self) -> int:
        """Number of images that were drawn for this process."""
        return 0 if self._process is None else self._process.num_drawn

    @property
    def problems(self) -> list[str]:
        """Sentences about what is wrong with the drawing."""
        return (
            [self._process.problem] if self._process is not None and self._process.problem else []
        )

    def __getitem__(self, name: str) -> LabCamera:
        """Return a camera.

        Raises:
            VerbError: there is no such camera.
        """
        self._find(name)
        return LabCamera(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.cfgs)

    def __len__(self) -> int:
        return len(self.cfgs)

    def add(self, camera: LabCameraCfg) -> LabCamera:
        """Add a camera.

        Raises:
            VerbError: there is a camera of this name, or no such body.
        """
        if not camera.name or camera.name in self.cfgs:
            raise VerbError(
                "name_taken",
                f"There is a camera '{camera.name}' already: choose another name, or remove it."
                if camera.name
                else "A camera needs a name.",
            )
        self._check_body(camera)
        with self._lock:
            self._added[camera.name] = dataclasses.replace(camera, source="added")
        self._tell()
        return LabCamera(self, camera.name)

    def remove(self, name: str) -> None:
        """Remove a camera that was added; its subscribers get the reason.

        Raises:
            VerbError: there is no such camera, or it is one of the model.
        """
        if self._find(name).source == "model":
            raise VerbError(
                "not_removable", f"'{name}' is a camera of the model: only added ones are removed."
            )
        with self._lock:
            self._added.pop(name, None)
        self._tell()

    def configure(self, name: str, /, **settings: object) -> LabCameraCfg:
        """Change settings of a camera, and return all of them.

        Args:
            name: name of the camera.
            **settings: fields of `LabCameraCfg`; the pose and the projection of cameras that were
                added only.

        Raises:
            VerbError: there is no such camera or body, or the model has its pose.
            ValueError: a value is out of its bounds.
        """
        with self._lock:
            fresh = self._configure(name, settings)
        self._tell()
        return fresh

    def _configure(self, name: str, settings: dict[str, object]) -> LabCameraCfg:
        present, given = self._find(name), cast("dict[str, Any]", settings)
        fixed = _FIXED if present.source == "added" else _FIXED + _POSE
        if wrong := [field for field in settings if field in fixed]:
            raise VerbError(
                "bad_value",
                f"Camera '{name}' is one of the model, which sets {', '.join(wrong)}."
                if present.source == "model"
                else f"{', '.join(wrong)} of camera '{name}' cannot change: add another camera.",
            )
        if present.intrinsics is not None and "intrinsics" not in settings:
            present = present.resized(
                given.get("width", present.width), given.get("height", present.height)
            )
        fresh = dataclasses.replace(present, **given)
        self._check_body(fresh)
        if fresh.source == "added":
            self._added[name] = fresh
        else:
            self._settings.setdefault(name, {}).update(settings)
        return fresh

    def enable_all(self, on: bool) -> None:
        """Switch the streams of all cameras on or off."""
        for name in self:
            self.configure(name, enabled=on)

    def subscribe(self, name: str, kind: Kind = "rgb", *, capacity: int = 2) -> Subscription[Frame]:
        """Subscribe to the images of a camera; one drawing serves all subscribers.

        Args:
            name: name of the camera.
            kind: kind of the images.
            capacity: number of frames that wait for a slow consumer.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the lab has stopped.
        """
        return self._drawn(name, kind).subscribe(name, kind, capacity)

    def subscribe_jpeg(
        self, name: str, kind: Kind = "rgb", *, capacity: int = 2
    ) -> Subscription[JpegFrame]:
        """Subscribe to the images of a camera as JPEG files; see `subscribe`."""
        return self._drawn(name, kind).subscribe_jpeg(name, kind, capacity)

    def render(self, name: str, kind: Kind = "rgb", snapshot: Snapshot | None = None) -> Frame:
        """Draw one image now, whatever the camera's rate and delay are, and wait for it.

        Args:
            name: name of the camera.
            kind: kind of the image.
            snapshot: snapshot to draw; None takes the newest one.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the lab has stopped.
        """
        return cast(Frame, self._drawn(name, kind).render(name, kind, snapshot, jpeg=False))

    def render_jpeg(self, name: str, kind: Kind = "rgb") -> JpegFrame:
        """Draw one image of the newest snapshot as a JPEG file; see `render`."""
        return cast(JpegFrame, self._drawn(name, kind).render(name, kind, None, jpeg=True))

    def newest(self, name: str, kind: Kind = "rgb") -> Frame | None:
        """Return the frame that a subscriber got last; None without one."""
        return None if self._process is None else self._process.newest(name, kind)

    def close(self) -> None:
        """End all streams."""
        with self._starting:
            self._closed = True
        if self._process is not None:
            self._process.close()

    def _drawn(self, name: str, kind: str) -> CameraProcess:
        """Return the process that draws, after a look at what is wanted; start it if need be.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the process does not start.
        """
        check_wish(name, kind, self.cfgs)
        with self._starting:
            if self._closed:
                raise VerbError("not_ready", CLOSED)
            process = self._process
            if process is None or process.problem:
                process = self._process = self._start(process)
        self._tell()
        return process

    def _start(self, ended: CameraProcess | None) -> CameraProcess:
        """Start the process that draws, in place of one that has ended."""
        from manyworlds.lab.pictures.camera_process import CameraProcess

        try:
            process = CameraProcess(self._lab)
        except (ValueError, RuntimeError, TimeoutError) as error:
            raise VerbError("not_ready", f"Cameras cannot be drawn: {error}") from error
        if ended is None:
            self._lab.on_rebuild(self._tell)
        else:
            ended.close()
        return process

    def _tell(self) -> None:
        """Tell the process that draws which cameras there are."""
        if self._process is not None:
            self._process.tell_cameras(self.cfgs)

    def _find(self, name: str) -> LabCameraCfg:
        cfgs = self.cfgs
        if name not in cfgs:
            raise unknown_camera(name, cfgs)
        return cfgs[name]

    def _check_body(self, camera: LabCameraCfg) -> None:
        model = self._lab.model
        names = [model.body(i).name for i in range(1, model.nbody)] if camera.body else []
        if camera.body and camera.source == "added" and camera.body not in names:
            from manyworlds.lab.errors import near

            raise VerbError(
                "unknown_body",
                f"There is no body '{camera.body}' to carry camera '{camera.name}'"
                f"{near(camera.body, names)}",
            )


class LabCamera:
    """One camera of a lab.

    Args:
        cameras: cameras of the lab.
        name: name of the camera.
    """

    def __init__(self, cameras: LabCameras, name: str) -> None:
        self._cameras = cameras
        self.name = name

    @property
    def cfg(self) -> LabCameraCfg:
        """Present settings."""
        return self._cameras._find(self.name)

    def frame(self, kind: Kind = "rgb", snapshot: Snapshot | None = None) -> Frame:
        """Draw one image now; see `LabCameras.render`."""
        return self._cameras.render(self.name, kind, snapshot)

    def subscribe(self, kind: Kind = "rgb", *, capacity: int = 2) -> Subscription[Frame]:
        """Subscribe to the stream of frames; see `LabCameras.subscribe`."""
        return self._cameras.subscribe(self.name, kind, capacity=capacity)

    def configure(self, **settings: object) -> LabCameraCfg:
        """Change settings; see `LabCameras.configure`."""
        return self._cameras.configure(self.name, **settings)
