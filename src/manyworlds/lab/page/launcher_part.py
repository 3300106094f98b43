"""Launches of free bodies, and the log of contacts."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import KeptPart, PageContext, PagePart
from manyworlds.lab.page.verb_form import VerbForm
from manyworlds.lab.play.launcher import free_bodies
from manyworlds.lab.world.model_facts import element_names
from manyworlds.viewer.browser.markup import note_html, table_html

_SHOWN = 30  # contacts in the log of the page


class LauncherPart(PagePart):
    """Aims free bodies at others, and launches them."""

    period = 0.5

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        gui = ctx.gui
        with gui.add_folder("Launcher", expand_by_default=False) as self.folder:
            self.body: Any = gui.add_dropdown("Body", ("",))
            self.target: Any = gui.add_dropdown("Target", ("",))
            self.form = VerbForm(ctx, "aim_launcher")
            self.form.add("path", value="ballistic")
            self.form.add("speed")
            self.form.add("arc")
            self.form.add("reset", "Put back first", value=True)
            self.auto = self.form.add("auto", "Auto-fire")
            self.form.add("delay")
            self.note = gui.add_html("")
            ctx.add_button("Aim and launch", self.launch)
            ctx.add_button("Launch all", self.launch_all, hint="Key L.")
            ctx.add_button("End auto-fire", self.forget)
        self.renew()

    def renew(self) -> list[str]:
        """List the bodies of the world."""
        model = self._ctx.lab.model
        free = free_bodies(model) or [""]
        names = [name for name in element_names(model, "body")[1:] if name] or [""]
        self.body.options = free
        self.target.options = names
        if self.target.value == self.body.value and len(names) > 1:
            self.target.value = next(name for name in names if name != self.body.value)
        return []

    def launch(self) -> None:
        """Aim the chosen body, and launch it."""

        def act() -> str:
            body = self.body.value
            target = self.target.value
            self._ctx.verbs.aim_launcher(body=body, target=target, **self.form.values())
            return self._fire(body)

        self._ctx.attempt_at(self.note, act)

    def launch_all(self) -> None:
        """Launch everything that was aimed."""
        self._ctx.attempt_at(self.note, lambda: self._fire(""))

    def forget(self) -> None:
        """End the auto-fire of the chosen body."""

        def act() -> str:
            self._ctx.verbs.forget_launch(body=self.body.value)
            return f"'{self.body.value}' is not launched again"

        self._ctx.attempt_at(self.note, act)

    def _fire(self, body: str) -> str:
        reply = self._ctx.verbs.fire_launcher(body=body)
        told = []
        for name, velocity in reply["velocities"].items():
            told.append(f"'{name}' flies with {math.hypot(*velocity):.1f} m/s")
        return ", ".join(told)


class ContactPart(KeptPart):
    """Watches contacts of bodies or geoms, and shows the newest events."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._watch: int | None = None
        self._next = 0
        self._rows: deque[tuple[str, ...]] = deque(maxlen=_SHOWN)
        gui = ctx.gui
        with gui.add_folder("Contacts", expand_by_default=False):
            self.form = VerbForm(ctx, "watch_contacts")
            self.first = self.form.add("first")
            self.second = self.form.add("second")
            self.kind = self.form.add("kind", "Names of")
            self.watching = gui.add_checkbox("Log contacts", False)
            self.note = gui.add_html("")
            self.table = gui.add_html("")
        ctx.on_change(self.watching, self.switch)
        for handle in (self.first, self.second, self.kind):
            ctx.on_change(handle, lambda _: self.switch(self.watching.value))

    def switch(self, on: bool) -> None:
        """Begin or end the watch with the present patterns."""

        def act() -> str:
            if self._watch is not None:
                self._ctx.verbs.unwatch_contacts(watch=self._watch)
                self._watch = None
            if not on:
                return " "
            self._watch = self._ctx.verbs.watch_contacts(**self.form.values())["watch"]
            return "contacts that begin or end are listed"

        self._ctx.attempt_at(self.note, act)
        if on and self._watch is None:
            self.watching.value = False

    def update(self, snapshot: Snapshot) -> None:
        """Show new events, the newest first."""
        if self._watch is None:
            return
        reply = self._ctx.verbs.read_contact_events(since=self._next)
        self._next = reply["next"]
        if not reply["events"]:
            return
        for event in reply["events"]:
            pair = f"{event['first'] or '-'} / {event['second'] or '-'}"
            self._rows.appendleft((pair, "s", event["event"], f"{event['time']:.3f}"))
        self.table.content = table_html(self._rows)


class AppliedPart(PagePart):
    """Controls that were commanded, and what the actuators of the selected robot apply."""

    period = 0.2

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        gui = ctx.gui
        self.folder = gui.add_folder(
            "Commanded and applied", expand_by_default=False, visible=bool(ctx.robots)
        )
        with self.folder:
            self.box = gui.add_checkbox(
                "Show the numbers", False, hint="Target, control and force of each actuator."
            )
            self.table = gui.add_html(note_html("target, control, force of each actuator"))

    def renew(self) -> list[str]:
        """Keep the choice."""
        self.folder.visible = bool(self._ctx.robots)
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Show targets of the owner, controls after the controller, and forces."""
        ctx = self._ctx
        if not self.box.value or not ctx.robot:
            return
        actuators = ctx.lab.controls[ctx.robot].actuators
        targets = ctx.lab.facts.robots[ctx.robot].targets.values()
        controls = snapshot.ctrl[actuators.ids]
        forces = snapshot.actuator_force[actuators.actuator_ids]
        if len(targets) != len(controls):
            return  # the world is being replaced
        columns = zip(actuators.names, targets, controls, forces, strict=True)
        rows = []
        for name, target, control, force in columns:
            rows.append((name, "", f"{target:.3f}", f"{control:.3f}", f"{force:.2f}"))
        self.table.content = table_html(rows)
