"""Cameras: depth images, pixels and points, and conventions of camera frames.

Points [m] are in the ROS camera frame: x right, y down, z forward. Intrinsics are matrices
[[fx, s, cx], [0, fy, cy], [0, 0, 1]] in pixels, shape [3, 3] or [N, 3, 3]; column u and row v of
an image are the integers from 0. Source: R. Hartley and A. Zisserman, "Multiple View Geometry"
(2004), chapter 6.
"""

from __future__ import annotations

import math
from typing import Literal

import torch

from manyworlds.utils.math.quaternion import quat_conjugate, quat_mul
from manyworlds.utils.math.vectors import cross, normalize, require_shape

CameraFrame = Literal["opengl", "ros", "world"]

# Orientation of each camera frame relative to the OpenGL one.
_CAMERA_FRAMES = {
    "opengl": (1.0, 0.0, 0.0, 0.0),
    "ros": (0.0, 1.0, 0.0, 0.0),
    "world": (0.5, -0.5, 0.5, 0.5),
}


def orthogonalize_perspective_depth(depth: torch.Tensor, intrinsics: torch.Tensor) -> torch.Tensor:
    """Convert distances from the camera center to distances along the optical axis.

    Args:
        depth: lengths of the rays [m], shape [H, W], [H, W, 1], [N, H, W] or [N, H, W, 1].
        intrinsics: shape [3, 3] or [N, 3, 3].

    Returns:
        Depth along z [m], in the shape of `depth`.

    Raises:
        ValueError: an argument has another shape.
    """
    image = _image(depth, intrinsics)
    rays = _rays(image.shape[-2], image.shape[-1], intrinsics)
    flat = image / torch.linalg.vector_norm(rays, dim=-1)
    if flat.numel() == depth.numel():
        flat = flat.reshape(depth.shape)
    return flat


def unproject_depth(
    depth: torch.Tensor, intrinsics: torch.Tensor, is_ortho: bool = True
) -> torch.Tensor:
    """Return the points of a depth image.

    Args:
        depth: depth [m], shape [H, W], [H, W, 1], [N, H, W] or [N, H, W, 1].
        intrinsics: shape [3, 3] or [N, 3, 3].
        is_ortho: depth is measured along z instead of along the rays.

    Returns:
        Points [m], row by row, shape [H * W, 3] or [N, H * W, 3].

    Raises:
        ValueError: an argument has another shape.
    """
    if not is_ortho:
        depth = orthogonalize_perspective_depth(depth, intrinsics)
    image = _image(depth, intrinsics)
    rays = _rays(image.shape[-2], image.shape[-1], intrinsics)
    return (rays * image.unsqueeze(-1)).flatten(-3, -2)


def project_points(points: torch.Tensor, intrinsics: torch.Tensor) -> torch.Tensor:
    """Return the pixels of points: the inverse of `unproject_depth`.

    Args:
        points: points [m], shape [P, 3] or [N, P, 3].
        intrinsics: shape [3, 3] or [N, 3, 3].

    Returns:
        Column u [px], row v [px] and depth along z [m], shape [P, 3] or [N, P, 3].

    Raises:
        ValueError: an argument has another shape.
    """
    if points.ndim not in (2, 3) or points.shape[-1] != 3:
        raise ValueError(
            f"'points' must have shape (P, 3) or (N, P, 3), got {tuple(points.shape)}."
        )
    _require_intrinsics(intrinsics)
    depth = points[..., 2:]
    pixels = (points / depth) @ intrinsics.mT
    return torch.cat([pixels[..., :2], depth.expand(*pixels.shape[:-1], 1)], dim=-1)


def convert_camera_frame_orientation_convention(
    orientation: torch.Tensor, origin: CameraFrame = "opengl", target: CameraFrame = "ros"
) -> torch.Tensor:
    """Convert camera orientations, shape [..., 4], to another convention.

    An opengl camera looks along -z with y up, ros along z with y down, world along x with z up.

    Raises:
        ValueError: a convention is unknown.
    """
    for name in (origin, target):
        if name not in _CAMERA_FRAMES:
            raise ValueError(f"There is no camera frame '{name}': use one of {[*_CAMERA_FRAMES]}.")
    origin_quat, target_quat = (orientation.new_tensor(_CAMERA_FRAMES[n]) for n in (origin, target))
    return quat_mul(orientation, quat_mul(quat_conjugate(origin_quat), target_quat))


def create_rotation_matrix_from_view(
    eyes: torch.Tensor,
    targets: torch.Tensor,
    up_axis: Literal["Y", "Z"] = "Z",
    device: torch.device | str | None = None,
) -> torch.Tensor:
    """Return orientations of OpenGL cameras at `eyes` that look at `targets` [m], [..., 3] each.

    Args:
        eyes: positions of the cameras [m].
        targets: points to look at [m].
        up_axis: the world axis that is up in the image; if a camera looks along it, the right
            side of its image is along x.
        device: device of the result; None is that of `eyes`.

    Returns:
        Rotation matrices, shape [..., 3, 3], whose columns are the camera's x, y and z.

    Raises:
        ValueError: the axis is unknown.
    """
    if up_axis not in ("Y", "Z"):
        raise ValueError(f"There is no up axis '{up_axis}': use 'Y' or 'Z'.")
    z = normalize(eyes - targets)
    x = cross(z.new_tensor([0.0, up_axis == "Y", up_axis == "Z"]), z)
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    along = length < math.sqrt(torch.finfo(z.dtype).eps)
    x = torch.where(along, z.new_tensor([1.0, 0.0, 0.0]), x / torch.where(along, 1.0, length))
    y = normalize(cross(z, x))
    return torch.stack([x, y, z], dim=-1).to(device or eyes.device)


def _image(depth: torch.Tensor, intrinsics: torch.Tensor) -> torch.Tensor:
    """Remove a trailing channel of depth images; check both arguments."""
    _require_intrinsics(intrinsics)
    image = depth
    if depth.ndim > 2 and depth.shape[-1] == 1:
        image = depth.squeeze(-1)
    if image.ndim not in (2, 3):
        raise ValueError(
            "'depth' must have shape (H, W), (H, W, 1), (N, H, W) or (N, H, W, 1), "
            f"got {tuple(depth.shape)}."
        )
    return image


def _require_intrinsics(intrinsics: torch.Tensor) -> None:
    require_shape("intrinsics", intrinsics, (3, 3))
    if intrinsics.ndim not in (2, 3):
        raise ValueError(
            f"'intrinsics' must have shape (3, 3) or (N, 3, 3), got {tuple(intrinsics.shape)}."
        )


def _rays(height: int, width: int, intrinsics: torch.Tensor) -> torch.Tensor:
    """Return the points with depth 1 at the pixels, shape [H, W, 3] or [N, H, W, 3]."""
    rows, columns = torch.meshgrid(
        torch.arange(height, dtype=intrinsics.dtype, device=intrinsics.device),
        torch.arange(width, dtype=intrinsics.dtype, device=intrinsics.device),
        indexing="ij",
    )
    k = intrinsics[..., None, None]
    y = (rows - k[..., 1, 2, :, :]) / k[..., 1, 1, :, :]
    x = (columns - k[..., 0, 2, :, :] - k[..., 0, 1, :, :] * y) / k[..., 0, 0, :, :]
    return torch.stack([x, y, torch.ones_like(x)], dim=-1)
