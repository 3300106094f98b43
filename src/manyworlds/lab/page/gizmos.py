"""Gizmos in the view, which move and turn what they are at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.lab.page.page_context import PageContext

if TYPE_CHECKING:
    import viser

Hold = Callable[[str, np.ndarray, np.ndarray], object]
"""Takes an event of a drag: the phase `start`, `update` or `end`, the position of the gizmo [m],
shape [3], and its orientation (wxyz), shape [4]."""


def add_gizmo(
    ctx: PageContext, name: str, sizes: tuple[float, float], hold: Hold
) -> viser.TransformControlsHandle:
    """Add a gizmo, which is not visible yet.

    Args:
        ctx: context of the page.
        name: name of its node in the scene.
        sizes: smallest and largest size [m]; in between, it depends on the bodies of the model.
        hold: called with each event of a drag.
    """
    size = float(np.clip(2.0 * ctx.lab.model.stat.meansize, *sizes))
    handle = ctx.server.scene.add_transform_controls(
        f"/over/{name}", scale=size, depth_test=False, visible=False
    )

    @handle.on_update
    async def _(event: viser.TransformControlsEvent) -> None:
        # A coroutine, so that the moves of one drag keep their order.
        position = np.array(handle.position)
        quat = np.array(handle.wxyz)
        ctx.attempt(lambda: hold(event.phase, position, quat))

    return handle
