"""Speeds of driving, and the table of inputs that move actuators."""

from __future__ import annotations

from typing import Any

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import KeptPart, PageContext
from manyworlds.lab.page.verb_form import VerbForm
from manyworlds.lab.robots.driving import LIMITS
from manyworlds.viewer.browser.markup import table_html
from manyworlds.viewer.browser.widgets import ShownValue

_SPEEDS = ("forward", "left", "yaw")
_LABELS = ("forward", "left", "turn")
_NONE = "none"
_HINT = (
    "*Drive*, at the bottom left of the page, moves the robot: W S A D and Q E while they are "
    "held, the pads, or a gamepad."
)


class DriveControls(KeptPart):
    """Sliders of the largest speeds, and the bindings of the selected robot."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        gui = ctx.gui
        self.folder = gui.add_folder("Driving")
        with self.folder:
            self.hint = gui.add_markdown(_HINT)
            speeds = VerbForm(ctx, "set_drive_speeds")
            self.sliders = []
            for name, label, most in zip(_SPEEDS, _LABELS, LIMITS, strict=True):
                slider = speeds.add(name, f"Fastest {label}", most, slider=True)
                ctx.on_change(slider, lambda value, name=name: self._set(name, value))
                self.sliders.append(slider)
            self._shown = [ShownValue(slider) for slider in self.sliders]
            self.chase = gui.add_checkbox(
                "Camera behind the robot", ctx.chases, hint="While this page drives it."
            )
            ctx.on_change(self.chase, lambda on: setattr(ctx, "chases", on))
        self.bindings = gui.add_folder("Inputs of actuators", expand_by_default=False)
        with self.bindings:
            self.table = gui.add_html("")
            self.form = VerbForm(ctx, "bind_input")
            self.input = self.form.add("input", value="KeyG")
            self.actuator: Any = gui.add_dropdown("Actuator", (_NONE,))
            self.scale = self.form.add("scale")
            self.mode = self.form.add("mode", "Effect")
            self.note = gui.add_html("")
            ctx.add_button("Bind", self._bind)
            ctx.add_button("Unbind", self._unbind, hint="Of this input and robot.")

    def update(self, snapshot: Snapshot) -> None:
        """Show the speeds and the bindings."""
        ctx = self._ctx
        state = ctx.verbs.read_driving()
        self.folder.visible = bool(state["drivable"])
        velocity = any(state["drivable"].values())
        for shown, value in zip(self._shown, state["fastest"], strict=True):
            shown.show(value)
        for slider in self.sliders:
            slider.visible = velocity
        self.bindings.visible = bool(ctx.robot)
        if not ctx.robot:
            return
        names = ctx.lab.controls[ctx.robot].actuators.names
        if tuple(self.actuator.options) != names:
            self.actuator.options = names
        rows = []
        for bound in state["bindings"]:
            if bound["robot"] == ctx.robot:
                scale = f"{bound['scale']:g}"
                rows.append((bound["input"], bound["mode"], bound["actuator"], scale))
        self.table.content = table_html(rows) if rows else ""

    def _set(self, name: str, value: float) -> None:
        self._ctx.verbs.set_drive_speeds(**{name: value})

    def _bind(self) -> None:
        def bind() -> str:
            robot = self._ctx.robot
            actuator = self.actuator.value
            given = self.form.values()
            self._ctx.verbs.bind_input(robot=robot, actuator=actuator, **given)
            return f"{given['input']} moves {actuator}"

        self._ctx.attempt_at(self.note, bind)

    def _unbind(self) -> None:
        def unbind() -> str:
            name = self.input.value.strip()
            self._ctx.verbs.unbind_input(input=name, robot=self._ctx.robot)
            return f"{name} moves nothing of {self._ctx.robot} now"

        self._ctx.attempt_at(self.note, unbind)
