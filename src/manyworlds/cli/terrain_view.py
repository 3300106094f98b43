"""Views of a terrain: a web page or a picture."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.asset_zoo.arm import get_arm_cfg
from manyworlds.asset_zoo.humanoid import get_humanoid_cfg
from manyworlds.asset_zoo.quadruped import get_quadruped_cfg
from manyworlds.asset_zoo.third_party import (
    get_g1_robot_cfg,
    get_go1_robot_cfg,
    get_yam_robot_cfg,
)
from manyworlds.cli.waiting import wait
from manyworlds.scene import Scene, SceneCfg
from manyworlds.terrains import TerrainEntity, TerrainEntityCfg, TerrainGeneratorCfg
from manyworlds.terrains.config import (
    ALL_TERRAIN_PRESETS,
    ALL_TERRAINS_CFG,
    HIGH_STEPS_TERRAINS_CFG,
    ROUGH_TERRAINS_CFG,
    STAIRS_TERRAINS_CFG,
)
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    import mujoco

    from manyworlds.cli.terrain import TerrainOptions
    from manyworlds.entity import EntityCfg

FIELDS = {
    "all": dataclasses.replace(ALL_TERRAINS_CFG, curriculum=True),
    "rough": ROUGH_TERRAINS_CFG,
    "high-steps": HIGH_STEPS_TERRAINS_CFG,
    "stairs": STAIRS_TERRAINS_CFG,
}
"""Ready terrains by name."""
ROBOT_CFG_GETTERS: dict[str, Callable[[], EntityCfg] | None] = {
    "none": None,
    "quadruped": get_quadruped_cfg,
    "humanoid": get_humanoid_cfg,
    "arm": get_arm_cfg,
    "go1": get_go1_robot_cfg,
    "g1": get_g1_robot_cfg,
    "yam": get_yam_robot_cfg,
}
"""Robots that can stand on the terrain, by name."""
_CELL_M = 8.0
_BORDER_M = 2.0
_FOVY_DEG = 15.0
"""Field of view of a picture's camera, which is so far away that cells look alike in size."""
_ELEVATION_DEG = -42.0
_TURN_DEG = 15.0
"""Rotation of that camera from a view along the shorter side of the terrain."""
_MARGIN = 1.05


def show(cfg: TerrainOptions) -> None:
    """Draw a picture of a terrain, or serve a page of it."""
    terrain = find_terrain(cfg.kinds or ("all",), cfg.change)
    changes = {"num_rows": cfg.rows, "difficulty_range": cfg.difficulty}
    changes = {name: value for name, value in changes.items() if value is not None}
    scene = terrain_scene(
        dataclasses.replace(terrain, seed=cfg.seed, **changes), cfg.robot, cfg.patches
    )
    if cfg.picture is not None:
        from PIL import Image

        Image.fromarray(draw(scene, cfg.width, cfg.height)).save(cfg.picture)
        print(f"terrain in {cfg.picture}")
    else:
        _serve(scene, cfg)


def find_terrain(kinds: Sequence[str], change: Mapping[str, object]) -> TerrainGeneratorCfg:
    """Find a ready terrain, or make one of kinds, and change fields of its kinds.

    Raises:
        ValueError: a kind is unknown, no kind has a changed field, or ready terrains are mixed.
    """
    if len(kinds) == 1 and kinds[0] in FIELDS:
        terrain = FIELDS[kinds[0]]
    else:
        unknown = [kind for kind in kinds if kind not in ALL_TERRAIN_PRESETS]
        if unknown:
            known = [*FIELDS, *ALL_TERRAIN_PRESETS]
            raise ValueError(
                f"'{unknown[0]}' is no kind of terrain: give one of {', '.join(FIELDS)} alone, or "
                f"some of {', '.join(ALL_TERRAIN_PRESETS)}.{near_matches(unknown[0], known)}"
            )
        terrain = TerrainGeneratorCfg(
            size=(_CELL_M, _CELL_M),
            border_width=_BORDER_M,
            curriculum=True,
            num_rows=3,
            num_cols=len(kinds),
            sub_terrains={kind: ALL_TERRAIN_PRESETS[kind]() for kind in kinds},
        )
    subs = terrain.sub_terrains
    for name in change:
        if not any(hasattr(sub, name) for sub in subs.values()):
            known = sorted({f.name for sub in subs.values() for f in dataclasses.fields(sub)})
            remedy = near_matches(name, known) or f" Fields: {', '.join(known)}."
            raise ValueError(f"None of the kinds {', '.join(subs)} has a field '{name}'.{remedy}")
    subs = {
        kind: dataclasses.replace(sub, **{k: v for k, v in change.items() if hasattr(sub, k)})
        for kind, sub in subs.items()
    }
    border = min(terrain.border_width, _BORDER_M)
    return dataclasses.replace(terrain, sub_terrains=subs, border_width=border)


