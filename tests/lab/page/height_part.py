"""A part of a page, as users write them, and one that fails."""

from __future__ import annotations


class HeightPart:
    """Height of the first body, and a button that raises an error of the lab."""

    period = 0.0

    def __init__(self, ctx) -> None:
        self._ctx = ctx
        self.text = ctx.gui.add_text("Height [m]", "", disabled=True)

    def update(self, snapshot) -> None:
        """Show the height; tell the program that started the page by a saved state."""
        self.text.value = f"{snapshot.xpos[1, 2]:.3f}"
        if "told" not in self._ctx.lab.facts.states:
            self._ctx.verbs.capture_state(label="told")


class FailingPart:
    """A part that fails with its first update beside a browser."""

    period = 0.0

    def __init__(self, ctx) -> None:
        self._ctx = ctx

    def update(self, snapshot) -> None:
        """Fail."""
        raise ZeroDivisionError("a part of one's own")
