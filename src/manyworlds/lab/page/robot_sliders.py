"""Owner of a robot, and a slider for each of its actuators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.facts import RobotFacts
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.shown_lab import ShownControls
from manyworlds.lab.robots.control import NOBODY, PANEL, POLICY
from manyworlds.spec.elements import joint_of
from manyworlds.viewer.browser.command_sliders import TWIST_LABELS
from manyworlds.viewer.browser.widgets import Section, ShownValue

if TYPE_CHECKING:
    import viser

_MOST_COMMANDS = 6
_MOST_UNSEARCHED = 8  # actuators of a robot without a search
_LABELS = {"twist": tuple(TWIST_LABELS.values())}
"""Labels of the values of a command, by its name; the values of other commands are numbered."""


@dataclass
class _Sliders:
    folder: viser.GuiFolderHandle
    handles: list[viser.GuiSliderHandle[float]]
    seen: int
    """Number of the command whose targets the sliders show; -1 for other targets."""


@dataclass
class _Commands:
    folder: viser.GuiFolderHandle
    shown: list[tuple[str, int, viser.GuiSliderHandle[float], ShownValue[float]]]
    """Name of a command, index of its value, and the slider of that."""


class RobotPart(PagePart):
    """Owner of the selected robot, and its sliders, disabled while another client owns it."""

    period = 0.1

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._section = Section(ctx.gui)
        self._ranges = b""
        self.renew()

    def renew(self) -> list[str]:
        """Add the sliders of the world's robots, which show the owners' targets."""
        with self._section.empty():
            self._add_controls()
        return []

    def _add_controls(self) -> None:
        ctx = self._ctx
        gui = ctx.gui
        lab = ctx.lab
        if not ctx.robots:
            gui.add_markdown(_without_actuators(lab.model))
            return
        self._owners = {PANEL, NOBODY, *(robot.owner for robot in lab.facts.robots.values())}
        owners: tuple[str, ...] = tuple(sorted(self._owners))
        self.owner = gui.add_dropdown(
            "Owner",
            owners,
            initial_value=PANEL,
            hint="Source of the robot's targets: these sliders, a policy, a client ..., or nobody.",
        )
        self._owner = ShownValue(self.owner)
        ctx.on_change(self.owner, lambda owner: ctx.verbs.take_robot(robot=ctx.robot, owner=owner))
        self.controller = gui.add_checkbox(
            "Controller", True, hint="Off: targets are passed to the actuators unchanged."
        )
        self._enabled = ShownValue(self.controller)
        ctx.on_change(
            self.controller, lambda on: ctx.verbs.enable_controller(robot=ctx.robot, enabled=on)
        )
        self.reset_targets = ctx.add_button(
            "Reset targets", self._reset_targets, hint="Set all targets to their initial values."
        )
        self.commands = {robot.name: self._add_commands(robot) for robot in lab.controls.values()}
        self._ranges = _ranges(lab.model)
        self.sliders = {robot.name: self._add_sliders(robot) for robot in lab.controls.values()}

    def update(self, snapshot: Snapshot) -> None:
        """Show owner and targets."""
        ctx = self._ctx
        if not ctx.robots:
            return
        ranges = _ranges(ctx.lab.model)
        if ranges != self._ranges:
            self._ranges = ranges
            self._follow_edits()
        robot = ctx.lab.facts.robots[ctx.robot]
        owner = robot.owner
        if owner not in self._owners:
            self._owners.add(owner)
            self.owner.options = tuple(sorted(self._owners))
        self._owner.show(owner)
        self._enabled.show(robot.enabled)
        for name, sliders in self.sliders.items():
            sliders.folder.visible = name == ctx.robot
            commands = self.commands[name]
            commands.folder.visible = (
                bool(commands.shown) and sliders.folder.visible and (owner == POLICY)
            )
        self._show_commands(robot)
        self._show(robot, self.sliders[ctx.robot], snapshot)

    def _show(self, robot: RobotFacts, sliders: _Sliders, snapshot: Snapshot) -> None:
        locked = robot.owner != PANEL
        self.reset_targets.disabled = locked
        if locked:
            ids = self._ctx.lab.controls[self._ctx.robot].actuators.ids
            values = snapshot.ctrl[ids].tolist()
            sliders.seen = -1
        elif robot.command_number <= sliders.seen:
            # Keep the position of a slider that the user is moving.
            values = None
        else:
            values = [*robot.targets.values()]
            sliders.seen = robot.command_number
        for i, handle in enumerate(sliders.handles):
            # Setting `disabled` is slow even if the value does not change.
            if handle.disabled != locked:
                handle.disabled = locked
            if values is not None:
                handle.value = float(np.clip(np.nan_to_num(values[i]), handle.min, handle.max))

    def _show_commands(self, robot: RobotFacts) -> None:
        """Show the present commands of the policy, which driving sets, too."""
        for name, i, handle, shown in self.commands[self._ctx.robot].shown:
            if i < len(robot.commands.get(name, ())):  # another policy may run now
                value = robot.commands[name][i]
                if abs(value) > handle.max:
                    handle.max = abs(value)
                    handle.min = -abs(value)
                shown.show(value)

    def _add_commands(self, robot: ShownControls) -> _Commands:
        """Add sliders for the values of a policy's commands."""
        gui = self._ctx.gui
        lab = self._ctx.lab
        folder = gui.add_folder("Commands of the policy", visible=False)
        shown = []
        with folder:
            for name, values in lab.facts.robots[robot.name].commands.items():
                if len(values) > _MOST_COMMANDS:
                    continue  # poses and motions, for which sliders are of no use
                for i, value in enumerate(values):
                    reach = max(1.0, abs(value))
                    handle = gui.add_slider(
                        command_labels(name, len(values))[i], -reach, reach, 0.05, value
                    )

                    def send(value: float, name=name, i=i) -> None:
                        fresh = [*self._ctx.lab.facts.robots[robot.name].commands[name]]
                        fresh[i] = value
                        self._ctx.verbs.set_command(robot=robot.name, command=name, values=fresh)

                    self._ctx.on_change(handle, send)
                    shown.append((name, i, handle, ShownValue(handle)))
        return _Commands(folder, shown)

    def _add_sliders(self, robot: ShownControls) -> _Sliders:
        gui = self._ctx.gui
        folder = gui.add_folder(f"Actuators of {robot.name}")
        handles = []
        with folder:
            if len(robot.actuators.names) > _MOST_UNSEARCHED:
                find = gui.add_text("Find", "", hint="Part of a name of an actuator.")
                self._ctx.on_change(find, lambda text: _show_matches(handles, text))
            for i, name in enumerate(robot.actuators.names):
                low, high, step, hint = self._range(robot, i)
                neutral = float(robot.neutral[i])
                label = name.removesuffix("_joint")
                handle = gui.add_slider(label, low, high, step, neutral, hint=hint)
                self._ctx.on_change(
                    handle, lambda value, name=name: self._write(robot, {name: float(value)})
                )
                handles.append(handle)
        return _Sliders(folder, handles, -1)

    def _range(self, robot: ShownControls, i: int) -> tuple[float, float, float, str]:
        """Return range, step and hint of a slider, which reaches the initial target."""
        low, high, step, hint = slider_range(
            self._ctx.lab.model,
            int(robot.actuators.actuator_ids[i]),
            int(robot.actuators.ids[i]),
            robot.types[i],
        )
        neutral = float(robot.neutral[i])
        return min(low, neutral), max(high, neutral), step, hint

    def _follow_edits(self) -> None:
        """Give the sliders the ranges that the model has after an edit."""
        for name, sliders in self.sliders.items():
            robot = self._ctx.lab.controls[name]
            for i, handle in enumerate(sliders.handles):
                low, high, step, hint = self._range(robot, i)
                if (handle.min, handle.max) != (low, high):
                    handle.min = low
                    handle.max = high
                    handle.step = step
                    handle.hint = hint
                    handle.precision = max(0, -round(math.log10(step)))
                    handle.value = float(np.clip(handle.value, low, high))
                    sliders.seen = -1  # a target that was outside may be inside now

    def _write(self, robot: ShownControls, targets: dict[str, float]) -> None:
        reply = self._ctx.verbs.set_targets(robot=robot.name, targets=targets)
        if reply["accepted"]:
            self.sliders[robot.name].seen = reply["command_number"]

    def _reset_targets(self) -> None:
        self._ctx.verbs.reset_targets(robot=self._ctx.robot)


