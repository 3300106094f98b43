"""Numbers of joints and sensors on the page."""

from __future__ import annotations

import itertools

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.play.quantities import joint_axis_unit, sensors
from manyworlds.viewer.browser.markup import table_html
from manyworlds.viewer.browser.overlays.shapes import hinges_and_slides


class ReadoutPart(PagePart):
    """Numbers of all joints, and of all sensors by their type, of the selected robot."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self.renew()
        self._folders = [ctx.gui.add_folder(title) for title in ("Joints", "Sensors")]
        with self._folders[0]:
            self.joints = ctx.gui.add_html("")
        with self._folders[1]:
            self.sensors = ctx.gui.add_html("")

    def renew(self) -> list[str]:
        """Read the joints and sensors of the new world."""
        model = self._model = self._ctx.lab.model
        self._axes = hinges_and_slides(model).tolist()
        self._sensors = sensors(model)
        self._names = [model.joint(joint).name or f"joint {joint}" for joint in self._axes]
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Show the numbers."""
        elements = self._ctx.lab.elements
        robot = self._ctx.robot or None
        prefix = elements.robots.get(self._ctx.robot, "")
        owners = elements.owners
        q = snapshot.qpos[self._model.jnt_qposadr[self._axes]]
        v = snapshot.qvel[self._model.jnt_dofadr[self._axes]]
        rows = []
        for name, joint, position, velocity in zip(self._names, self._axes, q, v, strict=True):
            if robot in (None, owners["jnt"][joint]):
                unit = joint_axis_unit(self._model, joint)
                values = (_number(position), _number(velocity))
                rows.append((name.removeprefix(prefix), f"{unit}, {unit}/s", *values))
        told: list[tuple[str, ...]] = []
        shown = [s for s in self._sensors if robot in (None, owners["sensor"][s.id])]
        for group, members in itertools.groupby(shown, lambda sensor: sensor.group):
            told.append((group, ""))
            for sensor in members:
                values = " ".join(map(_number, sensor.read(snapshot).tolist()))
                told.append((f"· {sensor.name.removeprefix(prefix)}", sensor.unit, values))
        self.joints.content = table_html(rows)
        self.sensors.content = table_html(told)
        for folder, lines in zip(self._folders, (rows, told), strict=True):
            folder.visible = bool(lines)


def _number(value: float) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(value, 3) + 0.0:.3f}" if abs(value) < 1000.0 else f"{value:.4g}"
