"""Lights that were added to the scene, in the view of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.scene.items import ADDED_LIGHT

if TYPE_CHECKING:
    import viser

_DISTANCE = 10.0  # of a light from afar to the origin, at which it is aimed [m]
_INTENSITY = {"directional": 1.0, "spot": 20.0}
_BYTE = 255.0


class SceneLightsPart(PagePart):
    """Draws the lights that were added; those of model files are made for MuJoCo's renderer."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._version = -1
        self.handles: dict[str, viser.SceneNodeHandle] = {}
        """Lights in the view, by name."""

    def renew(self) -> list[str]:
        """Draw the lights of the new world."""
        self.handles.clear()
        self._version = -1
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Draw the lights again if the model has changed."""
        if snapshot.model_version == self._version:
            return
        self._version = snapshot.model_version
        reply = self._ctx.verbs.list_items()
        added = [item for item in reply["items"] if item["source"] == ADDED_LIGHT]
        for handle in self.handles.values():
            handle.remove()
        self.handles.clear()
        model = self._ctx.lab.model
        for light in range(model.nlight):
            name = model.light(light).name
            if any(
                name == i["name"] or (i["prefix"] and name.startswith(i["prefix"])) for i in added
            ):
                self.handles[name] = self._draw(model, light)

    def _draw(self, model: mujoco.MjModel, light: int) -> viser.SceneNodeHandle:
        scene = self._ctx.server.scene
        node = f"/over/lights/{light}"
        red, green, blue = (_BYTE * np.clip(model.light_diffuse[light], 0.0, 1.0)).astype(int)
        color = int(red), int(green), int(blue)
        direction = model.light_dir[light]
        if model.light_type[light] == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL:
            return scene.add_light_directional(
                node,
                color=color,
                intensity=_INTENSITY["directional"],
                position=tuple(-_DISTANCE * direction),
            )
        return scene.add_light_spot(
            node,
            color=color,
            intensity=_INTENSITY["spot"],
            angle=float(np.deg2rad(model.light_cutoff[light])),
            direction=tuple(direction),
            position=tuple(model.light_pos[light]),
        )