def _show_matches(handles: list[viser.GuiSliderHandle[float]], text: str) -> None:
    """Show the sliders whose label has a text."""
    for handle in handles:
        handle.visible = text.strip().lower() in handle.label.lower()


def command_labels(command: str, size: int) -> tuple[str, ...]:
    """Return the labels of a command's values."""
    labels = _LABELS.get(command, ())
    if len(labels) == size:
        return labels
    if size == 1:
        return (command,)
    return tuple(f"{command} {i}" for i in range(size))


def slider_range(
    model: mujoco.MjModel, actuator: int, control: int, written: str = ""
) -> tuple[float, float, float, str]:
    """Return range and step of an actuator's slider, and a description of its control.

    Args:
        model: the model.
        actuator: the actuator.
        control: index of its control.
        written: element of MJCF that it was written as, which the model does not have.

    Returns:
        The lowest and the highest value, the step, and the kind and the unit as text.
    """
    kind, unit = actuator_kind(model, actuator)
    kind = written if written not in ("", "general") else kind
    joint = joint_of(model, actuator)
    if model.actuator_ctrllimited[control]:
        low, high = model.actuator_ctrlrange[control].tolist()
    elif kind == "position" and joint >= 0 and model.jnt_limited[joint]:
        low, high = model.jnt_range[joint].tolist()
    elif kind == "position" and unit == "rad":
        low, high = -math.pi, math.pi
    else:
        low, high = -1.0, 1.0
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-6) / 100.0))
    return low, high, step, f"{kind} [{unit}], from {low:g} to {high:g}"