def terrain_scene(
    terrain: TerrainGeneratorCfg, robot: str = "none", patches: bool = False
) -> SceneCfg:
    """Describe a scene with a terrain, and with a robot in its middle cell.

    Args:
        terrain: terrain with a seed, so that the robot stands on the terrain that is shown.
        robot: a key of `ROBOT_CFG_GETTERS`.
        patches: whether to mark origins and flat patches.

    Raises:
        ValueError: the robot is unknown.
    """
    if robot not in ROBOT_CFG_GETTERS:
        raise ValueError(f"There is no robot '{robot}': choose one of {[*ROBOT_CFG_GETTERS]}.")
    ground = TerrainEntityCfg(
        terrain_type="generator", terrain_generator=terrain, debug_vis=patches
    )
    entities: dict[str, EntityCfg] = {}
    getter = ROBOT_CFG_GETTERS[robot]
    if getter is not None:
        entities["robot"] = getter()
        origins = TerrainEntity(ground, "cpu").terrain_origins
        assert origins is not None
        middle = origins[len(origins) // 2, origins.shape[1] // 2].tolist()
        init = entities["robot"].init_state
        init.pos = (init.pos[0] + middle[0], init.pos[1] + middle[1], init.pos[2] + middle[2])
    return SceneCfg(terrain=ground, entities=entities)


def draw(scene_cfg: SceneCfg, width: int = 1280, height: int = 720) -> np.ndarray:
    """Draw a scene with all generated cells in view; return RGB, uint8 [height, width, 3]."""
    import mujoco

    from manyworlds.utils.renderer import Renderer

    model = Scene(scene_cfg).compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert scene_cfg.terrain is not None and scene_cfg.terrain.terrain_generator is not None
    cells = scene_cfg.terrain.terrain_generator
    extent = np.array([cells.num_rows, cells.num_cols]) * cells.size + 2 * cells.border_width
    model.stat.extent = extent.max()  # sets the clipping planes
    model.vis.global_.fovy = _FOVY_DEG
    renderer = Renderer(model, height, width)
    try:
        renderer.update_scene(data, _camera(extent, width / height))
        return renderer.render()
    finally:
        renderer.close()


def _camera(extent: np.ndarray, aspect: float) -> mujoco.MjvCamera:
    """Make a camera whose picture a slab below the origin just fills.

    Args:
        extent: size of the slab along x and y [m].
        aspect: ratio of the width of the picture to its height.
    """
    import mujoco

    camera = mujoco.MjvCamera()
    camera.azimuth = _TURN_DEG
    if extent[0] > extent[1]:
        camera.azimuth += 90.0
    camera.elevation = _ELEVATION_DEG
    azimuth, elevation = np.deg2rad([camera.azimuth, camera.elevation])
    across = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    right = np.array([across[1], -across[0], 0.0])
    forward = np.cos(elevation) * across + [0.0, 0.0, np.sin(elevation)]
    up = np.cross(right, forward)
    slab = np.array([[-0.5, -0.5, -1.0], [0.5, 0.5, 0.0]])
    corners = np.array(list(itertools.product(*slab.T))) * [*_MARGIN * extent, 1.0]
    half = np.tan(np.deg2rad(_FOVY_DEG) / 2)
    # Where a side of the picture touches a corner, the place along an axis of the picture and the
    # distance depend on each other linearly: two sides give both.
    for axis, tangent in ((right, half * aspect), (up, half)):
        first, second = (
            np.max(sign * corners @ axis / tangent - corners @ forward) for sign in (1, -1)
        )
        camera.lookat += axis * tangent * (first - second) / 2
        camera.distance = max(camera.distance, (first + second) / 2)
    return camera


def _serve(scene: SceneCfg, cfg: TerrainOptions) -> None:
    """Serve a page of a scene until its time is over."""
    from manyworlds.lab import LabCfg, LiveLab, world_from_scene
    from manyworlds.lab.page import ReloadablePage
    from manyworlds.utils.web_access import served_at

    page = ReloadablePage(
        lambda: LiveLab(world_from_scene(scene), LabCfg()),
        host=cfg.host,
        port=cfg.port,
        web_origins=cfg.web_origin,
    )
    with contextlib.suppress(KeyboardInterrupt):
        try:
            page.open()
            print(f"terrain at {served_at(page.url, cfg.port)} (Ctrl-C ends)", flush=True)
            wait(cfg.seconds)
        finally:
            page.close()
