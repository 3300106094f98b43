"""Program that draws a film: `python -m manyworlds.lab.pictures.film FOLDER`.

The folder has the job: `job.json`, `model.mjb` and `states.npz`, and `beside.npz` for a film with
two worlds side by side. Each line of the output is JSON: the number of frames drawn so far, or at
the end the file of the film, or an error.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np

from manyworlds.lab.pictures.camera import LabCameraCfg
from manyworlds.lab.pictures.film.shots import Shot, make_shot
from manyworlds.lab.pictures.painter import aim
from manyworlds.utils.platforms import lower_priority
from manyworlds.utils.renderer import Renderer
from manyworlds.viewer.video import write_video
from manyworlds.viewer.world_mirror import WorldMirror

_NICE = 10
"""Reduction of the priority, so that the world's steps come first."""
STATES, BESIDE = "states.npz", "beside.npz"
_BETWEEN_PX = 4


def draw_frames(
    model: mujoco.MjModel, states: dict[str, np.ndarray], job: Mapping[str, float], shot: Shot
) -> Iterator[np.ndarray]:
    """Return the images of a film, uint8 RGB of shape (height, width, 3), one after the other.

    Args:
        model: the model.
        states: `times` from 0 [s], and `qpos`, `mocap_pos` and `mocap_quat` at these.
        job: `frames`, `fps`, `width`, `height` and `fovy` [degrees].
        shot: pose of the camera.
    """
    width, height = int(job["width"]), int(job["height"])
    mirror = WorldMirror(model)
    renderer = Renderer(mirror.model, height, width)
    view, option = mujoco.MjvCamera(), mujoco.MjvOption()
    view.type = int(mujoco.mjtCamera.mjCAMERA_USER)
    option.sitegroup[:] = 0
    lens = LabCameraCfg(name="film", width=width, height=height, fovy=job["fovy"])
    times = states["times"]
    try:
        for number in range(int(job["frames"])):
            time = number / job["fps"]
            # The last state at or before the frame; times add up timesteps, which are rounded.
            at = max(0, int(np.searchsorted(times, time + 1e-6, side="right")) - 1)
            fields = ("qpos", "mocap_pos", "mocap_quat")
            mirror.load(SimpleNamespace(**{name: states[name][at, None] for name in fields}), 0)
            pos, quat = shot.pose(time, mirror.model, mirror.data)
            axes = np.empty(9)
            mujoco.mju_quat2Mat(axes, quat)
            aim(renderer.scene, mirror.model, lens, pos, axes.reshape(3, 3))
            renderer.update_scene(mirror.data, view, option)
            yield renderer.render()
    finally:
        renderer.close()


def draw_film(folder: Path) -> Path:
    """Draw the film of a job's folder, and return its file there."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    model = mujoco.MjModel.from_binary_path(str(folder / "model.mjb"))
    worlds = [_read(folder / name) for name in (STATES, BESIDE) if (folder / name).is_file()]
    drawn = (draw_frames(model, states, job, make_shot(job["shot"], model)) for states in worlds)

    def told() -> Iterator[np.ndarray]:
        for number, images in enumerate(zip(*drawn, strict=True), 1):
            yield _side_by_side(images)
            _tell({"drawn": number})

    return write_video(folder / "film", told(), job["fps"], job["format"])


def _read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def _side_by_side(images: Sequence[np.ndarray]) -> np.ndarray:
    """Join images from left to right, with white between them."""
    between = np.full((len(images[0]), _BETWEEN_PX, 3), 255, np.uint8)
    parts = [part for image in images for part in (between, image)]
    return np.hstack(parts[1:])


def _tell(line: dict[str, object]) -> None:
    print(json.dumps(line), flush=True)


def main(folder: str) -> int:
    """Draw the film of a folder; return the program's exit status."""
    with contextlib.suppress(OSError):
        lower_priority(_NICE)
    try:
        _tell({"file": draw_film(Path(folder)).name})
    except Exception as error:  # of OpenGL, the encoder, or the disk
        _tell({"error": f"{error}"})
        return 1
    return 0
