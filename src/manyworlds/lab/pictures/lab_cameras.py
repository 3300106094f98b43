"""Cameras of a lab: those of its model, and those added at run time."""

from __future__ import annotations

import dataclasses
import itertools
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import mujoco

from manyworlds.lab.errors import VerbError, near
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import (
    Kind,
    LabCameraCfg,
    check_request,
    model_cameras,
    unknown_camera,
)
from manyworlds.lab.pictures.cameras import Cameras
from manyworlds.lab.pictures.image import CameraImage
from manyworlds.lab.pictures.subscription import CLOSED, Subscription
from manyworlds.lab.readers.wire import Message

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.pictures.camera_process import CameraProcess

_POSE = ("body", "pos", "quat", "fovy", "intrinsics")
_FIXED = ("name", "source")


class LabCameras(Cameras, Mapping[str, "LabCamera"]):
    """Cameras of a lab, by name; all methods may be called from any thread.

    Cameras that were added, and settings of the model's cameras, outlive rebuilds of the world.
    Images are drawn in a process of its own, which the first subscription or image starts; pages
    and servers get theirs from the same process.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        super().__init__()
        # A cycle of references would keep the lab's shared memory until it is collected.
        self._present = weakref.ref(lab)
        self._lock = threading.RLock()
        self._model: mujoco.MjModel | None = None
        self._of_model: dict[str, LabCameraCfg] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._added: dict[str, LabCameraCfg] = {}
        self._starting = threading.Lock()
        self._process: CameraProcess | None = None
        self._readers = itertools.count()
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
                self._model = model
                self._of_model = model_cameras(model)
            cfgs = dict(self._of_model)
            for name, settings in self._settings.items():
                if name in cfgs:
                    cfgs[name] = dataclasses.replace(cfgs[name], **settings)
            return cfgs | self._added

    @property
    def problems(self) -> list[str]:
        """Sentences about what is wrong with the drawing."""
        if self._process is None or not self._process.problem:
            return []
        return [self._process.problem]

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
        if not camera.name:
            raise VerbError("name_taken", "A camera needs a name.")
        if camera.name in self.cfgs:
            raise VerbError(
                "name_taken",
                f"There is a camera '{camera.name}' already: choose another name, or remove it.",
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
        present = self._find(name)
        given = cast("dict[str, Any]", settings)
        is_added = present.source == "added"
        fixed = _FIXED if is_added else _FIXED + _POSE
        wrong = ", ".join(field for field in settings if field in fixed)
        if wrong and is_added:
            text = f"{wrong} of camera '{name}' cannot change: add another camera."
            raise VerbError("bad_value", text)
        if wrong:
            text = f"Camera '{name}' is one of the model, which sets {wrong}."
            raise VerbError("bad_value", text)
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

    def answer(self, request: Message, descriptor: int | None = None) -> Message:
        """Carry out a request of a reader of images; see `DrawnLab.ask_for_images`."""
        match request["do"]:
            case "check":
                check_request(request["camera"], request["kind"], self.cfgs)
                return {"process": self._start_process().process.pid}
            case "connect":
                assert descriptor is not None
                reader = next(self._readers)
                self._start_process().add_reader(reader, descriptor)
                return {"reader": reader}
            case "subscribe":
                self._process_of(request).tell("subscribe", **_without_verb(request))
            case "unsubscribe":
                self._process_of(request).tell("unsubscribe", **_without_verb(request))
            case "render":
                check_request(request["camera"], request["kind"], self.cfgs)
                process = self._process_of(request)
                process.wait_until_world_sent()
                process.tell("render", **_without_verb(request))
            case "why":
                return {"text": self._why_ended(request["process"])}
        return {}

    def close(self) -> None:
        """End all streams, and the process that draws."""
        with self._starting:
            self._closed = True
        if self._process is not None:
            self._process.close()
        super().close()

    def _ask(self, request: Message, descriptor: int | None = None) -> Message:
        return self.answer(request, descriptor)

    def _start_process(self) -> CameraProcess:
        """Return the process that draws, which knows the cameras; start it if there is none.

        Raises:
            VerbError: the process does not start, or the lab has stopped.
        """
        with self._starting:
            if self._closed:
                raise VerbError("not_ready", CLOSED)
            process = self._process
            if process is None or process.problem:
                process = self._new_process(process)
                self._process = process
        self._tell()
        return process

    def _new_process(self, ended: CameraProcess | None) -> CameraProcess:
        """Start the process that draws, perhaps in place of one that has ended."""
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

    def _process_of(self, request: Message) -> CameraProcess:
        """Return the process that sends images to the reader of a request.

        Raises:
            VerbError: it has ended, or the lab has stopped.
        """
        if self._closed:
            raise VerbError("not_ready", CLOSED)
        process = self._process
        if process is None or process.problem or request["reader"] not in process.readers:
            raise VerbError("not_ready", "The program that draws cameras has ended: try again.")
        self._tell()
        return process

    def _why_ended(self, pid: int) -> str:
        """Return the reason why a process that drew sends no more images."""
        process = self._process
        if self._closed or process is None:
            return CLOSED
        if process.process.pid != pid:
            return "The program that draws cameras has ended, and was started again."
        return process.why_ended()

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
        if not camera.body or camera.source == "model":
            return
        names = [model.body(i).name for i in range(1, model.nbody)]
        if camera.body not in names:
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

    def render(self, kind: Kind = "rgb", snapshot: Snapshot | None = None) -> CameraImage:
        """Draw one image now; see `LabCameras.render`."""
        return self._cameras.render(self.name, kind, snapshot)

    def frame(self, kind: Kind = "rgb", snapshot: Snapshot | None = None) -> CameraImage:
        """Former name of `render`."""
        return self.render(kind, snapshot)

    def subscribe(self, kind: Kind = "rgb", *, capacity: int = 2) -> Subscription[CameraImage]:
        """Subscribe to the stream of images; see `LabCameras.subscribe`."""
        return self._cameras.subscribe(self.name, kind, capacity=capacity)

    def configure(self, **settings: object) -> LabCameraCfg:
        """Change settings; see `LabCameras.configure`."""
        return self._cameras.configure(self.name, **settings)


def _without_verb(request: Message) -> Message:
    return {name: value for name, value in request.items() if name != "do"}
