"""Colors with channels in [0, 1], including the hue."""

from __future__ import annotations

import colorsys
from typing import NamedTuple

import numpy as np

Rgb = tuple[float, float, float]
Rgba = tuple[float, float, float, float]


class RGB(NamedTuple):
    """Red, green, blue."""

    r: float
    g: float
    b: float

    def to_tuple(self) -> Rgb:
        """Return a plain tuple."""
        return self.r, self.g, self.b

    @staticmethod
    def random(rng: np.random.Generator) -> RGB:
        """Draw a color uniformly."""
        return RGB(*rng.random(3).tolist())


class RGBA(NamedTuple):
    """Red, green, blue, and opacity."""

    r: float
    g: float
    b: float
    a: float

    @classmethod
    def from_rgb(cls, rgb: RGB, alpha: float = 1.0) -> RGBA:
        """Add an opacity to a color."""
        return cls(*rgb, alpha)

    @staticmethod
    def random(rng: np.random.Generator, alpha: float = 1.0) -> RGBA:
        """Draw a color uniformly."""
        return RGBA.from_rgb(RGB.random(rng), alpha)


class HSV(NamedTuple):
    """Hue, saturation, value."""

    h: float
    s: float
    v: float


def rgb_to_hsv(rgb: Rgb) -> HSV:
    """Return hue, saturation and value."""
    return HSV(*colorsys.rgb_to_hsv(*rgb))


def hsv_to_rgb(hsv: HSV) -> Rgb:
    """Return red, green and blue: the inverse of `rgb_to_hsv`."""
    return colorsys.hsv_to_rgb(*hsv)


def clamp(value: float, min_val: float = 0.0, max_val: float = 1.0) -> float:
    """Clip a number to [min_val, max_val]."""
    return min(max(value, min_val), max_val)


def brand_ramp(base_rgb: Rgb, t: float, alpha: float = 1.0) -> Rgba:
    """Return a shade of a color: half as bright at t = 0, unchanged at 1/2, half white at 1.

    Raises:
        ValueError: `t` is not in [0, 1].
    """
    _require_fraction("t", t)
    base = (*base_rgb, alpha)
    if t < 0.5:
        return darken_rgba(base, 0.5 + t)
    return lighten_rgba(base, t - 0.5)


def darken_rgba(rgba: Rgba, factor: float = 0.85) -> Rgba:
    """Multiply the brightness by `factor`, from black (0) to the unchanged color (1).

    Raises:
        ValueError: `factor` is not in [0, 1].
    """
    _require_fraction("factor", factor)
    r, g, b, a = rgba
    return r * factor, g * factor, b * factor, a


def lighten_rgba(rgba: Rgba, factor: float = 0.15) -> Rgba:
    """Mix with white, from the unchanged color (0) to white (1).

    Raises:
        ValueError: `factor` is not in [0, 1].
    """
    _require_fraction("factor", factor)
    r, g, b = (c + (1.0 - c) * factor for c in rgba[:3])
    return r, g, b, rgba[3]


def adjust_saturation(rgb: Rgb, factor: float) -> Rgb:
    """Multiply the saturation by `factor`, up to a fully saturated color."""
    h, s, v = rgb_to_hsv(rgb)
    return hsv_to_rgb(HSV(h, clamp(s * factor), v))


def _require_fraction(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {value}.")
