"""Film the worlds of the gallery for the documentation.

Run from the project's root: python tools/film_gallery.py [NAME ...]. Without names, it films all
worlds, and three with robots side by side for the landing page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from manyworlds.lab import LiveLab
from manyworlds.lab.world.gallery import GALLERY, open_gallery
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer import OffscreenRenderer
from manyworlds.viewer.video import write_gif

MEDIA = Path("docs/media")
_FPS, _SECONDS, _SIZE = 10.0, 3.0, (240, 180)
_HELD = {
    "arm-and-blocks": {"values": {"KeyI": 1.0, "KeyL": 0.6, "KeyG": 1.0}},
    "quadruped-on-hills": {"values": {"KeyC": 1.0}},
    "quadruped-to-drive": {"twist": (0.8, 0.0, 0.0)},
}
"""Inputs that are held in the middle third of a film."""


ROBOTS = ("arm-and-blocks", "humanoid-and-launcher", "quadruped-on-hills")


def film(name: str) -> Path:
    """Film a world, and return the file."""
    path = MEDIA / f"world_{name}.gif"
    write_gif(path, frames_of(name, _SIZE), _FPS)
    return path


def film_robots() -> Path:
    """Film the worlds with robots side by side, and return the file."""
    films = [frames_of(name, (300, 240)) for name in ROBOTS]
    path = MEDIA / "robots_in_worlds.gif"
    write_gif(path, [np.concatenate(each, axis=1) for each in zip(*films, strict=True)], _FPS)
    return path


def frames_of(name: str, size: tuple[int, int]) -> list[np.ndarray]:
    """Return the frames of a film of a world, each of a size (width, height) [pixels]."""
    lab, shown = open_gallery(name, LiveLab), GALLERY[name]
    distance, azimuth, elevation = shown.film
    heights = {"humanoid": 0.7, "arm": 0.5, "quadruped": 0.1}
    height = heights.get(shown.robot, 0.8 if "bridge" in name else 0.6 if "cloth" in name else 0.1)
    view = ViewerConfig(
        origin_type=ViewerConfig.OriginType.WORLD, lookat=(0.15, 0.0, height), distance=distance,
        azimuth=azimuth, elevation=elevation, width=size[0], height=size[1],
    )  # fmt: skip
    renderer = OffscreenRenderer(lab.model, view)
    clock = {"now": 0.0}
    lab.driving.clock = lambda: clock["now"]
    frames, per_frame = [], round(1.0 / (_FPS * lab.model.opt.timestep))
    count = round(_FPS * _SECONDS)
    for i in range(count):
        if i == count // 4 and lab.launcher.launches:
            lab.launcher.fire()
        if name in _HELD and count // 3 <= i < 2 * count // 3:
            clock["now"] = i / _FPS
            lab.driving.drive(shown.robot, **_HELD[name])
        elif i >= 2 * count // 3:
            clock["now"] = i / _FPS + 1.0
        for _ in range(per_frame):
            lab.loop.iterate_once()
        data = lab.loop.data
        renderer.update(SimpleNamespace(qpos=data.qpos[None], mocap_pos=None, mocap_quat=None))
        frames.append(renderer.render().copy())
    renderer.close()
    lab.stop()
    return frames


if __name__ == "__main__":
    for each in sys.argv[1:] or GALLERY:
        print(film(each))
    if not sys.argv[1:]:
        print(film_robots())
