"""How a viewer looks at the worlds."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(kw_only=True)
class ViewerConfig:
    """Camera, resolution and what to draw."""

    class OriginType(enum.Enum):
        """What the camera looks at."""

        AUTO = enum.auto()
        """The named entity's body if there is one, else the world."""
        WORLD = enum.auto()
        """The point `lookat` in the world."""
        ASSET_ROOT = enum.auto()
        """The root body of `entity_name`."""
        ASSET_BODY = enum.auto()
        """The body `body_name` of `entity_name`."""

    origin_type: OriginType = OriginType.AUTO
    height: int = 240
    """Image height [pixels]."""
    width: int = 320
    """Image width [pixels]."""
    enable_reflections: bool = True
    enable_shadows: bool = True
    geom_group: tuple[int, int, int, int, int, int] = (1, 1, 1, 0, 0, 0)
    """Which geom groups are drawn."""
    site_group: tuple[int, int, int, int, int, int] = (1, 1, 1, 0, 0, 0)
    """Which site groups are drawn."""
    env_idx: int = 0
    """The world to show first."""
    max_extra_envs: int = 2
    """How many of the nearest other worlds pictures and MuJoCo's window show, too."""
    reward_bar_max_terms: int = 20
    """How many reward terms the browser shows bars for."""
    distance: float = 5.0
    """Distance from the camera to what it looks at [m]."""
    elevation: float = -45.0
    """Camera elevation [degrees]."""
    azimuth: float = 90.0
    """Camera azimuth [degrees]."""
    fovy: float | None = None
    """Vertical field of view [degrees]; None keeps the model's."""
    lookat: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The point to look at, in the world or relative to the body [m]."""
    entity_name: str | None = None
    body_name: str | None = None
