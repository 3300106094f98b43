"""Ways between rotations and between poses."""

import math

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyworlds.utils import math as mw
from tests.utils.math.strategies import quats, same_rotation, vectors


@given(quats(), quats(), st.floats(0.0, 1.0))
def test_a_part_of_the_way_is_that_part_of_the_angle(q1, q2, tau):
    """Go the shorter way, at constant speed, and stay a unit quaternion."""
    q = mw.quat_slerp(q1, q2, tau)
    whole = mw.quat_error_magnitude(q1, q2)
    assert abs(q.norm() - 1.0) < 1e-12
    torch.testing.assert_close(mw.quat_error_magnitude(q1, q), tau * whole, rtol=0, atol=1e-11)
    torch.testing.assert_close(
        mw.quat_error_magnitude(q, q2), (1 - tau) * whole, rtol=0, atol=1e-11
    )
    if whole < math.pi - 1e-6:
        expected = q1.numpy().copy()
        local = np.zeros(3)
        mujoco.mju_subQuat(local, q2.numpy(), q1.numpy())
        mujoco.mju_quatIntegrate(expected, local, tau)
        assert same_rotation(q, torch.from_numpy(expected), 1e-11)


@given(quats(), quats())
def test_both_ends_are_reached(q1, q2):
    """Start at the first and end at the last, whichever way the quaternions' signs are."""
    assert same_rotation(mw.quat_slerp(q1, q2, 0.0), q1)
    assert same_rotation(mw.quat_slerp(q1, q2, 1.0), q2)
    assert same_rotation(mw.quat_slerp(q1, -q2, 1.0), q2)
    taus = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)
    batch = mw.quat_slerp(q1, q2, taus)
    assert batch.shape == (5, 4)
    assert same_rotation(batch[2], mw.quat_slerp(q1, q2, 0.5))


@given(vectors(3, 1.7))
def test_both_ways_of_interpolating_agree(delta):
    """Turn about the axis between rotations as slerp does."""
    first = torch.tensor([0.5, -0.5, 0.5, 0.5], dtype=torch.float64)
    last = mw.quat_box_plus(first, delta)
    ends = mw.matrix_from_quat(first), mw.matrix_from_quat(last)
    about_axis = mw.interpolate_rotations(*ends, num_steps=3)
    slerp = mw.interpolate_rotations(*ends, num_steps=3, axis_angle=False)
    assert about_axis.shape == (5, 3, 3)
    torch.testing.assert_close(about_axis, slerp, rtol=0, atol=1e-11)
    torch.testing.assert_close(about_axis[0], ends[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(about_axis[-1], ends[1], rtol=0, atol=1e-11)
    between = mw.matrix_from_quat(mw.quat_box_plus(first, delta / 2))
    if delta.norm() < math.pi - 1e-6:
        torch.testing.assert_close(about_axis[2], between, rtol=0, atol=1e-11)


def test_poses_go_straight():
    """Space poses evenly, by number or by the longest step, and perturb only those between."""
    torch.manual_seed(0)
    first, last = mw.generate_random_transformation_matrix(), torch.eye(4)
    last[:3, 3] = first[:3, 3] + torch.tensor([0.0, 0.0, 1.0])
    poses, num_steps = mw.interpolate_poses(first, last, num_steps=3)
    assert (len(poses), num_steps) == (5, 3)
    torch.testing.assert_close(poses[:, 2, 3] - first[2, 3], torch.linspace(0.0, 1.0, 5))
    torch.testing.assert_close(poses[[0, -1]], torch.stack([first, last]), rtol=0, atol=1e-5)
    stepped, num_steps = mw.interpolate_poses(first, last, step_size=0.26)
    assert num_steps == 3
    torch.testing.assert_close(stepped, poses)
    assert mw.interpolate_poses(first, last, step_size=10.0)[1] == 0
    moved, _ = mw.interpolate_poses(first, last, num_steps=3, perturb=True)
    assert torch.equal(moved[[0, -1]], poses[[0, -1]])
    shift = (moved - poses)[1:-1, 2, 3].abs()
    assert (shift > 0.0).all() and (shift <= 0.125).all()
    for both in ({}, {"num_steps": 1, "step_size": 0.1}):
        with pytest.raises(ValueError, match="Give one of num_steps and step_size"):
            mw.interpolate_poses(first, last, **both)
