"""Colors on a page against those on MuJoCo's screen."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.viewer.browser.tones import LIGHT, surface_color, surface_srgb, surface_texture


def on_screen(light: np.ndarray) -> np.ndarray:
    """Return the screen colors that a browser makes of light, as three.js computes them."""
    # tonemapping_pars_fragment.glsl.js, transposed because GLSL lists columns.
    v = (
        light
        / 0.6
        @ np.array(
            [[0.59719, 0.07600, 0.02840], [0.35458, 0.90834, 0.13383], [0.04823, 0.01566, 0.83777]]
        )
    )
    v = (v * (v + 0.0245786) - 0.000090537) / (v * (0.983729 * v + 0.4329510) + 0.238081)
    v = v @ np.array(
        [
            [1.60475, -0.10208, -0.00327],
            [-0.53108, 1.10813, -0.07276],
            [-0.07367, -0.00605, 1.07602],
        ]
    )
    return np.clip(v, 0.0, 1.0) ** (1 / 2.2)


@pytest.mark.parametrize("gray", [0.02, 0.08, 0.2, 0.5, 0.8])
def test_a_lit_surface_has_mujocos_color(gray):
    """Show grays, and colors that are not too bright for the curve, as MuJoCo does."""
    for rgb in ((1, 1, 1), (1, 0.9, 0.8), (0.85, 1, 1), (0.95, 0.8, 1)):
        color = gray * np.array(rgb)
        np.testing.assert_allclose(on_screen(LIGHT * surface_color(color)), color, atol=2e-3)


def test_colors_keep_between_dark_and_pale():
    """Show a dark color in the shade, and a bright one in the light, closer to MuJoCo's."""
    rubber, orange = np.full(3, 0.08), np.array([0.95, 0.61, 0.25])
    dark, before = (on_screen(0.6 * color) for color in (surface_color(rubber), rubber**2.2))
    assert (dark > 1.5 * before).all() and (dark > 0.4 * rubber).all()
    pale, before = (on_screen(2.6 * color) for color in (surface_color(orange), orange**2.2))
    assert (np.abs(pale - orange)[1:] < 0.75 * np.abs(before - orange)[1:]).all()


def test_black_white_and_bright_colors():
    """Keep black and white, and a saturated color's hue; stay within 0 and 1."""
    assert (surface_color(np.zeros(3)) == 0).all() and (surface_color(np.ones(3)) == 1).all()
    red = surface_color(np.array([1.0, 0.1, 0.1]))
    assert red[0] > 0.5 > 0.1 > max(red[1:]) and red.min() >= 0 and red.max() <= 1


def test_textures_have_the_tones_of_colors():
    """Map each pixel as a color, and leave opacity alone."""
    image = np.array([[[30, 30, 30, 7], [200, 200, 200, 255]]], np.uint8)
    mapped = surface_texture(image)
    assert mapped[..., 3].tolist() == [[7, 255]]
    assert (mapped[..., :3] == surface_srgb(image[..., :3] / 255.0)).all()
    assert mapped[0, 0, 0] > 30 and (surface_texture(image[..., :1]) == mapped[..., :1]).all()
