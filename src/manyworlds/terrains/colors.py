"""Colors of terrain: one palette of heights for boxes and height fields."""

from __future__ import annotations

import mujoco
import numpy as np

_SQUARES = 16  # along each side of a height field, so that motion over it shows
_SQUARE_SHADE = 0.06
# Height at the end of the palette [m]; a square root spreads smaller heights.
_FULL_HEIGHT = 1.0
# Slate blue in pits, light stone at ground level, then sage, sand and clay.
_STOPS = np.array([-1.0, -0.5, 0.0, 0.35, 0.7, 1.0])
_COLORS = np.array(
    [
        [0.24, 0.34, 0.46],
        [0.47, 0.60, 0.70],
        [0.82, 0.84, 0.83],
        [0.66, 0.76, 0.62],
        [0.86, 0.76, 0.53],
        [0.78, 0.50, 0.38],
    ]
)


def height_to_rgb(heights: np.ndarray | float) -> np.ndarray:
    """Return colors of heights [m], shape [..., 3]."""
    heights = np.asarray(heights, float)
    place = np.sign(heights) * np.sqrt(np.minimum(np.abs(heights) / _FULL_HEIGHT, 1.0))
    return np.stack([np.interp(place, _STOPS, channel) for channel in _COLORS.T], axis=-1)


def random_rgb(rng: np.random.Generator) -> np.ndarray:
    """Return a random color of the palette, shape [3]."""
    return height_to_rgb(rng.uniform(-0.5, 1.0))


def color_by_height(
    spec: mujoco.MjSpec,
    noise: np.ndarray,
    unique_id: str,
    physical_heights: np.ndarray,
    texture_size: int = 128,
) -> str:
    """Add a material that colors a height field by height.

    Args:
        spec: the spec to which the texture and the material are added.
        noise: heights scaled to [0, 1], rows along y and columns along x; samples above the corner
            are slightly lighter than in the palette.
        unique_id: name of the texture and the material.
        physical_heights: heights [m], with the shape of `noise`.
        texture_size: pixels along each side.

    Returns:
        The material's name.
    """
    # Relative to the corner, so that neighboring cells have the same color at their border.
    shade = 1.0 + 0.08 * (noise - noise[0, 0])
    rgb = np.clip(height_to_rgb(physical_heights) * shade[..., None], 0.0, 1.0)
    rows, cols = (
        np.linspace(0, n - 1, texture_size).round().astype(int) for n in physical_heights.shape
    )
    # The first row of a texture is at the largest y.
    pixels = 255 * rgb[rows[::-1]][:, cols]
    squares = np.arange(texture_size) // (texture_size // _SQUARES)
    pixels *= 1.0 - _SQUARE_SHADE * ((squares[:, None] + squares) % 2)[..., None]
    pixels = pixels.round().astype(np.uint8)
    texture = spec.add_texture(
        name=unique_id,
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        width=texture_size,
        height=texture_size,
        nchannel=3,
    )
    texture.data = pixels.tobytes()
    material = spec.add_material(name=unique_id)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = unique_id
    return unique_id
