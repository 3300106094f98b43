"""Rotations: group laws, round trips, MuJoCo's own functions, and the hard cases."""

import math

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyworlds.utils import math as mw
from tests.utils.math.strategies import angles, quats, same_rotation, unit_vectors, vectors

IDENTITY = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
EXACT = {"rtol": 0.0, "atol": 1e-12}


def run_mju(function, size: int, *args: torch.Tensor | float | str) -> torch.Tensor:
    """Call a MuJoCo function that writes its result, of `size` numbers, to its first argument."""
    result = np.zeros(size)
    function(result, *(a.numpy().copy() if isinstance(a, torch.Tensor) else a for a in args))
    return torch.from_numpy(result)


@given(quats(), quats(), quats())
def test_rotations_are_a_group(a, b, c):
    """Multiply associatively, with an identity and an inverse, staying on the unit sphere."""
    torch.testing.assert_close(
        mw.quat_mul(mw.quat_mul(a, b), c), mw.quat_mul(a, mw.quat_mul(b, c)), **EXACT
    )
    torch.testing.assert_close(mw.quat_mul(a, IDENTITY), a, **EXACT)
    torch.testing.assert_close(mw.quat_mul(a, mw.quat_inv(a)), IDENTITY, **EXACT)
    torch.testing.assert_close(mw.quat_mul(a, mw.quat_conjugate(a)), IDENTITY, **EXACT)
    assert abs(mw.quat_mul(a, b).norm() - 1.0) < 1e-12


@given(quats(), quats(), vectors())
def test_applying_a_product_applies_its_factors(a, b, v):
    """Rotate by a product as by its factors, by a matrix as by its quaternion, and back."""
    rotated = mw.quat_apply(mw.quat_mul(a, b), v)
    torch.testing.assert_close(rotated, mw.quat_apply(a, mw.quat_apply(b, v)), rtol=0, atol=1e-11)
    torch.testing.assert_close(mw.quat_apply(a, v), mw.matrix_from_quat(a) @ v, rtol=0, atol=1e-11)
    torch.testing.assert_close(mw.quat_apply_inverse(a, mw.quat_apply(a, v)), v, rtol=0, atol=1e-11)


@given(quats(), quats(), vectors())
def test_mujoco_multiplies_and_rotates_alike(a, b, v):
    """Match mju_mulQuat, mju_rotVecQuat and mju_negQuat."""
    torch.testing.assert_close(mw.quat_mul(a, b), run_mju(mujoco.mju_mulQuat, 4, a, b), **EXACT)
    torch.testing.assert_close(
        mw.quat_apply(a, v), run_mju(mujoco.mju_rotVecQuat, 3, v, a), rtol=0, atol=1e-11
    )
    torch.testing.assert_close(mw.quat_conjugate(a), run_mju(mujoco.mju_negQuat, 4, a), **EXACT)


@given(quats())
def test_mujoco_has_the_same_matrices(q):
    """Match mju_quat2Mat and mju_mat2Quat, and come back to the same rotation."""
    matrix = mw.matrix_from_quat(q)
    torch.testing.assert_close(
        matrix.flatten(), run_mju(mujoco.mju_quat2Mat, 9, q), rtol=0, atol=1e-12
    )
    assert same_rotation(mw.quat_from_matrix(matrix), q)
    assert same_rotation(
        mw.quat_from_matrix(matrix), run_mju(mujoco.mju_mat2Quat, 4, matrix.flatten())
    )


@given(quats(), quats())
def test_differences_are_those_of_mujoco_in_the_fixed_frame(a, b):
    """Match mju_subQuat, which measures in the frame of the second rotation."""
    local = run_mju(mujoco.mju_subQuat, 3, a, b)
    difference = mw.quat_box_minus(a, b)
    if difference.norm() < math.pi - 1e-6:
        torch.testing.assert_close(mw.quat_apply_inverse(b, difference), local, rtol=0, atol=1e-11)
    assert difference.norm() <= math.pi + 1e-12
    torch.testing.assert_close(mw.quat_error_magnitude(a, b), difference.norm(), **EXACT)
    assert same_rotation(mw.quat_box_plus(b, difference), a)


@given(quats(), vectors(3, 2.0), st.sampled_from([0.0, 1e-12, 1e-7, 1e-6, 1e-3, 1.0]))
def test_adding_a_rotation_vector_integrates_it(q, v, size):
    """Match mju_quatIntegrate, which turns about moving axes, and undo it."""
    delta = v * size
    expected = q.numpy().copy()
    mujoco.mju_quatIntegrate(expected, delta.numpy(), 1.0)
    moved = mw.quat_box_plus(q, mw.quat_apply(q, delta))
    assert same_rotation(moved, torch.from_numpy(expected))
    if delta.norm() < math.pi - 1e-6:
        torch.testing.assert_close(
            mw.quat_box_minus(mw.quat_box_plus(q, delta), q), delta, rtol=0, atol=1e-11
        )


