"""Numbers and vectors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyworlds.utils import math as mw
from tests.utils.math.strategies import vectors


@given(st.floats(-math.pi, math.pi), st.integers(-10, 10))
def test_whole_turns_are_taken_off(angle, turns):
    """Come back to the angle, unchanged where it was in range."""
    wrapped = mw.wrap_to_pi(torch.tensor(angle + 2 * math.pi * turns, dtype=torch.float64))
    assert abs(math.sin(float(wrapped) / 2 - angle / 2)) < 1e-13
    assert abs(wrapped) <= math.pi + 1e-13
    if turns == 0:
        assert float(wrapped) == angle


def test_half_turns_keep_their_sign():
    """Wrap odd multiples of pi to pi or -pi, as their sign says."""
    angles = math.pi * torch.tensor([1.0, -1.0, 3.0, -3.0, 2.0, 0.0], dtype=torch.float64)
    expected = math.pi * torch.tensor([1.0, -1.0, 1.0, -1.0, 0.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(mw.wrap_to_pi(angles), expected)


@given(vectors(), vectors())
def test_the_matrix_of_the_cross_product(a, b):
    """Multiply by the matrix as by the cross product."""
    torch.testing.assert_close(mw.skew_symmetric_matrix(a) @ b, torch.linalg.cross(a, b))
    with pytest.raises(ValueError, match=r"'vec' must have shape \(..., 3\), got \(2,\)"):
        mw.skew_symmetric_matrix(a[:2])


@given(vectors(3, 1.0))
def test_scaling_is_undone(x):
    """Map bounds to -1 and 1, and back."""
    lower, upper = torch.tensor([-1.0, 2.0, 5.0]).double(), torch.tensor([3.0, 2.5, 9.0]).double()
    torch.testing.assert_close(mw.scale_transform(lower, lower, upper), -torch.ones_like(x))
    torch.testing.assert_close(mw.scale_transform(upper, lower, upper), torch.ones_like(x))
    back = mw.scale_transform(mw.unscale_transform(x, lower, upper), lower, upper)
    torch.testing.assert_close(back, x, rtol=0, atol=1e-12)
    assert torch.equal(mw.saturate(10 * x, lower, upper), (10 * x).clamp(lower, upper))


def test_lengths_and_signs():
    """Normalise without dividing by zero; take the sign of another number."""
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert torch.equal(mw.normalize(x), torch.tensor([[0.6, 0.8], [0.0, 0.0]]))
    assert mw.copysign(2.0, torch.tensor([-3.0, 0.5, -0.0])).tolist() == [-2.0, 2.0, -2.0]
    assert mw.copysign(-2.0, torch.tensor([1.0])).tolist() == [2.0]


def test_dot_multiplies_the_last_dimension():
    """Agree with a sum of products, whatever the other dimensions."""
    a, b = torch.randn(2, 5, 4, 3, dtype=torch.float64)
    torch.testing.assert_close(mw.dot(a, b), (a * b).sum(dim=-1))
    assert mw.dot(a[0, 0], b[0, 0]).shape == ()
