"""Inputs for the fields of a verb, as the verb declares them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from manyworlds.viewer.browser.widgets import MOST_DIGITS

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.page.page_context import PageContext


class VerbForm:
    """Inputs for fields of a verb, whose units, bounds, choices, defaults and meanings they show.

    Args:
        ctx: context of the page.
        verb: name of the verb.
    """

    def __init__(self, ctx: PageContext, verb: str) -> None:
        self._gui = ctx.gui
        self._fields = ctx.fields_of(verb)
        self.inputs: dict[str, viser.GuiInputHandle[Any]] = {}
        """Inputs by the names of their fields."""

    def add(
        self, name: str, label: str = "", value: Any = None, *, slider: bool = False
    ) -> viser.GuiInputHandle[Any]:
        """Add the input of a field to the place on the page that is open.

        Args:
            name: name of the field.
            label: label without the unit; the field's name if empty.
            value: first value; None for the field's default.
            slider: whether a number, which has bounds, is set by a slider.
        """
        gui = self._gui
        field = self._fields[name]
        label = label or name.replace("_", " ").capitalize()
        if "unit" in field:
            label += f" [{field['unit']}]"
        if value is None:
            value = field.get("default")
        meaning = field.get("text", label).removeprefix("true to ")
        hint = f"{meaning[0].upper()}{meaning[1:]}."
        handle: viser.GuiInputHandle[Any]
        if "options" in field:
            handle = gui.add_dropdown(label, field["options"], initial_value=value, hint=hint)
        elif field["type"] == "bool":
            handle = gui.add_checkbox(label, value, hint=hint)
        elif slider:
            handle = gui.add_slider(label, field["low"], field["high"], 0.01, value, hint=hint)
        elif field["type"] in ("int", "float"):
            low = field.get("low")
            high = field.get("high")
            handle = gui.add_number(label, value, min=low, max=high, step=_step(value), hint=hint)
            if field["type"] == "float":
                handle.precision = MOST_DIGITS
        elif field.get("size") == 2:
            handle = gui.add_vector2(label, tuple(value), step=0.1, hint=hint)
        elif field.get("size") == 3:
            handle = gui.add_vector3(label, tuple(value), step=0.01, hint=hint)
        elif field["type"] == "string[]":
            handle = gui.add_text(label, ", ".join(value), hint=f"{hint} With commas.")
        else:
            handle = gui.add_text(label, value or "", hint=hint)
        self.inputs[name] = handle
        return handle

    def values(self) -> dict[str, Any]:
        """Return the values of the inputs, by the names of their fields.

        Texts that are empty are left out where a field is optional.
        """
        values = {}
        for name, handle in self.inputs.items():
            value = handle.value
            if self._fields[name]["type"] == "string[]":
                names = [part.strip() for part in value.split(",")]
                value = [part for part in names if part]
            elif isinstance(value, str):
                value = value.strip()
                if not value and not self._fields[name]["required"]:
                    continue
            values[name] = value
        return values


def _step(value: float) -> float:
    """Return a step of about a tenth of a number, a power of ten; 1 for whole numbers."""
    if isinstance(value, int):
        return 1
    if not value:
        return 0.1
    return 10.0 ** (math.floor(math.log10(abs(value))) - 1)
