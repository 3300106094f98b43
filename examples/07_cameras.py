"""Render images of worlds: from cameras on robots, and from outside.

    python examples/07_cameras.py images

You learn to add a camera sensor, to read colors, depth and ids as tensors, to draw several worlds
side by side, and to write a video. It needs OpenGL, which `manyworlds doctor` checks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.sensor import CameraSensor, CameraSensorCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer import OffscreenRenderer, gl_available, write_video


def task(num_envs: int) -> ManagerBasedRlEnvCfg:
    """Return the task Cartpole-Swingup with a camera on each cart that looks up at the pole."""
    cfg = load_env_cfg("Cartpole-Swingup")
    cfg.scene.num_envs, cfg.seed = num_envs, 1
    camera = CameraSensorCfg(
        name="eye",
        parent_body="cartpole/cart",
        pos=(0.0, -3.0, 0.3),
        quat=(0.7071068, 0.7071068, 0.0, 0.0),  # along +y
        fovy=50.0,
        width=128,
        height=96,
        data_types=("rgb", "depth", "segmentation"),
    )
    cfg.scene.sensors = (camera,)
    return cfg


def film(env: ManagerBasedRlEnv, path_stem: Path, num_frames: int) -> Path:
    """Write a video of all worlds under random actions; return its file."""
    renderer = OffscreenRenderer(
        env.sim.mj_model,
        ViewerConfig(width=160, height=120, distance=4.0, elevation=-10.0, lookat=(0, 0, 1.2)),
        sim_model=env.sim.model,
        expanded_fields=env.sim.expanded_fields,
    )
    frames = []
    for _ in range(num_frames):
        env.step(torch.randn(env.num_envs, 1))
        frames.append(renderer.render_grid(env.sim.data, range(env.num_envs)))
    renderer.close()
    return write_video(path_stem, frames, fps=1.0 / env.step_dt)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default="images")
    folder = parser.parse_args().folder
    if reason := gl_available():
        sys.exit(reason)
    folder.mkdir(exist_ok=True)
    env = ManagerBasedRlEnv(task(num_envs=4), device="cpu")
    env.reset()
    images = env.scene.sensor("eye", CameraSensor).data  # drawn now
    print("colors:", tuple(images.rgb.shape), images.rgb.dtype)
    print("distances in world 0 [m]:", images.depth[0].min().item(), "and more")
    pole = env.sim.mj_model.geom("cartpole/pole").id
    print("pixels of the pole in each world:", (images.segmentation[..., 0] == pole).sum((1, 2)))
    Image.fromarray(np.hstack([*images.rgb.numpy()])).save(folder / "eyes.png")
    print(folder / "eyes.png", film(env, folder / "worlds", num_frames=12))
