"""Cameras of a lab: those of its model, and those added at run time."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import mujoco

from manyworlds.lab.cameras.camera import Kind, LabCameraCfg, model_cameras
from manyworlds.lab.cameras.frame import Frame
from manyworlds.lab.cameras.hub import CameraHub, Subscription, unknown_camera
from manyworlds.lab.snapshot import Snapshot
from manyworlds.lab.verb_error import VerbError

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_POSE = ("body", "pos", "quat", "fovy", "intrinsics")
_FIXED = ("name", "source")


class LabCameras(Mapping[str, "LabCamera"]):
    """Cameras of a lab, by name; all methods may be called from any thread.

    Cameras that were added, and settings of the model's cameras, outlive rebuilds of the world.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        # A cycle of references would keep the lab's shared memory until it is collected.
        self._lab = cast("LiveLab", weakref.proxy(lab))
        self._lock = threading.RLock()
        self._model: mujoco.MjModel | None = None
        self._of_model: dict[str, LabCameraCfg] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._added: dict[str, LabCameraCfg] = {}
        self._hub: CameraHub | None = None

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
    def hub(self) -> CameraHub:
        """Hub that draws the cameras in this process."""
        with self._lock:
            if self._hub is None:
                self._hub = CameraHub(self._lab, lambda fresh: self.cfgs)
            return self._hub

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
            return self._configure(name, settings)

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

    def close(self) -> None:
        """End all streams."""
        if self._hub is not None:
            self._hub.close()

    def _find(self, name: str) -> LabCameraCfg:
        cfgs = self.cfgs
        if name not in cfgs:
            raise unknown_camera(name, cfgs)
        return cfgs[name]

    def _check_body(self, camera: LabCameraCfg) -> None:
        model = self._lab.model
        names = [model.body(i).name for i in range(1, model.nbody)] if camera.body else []
        if camera.body and camera.source == "added" and camera.body not in names:
            from manyworlds.lab.verbs.fields import near

            raise VerbError(
                "unknown_body",
                f"There is no body '{camera.body}' to carry camera '{camera.name}'"
                f"{near(camera.body, names) or '.'}",
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
        """Draw one image now; see `CameraHub.render`."""
        return self._cameras.hub.render(self.name, kind, snapshot)

    def subscribe(self, kind: Kind = "rgb", *, capacity: int = 2) -> Subscription:
        """Subscribe to the stream of frames; see `CameraHub.subscribe`."""
        return self._cameras.hub.subscribe(self.name, kind, capacity=capacity)

    def configure(self, **settings: object) -> LabCameraCfg:
        """Change settings; see `LabCameras.configure`."""
        return self._cameras.configure(self.name, **settings)
