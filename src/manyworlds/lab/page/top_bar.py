"""Top of the panel: status line, play, step, reset and speed."""

from __future__ import annotations

import math

import numpy as np

from manyworlds.lab.loop.faults import explain_warnings
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.loop.steppers import ENVIRONMENT, PHYSICS
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.robots.control import POLICY
from manyworlds.viewer.browser.markup import (
    ERROR_COLOR,
    TRANSPORT,
    banner_html,
    rec_html,
    status_html,
)
from manyworlds.viewer.browser.widgets import (
    PAUSE,
    PLAY,
    ShownValue,
    add_choice,
    relabel,
    show_playing,
)

SPEEDS = {"0.1x": 0.1, "0.25x": 0.25, "0.5x": 0.5, "1x": 1.0, "2x": 2.0, "5x": 5.0, "max": math.inf}
"""Available speeds, in simulated seconds per second."""

DRIVERS = {
    "physics": "plain MuJoCo",
    ENVIRONMENT: "the task's environment",
    "timeline": "a moment of the past",
}
"""Labels of steppers, by name; the others are shown by their names."""
POLICY_DRIVERS = {
    "physics": "Policy in plain MuJoCo",
    ENVIRONMENT: "Policy in the task's environment",
    "timeline": DRIVERS["timeline"],
}
"""Sentences about what steps the world of a policy, by name of the stepper."""

_BANNERS = {"timeline": "PAST"}
"""Words over the view, by name of the stepper; the others have its name."""
_SHOWN = ("timeline", "replay")
"""Steppers that show other moments; the bar says so."""
_STILL = 0.01  # speed below which a robot counts as not moving [m/s or rad/s]
PANEL_PX = 400
"""Width of the panel [pixel]."""
TASK_PANEL_PX = 440
"""Width of the panel with the tab of a task [pixel]."""


class TopBar(PagePart):
    """Time, pace, steps, owner, reasons why a robot does not move, and controls of the time."""

    period = 0.2

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        gui = ctx.gui
        lab = ctx.lab
        self.banner = gui.add_html("")
        gui.add_html(TRANSPORT)
        self.play = ctx.add_button("Pause", self.toggle, icon=PAUSE)
        actions = {"Step": ctx.step, "Reset": self.reset}
        self.run = add_choice(gui, "Run", actions, ctx.attempt)
        self.speed = gui.add_dropdown(
            "Speed", tuple(SPEEDS), initial_value=_speed_name(lab.facts.percent)
        )
        self._speed = ShownValue(self.speed)
        self.below = self.speed.order + 0.5
        """Place below the controls of the time."""
        ctx.on_change(self.speed, self._set_speed)
        self.status = gui.add_html("")
        self.robot = gui.add_dropdown("Robot", tuple(ctx.robots) or ("none",))
        ctx.on_change(self.robot, ctx.select_robot)
        self.renew()

    def renew(self) -> list[str]:
        """List the robots of the new world."""
        names = tuple(self._ctx.robots) or ("none",)
        self.robot.options = names
        self.robot.visible = len(names) > 1
        self.robot.value = self._ctx.robot or names[0]
        return []

    def toggle(self) -> None:
        """Pause or play; return a world that has stopped to its initial state."""
        if self._ctx.lab.snapshot.fault:
            self.reset()
        else:
            self._ctx.toggle_pause()

    def reset(self) -> None:
        """Return to the initial state; say if that ended a replay."""
        self._ctx.note_ended_replay(self._ctx.verbs.reset()["ended_replay"])

    def change_speed(self, steps: int) -> None:
        """Set a speed that is some places further in the list of speeds."""
        speeds = [*SPEEDS.values()]
        now = self._ctx.lab.facts.percent / 100.0
        at = sum(speed < now for speed in speeds)  # between two of them, the next one up
        if steps > 0 and at < len(speeds) and speeds[at] > now:
            at -= 1
        self._set_speed([*SPEEDS][min(max(at + steps, 0), len(speeds) - 1)])

    def _set_speed(self, name: str) -> None:
        self._ctx.verbs.set_sim_speed(percent=100.0 * SPEEDS[name])

    def update(self, snapshot: Snapshot) -> None:
        """Show the state of the world."""
        ctx = self._ctx
        facts = self._ctx.lab.facts
        if snapshot.fault:
            relabel(self.play, "Reset the world", PLAY)
        else:
            show_playing(self.play, ctx.running)
        recording = rec_html() if facts.recording.is_recording else ""
        self.banner.content = _banner(snapshot, ctx.running) + recording
        name = _speed_name(facts.percent)
        if name not in self.speed.options:
            self.speed.options = (*SPEEDS, name)
        self._speed.show(name)
        rows = [
            ("Time", f"{snapshot.time:.3f} s"),
            ("Speed", _pace(snapshot, facts.real_time_factor)),
            ("Steps", f"{snapshot.step:,}".replace(",", " ")),
        ]
        notes = explain_warnings(snapshot.warnings)
        if ctx.robot:
            owner = facts.robots[ctx.robot].owner
            labels = POLICY_DRIVERS if owner == POLICY else DRIVERS
            rows.append(("Owner", owner))
            rows.append(("Stepper", labels.get(snapshot.stepper, snapshot.stepper)))
            if not snapshot.fault and snapshot.stepper not in _SHOWN:
                notes = self._notes(snapshot)
        if snapshot.fault:
            notes.insert(0, snapshot.fault)
        if ctx.note:
            notes.insert(0, ctx.note)
        notes = [note[:1].upper() + note[1:] for note in notes]
        wrong = [f"{name} was left out: {why}" for name, why in facts.left_out.items()]
        wrong += [*ctx.failures, *facts.failures]
        if ctx.message:
            wrong.append(ctx.message)
        if snapshot.fault:
            wrong = wrong + notes
            notes = []
        # A line is reserved for what a robot waits for, so that most notes do not move the tabs.
        lines = 1 if ctx.robot else 0
        self.status.content = status_html(
            rows, wrong, notes=notes, name_em=(3.0, 3.3), note_lines=lines
        )

    def _notes(self, snapshot: Snapshot) -> list[str]:
        """Return reasons why the robot does not move, or may stop moving."""
        lab = self._ctx.lab
        robot = self._ctx.robot
        owners = lab.elements.owners["body"]
        own = [owners[body] == robot for body in lab.model.dof_bodyid.tolist()]
        speed = np.abs(snapshot.qvel[own]).max(initial=0.0)
        reasons = [*lab.facts.robots[robot].reasons]
        if reasons and (speed <= _STILL or snapshot.paused):
            reasons[0] = f"not moving: {reasons[0]}"
        return reasons


def _speed_name(percent: float) -> str:
    speed = percent / 100.0
    for name, value in SPEEDS.items():
        if value == speed:
            return name
    return f"{speed:g}x"


def _pace(snapshot: Snapshot, factor: float) -> str:
    if snapshot.fault:
        return "stopped"
    if snapshot.paused:
        return "paused"
    return f"{factor:.2f}x real time"


def _banner(snapshot: Snapshot, running: bool) -> str:
    if snapshot.fault:
        return banner_html("STOPPED", ERROR_COLOR, PANEL_PX)
    physics = snapshot.stepper in PHYSICS
    if snapshot.paused and physics:
        return banner_html("PAUSED", "rgba(33,37,41,.82)", PANEL_PX)
    text = "" if physics else _BANNERS.get(snapshot.stepper, snapshot.stepper.upper())
    if not running:
        text = f"{text} PAUSED".lstrip()
    return banner_html(text, "rgba(25,113,194,.82)", PANEL_PX) if text else ""