@given(angles(), unit_vectors(), st.sampled_from([1.0, 1e-3, 1e3]))
def test_mujoco_turns_about_axes_alike(angle, axis, length):
    """Match mju_axisAngle2Quat for axes of any length, and give the vector back."""
    q = mw.quat_from_angle_axis(angle, length * axis)
    expected = run_mju(mujoco.mju_axisAngle2Quat, 4, axis, float(angle))
    torch.testing.assert_close(q, expected, **EXACT)
    back = mw.axis_angle_from_quat(q)
    assert same_rotation(mw.quat_from_angle_axis(back.norm(), back), q)
    if abs(angle) < math.pi - 1e-6:
        torch.testing.assert_close(back, angle * axis, **EXACT)


@given(angles(math.pi), angles(math.pi / 2), angles(math.pi))
def test_mujoco_has_the_same_euler_angles(roll, pitch, yaw):
    """Match mju_euler2Quat, about fixed and moving axes, and invert at gimbal lock too."""
    q = mw.quat_from_euler_xyz(roll, pitch, yaw)
    rpy = torch.stack([roll, pitch, yaw])
    assert same_rotation(q, run_mju(mujoco.mju_euler2Quat, 4, rpy, "XYZ"))
    for convention in ("XYZ", "ZYX", "ZXZ", "YXY"):
        expected = run_mju(mujoco.mju_euler2Quat, 4, rpy, convention.lower())
        matrix = mw.matrix_from_euler(rpy, convention)
        torch.testing.assert_close(matrix, mw.matrix_from_quat(expected), **EXACT)
    back = mw.euler_xyz_from_quat(q)
    assert same_rotation(mw.quat_from_euler_xyz(*back), q)
    if abs(pitch) < math.pi / 2 - 1e-3 and abs(roll) < 3.14 and abs(yaw) < 3.14:
        torch.testing.assert_close(torch.stack(back), rpy, rtol=0, atol=1e-11)


@given(quats())
def test_euler_angles_stay_in_range(q):
    """Return roll and yaw in [-pi, pi] or [0, 2 pi], pitch in [-pi / 2, pi / 2]."""
    roll, pitch, yaw = mw.euler_xyz_from_quat(q)
    assert max(abs(roll), abs(yaw)) <= math.pi
    assert abs(pitch) <= math.pi / 2
    assert all(0.0 <= a <= 2 * math.pi for a in mw.euler_xyz_from_quat(q, wrap_to_2pi=True))


@given(quats())
def test_gimbal_lock_is_the_same_rotation(q):
    """Give back rotations that pitch by a quarter turn, exactly and nearly."""
    for pitch in (math.pi / 2, -math.pi / 2, math.pi / 2 - 1e-9):
        locked = mw.quat_mul(
            mw.yaw_quat(q),
            mw.quat_from_angle_axis(
                torch.tensor(pitch, dtype=q.dtype), torch.tensor([0.0, 1.0, 0.0], dtype=q.dtype)
            ),
        )
        assert same_rotation(mw.quat_from_euler_xyz(*mw.euler_xyz_from_quat(locked)), locked)


@given(quats(), vectors())
def test_yaw_is_the_heading_of_x(q, v):
    """Turn x to where the rotation heads, level."""
    x = torch.tensor([1.0, 0.0, 0.0], dtype=q.dtype)
    ahead, level = mw.quat_apply(q, x), mw.quat_apply(mw.yaw_quat(q), x)
    length = ahead[:2].norm()
    torch.testing.assert_close(level[:2] * length, ahead[:2], **EXACT)
    assert level[2] == 0.0
    torch.testing.assert_close(mw.quat_apply_yaw(q, v), mw.quat_apply(mw.yaw_quat(q), v))


@pytest.mark.parametrize("axis", torch.eye(3, dtype=torch.float64))
def test_half_turns_are_exact(axis):
    """Turn by pi about each axis without losing the axis or the angle."""
    q = mw.quat_from_angle_axis(torch.tensor(math.pi, dtype=torch.float64), axis)
    torch.testing.assert_close(mw.axis_angle_from_quat(q), math.pi * axis, **EXACT)
    torch.testing.assert_close(
        mw.quat_error_magnitude(q, IDENTITY), torch.tensor(math.pi, dtype=torch.float64), **EXACT
    )
    assert same_rotation(mw.quat_from_matrix(mw.matrix_from_quat(q)), q)


def test_zero_vectors_are_no_rotation():
    """Answer zero axes, zero rotation vectors and zero quaternions with no rotation, never NaN."""
    zero = torch.zeros(3, dtype=torch.float64)
    for angle in (0.0, math.pi, 3.0):
        q = mw.quat_from_angle_axis(torch.tensor(angle, dtype=torch.float64), zero)
        assert torch.equal(q, IDENTITY)
    assert torch.equal(mw.quat_box_plus(IDENTITY, zero), IDENTITY)
    assert torch.equal(mw.axis_angle_from_quat(IDENTITY), zero)
    nothing = torch.zeros(4, dtype=torch.float64)
    assert torch.equal(mw.axis_angle_from_quat(nothing), zero)
    assert torch.equal(mw.matrix_from_quat(nothing), torch.eye(3, dtype=torch.float64))
    assert mw.quat_inv(nothing).isfinite().all()


