"""Commands, rewards, ends of episodes and debug shapes of the environment that drives a world."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.shown_lab import ShownTask
from manyworlds.lab.task.task_steps import StepReport
from manyworlds.viewer import requests
from manyworlds.viewer.browser.command_sliders import CommandTab
from manyworlds.viewer.browser.markup import status_html
from manyworlds.viewer.browser.overlays.mujoco_visuals import MujocoOverlays
from manyworlds.viewer.browser.reward_bar_panel import RewardBarPanel
from manyworlds.viewer.browser.term_plotter import ViserTermPlotter
from manyworlds.viewer.browser.widgets import ShownValue
from manyworlds.viewer.packed_shapes import unpack_shapes
from manyworlds.viewer.requests import SeekMotion, SteerCommand, ViewerRequest
from manyworlds.viewer.world_mirror import WorldMirror

_OWN_WIDGETS = "Widgets that {} create themselves need the page in the lab's process: `PageServer`."


class TaskPart(PagePart):
    """The task of the environment that steps the world, with the panels of the play page.

    Args:
        ctx: context of the page.
        task: task that steps the world.
    """

    period = 0.1
    env_idx = 0

    def __init__(self, ctx: PageContext, task: ShownTask) -> None:
        super().__init__(ctx)
        self._task = task
        self.env = task.env
        self._seen: StepReport | None = None
        self._drawn = -1
        self._paused: bool | None = None
        gui = ctx.gui
        server = ctx.server
        self.status = gui.add_html("")
        self.auto_reset = gui.add_checkbox(
            "Reset at the end of an episode",
            task.auto_reset,
            hint="Off: terminations are shown, and the world continues.",
        )
        self._auto_reset = ShownValue(self.auto_reset)
        ctx.on_change(self.auto_reset, lambda on: ctx.verbs.set_auto_reset(on=on))
        self.shapes = gui.add_checkbox("Debug shapes", True, hint="Goals, commands, sensors ...")
        ctx.on_change(self.shapes, lambda on: self.request_redraw())
        if self.env is not None:
            self.env.command_manager.create_debug_vis_gui(server, self.request_redraw)
        elif task.own_widgets:
            gui.add_markdown(_OWN_WIDGETS.format(", ".join(task.own_widgets)))
        tabs = gui.add_tab_group()
        terms = task.terms if self.env is None else None
        self.commands = CommandTab(server, self, tabs, terms)
        report = task.report
        self._panels: list[tuple[str, Any]] = []
        if report.rewards:
            names = [*report.rewards]
            with tabs.add_tab("Rewards"):
                bars = RewardBarPanel(server, names, self.period, task.most_rewards)
                plots = ViserTermPlotter(server, names, "Reward")
            self._panels += [("rewards", bars), ("rewards", plots)]
        if report.metrics:
            with tabs.add_tab("Metrics"):
                plots = ViserTermPlotter(server, [*report.metrics], "Metric")
            self._panels.append(("metrics", plots))
        # A model of its own: drawing changes the sizes of MuJoCo's symbols.
        self._overlays = MujocoOverlays(server, WorldMirror(ctx.lab.model), "/debug_shapes")

    def update(self, snapshot: Snapshot) -> None:
        """Show the last control step."""
        task = self._task
        task.update()
        if snapshot.paused != self._paused and task.stepper is not None:
            self._paused = snapshot.paused
            task.stepper.show_pause(snapshot.paused)
        self.commands.update()
        self._auto_reset.show(task.auto_reset)
        report = task.report
        if report != self._seen:
            self._seen = report
            self.status.content = status_html(_rows(report, task.step_dt), name_em=7.0)
            for name, panel in self._panels:
                terms = getattr(report, name)
                panel.update([(term, np.array([value])) for term, value in terms.items()])
        if snapshot.frame_id != self._drawn:
            self._drawn = snapshot.frame_id
            self._draw()

    def toggle_shapes(self) -> None:
        """Show or hide debug shapes."""
        self.shapes.value = not self.shapes.value
        self.request_redraw()

    def request(self, action: ViewerRequest) -> None:
        """Carry out an action of the play page's controls; show an error if that fails."""
        self._ctx.attempt(lambda: self._carry_out(action))

    def request_redraw(self) -> None:
        """Draw debug shapes again at the next update."""
        self._drawn = -1

    def request_action(self, name: str, payload: object = None) -> None:
        """Carry out an action by its name; see `BaseViewer.request_action`."""
        self.request(requests.action_of(name, payload))

    def _carry_out(self, action: ViewerRequest) -> None:
        verbs = self._ctx.verbs
        match action:
            case SteerCommand(term, values):
                verbs.steer_command(term=term, values=values)
            case SeekMotion(term, frame):
                verbs.seek_motion(term=term, frame=frame)
            case requests.ApplyGuiReset() if self._task.stepper is not None:
                self._task.stepper.apply_gui_reset()
            case requests.Reset():
                verbs.reset()
            case requests.TogglePause():
                self._ctx.toggle_pause()
            case requests.SingleStep():
                verbs.set_paused(paused=True)
                self._task.update()
                verbs.step(n_steps=self._task.decimation - self._task.substep)
            case _:
                raise ValueError(f"The lab has no action {action}.")

    def _draw(self) -> None:
        """Draw debug shapes, of a moment between two steps."""
        debug = self._overlays.debug
        offset = self._ctx.view.offset
        debug.clear()
        if self.shapes.value:
            reply = self._ctx.verbs.read_debug_shapes()
            unpack_shapes(reply["shapes"], debug.scn, offset)
        self._overlays.show(offset)


def _rows(report: StepReport, step_dt: float) -> list[tuple[str, str]]:
    """Return the lines of the status."""
    rows = [
        ("Episode", f"{report.step * step_dt:.1f} s, {report.episodes} ended before"),
        ("Last ended by", report.last_end or "none"),
        ("Terminations", ", ".join(report.ended_by) or "none now"),
        ("Reward", f"{report.total:.4f}"),
    ]
    for name, values in report.commands.items():
        shown = ", ".join(f"{value:.2f}" for value in values[:6])
        rows.append((name, shown + (" ..." if len(values) > 6 else "")))
    return rows
