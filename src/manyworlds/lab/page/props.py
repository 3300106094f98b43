"""Props and sampled height fields on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import KeptPart, PageContext, PagePart
from manyworlds.lab.page.placing import Place, Placing
from manyworlds.lab.page.verb_form import VerbForm
from manyworlds.spec.mesh_files import MESH_SUFFIXES
from manyworlds.spec.prop_choices import Primitive
from manyworlds.viewer.browser.markup import note_html

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.verb_methods import ReadConversionReply

SIZES: dict[Primitive, tuple[float, ...]] = {
    "box": (0.1, 0.1, 0.1),
    "sphere": (0.1,),
    "capsule": (0.05, 0.1),
    "cylinder": (0.1, 0.1),
    "ellipsoid": (0.1, 0.1, 0.05),
}
"""Sizes of new primitives as in MuJoCo [m]."""
_MESH_TYPES = ",".join(MESH_SUFFIXES)
_GRID = (40, 110, 220)
_CAPPED = (220, 40, 40)
_ABOVE = 0.01  # height of a preview above the surface that it shows [m]


class PropPart(KeptPart):
    """Adds primitives, and meshes that are uploaded or on the machine of the lab."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._conversion = -1
        gui = ctx.gui
        with gui.add_folder("Add prop", expand_by_default=False):
            self.name = gui.add_text("Name", "", hint="Empty: that of the shape or file.")
            self.form = VerbForm(ctx, "add_prop")
            self.form.add("mode")
            self.mass = self.form.add("mass")
            self.placing = Placing(ctx, lambda add: ctx.attempt_at(self.outcome, add))
            self.shape = gui.add_dropdown("Shape", tuple(SIZES))
            self.scale = gui.add_number("Scale", 1.0, min=1e-6, hint="Factor of sizes and meshes.")
            self.add_shape = self._add_button("Add shape", self._add_shape)
            self.decompose = gui.add_checkbox(
                "Decompose", True, hint="Cut meshes into convex pieces, which collide."
            )
            self.threshold = gui.add_slider(
                "Threshold", 0.01, 1.0, 0.01, 0.05, hint="Lower values give more pieces."
            )
            self.upload = gui.add_upload_button("Upload mesh", mime_type=_MESH_TYPES)
            self.upload.on_upload(lambda _: self._put(self._add_upload))
            self.path = gui.add_text("Mesh file", "", hint="Path on the machine of the lab.")
            self.add_file = self._add_button("Add mesh file", self._add_file)
            self.progress = gui.add_progress_bar(0.0, visible=False)
            self.cancel = ctx.add_button("Cancel", self._cancel)
            self.cancel.visible = False
            self.outcome = gui.add_html("")

    def update(self, snapshot: Snapshot) -> None:
        """Show the progress of a conversion."""
        if self._conversion < 0:
            return
        self._show(self._ctx.verbs.read_conversion(conversion=self._conversion))

    def _add_button(self, label: str, add: Callable[[Place], str]) -> viser.GuiButtonHandle:
        button = self._ctx.gui.add_button(label)
        button.on_click(lambda _: self._put(add))
        return button

    def _put(self, add: Callable[[Place], str]) -> None:
        self._ctx.attempt_at(self.outcome, lambda: self.placing.put(add))

    def _of_mesh(self, place: Place) -> dict[str, Any]:
        threshold = self.threshold.value if self.decompose.value else 0.0
        own = {"threshold": threshold, "scale": [self.scale.value], "wait": False}
        return {"name": self.name.value.strip(), **self.form.values(), **own, **place}

    def _add_shape(self, place: Place) -> str:
        shape = self.shape.value
        size = [self.scale.value * length for length in SIZES[shape]]
        fields = {"name": self.name.value.strip() or shape, **self.form.values(), **place}
        return self._show(self._ctx.verbs.add_prop(shape=shape, size=size, **fields))

    def _add_upload(self, place: Place) -> str:
        file = self.upload.value
        fields = self._of_mesh(place)
        add = self._ctx.verbs.add_mesh_prop
        return self._start(lambda: add(content=file.content, file_name=file.name, **fields))

    def _add_file(self, place: Place) -> str:
        path = self.path.value.strip()
        fields = self._of_mesh(place)
        return self._start(lambda: self._ctx.verbs.add_mesh_prop_from_file(path=path, **fields))

    def _start(self, convert: Callable[[], ReadConversionReply]) -> str:
        if self._conversion >= 0:
            raise RuntimeError("A mesh is being converted: wait, or cancel it.")
        return self._show(convert())

    def _cancel(self) -> None:
        if self._conversion >= 0:
            self._show(self._ctx.verbs.cancel_conversion(conversion=self._conversion))

    def _show(self, conversion: ReadConversionReply) -> str:
        """Show the state of a conversion; return it as a sentence."""
        running = conversion["state"] == "running"
        self._conversion = conversion["conversion"] if running else -1
        self.progress.visible = self.cancel.visible = running
        self.progress.value = 100.0 * conversion["share"]
        text = conversion["text"]
        name = conversion["name"]
        if running:
            text = f"'{name}' is being converted."
        elif conversion["state"] == "done":
            pieces = conversion["pieces"]
            of = f" with {pieces} convex pieces" if pieces else ""
            text = f"'{name}' is in the world{of}. {text}".strip()
        self.outcome.content = note_html(text, error=conversion["state"] == "failed")
        return text