def _ranges(model: mujoco.MjModel) -> bytes:
    """Return the values that the ranges of sliders come from."""
    fields = ("actuator_ctrllimited", "actuator_ctrlrange", "jnt_limited", "jnt_range")
    fields += ("actuator_gainprm", "actuator_biasprm", "actuator_gear")
    return b"".join(getattr(model, name).tobytes() for name in fields)


def actuator_kind(model: mujoco.MjModel, actuator: int) -> tuple[str, str]:
    """Return the kind of an actuator's control and its unit, as far as the model defines them."""
    joint = joint_of(model, actuator)
    slides = joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE
    length = "m" if slides or joint < 0 else "rad"
    gain = model.actuator_gainprm[actuator]
    bias = model.actuator_biasprm[actuator]
    dynamics = mujoco.mjtDyn(model.actuator_dyntype[actuator])
    if dynamics == mujoco.mjtDyn.mjDYN_MUSCLE:
        return "muscle", "0 to 1"
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE and gain[0]:
        if np.isclose(bias[1], -gain[0]):
            integrated = dynamics == mujoco.mjtDyn.mjDYN_INTEGRATOR
            return ("velocity", f"{length}/s") if integrated else ("position", length)
        if np.isclose(bias[2], -gain[0]):
            return "velocity", f"{length}/s"
    if model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE and joint >= 0:
        effort = "N" if slides else "N m"
        scale = float(gain[0] * model.actuator_gear[actuator, 0])
        return "motor", effort if scale == 1.0 else f"{scale:g} {effort}"
    return "general", "1"


def _without_actuators(model: mujoco.MjModel) -> str:
    """Return a text that says what one can do with a world without actuators."""
    if not (model.njnt or model.nmocap):
        return "Nothing in this world can move: it has no joints, no actuators and no mocap bodies."
    ways = []
    if model.njnt:
        ways.append(
            "Hold **Ctrl** (or Cmd) and drag a body with the right mouse button to pull it, with "
            "the left one to turn it; while the world is paused, the body moves with the mouse."
        )
        ways.append("*Pose joints* in the tab *World* has a slider for each joint.")
    if model.nmocap:
        ways.append("Switch on *Mocap handles* in the tab *View* to move mocap bodies.")
    if model.nkey:
        ways.append("The tab *States* has poses of the model.")
    return "This world has no actuators.\n\n" + "\n\n".join(ways)
