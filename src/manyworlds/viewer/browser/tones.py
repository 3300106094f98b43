"""Colors of surfaces that look on the page as MuJoCo draws them.

A browser computes light linearly and compresses it with a curve of films (ACES), which makes dark
colors much darker. MuJoCo multiplies screen colors by the light, without a curve. The surfaces of a
page have those colors from which the curve makes MuJoCo's in light that is between that from above
and that from the side.
"""

from __future__ import annotations

import numpy as np

# Source: three.js r186, tonemapping_pars_fragment.glsl.js, ACESFilmicToneMapping, which is Stephen
# Hill's fit: out = _TO_SCREEN @ curve(_FROM_LIGHT @ light / 0.6).
_FROM_LIGHT = np.array(
    [[0.59719, 0.35458, 0.04823], [0.07600, 0.90834, 0.01566], [0.02840, 0.13383, 0.83777]]
)
_TO_SCREEN = np.array(
    [[1.60475, -0.53108, -0.07367], [-0.10208, 1.10813, -0.00605], [-0.00327, -0.07276, 1.07602]]
)
_EXPOSURE = 1.0 / 0.6
LIGHT = 1.5
"""Light under which colors are right, relative to that under which white is white. On pages,
surfaces that face up get about 2.6, and vertical ones 0.6."""
# curve(v) = (v (v + a) - b) / (v (c v + d) + e)
_A = 0.0245786
_B = 0.000090537
_C = 0.983729
_D = 0.4329510
_E = 0.238081
_LARGEST = 0.98
"""Output of the curve from which on colors are as bright as can be."""


def surface_color(rgb: np.ndarray) -> np.ndarray:
    """Return the linear colors of surfaces that look like MuJoCo's screen colors.

    Args:
        rgb: screen colors from 0 to 1, shape (..., 3).

    Returns:
        Colors from 0 to 1, shape (..., 3); black and white stay as they are.
    """
    wanted = np.clip(rgb, 0.0, 1.0) ** 2.2
    y = np.clip(wanted @ np.linalg.inv(_TO_SCREEN).T, 0.0, _LARGEST)
    # The positive root of (1 - c y) v^2 + (a - d y) v - (b + e y) = 0.
    p = 1.0 - _C * y
    q = _A - _D * y
    r = _B + _E * y
    v = (np.sqrt(q * q + 4.0 * p * r) - q) / (2.0 * p)
    light = v @ np.linalg.inv(_FROM_LIGHT).T / (_EXPOSURE * LIGHT)
    return np.where(wanted.any(axis=-1, keepdims=True), np.clip(light, 0.0, 1.0), 0.0)


def surface_srgb(rgb: np.ndarray) -> np.ndarray:
    """Return the same colors encoded as sRGB, uint8, shape (..., 3)."""
    return (255.0 * surface_color(rgb) ** (1.0 / 2.2)).round().astype(np.uint8)


def surface_texture(pixels: np.ndarray) -> np.ndarray:
    """Return an image for surfaces that look like an image of MuJoCo's screen colors.

    Args:
        pixels: image, uint8, shape (height, width, channels); of 4 channels, the last is opacity.

    Returns:
        An image of the same shape, encoded as sRGB.
    """
    gray = np.repeat(np.linspace(0.0, 1.0, 256)[:, None], 3, axis=1)
    image = surface_srgb(gray)[:, 1][pixels]
    if pixels.shape[2] == 4:
        image[..., 3] = pixels[..., 3]
    return image
