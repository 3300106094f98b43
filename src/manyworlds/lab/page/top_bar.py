"""The top of the panel: how things are, and the buttons that everybody needs."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.snapshot import Snapshot

_PLAY: Any = "player-play"
_PAUSE: Any = "player-pause"
SPEEDS = {"0.1x": 0.1, "0.25x": 0.25, "0.5x": 0.5, "1x": 1.0, "2x": 2.0, "5x": 5.0, "max": math.inf}
"""Speeds to choose from, in simulated seconds per second."""

_STILL = 0.01  # what moves less is still [m/s or rad/s]
PANEL_PX = 360
"""How wide the panel is: all tabs are in one row."""
_BANNER = (
    f'<div style="position:fixed;top:18px;left:calc((100vw - {PANEL_PX}px) / 2);z-index:1000;'
    "transform:translateX(-50%);font:600 22px/1 system-ui,sans-serif;letter-spacing:.28em;"
    "pointer-events:none;padding:.5em .8em .5em 1.08em;border-radius:6px;color:#fff;"
    'background:{color}">{text}</div>'
)
_GRID = "display:grid;grid-template-columns:3em 1fr 3.3em 1fr;gap:.15em .5em"
_ROW = '<div style="opacity:.6">{}</div><div>{}</div>'


class TopBar:
    """Time, pace, steps and owner; play, step, reset and speed; what keeps a robot from moving.

    Args:
        ctx: of the page.
    """

    period = 0.2

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        gui, lab = ctx.gui, ctx.lab
        self.banner = gui.add_html("")
        self.status = gui.add_html("")
        self.play = ctx.on_click(gui.add_button("Pause", icon=_PAUSE), self.toggle)
        actions = {"Step": lambda: lab.step(1), "Reset": lab.reset}
        self.run = gui.add_button_group("Run", tuple(actions))
        self.run.on_click(lambda event: ctx.attempt(actions[event.target.value]))
        self.speed = gui.add_dropdown(
            "Speed", tuple(SPEEDS), initial_value=_speed_name(lab.engine.speed)
        )
        ctx.on_change(self.speed, lambda name: setattr(lab.engine, "speed", SPEEDS[name]))
        self.robot: Any = None
        if len(ctx.robots) > 1:
            self.robot = gui.add_dropdown("Robot", tuple(ctx.robots), initial_value=ctx.robot)
            ctx.on_change(self.robot, lambda name: setattr(ctx, "robot", name))

    def toggle(self) -> None:
        """Pause, or play."""
        lab = self._ctx.lab
        lab.engine.paused = not lab.paused

    def update(self, snapshot: Snapshot) -> None:
        """Show how things are."""
        ctx, lab = self._ctx, self._ctx.lab
        paused = snapshot.paused
        label, icon = ("Play", _PLAY) if paused else ("Pause", _PAUSE)
        if self.play.label != label:
            self.play.label, self.play.icon = label, icon
        self.banner.content = _banner(snapshot, lab.engine.fault)
        name = _speed_name(lab.engine.speed)
        if self.speed.value != name:
            if name not in self.speed.options:
                self.speed.options = (*SPEEDS, name)
            self.speed.value = name
        rows = [
            ("Time", f"{snapshot.time:.3f} s"),
            ("Pace", "paused" if paused else f"{lab.engine.pace.real_time_factor:.2f}x real time"),
            ("Steps", f"{snapshot.step:,}".replace(",", " ")),
        ]
        notes = []
        if ctx.robot:
            rows.append(("Owner", lab[ctx.robot].owner))
            notes = self._notes(snapshot)
        wrong = [f"{name} was left out: {why}" for name, why in lab.world.errors.items()]
        if ctx.message:
            wrong.append(ctx.message)
        self.status.content = _status(rows, wrong + notes, error=bool(wrong or lab.engine.fault))

    def _notes(self, snapshot: Snapshot) -> list[str]:
        """What keeps the robot from moving, or might if it moves."""
        lab, robot = self._ctx.lab, self._ctx.robot
        model = lab.world.model
        prefix = lab.world.robots[robot]
        own = [model.joint(j).name.startswith(prefix) for j in model.dof_jntid.tolist()]
        speed = np.abs(snapshot.qvel[own]).max(initial=0.0)
        lead = "" if speed > _STILL and not snapshot.paused else "not moving: "
        reasons = lab.why_not_moving(robot)
        return [f"{lead}{r}" if i == 0 else r for i, r in enumerate(reasons)]


def _speed_name(speed: float) -> str:
    for name, value in SPEEDS.items():
        if value == speed:
            return name
    return f"{speed:g}x"


def _banner(snapshot: Snapshot, fault: str) -> str:
    if fault:
        return _BANNER.format(color="#c92a2a", text="STOPPED")
    if snapshot.paused:
        return _BANNER.format(color="rgba(33,37,41,.82)", text="PAUSED")
    shown = {"physics": "", "replay": "REPLAY"}.get(snapshot.driver, snapshot.driver.upper())
    return _BANNER.format(color="rgba(25,113,194,.82)", text=html.escape(shown)) if shown else ""


def _status(rows: list[tuple[str, str]], notes: list[str], error: bool) -> str:
    cells = "".join(_ROW.format(name, html.escape(value)) for name, value in rows)
    color = "#c92a2a" if error else "#5c677d"
    lines = "".join(f"<div>{html.escape(note[:400])}</div>" for note in notes)
    return (
        '<div style="padding:.4em 1em .3em;font-size:.9em;font-variant-numeric:tabular-nums">'
        f'<div style="{_GRID}">{cells}</div>'
        # Two lines have their place when there are none, too, so that buttons stay where they are.
        '<div style="margin-top:.4em;min-height:2.9em;line-height:1.45;overflow-wrap:anywhere;'
        f'color:{color}">{lines}</div></div>'
    )
