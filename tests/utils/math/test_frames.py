"""Frames: combining and subtracting, twists, points and 4x4 poses."""

import pytest
import torch
from hypothesis import given

from manyworlds.utils import math as mw
from tests.utils.math.strategies import quats, same_rotation, vectors

CLOSE = {"rtol": 0.0, "atol": 1e-11}


@given(vectors(), quats(), vectors(), quats())
def test_subtracting_undoes_combining(t01, q01, t12, q12):
    """Find the second frame again in the first, and agree with 4x4 matrices."""
    t02, q02 = mw.combine_frame_transforms(t01, q01, t12, q12)
    t, q = mw.subtract_frame_transforms(t01, q01, t02, q02)
    torch.testing.assert_close(t, t12, **CLOSE)
    assert same_rotation(q, q12)
    pose = mw.make_pose(t01, mw.matrix_from_quat(q01)) @ mw.make_pose(t12, mw.matrix_from_quat(q12))
    torch.testing.assert_close(pose, mw.make_pose(t02, mw.matrix_from_quat(q02)), **CLOSE)


@given(vectors(), quats())
def test_none_is_the_identity(t01, q01):
    """Leave out a translation or a rotation."""
    zero, identity = torch.zeros_like(t01), torch.zeros_like(q01)
    identity[0] = 1.0
    for function in (mw.combine_frame_transforms, mw.subtract_frame_transforms):
        for mine, theirs in zip(
            function(t01, q01), function(t01, q01, zero, identity), strict=True
        ):
            torch.testing.assert_close(mine, theirs, **CLOSE)
    assert mw.is_identity_pose(zero, -identity)
    assert not mw.is_identity_pose(zero + 1e-3, identity)


@given(vectors(), quats(), vectors(), quats())
def test_a_pose_error_is_what_moves_there(t01, q01, t02, q02):
    """Reach the desired pose by applying the error."""
    pos_error, rot_error = mw.compute_pose_error(t01, q01, t02, q02)
    pos, rot = mw.apply_delta_pose(t01, q01, torch.cat([pos_error, rot_error]))
    torch.testing.assert_close(pos, t02, **CLOSE)
    assert same_rotation(rot, q02)
    _, quat_error = mw.compute_pose_error(t01, q01, t02, q02, rot_error_type="quat")
    assert same_rotation(mw.quat_mul(quat_error, q01), q02)
    with pytest.raises(ValueError, match="no rotation error type 'euler'"):
        mw.compute_pose_error(t01, q01, t02, q02, rot_error_type="euler")  # pyright: ignore


@given(vectors(), vectors(), vectors(), quats())
def test_a_twist_is_that_of_the_point(v0, w0, t01, q01):
    """Agree with the velocity of the moved frame by finite differences."""
    v1, w1 = mw.rigid_body_twist_transform(v0, w0, t01, q01)
    dt = 1e-6
    zero = torch.zeros(4, dtype=torch.float64)
    zero[0] = 1.0

    def position(sign: float) -> torch.Tensor:
        moved = mw.quat_box_plus(zero, sign * dt * w0)
        return sign * dt * v0 + mw.quat_apply(moved, t01)

    velocity = (position(1.0) - position(-1.0)) / (2 * dt)
    torch.testing.assert_close(mw.quat_apply(q01, v1), velocity, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(mw.quat_apply(q01, w1), w0, **CLOSE)


def test_points_move_with_their_frame():
    """Move one cloud by one frame or by several, and several by several."""
    points, pos = torch.randn(7, 3), torch.randn(4, 3)
    quat = mw.random_orientation(4, "cpu")
    several = mw.transform_points(points, pos, quat)
    assert several.shape == (4, 7, 3)
    for i in range(4):
        expected = pos[i] + mw.quat_apply(quat[i], points)
        torch.testing.assert_close(several[i], expected, rtol=0, atol=1e-5)
        torch.testing.assert_close(mw.transform_points(points, pos[i], quat[i]), several[i])
    torch.testing.assert_close(
        mw.transform_points(points.expand(4, 7, 3), pos), points + pos[:, None]
    )
    assert torch.equal(mw.transform_points(points), points)
    for bad in ((points[0], None, None), (points, pos[:, :2], None), (points, None, pos)):
        with pytest.raises(ValueError, match="must have shape"):
            mw.transform_points(*bad)


@given(vectors(), quats(), vectors(), quats())
def test_poses_are_a_group(t1, q1, t2, q2):
    """Invert poses, chain them, and carry one along from frame to frame."""
    a, b = (mw.make_pose(t, mw.matrix_from_quat(q)) for t, q in ((t1, q1), (t2, q2)))
    eye = torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(a @ mw.pose_inv(a), eye, **CLOSE)
    torch.testing.assert_close(mw.pose_in_A_to_pose_in_B(b, a), a @ b, **CLOSE)
    pos, rot = mw.unmake_pose(a)
    assert torch.equal(pos, t1)
    assert torch.equal(rot, mw.matrix_from_quat(q1))
    torch.testing.assert_close(mw.transform_poses_from_frame_A_to_frame_B(a, a, b), b, **CLOSE)
    batch = torch.stack([a, b])
    carried = mw.transform_poses_from_frame_A_to_frame_B(batch, a, b)
    torch.testing.assert_close(mw.pose_inv(b) @ carried, mw.pose_inv(a) @ batch, rtol=0, atol=1e-10)
