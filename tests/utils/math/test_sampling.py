"""Samples have the distributions that they promise."""

import math

import pytest
import torch

from manyworlds.utils import math as mw

NUM = 40_000


@pytest.fixture(autouse=True)
def seed():
    """Draw the same numbers each time."""
    torch.manual_seed(1)


def ks_distance(samples: torch.Tensor, cdf) -> float:
    """Largest difference between the empirical and the expected distribution."""
    ordered = samples.double().sort().values
    steps = torch.arange(1, len(ordered) + 1, dtype=torch.float64) / len(ordered)
    return float((steps - cdf(ordered)).abs().max())


LIMIT = 1.95 / math.sqrt(NUM)
"""Kolmogorov and Smirnov: exceeded by chance once in a thousand."""


@pytest.mark.parametrize(
    ("draw", "cdf"),
    [
        (lambda: mw.sample_uniform(-1.0, 3.0, NUM, "cpu"), lambda x: (x + 1) / 4),
        (
            lambda: mw.sample_log_uniform(0.1, 10.0, NUM, "cpu"),
            lambda x: (torch.log10(x) + 1) / 2,
        ),
        (
            lambda: mw.sample_gaussian(1.0, 2.0, NUM, "cpu"),
            lambda x: torch.special.ndtr((x - 1) / 2),
        ),
        (
            lambda: mw.sample_triangle(0.0, 2.0, NUM, "cpu"),
            lambda x: torch.where(x < 1, x**2 / 2, 1 - (2 - x) ** 2 / 2),
        ),
        (lambda: mw.sample_cylinder(2.0, (1.0, 3.0), NUM, "cpu")[:, 2], lambda x: (x - 1) / 2),
        (
            lambda: mw.euler_xyz_from_quat(mw.random_yaw_orientation(NUM, "cpu"))[2],
            lambda x: (x + math.pi) / (2 * math.pi),
        ),
        # The angle of a uniform rotation has density (1 - cos) / pi.
        (
            lambda: mw.axis_angle_from_quat(mw.random_orientation(NUM, "cpu")).norm(dim=-1),
            lambda x: (x - x.sin()) / math.pi,
        ),
    ],
)
def test_distributions(draw, cdf):
    """Follow the distribution function."""
    assert ks_distance(draw(), cdf) < LIMIT


def test_shapes_and_bounds():
    """Take a number or a shape, and bounds that are tensors."""
    lower, upper = torch.tensor([0.1, 10.0]), torch.tensor([0.2, 20.0])
    for sample in (mw.sample_uniform, mw.sample_log_uniform):
        drawn = sample(lower, upper, (100, 2), "cpu")
        assert drawn.shape == (100, 2)
        assert ((drawn >= lower) & (drawn <= upper)).all()
    assert mw.sample_gaussian(lower, 0.0, (5, 2), "cpu").tolist() == lower.expand(5, 2).tolist()
    assert mw.sample_triangle(0.0, 1.0, (2, 3), "cpu").shape == (2, 3)
    points = mw.sample_cylinder(2.0, (1.0, 3.0), (4, 5), "cpu")
    assert points.shape == (4, 5, 3)
    torch.testing.assert_close(points[..., :2].norm(dim=-1), torch.full((4, 5), 2.0))


def test_orientations():
    """Return unit quaternions: none turned, any, and about z alone."""
    assert mw.default_orientation(2, "cpu").tolist() == [[1.0, 0.0, 0.0, 0.0]] * 2
    torch.testing.assert_close(mw.random_orientation(9, "cpu").norm(dim=-1), torch.ones(9))
    assert not mw.random_yaw_orientation(9, "cpu")[:, 1:3].any()


def test_random_poses():
    """Return rigid motions within their bounds."""
    for _ in range(20):
        pos, rot = mw.unmake_pose(mw.generate_random_transformation_matrix(0.5, 0.1))
        assert pos.abs().max() <= 0.5
        torch.testing.assert_close(rot @ rot.T, torch.eye(3), rtol=0, atol=1e-5)
        angles = torch.stack(mw.euler_xyz_from_quat(mw.quat_from_matrix(rot)))
        assert (angles >= -1e-6).all() and (angles <= 0.1 + 1e-6).all()


def test_pose_ranges():
    """Draw named components from their ranges, leave the others at zero, and refuse other names."""
    drawn = mw.sample_pose_range({"y": (-1.0, 2.0), "yaw": (3.0, 3.0)}, NUM, "cpu")
    assert ks_distance(drawn[:, 1], lambda x: (x + 1) / 3) < LIMIT
    assert (drawn[:, 5] == 3.0).all() and not drawn[:, [0, 2, 3, 4]].any()
    with pytest.raises(ValueError, match=r"\['w'\], but keys must be among x, y, z, roll"):
        mw.sample_pose_range({"w": (0.0, 1.0)}, 1, "cpu")
