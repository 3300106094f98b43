"""Perturbations of rigid-body inertia that remain physically consistent."""

from __future__ import annotations

import torch

from manyworlds.utils.math.quaternion import matrix_from_quat, quat_mul
from manyworlds.utils.math.vectors import normalize

# Each plane's rotation is about the third axis.
_PLANES = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
# For 3 x 3 matrices, four rounds reduce the residual below float64 precision, since each round at
# least squares it.
_ROUNDS = 4


def perturb_inertia(
    mass: torch.Tensor,
    ipos: torch.Tensor,
    inertia: torch.Tensor,
    iquat: torch.Tensor,
    alpha: torch.Tensor,
    stretch: torch.Tensor,
    shear: torch.Tensor,
    shift: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Move the mass of bodies along `x -> A x + t`, and scale its density by `e^(2 alpha)`.

    That is `J' = U J U^T` for the pseudo-inertia `J = int rho(x) [x 1]^T [x 1] dV`, with

        U = e^alpha [[A, t], [0, 1]],   A = [[e^d1, s12, s13], [0, e^d2, s23], [0, 0, e^d3]],

    so that the inertia is that of a mass distribution for all parameter values. Source: C. Rucker,
    P. Wensing, "Smooth Parameterization of Rigid-Body Inertia", IEEE RA-L 7(2), 2022. Expressed
    about the center of mass, where `J` is block-diagonal, no Cholesky factor is needed: with
    `Sigma = int rho (x - c) (x - c)^T dV`,

        m' = e^(2 alpha) m,   c' = A c + t,   Sigma' = e^(2 alpha) A Sigma A^T,

    so that thin plates, rods and points, whose `J` is singular, need no special treatment. Axes and
    origin are those of the body. Zero parameters return the inputs, and small parameters rotate the
    principal axes as little as possible.

    Args:
        mass: masses [kg], shape [...].
        ipos: centers of mass in the bodies' frames [m], shape [..., 3].
        inertia: principal moments of inertia [kg m^2], shape [..., 3].
        iquat: orientations of the principal axes in the bodies' frames (wxyz), shape [..., 4].
        alpha: half the logarithms of the density factors, shape [...].
        stretch: logarithms d1, d2, d3 of stretches along the axes, shape [..., 3].
        shear: shears s12, s13, s23, shape [..., 3].
        shift: shifts t1, t2, t3 of the center of mass [m], shape [..., 3].

    Returns:
        New masses [kg], centers of mass [m], principal moments [kg m^2] and orientations (wxyz), in
        float64, with the shapes of the inputs.
    """
    mass = mass.double()
    ipos = ipos.double()
    inertia = inertia.double()
    iquat = iquat.double()
    density = torch.exp(2.0 * alpha.double())
    # A - 1, so that zero parameters change nothing, and small ones keep their precision.
    change = torch.zeros(*stretch.shape, 3, dtype=torch.float64, device=stretch.device)
    change.diagonal(dim1=-2, dim2=-1).copy_(torch.expm1(stretch.double()))
    change[..., 0, 1:] = shear[..., :2]
    change[..., 1, 2] = shear[..., 2]
    frame = matrix_from_quat(iquat)
    moved = frame.mT @ change @ frame + torch.eye(3, dtype=torch.float64, device=change.device)
    # Second moments of mass along the principal axes: half the trace minus the moment of inertia.
    second = (0.5 * inertia.sum(dim=-1, keepdim=True) - inertia).clamp_min_(0.0)
    diagonal, turn = diagonalize((moved * second.unsqueeze(-2)) @ moved.mT)
    return (
        density * mass,
        ipos + (change @ ipos.unsqueeze(-1)).squeeze(-1) + shift.double(),
        density.unsqueeze(-1) * (diagonal.sum(dim=-1, keepdim=True) - diagonal),
        quat_mul(iquat, turn),
    )


def diagonalize(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return eigenvalues, shape [..., 3], and the rotation to the eigenvectors (wxyz), [..., 4].

    Jacobi's method: each rotation is by at most 45 degrees, so that each eigenvector stays near its
    closest axis, and a diagonal matrix is unchanged. It needs only the memory of a few copies of
    the matrices. Source: G. Golub, C. Van Loan, "Matrix Computations", section 8.5.

    Args:
        matrix: symmetric positive semidefinite matrices, float64, shape [..., 3, 3].
    """
    diagonal = [matrix[..., i, i] for i in range(3)]
    # Off-diagonal elements, each at the axis that is neither its row nor its column.
    beside = [matrix[..., 1, 2], matrix[..., 2, 0], matrix[..., 0, 1]]
    w, *axis = torch.ones_like(beside[0]), *(torch.zeros_like(each) for each in beside)
    tiny = torch.finfo(matrix.dtype).tiny
    for p, q, r in _PLANES * _ROUNDS:
        twice = 2.0 * beside[r]
        gap = diagonal[p] - diagonal[q]
        tan = twice.where(gap >= 0.0, -twice) / (
            gap.abs() + (gap * gap + twice * twice).sqrt() + tiny
        )
        cos = torch.rsqrt(1.0 + tan * tan)
        sin = tan * cos
        step = tan * beside[r]
        diagonal[p], diagonal[q] = diagonal[p] + step, diagonal[q] - step
        beside[p], beside[q] = cos * beside[p] - sin * beside[q], cos * beside[q] + sin * beside[p]
        beside[r] = torch.zeros_like(cos)
        # Multiply by the quaternion (1 + cos, sin) of the rotation; normalization is at the end.
        cos += 1.0
        w, axis[r] = w * cos - axis[r] * sin, axis[r] * cos + w * sin
        axis[p], axis[q] = axis[p] * cos + axis[q] * sin, axis[q] * cos - axis[p] * sin
    values = torch.stack(diagonal, dim=-1).clamp_min_(0.0)
    return values, normalize(torch.stack([w, *axis], dim=-1))
