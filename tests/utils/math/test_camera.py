"""Depth images, pixels and camera frames."""

import math

import pytest
import torch
from hypothesis import given

from manyworlds.utils import math as mw
from tests.utils.math.strategies import quats, same_rotation

K = torch.tensor([[50.0, 1.0, 4.0], [0.0, 60.0, 3.0], [0.0, 0.0, 1.0]], dtype=torch.float64)


def test_projecting_undoes_unprojecting():
    """Find each pixel again, row by row, in one image and in several."""
    depth = torch.rand(2, 5, 8, dtype=torch.float64) + 0.5
    points = mw.unproject_depth(depth, K)
    assert points.shape == (2, 40, 3)
    u, v, z = mw.project_points(points, K).unbind(-1)
    torch.testing.assert_close(u[0].view(5, 8), torch.arange(8.0).double().expand(5, 8))
    torch.testing.assert_close(v[0].view(5, 8), torch.arange(5.0).double()[:, None].expand(5, 8))
    torch.testing.assert_close(z.view(2, 5, 8), depth)
    torch.testing.assert_close(mw.unproject_depth(depth[0], K), points[0])
    torch.testing.assert_close(mw.unproject_depth(depth[..., None], K.expand(2, 3, 3)), points)


def test_depth_along_rays_and_along_z():
    """See the same points from the lengths of their rays."""
    depth = torch.rand(5, 8, dtype=torch.float64) + 0.5
    points = mw.unproject_depth(depth, K)
    along_rays = points.norm(dim=-1).view(5, 8)
    torch.testing.assert_close(mw.orthogonalize_perspective_depth(along_rays, K), depth)
    torch.testing.assert_close(mw.unproject_depth(along_rays, K, is_ortho=False), points)
    channel = mw.orthogonalize_perspective_depth(along_rays[..., None], K)
    torch.testing.assert_close(channel, depth[..., None])
    two = K.repeat(2, 1, 1)
    two[1, 0, 0] = 25.0
    batch = mw.orthogonalize_perspective_depth(along_rays, two)
    assert batch.shape == (2, 5, 8)
    torch.testing.assert_close(batch[0], depth)


def test_wrong_shapes_are_named():
    """Say which argument is wrong."""
    depth = torch.ones(5, 8)
    for function in (mw.unproject_depth, mw.orthogonalize_perspective_depth):
        with pytest.raises(ValueError, match="'depth' must have shape"):
            function(depth[0], K)
        with pytest.raises(ValueError, match="'intrinsics' must have shape"):
            function(depth, K[:2])
    with pytest.raises(ValueError, match="'points' must have shape"):
        mw.project_points(depth, K)
    with pytest.raises(ValueError, match="'intrinsics' must have shape"):
        mw.project_points(torch.ones(4, 3), K.expand(1, 1, 3, 3))


@given(quats())
def test_a_camera_looks_the_same_way_in_every_frame(q):
    """Look and point up alike in all conventions, and come back."""
    axes = {
        "opengl": ([0.0, 0.0, -1.0], [0.0, 1.0, 0.0]),
        "ros": ([0.0, 0.0, 1.0], [0.0, -1.0, 0.0]),
        "world": ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]),
    }
    for origin in axes:
        for target in axes:
            converted = mw.convert_camera_frame_orientation_convention(q, origin, target)
            for before, after in zip(axes[origin], axes[target], strict=True):
                torch.testing.assert_close(
                    mw.quat_apply(converted, q.new_tensor(after)),
                    mw.quat_apply(q, q.new_tensor(before)),
                    rtol=0,
                    atol=1e-12,
                )
            back = mw.convert_camera_frame_orientation_convention(converted, target, origin)
            assert same_rotation(back, q)


def test_an_unknown_camera_frame_is_named():
    """Name the conventions that there are."""
    with pytest.raises(ValueError, match="no camera frame 'maya': use one of"):
        mw.convert_camera_frame_orientation_convention(torch.ones(4), "maya")  # pyright: ignore


@pytest.mark.parametrize("up_axis", ["Y", "Z"])
def test_cameras_look_at_their_targets(up_axis):
    """Point -z to the target and y upwards, looking along the up axis too."""
    eyes = torch.randn(6, 3, dtype=torch.float64)
    up = torch.tensor([0.0, up_axis == "Y", up_axis == "Z"], dtype=torch.float64)
    targets = torch.cat([torch.randn(4, 3).double(), eyes[4:5] + up, eyes[5:] - 2 * up])
    rotation = mw.create_rotation_matrix_from_view(eyes, targets, up_axis)
    eye = torch.eye(3, dtype=torch.float64).expand(6, 3, 3)
    torch.testing.assert_close(rotation.mT @ rotation, eye, rtol=0, atol=1e-12)
    torch.testing.assert_close(torch.linalg.det(rotation), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(-rotation[..., 2], mw.normalize(targets - eyes))
    assert (rotation[:4, :, 0] @ up).abs().max() < 1e-12
    assert (rotation[:4, :, 1] @ up > 0.0).all()
    with pytest.raises(ValueError, match="no up axis 'X'"):
        mw.create_rotation_matrix_from_view(eyes, targets, "X")  # pyright: ignore


def test_a_field_of_view_is_that_of_the_intrinsics():
    """Put the edge of a 90 degree image at 45 degrees."""
    k = torch.tensor([[4.0, 0.0, 4.0], [0.0, 4.0, 4.0], [0.0, 0.0, 1.0]])
    point = mw.unproject_depth(torch.ones(5, 9), k).view(5, 9, 3)[4, 8]
    assert math.atan2(point[0], point[2]) == pytest.approx(math.pi / 4)
