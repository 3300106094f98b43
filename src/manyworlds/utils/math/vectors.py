"""Operations on numbers and vectors."""

from __future__ import annotations

import math

import numpy as np
import torch

from manyworlds.validation.host_reads import reads_are_free


def scale_transform(x: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Map [lower, upper] to [-1, 1] linearly; shapes broadcast."""
    return (2.0 * x - lower - upper) / (upper - lower)


def unscale_transform(x: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Map [-1, 1] to [lower, upper] linearly; shapes broadcast. Inverse of `scale_transform`."""
    return 0.5 * (x * (upper - lower) + lower + upper)


def saturate(x: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Clip elements to [lower, upper]; the result has the shape of `x`."""
    return torch.clamp(x, lower, upper)


def normalize(x: torch.Tensor, eps: float = 1e-9) -> torch.Tensor:
    """Divide vectors, shape [..., n], by their norms, clamped to at least `eps`."""
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(eps)


def dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return inner products over a short last dimension, shape [...].

    Columns are added one by one, which on a CPU is several times faster than a sum over them.
    """
    total, *columns = (a * b).unbind(-1)
    for column in columns:
        total = total + column
    return total


def wrap_to_pi(angles: torch.Tensor) -> torch.Tensor:
    """Wrap angles [rad] to [-pi, pi], in the same shape; odd multiples of pi keep their sign.

    Angles within the interval are returned unchanged, without rounding.
    """
    turns = torch.ceil(angles.abs() / (2.0 * math.pi) - 0.5)
    return angles - 2.0 * math.pi * torch.copysign(turns, angles)


def copysign(mag: float, other: torch.Tensor) -> torch.Tensor:
    """Return `mag` with the sign of each element of `other`, in its shape."""
    return torch.full_like(other, mag).copysign(other)


def cross(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return cross products of vectors, shape [..., 3], whose leading dimensions broadcast."""
    return torch.linalg.cross(*torch.broadcast_tensors(a, b))


def skew_symmetric_matrix(vec: torch.Tensor) -> torch.Tensor:
    """Return the matrices S, shape [..., 3, 3], with S b = a x b for vectors a, shape [..., 3].

    Raises:
        ValueError: the last dimension of `vec` is not 3.
    """
    require_shape("vec", vec, (3,))
    x, y, z = vec.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=-1).unflatten(-1, (3, 3))


def require_shape(name: str, x: torch.Tensor, trailing: tuple[int, ...]) -> None:
    """Check the last dimensions of an argument's shape.

    Raises:
        ValueError: they differ from `trailing`.
    """
    if tuple(x.shape[-len(trailing) :]) != trailing:
        raise ValueError(
            f"'{name}' must have shape (..., {', '.join(map(str, trailing))}), "
            f"got {tuple(x.shape)}."
        )


def atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the angles [rad] of points, as `torch.atan2` does, but alike in batches of any size.

    On CPUs, the last digit of `torch.atan2` depends on the place of an element in its tensor, and
    so that of a world on the number of worlds. NumPy's does not.
    """
    if not reads_are_free(x.device) or x.requires_grad or y.requires_grad:
        return torch.atan2(y, x)
    return torch.from_numpy(np.asarray(np.arctan2(y.numpy(), x.numpy())))
