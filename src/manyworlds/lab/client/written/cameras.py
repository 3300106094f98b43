"""Verbs of `manyworlds.lab.verbs.cameras`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class CamerasVerbs(VerbCaller):
    """Verbs of a live world: cameras."""

    def list_cameras(self) -> Reply:
        """Return the cameras of the model, and those that were added.

        Returns:
            `cameras` (map, settings of each camera, by name), `frame_id`, `time`.
        """
        return self.call("list_cameras")

    def add_camera(
        self,
        name: str,
        pos: ArrayLike,
        quat: ArrayLike | None = None,
        look_at: ArrayLike | None = None,
        body: str | int | None = None,
        fovy: float | None = None,
        intrinsics: ArrayLike | None = None,
        width: int | None = None,
        height: int | None = None,
        rate: float | None = None,
        delay: float | None = None,
        effects: bool | None = None,
    ) -> Reply:
        """Add a camera, at a place of the world or on a body.

        Args:
            name: name of the new camera.
            pos: position relative to the body, or in the world [m].
            quat: orientation relative to the body; -z is forward, y up [wxyz].
            look_at: point to look at, in the frame of pos; replaces quat [m].
            body: body that carries it; the world if left out.
            fovy: vertical field of view [degrees], from 0.1, to 179.
            intrinsics: fx, fy, cx, cy from the left and top edge; replaces fovy [pixel].
            width: size of images [pixel], from 1, to 4096.
            height: size of images [pixel], from 1, to 4096.
            rate: frames per simulated second [Hz], from 0.001, to 1000.
            delay: simulated time from a frame to its delivery [s], from 0, to 5.
            effects: true for shadows, reflections and smooth edges.

        Returns:
            `camera` (map, all settings of the camera), `frame_id`, `time`.
        """
        return self.call(
            "add_camera",
            name=name,
            pos=pos,
            quat=quat,
            look_at=look_at,
            body=body,
            fovy=fovy,
            intrinsics=intrinsics,
            width=width,
            height=height,
            rate=rate,
            delay=delay,
            effects=effects,
        )

    def remove_camera(
        self,
        camera: str,
    ) -> Reply:
        """Remove a camera that was added.

        Args:
            camera: camera of the model, or an added one.
        """
        return self.call("remove_camera", camera=camera)

    def configure_camera(
        self,
        camera: str,
        width: int | None = None,
        height: int | None = None,
        rate: float | None = None,
        delay: float | None = None,
        effects: bool | None = None,
        enabled: bool | None = None,
    ) -> Reply:
        """Set how a camera takes images; what is left out stays.

        Args:
            camera: camera of the model, or an added one.
            width: size of images [pixel], from 1, to 4096.
            height: size of images [pixel], from 1, to 4096.
            rate: frames per simulated second [Hz], from 0.001, to 1000.
            delay: simulated time from a frame to its delivery [s], from 0, to 5.
            effects: true for shadows, reflections and smooth edges.
            enabled: false to stop the stream.

        Returns:
            `camera` (map, all settings of the camera), `frame_id`, `time`.
        """
        return self.call(
            "configure_camera",
            camera=camera,
            width=width,
            height=height,
            rate=rate,
            delay=delay,
            effects=effects,
            enabled=enabled,
        )

    def move_camera(
        self,
        camera: str,
        pos: ArrayLike,
        quat: ArrayLike | None = None,
        look_at: ArrayLike | None = None,
        fovy: float | None = None,
    ) -> Reply:
        """Move a camera that was added.

        Args:
            camera: camera of the model, or an added one.
            pos: position relative to the body, or in the world [m].
            quat: orientation relative to the body; -z is forward, y up [wxyz].
            look_at: point to look at, in the frame of pos; replaces quat [m].
            fovy: vertical field of view [degrees], from 0.1, to 179.

        Returns:
            `camera` (map, all settings of the camera), `frame_id`, `time`.
        """
        return self.call(
            "move_camera", camera=camera, pos=pos, quat=quat, look_at=look_at, fovy=fovy
        )

    def capture_camera(
        self,
        camera: str,
        kind: Literal["rgb", "depth", "segmentation", "geom", "body", "entity"] = "rgb",
        format: Literal["raw", "jpeg"] = "raw",
    ) -> Reply:
        """Take one image now, of the newest snapshot.

        Args:
            camera: camera of the model, or an added one.
            kind: kind of image.
            format: encoding of the pixels.

        Returns:
            `header` (map, size, dtype, intrinsics, pose, frame_id and time of the image), `data`
            (bytes, pixels row by row, little-endian; or a JPEG file), `frame_id`, `time`.
        """
        return self.call("capture_camera", camera=camera, kind=kind, format=format)