class HeightFieldPart(PagePart):
    """Samples a region of the world, shows the samples as a grid, and adds a height field."""

    period = 1.0

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._grid: list[viser.LineSegmentsHandle] = []
        gui = ctx.gui
        with gui.add_folder("Sample height field", expand_by_default=False):
            self.form = VerbForm(ctx, "read_region_heights")
            added = VerbForm(ctx, "add_height_field")
            self.name = added.add("name")
            self.center = self.form.add("center")
            self.size = gui.add_vector2("Size [m]", (10.0, 10.0), min=(0.01, 0.01), step=0.1)
            self.resolution = gui.add_vector2(
                "Samples", (64, 64), min=(2, 2), max=(512, 512), step=1
            )
            self.form.add("fill")
            self.form.add("exclude", "Leave out")
            self.base = added.add("base_thickness", "Base", slider=True)
            self.preview = ctx.add_button("Preview", self._preview)
            self.add = ctx.add_button("Add height field", self._add)
            self.outcome = gui.add_html("")

    def renew(self) -> list[str]:
        """Keep all settings; the preview is gone with the drawing of the world before."""
        self._grid.clear()
        return []

    def _fields(self) -> dict[str, Any]:
        resolution = [round(count) for count in self.resolution.value]
        return {**self.form.values(), "size": self.size.value, "resolution": resolution}

    def _preview(self) -> None:
        reply = self._ctx.verbs.read_region_heights(**self._fields())
        num_x, num_y = (int(count) for count in reply["counts"])
        x, y = self.center.value
        width, length = self.size.value
        points = np.empty((num_y, num_x, 3))
        points[..., 0] = np.linspace(x - width / 2, x + width / 2, num_x)
        points[..., 1] = np.linspace(y - length / 2, y + length / 2, num_y)[:, None]
        points[..., 2] = np.reshape(reply["heights"], (num_y, num_x)) + _ABOVE
        self._clear()
        self._draw("grid", grid_lines(points), _GRID)
        if reply["capped"]:
            corners = points[[0, -1, 0, -1], [0, -1, -1, 0]].reshape(2, 2, 3)
            self._draw("cross", corners, _CAPPED)
        told = f"{num_x} x {num_y} samples are shown."
        if reply["capped"]:
            told += " The field has more samples than are shown."
        self.outcome.content = note_html(told)

    def _add(self) -> None:
        self._clear()
        reply = self._ctx.verbs.add_height_field(
            **self._fields(),
            base_thickness=self.base.value,
            name=self.name.value.strip() or "terrain",
        )
        self.outcome.content = note_html(f"'{reply['name']}' is in the world.")

    def _draw(self, name: str, lines: np.ndarray, color: tuple[int, int, int]) -> None:
        self._grid.append(
            self._ctx.server.scene.add_line_segments(
                f"/height_field/{name}", lines.astype(np.float32), color
            )
        )

    def _clear(self) -> None:
        for handle in self._grid:
            handle.remove()
        self._grid.clear()


def grid_lines(points: np.ndarray) -> np.ndarray:
    """Return lines between neighbors of a grid [m], shape [num_lines, 2, 3].

    Args:
        points: the points [m], shape [num_y, num_x, 3].
    """
    along_x = np.stack([points[:, :-1], points[:, 1:]], axis=2)
    along_y = np.stack([points[:-1], points[1:]], axis=2)
    return np.concatenate([along_x.reshape(-1, 2, 3), along_y.reshape(-1, 2, 3)])
