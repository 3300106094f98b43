"""Building of articulations on the page, one element at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyworlds.lab.page.page_context import KeptPart, PageContext
from manyworlds.lab.page.verb_form import VerbForm

if TYPE_CHECKING:
    import viser


class BuildPart(KeptPart):
    """Adds bodies, joints, geoms and actuators to items, and convex pieces to meshes."""

    period = float("inf")

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self.forms: dict[str, VerbForm] = {}
        self.buttons: dict[str, viser.GuiButtonHandle] = {}
        verbs = ctx.verbs
        with ctx.gui.add_folder("Build", expand_by_default=False):
            self.outcome = ctx.gui.add_html("")
            self._add("add_body", "Add body", verbs.add_body)
            self._add("add_joint", "Add joint", verbs.add_joint)
            self._add("add_geom", "Add geom", verbs.add_geom)
            self._add("add_actuator", "Add actuator", verbs.add_actuator)
            self._add("remove_element", "Remove element", verbs.remove_element)
            self._add("decompose_mesh", "Decompose mesh", verbs.decompose_mesh)
            self._add("remove_decomposition", "Remove decomposition", verbs.remove_decomposition)

    def _add(self, verb: str, label: str, call: Callable[..., Any]) -> None:
        """Add a form with all fields of a verb, and a button that calls it."""
        ctx = self._ctx
        form = VerbForm(ctx, verb)
        self.forms[verb] = form

        def act() -> str:
            reply = call(**form.values())
            done = reply.get("name", "")
            pieces = reply.get("pieces", 0)
            if pieces:
                done = f"{pieces} convex pieces of '{done}'"
            notes = " ".join(reply.get("notes", ()))
            return f"{label}: {done or 'done'}. {notes}".strip()

        with ctx.gui.add_folder(label, expand_by_default=False):
            for name in ctx.fields_of(verb):
                if name not in ("quat", "wait"):
                    form.add(name)
            button = ctx.gui.add_button(label)
            self.buttons[verb] = button
            button.on_click(lambda _: ctx.attempt_at(self.outcome, act))
