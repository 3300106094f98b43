"""Controls of overlays: an icon each, and keys for some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import mujoco
import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.viewer.browser.icon_row import Icon, IconRow
from manyworlds.viewer.browser.keys import KEYS
from manyworlds.viewer.browser.overlays import shapes as draw
from manyworlds.viewer.browser.overlays.captures import Capture, CapturedGroups
from manyworlds.viewer.browser.overlays.mujoco_visuals import MujocoOverlays
from manyworlds.viewer.browser.overlays.table import FLAGS, FRAMES, OVERLAYS, overlay_icons
from manyworlds.viewer.browser.overlays.world import (
    CAPTURES,
    Selection,
    WorldOverlays,
    default_force_scale,
    wired_geoms,
)
from manyworlds.viewer.browser.widgets import Section, add_number
from manyworlds.viewer.model_sync import copy_model_fields
from manyworlds.viewer.world_mirror import WorldMirror

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.world_mirror import WorldState

OWN = ("collision", "joints", "sites")
"""Overlays that each robot can switch by itself."""
AS_ALL = "same as all"
ON = "on"
OFF = "off"
_CHOICES: tuple[str, ...] = (AS_ALL, ON, OFF)
COLORINGS = ("Off", "Island", "Body", "Robot")
"""Properties by which bodies can be colored."""
_VISUALS = Icon("photo", "Visual geoms", KEYS["visuals"].keys[0])
_TRANSPARENT = Icon("droplet-half", "Transparent")
_NOTHING: tuple[str, ...] = ("nothing",)
_SEE_THROUGH = 0.3
_MOST_MM_PER_N = 1e6


class OverlayPart(PagePart):
    """Overlays of the world, with their controls."""

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._add_controls(ctx.gui)
        self._bind()

    def _bind(self) -> None:
        """Show the choices that depend on the world, and prepare the drawing of its overlays."""
        ctx = self._ctx
        model = self._model = ctx.lab.model
        self._add_robots(ctx.gui)
        self._names = [*_NOTHING, *ctx.view.labels[1:]]
        self._following = ctx.view.follow
        self.follow.options = tuple(self._names)
        self.follow.value = self._names[self._following]
        owners = ctx.lab.elements.owners["body"]
        self._entity_of = _numbers(owners, list(ctx.lab.elements.robots))
        self._robot_of = _numbers(owners, list(self.own))
        plane = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
        self._colliders = draw.is_collider(model) & ~plane
        self.overlays = WorldOverlays(ctx.server, model, "/over")
        self._mirror = WorldMirror(model)
        self.mujoco = MujocoOverlays(ctx.server, self._mirror, "/over/mujoco")
        self._model_version = ctx.lab.snapshot.model_version
        self._captured: dict[type[Capture], Capture] = {}
        self._shown = False

    def _add_controls(self, gui: viser.GuiApi) -> None:
        ctx = self._ctx
        model = self._ctx.lab.model
        tendons = ("tendons",) * bool(model.ntendon)  # as MuJoCo draws them
        icons = {"visuals": _VISUALS, "see_through": _TRANSPARENT} | overlay_icons()
        switches = dict(IconRow(gui, "switch", icons, ("visuals", *tendons)).switches)
        self.switches = switches.copy()
        """All switches of the row of icons, by name."""
        ctx.answers["switch"] = self._answer
        self.visuals = switches.pop("visuals")
        self.see_through = switches.pop("see_through")
        self.boxes = switches
        """Switches of the overlays, by name."""
        self.frames = gui.add_dropdown("Frames", tuple(FRAMES))
        self.own: dict[str, dict[str, viser.GuiDropdownHandle[str]]] = {}
        self._robots = Section(gui)
        self.full_force = gui.add_checkbox(
            "Include friction forces",
            False,
            hint="Arrows show the total force instead of its normal part.",
        )
        self._scale = _force_scale(model)
        self.force_scale = add_number(
            gui, "Arrow length [mm/N]", self._scale, min=0.0, max=_MOST_MM_PER_N, step=0.001
        )
        ctx.on_change(self.force_scale, lambda value: None)  # keeps it within its bounds
        self.coloring = gui.add_dropdown("Color by", COLORINGS, hint="Sleeping bodies are dim.")
        self.follow = gui.add_dropdown("Follow", _NOTHING)
        ctx.on_change(self.follow, lambda name: self._follow(self._names.index(name)))
        with gui.add_folder("Geom groups", expand_by_default=False):
            for group, shown in enumerate(ctx.view.grid.groups["geom"]):
                box = gui.add_checkbox(f"Group {group}", shown)
                ctx.on_change(box, lambda on, group=group: ctx.view.show_group(group, on))

    def _add_robots(self, gui: viser.GuiApi) -> None:
        """Add the choices of each robot; robots of the same name keep theirs."""
        ctx = self._ctx
        before = self.own
        self.own = {}
        self._folders = {}
        with self._robots.empty():
            for robot in ctx.robots or ctx.lab.elements.robots:
                folder = gui.add_folder(f"Only {robot}", expand_by_default=False, visible=False)
                self._folders[robot] = folder
                self.own[robot] = {}
                for name in OWN:
                    with folder:
                        choice = gui.add_dropdown(OVERLAYS[name], _CHOICES)
                    if robot in before:
                        choice.value = before[robot][name].value
                    self.own[robot][name] = choice

    def renew(self) -> list[str]:
        """Draw the overlays of the new world; those that are on stay on."""
        scale = _force_scale(self._ctx.lab.model)
        if self.force_scale.value == self._scale:  # no user has changed it
            self.force_scale.value = scale
        self._scale = scale
        self._bind()
        return []

    def _follow(self, body: int) -> None:
        self._following = self._ctx.view.follow = body

    def _answer(self, browser: str, message: dict[str, Any]) -> dict[str, object]:
        """Switch what was clicked in a browser.

        Args:
            browser: name of the browser.
            message: `name` of the switch.
        """
        switch = self.switches[str(message["name"])]
        switch.value = not switch.value
        return {}

    def toggle(self, *names: str) -> None:
        """Switch overlays on, or off if the first of them is on, for all robots."""
        on = not self.boxes[names[0]].value
        for name in names:
            self.boxes[name].value = on
            for own in self.own.values():
                if name in own:
                    own[name].value = AS_ALL

    def toggle_visuals(self) -> None:
        """Show or hide the geoms that cannot collide."""
        self.visuals.value = not self.visuals.value

    def next_coloring(self) -> None:
        """Color bodies by the next property of the list."""
        at = COLORINGS.index(self.coloring.value)
        self.coloring.value = COLORINGS[(at + 1) % len(COLORINGS)]

    @property
    def enabled(self) -> set[str]:
        """Names of the overlays that are on for at least one robot."""
        on = {name for name, box in self.boxes.items() if box.value}
        return on | {name for name in OWN for own in self.own.values() if own[name].value == ON}

    def update(self, snapshot: Snapshot) -> None:
        """Draw the overlays that are on; nothing is copied or computed while all are off."""
        if self._ctx.view.follow != self._following:  # the program has changed it
            self._following = self._ctx.view.follow
            self.follow.value = self._names[self._following]
        for robot, folder in self._folders.items():
            folder.visible = robot == self._ctx.robot and len(self._folders) > 1
        self._show_mujoco(snapshot)
        on = self.enabled - FLAGS.keys()
        coloring = self.coloring.value
        recolored = coloring != "Off" or not self.visuals.value or self.see_through.value
        if not (on or recolored or self._shown):
            return
        kinds = {CAPTURES[name] for name in on & CAPTURES.keys()}
        self._capture(kinds | ({CapturedGroups} if recolored else set()))
        poses = cast("draw.Poses", snapshot)  # its fields are those of `mujoco.MjData`
        drawing = draw.Drawing()
        if recolored:
            self._recolor(drawing, coloring, poses)
        with self._ctx.server.atomic():
            self._ctx.view.grid.show(not recolored)
            self.overlays.show(poses, self._captured, self._selection(on), drawing.shapes)
        self._shown = bool(on or recolored)

    def _show_mujoco(self, snapshot: Snapshot) -> None:
        """Draw the overlays of MuJoCo's visualizer that are on."""
        option = self.mujoco.option
        option.frame = FRAMES[self.frames.value]
        for name, flag in FLAGS.items():
            option.flags[flag] = self.boxes[name].value
        if self.mujoco.enabled:
            if snapshot.model_version != self._model_version:
                self._model_version = snapshot.model_version
                copy_model_fields(self._mirror.model, self._model)
            self._mirror.pose(cast("WorldState", snapshot))
        self.mujoco.show(np.zeros(3))

    def _capture(self, kinds: set[type[Capture]]) -> None:
        """Read captures from the lab."""
        self._captured = {}
        if kinds:
            names = {kind.name: kind for kind in kinds}
            reply = self._ctx.verbs.read_captures(kinds=[*names])
            captures = reply["captures"].items()
            self._captured = {names[name]: names[name](**arrays) for name, arrays in captures}

    def _selection(self, on: set[str]) -> Selection:
        model = self._model
        joints = draw.hinges_and_slides(model)
        return Selection(
            contact_points="contact_points" in on,
            contact_forces="contact_forces" in on,
            friction=self.full_force.value,
            force_scale=self.force_scale.value / 1000.0,
            tendons="tendons" in on,
            wireframes=self._wired(on),
            joints=joints[self._wanted("joints", model.jnt_bodyid[joints])],
            sites=np.flatnonzero(self._wanted("sites", model.site_bodyid)),
        )

    def _recolor(self, drawing: draw.Drawing, coloring: str, poses: draw.Poses) -> None:
        """Draw geoms in the chosen colors instead of their own."""
        model = self._model
        if self.visuals.value:
            groups = np.array(self._ctx.view.grid.groups["geom"])
            shown = groups[model.geom_group] & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
        else:
            shown = self._colliders
        geoms = np.flatnonzero(shown)
        bodies = model.geom_bodyid[geoms]
        captured = self._captured.get(CapturedGroups)
        groups_of = captured if isinstance(captured, CapturedGroups) else None
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
        draw.solid_geoms(drawing, model, poses, geoms, rgba)

    def _wired(self, on: set[str]) -> np.ndarray:
        """Return the geoms that have a wireframe, shape [n]."""
        of_robot = self._robot_of >= 0
        bodies = self._wanted("collision", np.arange(self._model.nbody)) & of_robot
        if self.boxes["other_collision"].value:
            bodies |= ~of_robot
        return wired_geoms(self._model, bodies, "convex_hulls" in on)

    def _wanted(self, name: str, bodies: np.ndarray) -> np.ndarray:
        """Return a mask of the bodies for which an overlay is on, shape [len(bodies)]."""
        on = self.boxes[name].value
        says = {AS_ALL: on, ON: True, OFF: False}
        of_robots = [says[own[name].value] for own in self.own.values()]
        return np.array([*of_robots, on])[self._robot_of[bodies]]  # -1 is of no robot


def _force_scale(model: mujoco.MjModel) -> float:
    """Return the length of force arrows that suits a model [mm/N], to one digit."""
    return float(f"{1000.0 * default_force_scale(model):.1g}")


def _numbers(owners: Sequence[str | None], robots: Sequence[str]) -> np.ndarray:
    """Return the index of the robot of each body, shape [nbody]; -1 for none of them."""
    return np.array([robots.index(owner) if owner in robots else -1 for owner in owners])
