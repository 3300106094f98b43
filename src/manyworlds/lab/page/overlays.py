"""What can be drawn over the world, each with a checkbox and a key."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import mujoco
import numpy as np

from manyworlds.lab.page import drawing as draw
from manyworlds.lab.page.capture import Contacts, Groups, Joints, Tendons, capture
from manyworlds.lab.page.context import PageContext
from manyworlds.lab.page.drawing import Drawing
from manyworlds.lab.page.wires import Wires
from manyworlds.lab.snapshot import Snapshot
from manyworlds.viewer.viser.shapes import ShapeLayer, merge_instances

OVERLAYS: dict[str, tuple[str, type | None]] = {
    "contact_points": ("Contact points", Contacts),
    "contact_forces": ("Contact forces", Contacts),
    "collision": ("Robots' colliders", None),
    "other_collision": ("Other colliders", None),
    "joints": ("Joints", Joints),
    "sites": ("Sites", None),
    "tendons": ("Tendons", Tendons),
}
"""Overlays by name: label, and what must be captured for them."""
COLORINGS = ("Off", "Island", "Body", "Robot")
"""What bodies may be coloured by."""


class OverlayPart:
    """Checkboxes of overlays, and what they draw.

    Args:
        ctx: of the page.
    """

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        model = self._model = ctx.lab.world.model
        gui = ctx.gui
        self.boxes = {name: gui.add_checkbox(label, False) for name, (label, _) in OVERLAYS.items()}
        self.visuals = gui.add_checkbox(
            "Visual shapes", True, hint="Off: only what can touch anything remains."
        )
        self.coloring = gui.add_dropdown("Colours by", COLORINGS, hint="Sleeping bodies are dim.")
        self.selected_only = gui.add_checkbox(
            "Selected robot only", False, visible=len(ctx.robots) > 1
        )
        names = {model.body(body).name: body for body in range(1, model.nbody)}
        self.follow = gui.add_dropdown("Follow", ("nothing", *names))
        ctx.on_change(self.follow, lambda name: setattr(ctx.view, "follow", names.get(name, 0)))
        self._robot_of = _robots_of_bodies(model, ctx.lab.world.robots)
        self._colliders = draw.is_collider(model) & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
        self._radius = float(np.clip(0.15 * model.stat.meansize, 0.004, 0.03))
        self._length = float(np.clip(1.5 * model.stat.meansize, 0.04, 0.3))
        self._layer = ShapeLayer(ctx.server, "/over/shapes", model)
        self._wires = Wires(ctx.server, model)
        self._lines: Any = None
        self._future: Future[dict[type, Any]] | None = None
        self._captured: dict[type, Any] = {}
        self._shown = False

    def toggle(self, *names: str) -> None:
        """Switch overlays on, or off if the first of them is on."""
        on = not self.boxes[names[0]].value
        for name in names:
            self.boxes[name].value = on

    def toggle_visuals(self) -> None:
        """Show or hide what cannot touch anything."""
        self.visuals.value = not self.visuals.value

    def next_coloring(self) -> None:
        """Colour bodies by the next thing."""
        at = COLORINGS.index(self.coloring.value)
        self.coloring.value = COLORINGS[(at + 1) % len(COLORINGS)]

    @property
    def enabled(self) -> set[str]:
        """Overlays that are on."""
        return {name for name, box in self.boxes.items() if box.value}

    def update(self, snapshot: Snapshot) -> None:
        """Draw what is on; nothing is copied or computed while all is off."""
        on, coloring = self.enabled, self.coloring.value
        recolored = coloring != "Off" or not self.visuals.value
        if not (on or recolored or self._shown):
            return
        self._capture({OVERLAYS[name][1] for name in on} | ({Groups} if recolored else set()))
        drawing = Drawing()
        self._draw(drawing, on, snapshot)
        if recolored:
            self._recolor(drawing, coloring, snapshot)
        with self._ctx.server.atomic():
            self._ctx.view.grid.show(not recolored)
            self._layer.show(merge_instances(drawing.shapes))
            self._show_lines(drawing)
            self._wires.show(self._wired(on), snapshot)
        self._shown = bool(on or recolored)

    def _capture(self, kinds: set[Any]) -> None:
        """Ask the engine for what is needed, without waiting; it comes with the next picture."""
        kinds.discard(None)
        if self._future is not None:
            if not self._future.done():
                return
            self._captured = self._future.result()
            self._future = None
        if kinds:
            self._future = self._ctx.lab.post(lambda model, data: capture(model, data, kinds))

    def _draw(self, drawing: Drawing, on: set[str], snapshot: Snapshot) -> None:
        model, found = self._model, self._captured
        if "contact_points" in on and Contacts in found:
            draw.contact_points(drawing, found[Contacts], self._radius)
        if "contact_forces" in on and Contacts in found:
            draw.contact_forces(drawing, found[Contacts], self._radius)
        if "joints" in on and Joints in found:
            ids = np.flatnonzero(self._wanted(model.jnt_bodyid))
            draw.joint_axes(drawing, model, snapshot, found[Joints], ids, self._length)
        if "sites" in on:
            draw.sites(drawing, model, snapshot, np.flatnonzero(self._wanted(model.site_bodyid)))
        if "tendons" in on and Tendons in found:
            draw.tendons(drawing, model, snapshot, found[Tendons])

    def _recolor(self, drawing: Drawing, coloring: str, snapshot: Snapshot) -> None:
        """Draw geoms in the colours of what was chosen, in the place of their own."""
        model = self._model
        if self.visuals.value:
            groups = np.array(self._ctx.view.grid.groups["geom"])
            shown = groups[model.geom_group] & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
        else:
            shown = self._colliders
        geoms = np.flatnonzero(shown)
        bodies = model.geom_bodyid[geoms]
        groups_of: Groups | None = self._captured.get(Groups)
        if coloring == "Off":
            rgba = np.array([draw.type_color(kind) for kind in model.geom_type[geoms].tolist()])
        else:
            numbers = {"Body": np.arange(model.nbody), "Robot": self._robot_of}
            island = np.full(model.nbody, -1) if groups_of is None else groups_of.island
            of_body = numbers.get(coloring, island)
            rgba = np.array([draw.id_color(number) for number in of_body[bodies].tolist()])
        rgba = rgba.reshape(-1, 4)
        if groups_of is not None:
            rgba[~groups_of.awake[bodies], :3] *= 0.4
        draw.solid_geoms(drawing, model, snapshot, geoms, rgba)

    def _wired(self, on: set[str]) -> np.ndarray:
        of_robot = self._robot_of[self._model.geom_bodyid] >= 0
        chosen = np.zeros(self._model.ngeom, bool)
        if "collision" in on:
            chosen |= of_robot & self._wanted(self._model.geom_bodyid)
        if "other_collision" in on:
            chosen |= ~of_robot
        return np.flatnonzero(chosen & self._colliders)

    def _wanted(self, bodies: np.ndarray) -> np.ndarray:
        """Which of some bodies belong to the robot whose overlays are shown."""
        if not self.selected_only.value:
            return np.ones(len(bodies), bool)
        number = list(self._ctx.lab.world.robots).index(self._ctx.robot)
        return self._robot_of[bodies] == number

    def _show_lines(self, drawing: Drawing) -> None:
        points = np.concatenate(drawing.lines) if drawing.lines else np.zeros((0, 2, 3))
        if self._lines is None:
            if not len(points):
                return
            self._lines = self._ctx.server.scene.add_line_segments(
                "/over/lines",
                points=points.astype(np.float32),
                colors=_line_colors(drawing),
                thickness=2.0,
                thickness_units="screen",
            )
        self._lines.visible = bool(len(points))
        if len(points):
            self._lines.points = points.astype(np.float32)
            self._lines.colors = _line_colors(drawing)


def _line_colors(drawing: Drawing) -> np.ndarray:
    return np.repeat(np.concatenate(drawing.colors)[:, None], 2, axis=1)


def _robots_of_bodies(model: mujoco.MjModel, robots: dict[str, str]) -> np.ndarray:
    """The number of the robot that each body belongs to; -1 for none."""
    numbers = np.full(model.nbody, -1)
    for number, prefix in enumerate(robots.values()):
        for body in range(1, model.nbody):
            if model.body(body).name.startswith(prefix):
                numbers[body] = number
    return numbers
