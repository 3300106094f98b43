"""Heights over a height field, against the field itself."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.scene import Scene
from manyworlds.sensor import (
    GridPatternCfg,
    ObjRef,
    RingPatternCfg,
    TerrainHeightSensorCfg,
)
from manyworlds.sim import Simulation
from tests.sensor.scenes import BALL, build, entity

_ROWS = np.random.default_rng(0).random((21, 21)).astype(np.float32)
_ROWS[0, 0], _ROWS[-1, -1] = 0.0, 1.0
_SIZE, _HIGH = 2.0, 0.5


def _add_hills(spec: mujoco.MjSpec) -> None:
    spec.add_hfield(
        name="hills", nrow=21, ncol=21, size=(_SIZE, _SIZE, _HIGH, 0.1), userdata=_ROWS.flatten()
    )
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="hills", contype=0, conaffinity=0
    )


def _scene(positions: list[list[float]], **options) -> tuple[Scene, Simulation]:
    """A ball over hills in each world; its rays fall straight down."""
    options = {"pattern": RingPatternCfg(rings=())} | options
    cfg = TerrainHeightSensorCfg(
        name="height", frame=ObjRef("body", "b", "ball"), ray_alignment="yaw", **options
    )
    scene, sim = build({"ball": entity(BALL)}, cfg, num_envs=len(positions), spec_fn=_add_hills)
    sim.data.qpos[:, :3] = torch.tensor(positions)
    sim.forward()
    scene.invalidate_sensors()
    return scene, sim


def _ground(x: int, y: int) -> float:
    """Height of the hills at a grid point, counted from the middle."""
    return float(_ROWS[y + 10, x + 10]) * _HIGH


@pytest.mark.usefixtures("engine")
def test_height_is_that_over_the_field() -> None:
    """Measure heights over points of the grid, where the field is known exactly."""
    points = [(0, 0), (3, -7), (-9, 9)]
    scene, _ = _scene([[0.2 * x, 0.2 * y, 1.5] for x, y in points])
    expected = torch.tensor([[1.5 - _ground(x, y)] for x, y in points])
    data = scene["height"].data
    assert data.heights.shape == (3, 1)
    torch.testing.assert_close(data.heights, expected, atol=1e-4, rtol=0)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("reduction", ["min", "max", "mean", "none"])
def test_heights_of_many_rays_are_reduced(reduction: str) -> None:
    """Reduce the heights over nine points of the grid."""
    grid = GridPatternCfg(size=(0.4, 0.4), resolution=0.2)
    scene, _ = _scene([[0.0, 0.0, 2.0]], pattern=grid, reduction=reduction)
    ground = [_ground(x, y) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    heights = 2.0 - np.array(ground)
    expected = heights if reduction == "none" else [getattr(np, reduction)(heights)]
    found = scene["height"].data.heights
    assert found.shape == ((1, 1, 9) if reduction == "none" else (1, 1))
    np.testing.assert_allclose(found.flatten(), expected, atol=1e-4)


@pytest.mark.usefixtures("engine")
def test_misses_and_hits_from_below() -> None:
    """Give 0 under ground, the limit for a ray beyond the edge, and z where nothing is hit."""
    pair = RingPatternCfg.single_ring(radius=0.5, num_samples=1)
    z = [0.7, 30.0, -3.0]
    far = [[9.0, 9.0, height] for height in z]
    over_edge = [1.75, 0.0, 1.0]
    scene, _ = _scene([*far, over_edge], pattern=pair, reduction="none", max_distance=5.0)
    heights = scene["height"].data.heights[:, 0]
    torch.testing.assert_close(heights[:3, 0], torch.tensor([0.7, 5.0, 0.0]))
    assert heights[3, 1] == 5.0 and 0.5 < heights[3, 0] < 1.0


@pytest.mark.usefixtures("engine")
def test_a_frame_inside_something_has_height_zero() -> None:
    """Count a surface that is met from behind as no height at all."""

    def add_block(spec: mujoco.MjSpec) -> None:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=(1, 1, 1))

    cfg = TerrainHeightSensorCfg(
        name="height",
        frame=ObjRef("body", "b", "ball"),
        pattern=RingPatternCfg(rings=()),
    )
    ball = entity(BALL, pos=(0.0, 0.0, 0.2))
    scene, _ = build({"ball": ball}, cfg, spec_fn=add_block)
    assert scene["height"].data.distances[0, 0] == pytest.approx(1.2)
    assert scene["height"].data.heights[0, 0] == 0.0


def test_unknown_reduction_is_refused() -> None:
    """Name the reductions that there are."""
    with pytest.raises(ValueError, match="reduction must be one of min, max, mean, none"):
        _scene([[0.0, 0.0, 1.0]], reduction="median")
