"""Bundles of rays, against geometry by hand."""

from __future__ import annotations

import math

import mujoco
import pytest
import torch

from manyworlds.sensor import GridPatternCfg, PinholeCameraPatternCfg, RingPatternCfg


def test_grid_is_centred_and_row_by_row() -> None:
    """Lay 17 x 11 rays around the origin, x running fastest, all straight down."""
    origins, directions = GridPatternCfg(size=(1.6, 1.0), resolution=0.1).generate_rays(None, "cpu")
    assert origins.shape == directions.shape == (17 * 11, 3)
    torch.testing.assert_close(origins[0], torch.tensor([-0.8, -0.5, 0.0]))
    torch.testing.assert_close(origins[1], torch.tensor([-0.7, -0.5, 0.0]))
    torch.testing.assert_close(origins[17], torch.tensor([-0.8, -0.4, 0.0]))
    torch.testing.assert_close(origins[-1], torch.tensor([0.8, 0.5, 0.0]))
    assert (directions == torch.tensor([0.0, 0.0, -1.0])).all()


@pytest.mark.parametrize("resolution, count", [(0.1, 11), (0.3, 4), (0.4, 3), (1.0, 2), (2.0, 1)])
def test_grid_of_any_resolution_is_centred(resolution: float, count: int) -> None:
    """Keep the mean at the origin where the size is no multiple of the resolution."""
    pattern = GridPatternCfg(size=(1.0, 1.0), resolution=resolution, direction=(0, 3, -4))
    origins, directions = pattern.generate_rays(None, "cpu")
    assert len(origins) == count**2
    torch.testing.assert_close(origins.mean(dim=0), torch.zeros(3), atol=1e-6, rtol=0)
    torch.testing.assert_close(directions[0], torch.tensor([0.0, 0.6, -0.8]))


def test_pinhole_looks_along_minus_z() -> None:
    """Put rays through pixel centres: rows from the top, columns from the left."""
    pattern = PinholeCameraPatternCfg(width=4, height=2, fovy=90.0)
    origins, directions = pattern.generate_rays(None, "cpu")
    assert (origins == 0).all() and len(directions) == 8
    torch.testing.assert_close(directions.norm(dim=-1), torch.ones(8))
    pixels = directions[:, :2] / -directions[:, 2:]
    expected = [[x, y] for y in (0.5, -0.5) for x in (-1.5, -0.5, 0.5, 1.5)]
    torch.testing.assert_close(pixels, torch.tensor(expected))


def test_pinhole_from_intrinsics_is_the_projection_undone() -> None:
    """Send each ray through the pixel that the matrix projects it to."""
    matrix = [20.0, 0.0, 7.0, 0.0, 25.0, 6.5, 0.0, 0.0, 1.0]
    pattern = PinholeCameraPatternCfg.from_intrinsic_matrix(matrix, width=16, height=12)
    assert pattern.fovy == pytest.approx(math.degrees(2 * math.atan(6 / 25)))
    _, directions = pattern.generate_rays(None, "cpu")
    x, y, z = directions.unbind(-1)
    u, v = 20.0 * x / -z + 7.0, 25.0 * -y / -z + 6.5
    grid_v, grid_u = torch.meshgrid(torch.arange(12) + 0.5, torch.arange(16) + 0.5, indexing="ij")
    torch.testing.assert_close(u, grid_u.flatten(), atol=1e-4, rtol=0)
    torch.testing.assert_close(v, grid_v.flatten(), atol=1e-4, rtol=0)
    with pytest.raises(ValueError, match="nine elements"):
        PinholeCameraPatternCfg.from_intrinsic_matrix([1.0] * 4, 2, 2)


def test_pinhole_from_camera_takes_resolution_and_field_of_view() -> None:
    """Read the camera's own numbers, and name the cameras there are if it is unknown."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><camera name='eye' fovy='60' resolution='8 6'/></worldbody></mujoco>"
    )
    pattern = PinholeCameraPatternCfg.from_mujoco_camera("eye")
    rays = pattern.generate_rays(model, "cpu")[1]
    expected = PinholeCameraPatternCfg(width=8, height=6, fovy=60.0).generate_rays(None, "cpu")[1]
    torch.testing.assert_close(rays, expected)
    with pytest.raises(ValueError, match="no camera 'ear' in the model, which has \\['eye'\\]"):
        PinholeCameraPatternCfg.from_mujoco_camera("ear").generate_rays(model, "cpu")


def test_rings_go_outwards_from_the_centre() -> None:
    """Put the centre first, then each circle counter-clockwise from the x axis."""
    ring = RingPatternCfg.Ring
    pattern = RingPatternCfg(
        rings=(ring(radius=0.1, num_samples=4), ring(radius=0.2, num_samples=2))
    )
    origins, directions = pattern.generate_rays(None, "cpu")
    expected = [[0, 0], [0.1, 0], [0, 0.1], [-0.1, 0], [0, -0.1], [0.2, 0], [-0.2, 0]]
    torch.testing.assert_close(origins[:, :2], torch.tensor(expected), atol=1e-7, rtol=0)
    assert (directions[:, 2] == -1).all()
    assert len(RingPatternCfg.single_ring().generate_rays(None, "cpu")[0]) == 9
    alone = RingPatternCfg.single_ring(num_samples=3, include_center=False)
    assert len(alone.generate_rays(None, "cpu")[0]) == 3


@pytest.mark.parametrize(
    "pattern, reason",
    [
        (GridPatternCfg(resolution=0.0), "positive resolution"),
        (GridPatternCfg(direction=(0.0, 0.0, 0.0)), "not zero"),
        (PinholeCameraPatternCfg(width=0), "at least one pixel"),
        (PinholeCameraPatternCfg(fovy=180.0), "between 0 and 180"),
        (RingPatternCfg(rings=(), include_center=False), "at least one ring"),
        (RingPatternCfg.single_ring(num_samples=0), "and a sample"),
    ],
)
def test_impossible_patterns_are_refused(pattern, reason: str) -> None:
    """Name what is wrong with a pattern."""
    with pytest.raises(ValueError, match=reason):
        pattern.generate_rays(None, "cpu")
