"""Verbs of `manyworlds.lab.verbs.film`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from manyworlds.lab.client.caller import Reply, VerbCaller


class FilmVerbs(VerbCaller):
    """Verbs of a live world: film."""

    def film_start(
        self,
        source: str = "last",
        seconds: float | None = None,
        shot: Mapping[str, object] | None = None,
        fps: float = 30.0,
        width: int = 640,
        height: int = 480,
        fovy: float = 45.0,
        format: Literal["", "mp4", "gif"] = "",
        name: str = "",
    ) -> Reply:
        """Start a film, drawn in a process of its own into the folder of the recordings.

        Args:
            source: last or next seconds, the state now, or a recording.
            seconds: length; of the camera path if left out [s], from 0.001.
            shot: kind (orbit, path, follow, first_person, fixed, camera), and its fields.
            fps: frames per second [1/s], from 0.1, to 240.
            width: size of the film [pixel], from 16, to 4096.
            height: size of the film [pixel], from 16, to 4096.
            fovy: vertical field of view [degrees], from 0.1, to 179.
            format: empty: the best one.
            name: name of the file without suffix; the date if empty.

        Returns:
            `film` (map, newest film: name, state, frames drawn and in all, elapsed, left [s], path,
            note, error), `frame_id`, `time`.
        """
        return self.call(
            "film_start",
            source=source,
            seconds=seconds,
            shot=shot,
            fps=fps,
            width=width,
            height=height,
            fovy=fovy,
            format=format,
            name=name,
        )

    def read_film(self) -> Reply:
        """Return the progress of the newest film; nothing before the first one.

        Returns:
            `film` (map, newest film: name, state, frames drawn and in all, elapsed, left [s], path,
            note, error), `frame_id`, `time`.
        """
        return self.call("read_film")

    def film_cancel(self) -> Reply:
        """Cancel the film that is being made."""
        return self.call("film_cancel")

    def set_camera_path(
        self,
        camera_path: Mapping[str, object],
    ) -> Reply:
        """Set the camera path, for the page and for films.

        Args:
            camera_path: waypoints (time, pos, and quat or look_at), curve, loop, delay, autoplay.

        Returns:
            `camera_path` (map, waypoints (time, pos, and quat or look_at), curve, loop, delay,
            autoplay), `frame_id`, `time`.
        """
        return self.call("set_camera_path", camera_path=camera_path)

    def read_camera_path(self) -> Reply:
        """Return the camera path.

        Returns:
            `camera_path` (map, waypoints (time, pos, and quat or look_at), curve, loop, delay,
            autoplay), `frame_id`, `time`.
        """
        return self.call("read_camera_path")

    def save_camera_path(
        self,
        path: str,
    ) -> Reply:
        """Write the camera path beside the recordings.

        Args:
            path: name of a file NAME.camera.json in the folder of the recordings.

        Returns:
            `absolute_path` (string, path of the file), `frame_id`, `time`.
        """
        return self.call("save_camera_path", path=path)

    def load_camera_path(
        self,
        path: str,
    ) -> Reply:
        """Read a camera path that was written beside the recordings.

        Args:
            path: name of a file NAME.camera.json in the folder of the recordings.

        Returns:
            `camera_path` (map, waypoints (time, pos, and quat or look_at), curve, loop, delay,
            autoplay), `frame_id`, `time`.
        """
        return self.call("load_camera_path", path=path)
