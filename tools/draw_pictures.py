"""Draw the pictures of the documentation that need neither a training run nor a browser.

Run from the project's root: python tools/draw_pictures.py

`python tools/write_robot_page.py --picture` draws the robots, `manyworlds terrain --picture FILE`
the terrains.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from manyworlds.asset_zoo.humanoid import get_humanoid_cfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from manyworlds.tasks.tracking.config.humanoid import humanoid_clip
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer import OffscreenRenderer

MEDIA = Path("docs/media")
_GAP_PX = 6


def draw_variants() -> None:
    """Draw the worlds of the page on variants after two seconds."""
    (block, *_) = re.findall(
        r"```python\n(.*?)```", Path("docs/variants.md").read_text(), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(block, names)
    entities = {"object": names["object_cfg"]}
    sim, _ = _simulate(SceneCfg(num_envs=6, entities=entities, terrain=TerrainEntityCfg()))
    sim.step(round(2.0 / sim.timestep))
    view = ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_ROOT, entity_name="object",
        distance=0.5, azimuth=120.0, elevation=-14.0, width=300, height=220,
    )  # fmt: skip
    renderer = OffscreenRenderer(
        sim.mj_model, view, sim_model=sim.model, expanded_fields=sim.expanded_fields
    )
    pictures = []
    for world in range(sim.num_envs):
        renderer.update(sim.data, env_idx=world)
        pictures.append(renderer.render().copy())
    rows = [_join(pictures[i : i + 3], axis=1) for i in (0, 3)]
    Image.fromarray(_join(rows, axis=0)).save(MEDIA / "variants.png", optimize=True)


def draw_tracking_clip() -> None:
    """Draw six frames of the clip that the humanoid's tracking task follows by default."""
    entities = {"robot": get_humanoid_cfg()}
    sim, scene = _simulate(SceneCfg(entities=entities, terrain=TerrainEntityCfg()))
    clip = humanoid_clip()
    view = ViewerConfig(
        origin_type=ViewerConfig.OriginType.WORLD, lookat=(0.0, 0.0, 0.62),
        distance=2.3, azimuth=155.0, elevation=-10.0, width=180, height=300,
    )  # fmt: skip
    renderer = OffscreenRenderer(sim.mj_model, view)
    pictures = []
    for seconds in (0.0, 1.5, 2.0, 2.5, 4.5, 6.6):
        frame = round(seconds * clip.fps)
        root = np.concatenate([clip.body_pos_w[frame, 0], clip.body_quat_w[frame, 0]])
        scene["robot"].write_root_link_pose_to_sim(torch.tensor(root[None], dtype=torch.float32))
        joints = torch.tensor(clip.joint_pos[frame][None], dtype=torch.float32)
        scene["robot"].write_joint_position_to_sim(joints)
        renderer.update(sim.data)
        pictures.append(renderer.render().copy())
    Image.fromarray(np.concatenate(pictures, axis=1)).save(
        MEDIA / "tracking_clip.png", optimize=True
    )


def _simulate(cfg: SceneCfg) -> tuple[Simulation, Scene]:
    scene = Scene(cfg)
    scene.spec.visual.quality.shadowsize = 4096
    scene.spec.visual.quality.offsamples = 8
    scene.spec.stat.extent = 2.0  # of a robot; shadows of smaller models are noisy
    sim = Simulation(
        cfg.num_envs, spec=scene.spec, device="cpu", variant_info=scene.collect_variant_info()
    )
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return sim, scene


def _join(pictures: list[np.ndarray], axis: int) -> np.ndarray:
    """Return pictures side by side (axis 1) or above each other (axis 0), with white gaps."""
    shape = list(pictures[0].shape)
    shape[axis] = _GAP_PX
    gap = np.full(shape, 255, np.uint8)
    parts = [part for picture in pictures for part in (gap, picture)][1:]
    return np.concatenate(parts, axis=axis)


if __name__ == "__main__":
    draw_variants()
    draw_tracking_clip()
