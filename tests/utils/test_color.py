"""Colours: conversions and shades."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyworlds.utils.color import (
    HSV,
    RGB,
    RGBA,
    adjust_saturation,
    brand_ramp,
    clamp,
    darken_rgba,
    hsv_to_rgb,
    lighten_rgba,
    rgb_to_hsv,
)

fractions = st.floats(0.0, 1.0)
colors = st.tuples(fractions, fractions, fractions)


@given(colors)
def test_conversions_are_inverse(rgb):
    """Come back to the same colour."""
    assert hsv_to_rgb(rgb_to_hsv(rgb)) == pytest.approx(rgb, abs=1e-9)


def test_known_colors():
    """Know red, green and a half grey."""
    assert rgb_to_hsv((1.0, 0.0, 0.0)) == HSV(0.0, 1.0, 1.0)
    assert rgb_to_hsv((0.0, 1.0, 0.0)).h == pytest.approx(1 / 3)
    assert rgb_to_hsv((0.5, 0.5, 0.5)) == HSV(0.0, 0.0, 0.5)


@given(colors, fractions, fractions)
def test_shades_stay_colors(rgb, t, alpha):
    """Stay in [0, 1], keep the opacity, and get lighter along the ramp."""
    shade = brand_ramp(rgb, t, alpha)
    assert all(0.0 <= c <= 1.0 for c in shade) and shade[3] == alpha
    assert sum(shade[:3]) >= sum(brand_ramp(rgb, t / 2, alpha)[:3]) - 1e-12
    assert brand_ramp(rgb, 0.5, alpha) == pytest.approx((*rgb, alpha))


def test_shades_of_a_color():
    """Darken towards black, lighten towards white."""
    assert darken_rgba((1.0, 0.5, 0.0, 0.3), 0.5) == (0.5, 0.25, 0.0, 0.3)
    assert lighten_rgba((1.0, 0.5, 0.0, 0.3), 0.5) == (1.0, 0.75, 0.5, 0.3)
    assert brand_ramp((0.4, 0.2, 0.0), 0.0) == pytest.approx((0.2, 0.1, 0.0, 1.0))
    assert brand_ramp((0.4, 0.2, 0.0), 1.0) == pytest.approx((0.7, 0.6, 0.5, 1.0))


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_fractions_are_bounded(value):
    """Name the value that is out of [0, 1]."""
    for call in (
        lambda: brand_ramp((0.0, 0.0, 0.0), value),
        lambda: darken_rgba((0.0, 0.0, 0.0, 1.0), value),
        lambda: lighten_rgba((0.0, 0.0, 0.0, 1.0), value),
    ):
        with pytest.raises(ValueError, match=rf"must be in \[0, 1\], got {value}"):
            call()


def test_saturation():
    """Fade to grey, and stop at the pure colour."""
    assert adjust_saturation((0.8, 0.4, 0.4), 0.0) == pytest.approx((0.8, 0.8, 0.8))
    assert adjust_saturation((0.8, 0.4, 0.4), 9.0) == pytest.approx((0.8, 0.0, 0.0))
    assert (clamp(-1.0), clamp(2.0), clamp(5.0, 3.0, 4.0)) == (0.0, 1.0, 4.0)


def test_random_colors_follow_the_generator():
    """Draw the same colours from the same seed."""
    first, second = (RGB.random(np.random.default_rng(0)) for _ in range(2))
    assert first == second
    assert all(type(c) is float and 0.0 <= c <= 1.0 for c in first.to_tuple())
    assert RGBA.random(np.random.default_rng(0), alpha=0.5) == RGBA.from_rgb(first, 0.5)
