"""Handles that move mocap bodies."""

from __future__ import annotations

from functools import partial

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.gizmos import add_gizmo
from manyworlds.lab.page.page_context import PageContext, PagePart


class MocapPart(PagePart):
    """A handle at each mocap body; the body follows it at the next step."""

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        model = ctx.lab.model
        self._held: set[int] = set()
        self.box = ctx.gui.add_checkbox(
            "Mocap handles", False, visible=model.nmocap > 0, hint="Drag them to move mocap bodies."
        )
        self._add_handles()

    def _add_handles(self) -> None:
        self.handles = []
        for mocap in range(self._ctx.lab.model.nmocap):
            hold = partial(self.hold, mocap)
            self.handles.append(add_gizmo(self._ctx, f"mocap_{mocap}", (0.1, 0.5), hold))

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

    def hold(self, mocap: int, phase: str, position: np.ndarray, quat: np.ndarray) -> None:
        """Handle an event of a drag of the handle of a mocap body; see `gizmos.Hold`."""
        if phase == "end":
            self._held.discard(mocap)
        else:
            self._held.add(mocap)
        body = int(np.flatnonzero(self._ctx.lab.model.body_mocapid == mocap)[0])
        self._ctx.verbs.set_mocap_pose(body=body, pos=position, quat=quat)