@given(unit_vectors(), st.floats(1e-3, 1e-2))
def test_series_continue_the_closed_forms(axis, angle):
    """Agree with the closed forms where the series are told to reach further."""
    delta = angle * axis
    q = mw.quat_box_plus(IDENTITY, delta)
    torch.testing.assert_close(mw.quat_box_plus(IDENTITY, delta, eps=1.0), q, rtol=0, atol=1e-11)
    torch.testing.assert_close(mw.axis_angle_from_quat(q, eps=1.0), delta, rtol=0, atol=1e-11)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 2.0])
def test_logarithm_and_exponential_have_gradients(angle):
    """Match numerical derivatives, and stay finite where there is no rotation."""
    delta = torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64) * angle
    delta.requires_grad_()
    q = torch.tensor([0.5, 0.5, 0.5, 0.5], dtype=torch.float64)

    def there_and_back(d: torch.Tensor) -> torch.Tensor:
        return mw.quat_box_minus(mw.quat_box_plus(q, d), q)

    jacobian = torch.autograd.functional.jacobian(there_and_back, delta)
    torch.testing.assert_close(jacobian, torch.eye(3, dtype=torch.float64), rtol=0, atol=1e-9)


@given(quats())
def test_of_two_quaternions_one_is_chosen(q):
    """Choose w >= 0, and move the scalar to the end and back."""
    assert mw.quat_unique(q)[0] >= 0.0
    assert same_rotation(mw.quat_unique(q), q)
    xyzw = mw.convert_quat(q)
    assert torch.equal(xyzw, q[[1, 2, 3, 0]])
    assert torch.equal(mw.convert_quat(xyzw, to="wxyz"), q)
    assert np.array_equal(mw.convert_quat(q.numpy()), xyzw.numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_leading_dimensions_broadcast_and_types_stay(dtype):
    """Work on any leading dimensions, in the type of the arguments."""
    q = torch.nn.functional.normalize(torch.randn(5, 1, 4, dtype=dtype), dim=-1)
    v, angle = torch.randn(2, 3, dtype=dtype), torch.randn(5, 2, dtype=dtype)
    results = {
        "quat_mul": (mw.quat_mul(q, q[0]), (5, 1, 4)),
        "quat_apply": (mw.quat_apply(q, v), (5, 2, 3)),
        "quat_box_plus": (mw.quat_box_plus(q, v), (5, 2, 4)),
        "quat_from_angle_axis": (mw.quat_from_angle_axis(angle, v), (5, 2, 4)),
        "matrix_from_quat": (mw.matrix_from_quat(q), (5, 1, 3, 3)),
        "quat_from_matrix": (mw.quat_from_matrix(mw.matrix_from_quat(q)), (5, 1, 4)),
        "axis_angle_from_quat": (mw.axis_angle_from_quat(q), (5, 1, 3)),
        "euler": (mw.euler_xyz_from_quat(q)[0], (5, 1)),
        "matrix_from_euler": (mw.matrix_from_euler(v, "XYZ"), (2, 3, 3)),
    }
    for name, (result, shape) in results.items():
        assert (name, tuple(result.shape), result.dtype) == (name, shape, dtype)


def test_wrong_arguments_are_named():
    """Say which argument is wrong, what it is and what it should be."""
    three, four = torch.zeros(3), torch.zeros(4)
    with pytest.raises(ValueError, match=r"'q1' must have shape \(..., 4\), got \(3,\)"):
        mw.quat_mul(three, four)
    with pytest.raises(ValueError, match=r"\(2, 4\) and \(3, 4\) cannot be multiplied"):
        mw.quat_mul(torch.zeros(2, 4), torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"'matrix' must have shape \(..., 3, 3\)"):
        mw.quat_from_matrix(four)
    with pytest.raises(ValueError, match=r"'quat' must have shape \(..., 4\)"):
        mw.convert_quat(three)
    with pytest.raises(ValueError, match="no quaternion order 'wyxz'"):
        mw.convert_quat(four, to="wyxz")  # pyright: ignore
    with pytest.raises(ValueError, match=r"'euler_angles' must have shape \(..., 3\)"):
        mw.matrix_from_euler(four, "XYZ")
    for convention in ("XY", "XYW"):
        with pytest.raises(ValueError, match=f"no Euler convention '{convention}'"):
            mw.matrix_from_euler(three, convention)
    with pytest.raises(ValueError, match="repeats an axis consecutively"):
        mw.matrix_from_euler(three, "XXZ")
