"""What is selected, tinted in the view, with its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import mujoco
import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.viewer.browser.layout import box_around
from manyworlds.viewer.browser.overlays import shapes as draw
from manyworlds.viewer.browser.shapes import (
    Instances,
    ShapeLayer,
    compose,
    merge_instances,
    rotate,
)

if TYPE_CHECKING:
    from manyworlds.viewer.browser.overlays.shapes import Poses

_TINT = (1.0, 0.55, 0.0, 0.5)
_LARGER = 1.01  # size of the tint by that of the geom, so that both can be told apart
_FLAT = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD))


class SelectionPart(PagePart):
    """Tints the selected bodies, or the selected geom, and shows the name."""

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self.renew()

    def renew(self) -> list[str]:
        """Draw in the new scene."""
        ctx = self._ctx
        self._key: tuple[object, ...] = ()
        self.geoms: list[int] = []
        """Geoms that are tinted."""
        self.layer = ShapeLayer(ctx.server, "/over/selection", ctx.lab.model)
        self.label = ctx.server.scene.add_label(
            "/over/selection_name", "", anchor="bottom-center", visible=False
        )
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Draw the tint and the name where the selection is now."""
        ctx = self._ctx
        key = (*ctx.bodies, ctx.part, *ctx.view.grid.groups["geom"])
        if key != self._key:
            self._key = key
            self.geoms = self._selected()
        if not (self.geoms or self.label.visible):
            return
        poses = cast("Poses", snapshot)  # its fields are those of `mujoco.MjData`
        geoms = np.array(self.geoms, int)
        drawing = draw.Drawing()
        draw.solid_geoms(drawing, ctx.lab.model, poses, geoms, np.tile(_TINT, (len(geoms), 1)))
        for _, instances in drawing.shapes:
            instances.scales = _LARGER * instances.scales
            if ctx.moved is not None:
                _move(instances, *ctx.moved)
        self.layer.show(merge_instances(drawing.shapes))
        self.label.visible = bool(ctx.body)
        if ctx.body:
            self.label.text = ctx.part.partition(":")[2] or ctx.selected_name
            self.label.position = self._top(snapshot)

    def _selected(self) -> list[int]:
        """Return the solid geoms that are selected and drawn."""
        ctx = self._ctx
        model = ctx.lab.model
        kind, _, name = ctx.part.partition(":")
        drawn = [g for g in ctx.view.grid.drawn_geoms if model.geom_type[g] not in _FLAT]
        if kind == "geom":
            return [geom for geom in drawn if model.geom(geom).name == name]
        return [geom for geom in drawn if int(model.geom_bodyid[geom]) in ctx.bodies]

    def _top(self, snapshot: Snapshot) -> np.ndarray:
        """Return the place of the name, above the selection [m], shape (3,)."""
        if not self.geoms:
            return snapshot.xpos[self._ctx.body]
        box = box_around(self._ctx.lab.model, self.geoms, snapshot.geom_xpos, snapshot.geom_xmat)
        return np.array([*box.mean(axis=0)[:2], box[1, 2]])


def _move(
    instances: Instances,
    pos: np.ndarray,
    quat: np.ndarray,
    new_pos: np.ndarray,
    new_quat: np.ndarray,
) -> None:
    """Move shapes as rigidly as a handle was moved from one pose to another."""
    back = (quat * (1.0, -1.0, -1.0, -1.0))[None]
    local = rotate(back, instances.positions - pos)
    _, turned = compose(
        instances.positions, np.repeat(back, len(local), 0), local, instances.quaternions
    )
    handle = np.repeat(new_quat[None], len(local), 0)
    instances.positions, instances.quaternions = compose(new_pos[None], handle, local, turned)
