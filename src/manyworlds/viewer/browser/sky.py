"""Sky of a page, into which what is far away fades."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import viser

REACH = 60.0
"""Distance at which the floor has faded into the sky, relative to the size of the worlds shown."""
_CLEAR = 0.2  # share of that distance without fog
_HAZE = (227, 233, 240)
_ZENITH = (170, 198, 226)
_HEIGHT_PX = 256
_HORIZON = 0.45  # share of the picture's height that is more than haze


def add_sky(server: viser.ViserServer, size: float) -> None:
    """Draw a sky, and fog of its lowest color.

    Args:
        server: server of the page.
        size: size of all worlds shown, with what is around them [m].
    """
    height = np.clip(1.0 - np.linspace(0.0, 1.0 / _HORIZON, _HEIGHT_PX), 0.0, 1.0)
    color = np.outer(height, _ZENITH) + np.outer(1.0 - height, _HAZE)
    image = np.repeat(color.round().astype(np.uint8)[:, None], 4, axis=1)
    server.scene.set_background_image(image, format="png")
    far = REACH * size
    server.scene.configure_fog(_CLEAR * far, far, color=_HAZE)
