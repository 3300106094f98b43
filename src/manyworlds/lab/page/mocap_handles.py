"""Handles that move mocap bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext

if TYPE_CHECKING:
    import viser


class MocapPart:
    """A handle at each mocap body; the body follows it at the next step.

    Args:
        ctx: context of the page.
    """

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        model = ctx.lab.world.model
        self._held: set[int] = set()
        self.box = ctx.gui.add_checkbox(
            "Mocap handles", False, visible=model.nmocap > 0, hint="Drag them to move mocap bodies."
        )
        self._add_handles()

    def _add_handles(self) -> None:
        model = self._ctx.lab.world.model
        size = float(np.clip(2.0 * model.stat.meansize, 0.1, 0.5))
        self.handles = [self._add(i, size) for i in range(model.nmocap)]

    def renew(self) -> list[str]:
        """Add handles for the mocap bodies of the new world."""
        self._held.clear()
        self._add_handles()
        self.box.visible = bool(self.handles)
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Put the handles where the bodies are, except those that a user holds."""
        for i, handle in enumerate(self.handles):
            handle.visible = self.box.value
            if self.box.value and i not in self._held:
                handle.position = snapshot.mocap_pos[i]
                handle.wxyz = snapshot.mocap_quat[i]

    def _add(self, mocap: int, size: float) -> viser.TransformControlsHandle:
        handle = self._ctx.server.scene.add_transform_controls(
            f"/over/mocap_{mocap}", scale=size, depth_test=False, visible=False
        )

        @handle.on_update
        async def _(event: viser.TransformControlsEvent) -> None:
            # A coroutine, so that the moves of one drag keep their order.
            pose = np.array(handle.position), np.array(handle.wxyz)
            self._ctx.attempt(lambda: self.hold(mocap, event.phase, *pose))

        return handle

    def hold(self, mocap: int, phase: str, position: np.ndarray, quat: np.ndarray) -> None:
        """Handle an event of a drag.

        Args:
            mocap: index of the mocap body.
            phase: `start`, `update` or `end`.
            position: position of the handle [m], shape [3].
            quat: orientation of the handle (wxyz), shape [4].
        """
        (self._held.discard if phase == "end" else self._held.add)(mocap)
        body = int(np.flatnonzero(self._ctx.lab.world.model.body_mocapid == mocap)[0])
        self._ctx.verbs.set_mocap_pose(body=body, pos=position, quat=quat)
