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
from manyworlds.lab.page.lines import LineLayer
from manyworlds.lab.page.quantities import axes
from manyworlds.lab.snapshot import Snapshot
from manyworlds.viewer.viser.shapes import SOLID_GEOMS, ShapeLayer, merge_instances

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
OWN = ("collision", "joints", "sites")
"""Overlays that each robot may have or not have whatever the others do."""
AS_ALL, ON, OFF = "as all", "on", "off"
COLORINGS = ("Off", "Island", "Body", "Robot")
"""What bodies may be coloured by."""
_SEE_THROUGH = 0.3
_GRAVITY = 9.81


class OverlayPart:
    """Checkboxes of overlays, and what they draw.

    Args:
        ctx: of the page.
    """

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        model = self._model = ctx.lab.world.model
        self._add_controls(ctx.gui)
        prefixes = ctx.lab.world.robots
        self._entity_of = _owners_of_bodies(model, list(prefixes.values()))
        self._robot_of = _owners_of_bodies(model, [prefixes[robot] for robot in self.own])
        plane = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
        self._colliders = draw.is_collider(model) & ~plane
        self._radius = float(np.clip(0.2 * model.stat.meansize, 0.005, 0.1))
        self._length = float(np.clip(1.5 * model.stat.meansize, 0.04, 0.3))
        self._layer = ShapeLayer(ctx.server, "/over/shapes", model)
        self._wires = self._add_lines("wire", lambda geom: draw.geom_lines(model, geom))
        self._joints = self._add_lines(
            "joint", lambda key: draw.joint_lines(model, key[0], self._length, key[1])
        )
        self._sites = self._add_lines(
            "site", lambda site: draw.site_lines(model, site, self._radius)
        )
        self._future: Future[dict[type, Any]] | None = None
        self._captured: dict[type, Any] = {}
        self._shown = False

    def _add_lines(self, name: str, make: Any) -> LineLayer:
        return LineLayer(self._ctx.server, f"/over/{name}", make)

    def _add_controls(self, gui: Any) -> None:
        ctx, model = self._ctx, self._model
        self.boxes = {name: gui.add_checkbox(label, False) for name, (label, _) in OVERLAYS.items()}
        self.own: dict[str, dict[str, Any]] = {}
        self._folders = {}
        for robot in ctx.robots or ctx.lab.world.robots:
            folder = gui.add_folder(f"Only {robot}", expand_by_default=False, visible=False)
            self._folders[robot] = folder
            with folder:
                self.own[robot] = {
                    name: gui.add_dropdown(OVERLAYS[name][0], (AS_ALL, ON, OFF)) for name in OWN
                }
        self.full_force = gui.add_checkbox(
            "Friction, too", False, hint="Arrows show whole forces, not only what is normal."
        )
        # The weight of the heaviest thing that moves is as long as the longest arrow.
        weight = _GRAVITY * float(model.body_subtreemass[model.body_weldid > 0].max(initial=0.1))
        self.force_scale = gui.add_number(
            "Arrows [mm/N]", float(f"{1000.0 * draw.LONGEST_M / weight:.1g}"), min=0.0, step=0.001
        )
        self.visuals = gui.add_checkbox(
            "Visual shapes", True, hint="Off: only what can touch anything remains."
        )
        self.see_through = gui.add_checkbox("See through", False)
        self.coloring = gui.add_dropdown("Colours by", COLORINGS, hint="Sleeping bodies are dim.")
        names = {model.body(body).name: body for body in range(1, model.nbody)}
        self.follow = gui.add_dropdown("Follow", ("nothing", *names))
        ctx.on_change(self.follow, lambda name: setattr(ctx.view, "follow", names.get(name, 0)))
        with gui.add_folder("Groups of geoms", expand_by_default=False):
            for group, shown in enumerate(ctx.view.grid.groups["geom"]):
                box = gui.add_checkbox(f"Group {group}", shown)
                ctx.on_change(box, lambda on, group=group: ctx.view.show_group(group, on))

    def toggle(self, *names: str) -> None:
        """Switch overlays on, or off if the first of them is on; for all robots."""
        on = not self.boxes[names[0]].value
        for name in names:
            self.boxes[name].value = on
            for own in self.own.values():
                if name in own:
                    own[name].value = AS_ALL

    def toggle_visuals(self) -> None:
        """Show or hide what cannot touch anything."""
        self.visuals.value = not self.visuals.value

    def next_coloring(self) -> None:
        """Colour bodies by the next thing."""
        at = COLORINGS.index(self.coloring.value)
        self.coloring.value = COLORINGS[(at + 1) % len(COLORINGS)]

    @property
    def enabled(self) -> set[str]:
        """Overlays that are on, for one robot at least."""
        on = {name for name, box in self.boxes.items() if box.value}
        return on | {name for name in OWN for own in self.own.values() if own[name].value == ON}

    def update(self, snapshot: Snapshot) -> None:
        """Draw what is on; nothing is copied or computed while all is off."""
        for robot, folder in self._folders.items():
            folder.visible = robot == self._ctx.robot and len(self._folders) > 1
        on, coloring = self.enabled, self.coloring.value
        recolored = coloring != "Off" or not self.visuals.value or self.see_through.value
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
            self._show_lines(snapshot)
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
        found = self._captured
        contacts: Contacts | None = found.get(Contacts)
        if "contact_points" in on and contacts is not None:
            draw.contact_points(drawing, contacts, self._radius)
        if "contact_forces" in on and contacts is not None:
            forces = contacts.forces if self.full_force.value else contacts.along_normals
            scale = self.force_scale.value / 1000.0
            draw.contact_forces(drawing, contacts.positions, forces, scale, self._radius / 4)
        if "tendons" in on and Tendons in found:
            draw.tendons(drawing, self._model, snapshot, found[Tendons])

    def _show_lines(self, snapshot: Snapshot) -> None:
        model, found = self._model, self._captured
        geoms = np.flatnonzero(self._wired())
        quats = draw.quats_of(snapshot.geom_xmat[geoms])
        self._wires.show(geoms.tolist(), snapshot.geom_xpos[geoms], quats)
        ids = np.flatnonzero(self._wanted("sites", model.site_bodyid))
        quats = draw.quats_of(snapshot.site_xmat[ids])
        self._sites.show(ids.tolist(), snapshot.site_xpos[ids], quats)
        ids = np.array(axes(model), int)
        ids = ids[self._wanted("joints", model.jnt_bodyid[ids])]
        joints: Joints | None = found.get(Joints)
        if joints is None:
            joints, ids = Joints(np.zeros((0, 3)), np.zeros((0, 3))), ids[:0]
        self._joints.show(*draw.joint_frames(model, snapshot, joints, ids))

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
        if coloring == "Off" and self.visuals.value:
            rgba = draw.own_colors(model)[geoms]
        elif coloring == "Off":
            rgba = np.array([draw.type_color(kind) for kind in model.geom_type[geoms].tolist()])
        else:
            numbers = {"Body": np.arange(model.nbody), "Robot": self._entity_of}
            island = np.full(model.nbody, -1) if groups_of is None else groups_of.island
            of_body = numbers.get(coloring, island)
            rgba = np.array([draw.id_color(number) for number in of_body[bodies].tolist()])
        rgba = rgba.reshape(-1, 4)
        if self.see_through.value:
            rgba[:, 3] *= _SEE_THROUGH
        if groups_of is not None:
            rgba[~groups_of.awake[bodies], :3] *= 0.4
        draw.solid_geoms(drawing, model, snapshot, geoms, rgba)

    def _wired(self) -> np.ndarray:
        """Which geoms have wires."""
        of_robot = self._robot_of[self._model.geom_bodyid] >= 0
        chosen = self._wanted("collision", self._model.geom_bodyid) & of_robot
        if self.boxes["other_collision"].value:
            chosen |= ~of_robot
        return chosen & self._colliders & np.isin(self._model.geom_type, SOLID_GEOMS)

    def _wanted(self, name: str, bodies: np.ndarray) -> np.ndarray:
        """For which of some bodies an overlay is on: as their robot says, or as all do."""
        on = self.boxes[name].value
        says = {AS_ALL: on, ON: True, OFF: False}
        of_robots = [says[own[name].value] for own in self.own.values()]
        return np.array([*of_robots, on])[self._robot_of[bodies]]  # -1 is of no robot


def _owners_of_bodies(model: mujoco.MjModel, prefixes: list[str]) -> np.ndarray:
    """Which of some prefixes each body's name begins with; -1 for none."""
    numbers = np.full(model.nbody, -1)
    for number, prefix in enumerate(prefixes):
        for body in range(1, model.nbody):
            if model.body(body).name.startswith(prefix):
                numbers[body] = number
    return numbers
