"""Camera and display options of viewers."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(kw_only=True)
class ViewerConfig:
    """Camera, resolution, and visible elements."""

    class OriginType(enum.Enum):
        """Object that the camera looks at."""

        AUTO = enum.auto()
        """The body of the named entity if there is one, else the world."""
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
    """Visibility of each geom group."""
    site_group: tuple[int, int, int, int, int, int] = (1, 1, 1, 0, 0, 0)
    """Visibility of each site group."""
    env_idx: int = 0
    """Index of the world to show first."""
    max_extra_envs: int = 2
    """Number of nearest other worlds that images and MuJoCo's window also show."""
    reward_bar_max_terms: int = 20
    """Maximum number of reward terms with bars in the browser."""
    distance: float = 5.0
    """Distance from the camera to its target [m]."""
    elevation: float = -45.0
    """Camera elevation [degrees]."""
    azimuth: float = 90.0
    """Camera azimuth [degrees]."""
    fovy: float | None = None
    """Vertical field of view [degrees]; None keeps the model's."""
    world_size: float | None = None
    """Width of the square around a world's origin in which its bodies move, which pages leave free
    of other worlds [m]; None takes the size of the initial state."""
    lookat: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Point to look at, in the world frame or relative to the body [m]."""
    entity_name: str | None = None
    body_name: str | None = None
