"""Inertia: what a deformation does to point masses, and the bodies whose inertia is singular."""

import subprocess
import sys

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from manyworlds.utils.math import matrix_from_quat, quat_from_matrix
from manyworlds.utils.math.inertia import diagonalize, perturb_inertia
from tests.utils.math.strategies import quats, vectors

Body = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]

EYE = torch.eye(3, dtype=torch.float64)
NONE = (torch.zeros(()), *(torch.zeros(3),) * 3)
# Second moments of mass along the principal axes.
SHAPES = {
    "sphere": (0.4, 0.4, 0.4),
    "almost a sphere": (0.4, 0.4, 0.4 + 1e-12),
    "brick": (0.1, 0.2, 0.5),
    "plate": (0.3, 0.5, 0.0),
    "disk": (0.0, 0.3, 0.3),
    "rod": (0.0, 0.7, 0.0),
    "needle": (1e-9, 1.0, 1e-12),
    "point": (0.0, 0.0, 0.0),
}


def numbers(bound: float) -> st.SearchStrategy[torch.Tensor]:
    """Draw ten numbers: alpha, d, s and t."""
    return npst.arrays(np.float64, 10, elements=st.floats(-bound, bound)).map(torch.from_numpy)


def apart(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Split ten numbers into those that `perturb_inertia` takes."""
    return values[0], values[1:4], values[4:7], values[7:]


def make(shape: str, ipos: torch.Tensor, iquat: torch.Tensor, mass: float = 2.0) -> Body:
    """Make a body of a shape."""
    second = torch.tensor(SHAPES[shape], dtype=torch.float64)
    return torch.tensor(mass, dtype=torch.float64), ipos, second.sum() - second, iquat


def pseudo_inertia(mass, ipos, inertia, iquat) -> torch.Tensor:
    """Put a body's pseudo-inertia about its origin together, by the definition."""
    frame = matrix_from_quat(iquat)
    about_com = frame @ torch.diag(inertia) @ frame.T
    about_origin = about_com + mass * (ipos.dot(ipos) * EYE - torch.outer(ipos, ipos))
    sigma = 0.5 * about_origin.trace() * EYE - about_origin
    first = mass * ipos[:, None]
    return torch.cat([torch.cat([sigma, first], 1), torch.cat([first.T, mass.view(1, 1)], 1)])


def deformation(values: torch.Tensor) -> torch.Tensor:
    """Put U together."""
    (d1, d2, d3), (s12, s13, s23), (t1, t2, t3) = values[1:4].exp(), values[4:7], values[7:]
    rows = [[d1, s12, s13, t1], [0, d2, s23, t2], [0, 0, d3, t3], [0, 0, 0, 1]]
    return values[0].exp() * torch.tensor(rows, dtype=torch.float64)


bodies = st.builds(make, st.sampled_from(list(SHAPES)), vectors(3, 0.5), quats())


@given(bodies, numbers(1.0))
def test_pseudo_inertia_is_deformed_from_both_sides(body, values):
    """Make J' = U J U^T, also where J has no Cholesky factor."""
    u = deformation(values)
    expected = u @ pseudo_inertia(*body) @ u.T
    got = pseudo_inertia(*perturb_inertia(*body, *apart(values)))
    torch.testing.assert_close(got, expected, rtol=0.0, atol=1e-13 * float(expected.trace() + 1.0))


@given(
    npst.arrays(np.float64, (6, 3), elements=st.floats(-1.0, 1.0)),
    npst.arrays(np.float64, 6, elements=st.floats(0.01, 1.0)),
    numbers(0.8),
)
def test_point_masses_move_as_the_deformation_says(points, masses, values):
    """Give the inertia that point masses have after each of them has moved."""

    def measure(points: np.ndarray, masses: np.ndarray) -> Body:
        mass, center = masses.sum(), masses @ points / masses.sum()
        arms = points - center
        squares = (arms**2).sum(1)[:, None, None] * np.eye(3)
        inertia = (masses[:, None, None] * (squares - arms[:, :, None] * arms[:, None, :])).sum(0)
        moments, axes = np.linalg.eigh(inertia)
        axes *= np.linalg.det(axes)
        arrays = (mass, center, moments, axes)
        *body, axes = (torch.as_tensor(a, dtype=torch.float64) for a in arrays)
        return *body, quat_from_matrix(axes)

    u = deformation(values).numpy() / values[0].exp().item()
    moved = measure(points @ u[:3, :3].T + u[:3, 3], masses * np.exp(2.0 * values[0].item()))
    got = perturb_inertia(*measure(points, masses), *apart(values))
    expected = pseudo_inertia(*moved)
    torch.testing.assert_close(pseudo_inertia(*got), expected, rtol=0.0, atol=1e-11)


@given(bodies, numbers(2.0))
def test_every_draw_is_a_body(body, values):
    """Keep mass positive, moments that some body has, and unit quaternions."""
    mass, ipos, inertia, iquat = perturb_inertia(*body, *apart(values))
    torch.testing.assert_close(mass, 2.0 * torch.exp(2.0 * values[0]), rtol=1e-15, atol=0.0)
    assert torch.isfinite(ipos).all() and (inertia >= 0.0).all()
    slack = 0.5 * inertia.sum() - inertia
    assert (slack >= -1e-15 * inertia.sum()).all()
    assert abs(iquat.norm() - 1.0) < 1e-9
    if (0.5 * body[2].sum() - body[2]).min() > 0.01 and values.abs().max() < 1.0:
        assert (torch.linalg.eigvalsh(pseudo_inertia(mass, ipos, inertia, iquat)) > 0.0).all()


@given(bodies)
def test_no_change_gives_back_what_was_given(body):
    """Change nothing by zeros: not even the order and direction of the principal axes."""
    mass, ipos, inertia, iquat = perturb_inertia(*body, *NONE)
    assert torch.equal(mass, body[0]) and torch.equal(ipos, body[1])
    assert torch.equal(iquat, body[3])
    torch.testing.assert_close(inertia, body[2], rtol=0.0, atol=1e-15 * float(body[2].sum()))


@given(bodies, st.floats(-1.0, 1.0), vectors(3, 0.3))
def test_density_and_shift_do_what_their_names_say(body, alpha, shift):
    """Multiply mass and moments by e^(2 alpha), move the center by t, and turn nothing."""
    values = torch.zeros(10, dtype=torch.float64)
    values[0], values[7:] = alpha, shift
    mass, ipos, inertia, iquat = perturb_inertia(*body, *apart(values))
    torch.testing.assert_close(mass / body[0], values[0].mul(2).exp(), rtol=1e-15, atol=0.0)
    torch.testing.assert_close(inertia, body[2] * values[0].mul(2).exp(), rtol=1e-12, atol=1e-15)
    assert torch.equal(ipos, body[1] + shift) and torch.equal(iquat, body[3])


def test_stretch_of_a_brick_stretches_its_moments():
    """Scale the second moment along an axis by e^(2 d), and leave the others."""
    body = make("brick", torch.zeros(3).double(), torch.tensor([1.0, 0, 0, 0]).double())
    values = torch.zeros(10, dtype=torch.float64)
    values[2] = 0.3
    _, ipos, inertia, iquat = perturb_inertia(*body, *apart(values))
    second = torch.tensor(SHAPES["brick"]).double() * torch.tensor([1.0, np.exp(0.6), 1.0])
    torch.testing.assert_close(inertia, second.sum() - second, rtol=1e-7, atol=0.0)
    assert not ipos.any() and torch.equal(iquat, body[3])


@pytest.mark.parametrize("shape", ["sphere", "brick", "plate", "rod"])
def test_small_changes_turn_axes_little(shape):
    """Keep the principal axes in their order and where they were, if they are distinct."""
    iquat = torch.nn.functional.normalize(torch.tensor([0.3, -0.5, 0.7, 0.2]).double(), dim=0)
    body = make(shape, torch.ones(3).double(), iquat)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        values = 1e-5 * torch.randn(10, generator=generator, dtype=torch.float64)
        _, _, inertia, turned = perturb_inertia(*body, *apart(values))
        torch.testing.assert_close(inertia, body[2], rtol=0.0, atol=1e-3)
        # Equal moments have no axes of their own, yet none turns by more than it must.
        assert torch.dot(turned, iquat) > (0.5 if len(set(SHAPES[shape])) < 3 else 1.0 - 1e-6)


def test_the_frame_is_that_of_mujoco():
    """Read body_iquat as MuJoCo's compiler writes it."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="body", mass=3.0, ipos=[0.1, -0.2, 0.3])
    full = np.array([0.3, 0.4, 0.5, 0.05, -0.03, 0.02])  # xx, yy, zz, xy, xz, yz
    body.fullinertia, body.explicitinertial = full, True
    body.add_freejoint()
    model = spec.compile()
    frame = matrix_from_quat(torch.from_numpy(model.body_iquat[1]))
    inertia = frame @ torch.diag(torch.from_numpy(model.body_inertia[1])) @ frame.T
    xx, yy, zz, xy, xz, yz = full
    np.testing.assert_allclose(
        inertia, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], rtol=0.0, atol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
def test_eigenvalues_are_those_of_lapack(scale):
    """Diagonalize matrices of any size and condition to the precision of float64."""
    generator = torch.Generator().manual_seed(0)
    factors = torch.randn(5000, 3, 3, generator=generator, dtype=torch.float64)
    factors[..., 0] *= torch.logspace(0, -9, 5000, dtype=torch.float64)[:, None]
    matrices = scale * factors @ factors.mT
    values, quat = diagonalize(matrices)
    axes = matrix_from_quat(quat)
    size = matrices.abs().amax(dim=(1, 2))
    rebuilt = axes @ torch.diag_embed(values) @ axes.mT
    assert float(((rebuilt - matrices).abs().amax(dim=(1, 2)) / size).max()) < 1e-14
    expected = torch.linalg.eigvalsh(matrices)
    assert float(((values.sort().values - expected).abs().amax(dim=1) / size).max()) < 1e-14
    assert (values >= 0.0).all()


_WORKSPACE = """
import resource, torch
from manyworlds.utils.math.inertia import perturb_inertia

def run(worlds, bodies):
    sizes = ((), (3,), (3,), (4,), (), (3,), (3,), (3,))
    return perturb_inertia(*(torch.full((worlds, bodies, *size), 0.1) for size in sizes))

run(8, 30)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(4096, 30)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_workspace_is_small():
    """Take less than 200 MB for 30 bodies in 4096 worlds, arguments and results included."""
    done = subprocess.run(
        [sys.executable, "-c", _WORKSPACE], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) < 200_000  # kilobytes
