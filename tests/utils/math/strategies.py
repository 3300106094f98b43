"""Strategies of property tests: unit quaternions, vectors and angles, with the hard cases."""

import math

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

HARD_ANGLES = (0.0, 1e-12, 1e-8, 1e-6, 1e-4, 1.0, math.pi - 1e-8, math.pi, -math.pi / 2, 5.0)


def vectors(size: int = 3, bound: float = 10.0) -> st.SearchStrategy[torch.Tensor]:
    """Draw float64 vectors."""
    return npst.arrays(np.float64, size, elements=st.floats(-bound, bound)).map(torch.from_numpy)


def angles(bound: float = 2 * math.pi) -> st.SearchStrategy[torch.Tensor]:
    """Draw float64 angles [rad], hard ones often."""
    hard = [a for a in HARD_ANGLES if abs(a) <= bound]
    numbers = st.sampled_from(hard) | st.floats(-bound, bound)
    return numbers.map(lambda a: torch.tensor(a, dtype=torch.float64))


def unit_vectors() -> st.SearchStrategy[torch.Tensor]:
    """Draw directions, coordinate axes often."""
    axes = st.sampled_from(
        [*torch.eye(3, dtype=torch.float64), *-torch.eye(3, dtype=torch.float64)]
    )
    free = vectors(3, 1.0).filter(lambda v: v.norm() > 0.1).map(lambda v: v / v.norm())
    return axes | free


def quats() -> st.SearchStrategy[torch.Tensor]:
    """Draw unit quaternions of either sign: hard axes and angles often."""
    turns = st.builds(
        lambda a, u: torch.cat([(a / 2).cos().view(1), (a / 2).sin() * u]), angles(), unit_vectors()
    )
    free = vectors(4, 1.0).filter(lambda q: q.norm() > 0.1).map(lambda q: q / q.norm())
    return turns | free


def same_rotation(q1: torch.Tensor, q2: torch.Tensor, tolerance: float = 1e-12) -> bool:
    """True if unit quaternions are equal up to sign."""
    distance = torch.minimum((q1 - q2).norm(dim=-1), (q1 + q2).norm(dim=-1))
    return bool((distance <= tolerance).all())
