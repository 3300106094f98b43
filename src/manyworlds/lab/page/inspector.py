"""Fields of the selected element on the page, and their edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.viewer.browser.markup import differences_html
from manyworlds.viewer.browser.widgets import MOST_DIGITS, Section, ShownValue

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.verb_methods import ReadElementReply

_BYTE = 255.0


@dataclass
class _Field:
    """Inputs of one field."""

    name: str
    handles: list[viser.GuiInputHandle[Any]]
    shown: list[ShownValue[Any]]
    labels: list[str]
    split: Callable[[Any], list[Any]]
    """Values of the inputs for a value of the field."""


class InspectorPart(PagePart):
    """Shows the fields of the selected element that can change; each edit is a verb.

    Fields that differ from the compiled model are marked, and can be set back.
    """

    period = 0.2

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._element = ""
        self._version = -1
        self.fields: dict[str, _Field] = {}
        self.folder = ctx.gui.add_folder("Inspector", visible=False)
        with self.folder:
            self._section = Section(ctx.gui)
            self.note = ctx.gui.add_html("")
            self.back = ctx.add_button(
                "Back to the model's",
                self._go_back,
                hint="Set the marked fields to the compiled values.",
            )

    def renew(self) -> list[str]:
        """Show the element of the new world."""
        self._element = ""
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Show the values of the selected element."""
        element = self._ctx.element
        if not element:
            self.folder.visible = False
            self._element = ""
            return
        new = element != self._element
        # What a user has entered is shown until the model has it, or for a second.
        if new or snapshot.model_version != self._version or self._entered:
            reply = self._ctx.verbs.read_element(element=element)
            self._version = snapshot.model_version
            if new:
                self._element = element
                self._build(reply)
            self._show(reply["fields"])

    @property
    def _entered(self) -> bool:
        """True if an input shows what a user has entered."""
        return any(shown.pending for f in self.fields.values() for shown in f.shown)

    def _build(self, reply: ReadElementReply) -> None:
        """Add the inputs of an element."""
        kind, _, name = reply["element"].partition(":")
        written = f" ({reply['type']})" if reply["type"] != kind else ""
        self.folder.label = f"{kind.capitalize()} {name}{written}"
        self.fields = {}
        with self._section.empty():
            long = [f for f in reply["fields"] if _is_long(f)]
            for field in reply["fields"]:
                if field not in long:
                    self._add(field)
            if long:
                with self._ctx.gui.add_folder("More", expand_by_default=False):
                    for field in long:
                        self._add(field)
        self.folder.visible = True

    def _show(self, fields: Sequence[dict[str, Any]]) -> None:
        lines = []
        for field in fields:
            known = self.fields.get(field["name"])
            if known is None:
                continue
            differs = field["value"] != field["model_value"]
            for shown, value in zip(known.shown, known.split(field["value"]), strict=True):
                shown.show(value)
            for handle, label in zip(known.handles, known.labels, strict=True):
                handle.label = label + " *" if differs else label
            if differs:
                lines.append(f"{field['name']}: {_text(field['model_value'])}")
        self.note.content = differences_html(lines)
        self.back.visible = bool(lines)

    def _add(self, field: dict[str, Any]) -> None:
        gui = self._ctx.gui
        name = field["name"]
        value = field["value"]
        label = f"{name} [{field['unit']}]" if field["unit"] else name
        hint = _effect(field["consequence"])
        handles: list[Any]
        if field["choices"] is not None:
            handles = [gui.add_dropdown(label, [c or "none" for c in field["choices"]], hint=hint)]
            split = _choice
        elif name == "rgba":
            handles = [gui.add_rgba(label, _color(value)[0], hint=hint)]
            split = _color
        elif isinstance(value, list) and len(value) in (2, 3):
            add = gui.add_vector2 if len(value) == 2 else gui.add_vector3
            handles = [add(label, tuple(value), step=1e-3, hint=hint)]
            split = _vector
        else:
            values = _numbers(value)
            labels = [label]
            if field["unit"] == "wxyz":
                labels = [f"{name} {axis}" for axis in "wxyz"]
            elif len(values) > 1:
                labels = [f"{name} {place}" for place in range(len(values))]
            step = 1 if field["whole"] else 1e-3
            handles = [
                gui.add_number(each, v, step=step, hint=hint)
                for each, v in zip(labels, values, strict=True)
            ]
            split = _numbers
        for handle in handles:
            if hasattr(handle, "precision") and not field["whole"]:
                handle.precision = MOST_DIGITS
        shown = [ShownValue(handle) for handle in handles]
        labels = [handle.label for handle in handles]
        self.fields[name] = _Field(name, handles, shown, labels, split)
        for place, handle in enumerate(handles):
            self._ctx.on_change(handle, partial(self._set, self._element, name, place))

    def _set(self, element: str, name: str, place: int, given: Any) -> None:
        field = self.fields[name]
        numbers = [handle.value for handle in field.handles]
        numbers[place] = given
        value = numbers[0]
        if field.split is _choice and value == "none":
            value = ""
        elif field.split is _color:
            value = [channel / _BYTE for channel in value]
        elif field.split is _vector:
            value = list(value)
        elif len(numbers) > 1:
            value = numbers
        self._ctx.verbs.set_model(element=element, field=name, value=value)

    def _go_back(self) -> None:
        self._ctx.verbs.reset_model(element=self._element)


def _effect(consequence: str) -> str:
    """Return a sentence about when a change of a field takes effect."""
    if consequence.startswith("none"):
        return "Takes effect in the next step."
    _, _, follows = consequence.partition("(")
    also = f" ({follows.rstrip(')')} follow from this field)" if follows else ""
    return f"The model is compiled again{also}; the state stays."


def _is_long(field: dict[str, Any]) -> bool:
    """Return True for fields that few people change, or of many numbers."""
    many = isinstance(field["value"], list) and len(field["value"]) > 3 and field["name"] != "rgba"
    return many or field["name"].startswith(("sol", "ipos", "group", "priority", "con", "gap"))


def _choice(value: str) -> list[Any]:
    return [value or "none"]


def _color(value: Sequence[float]) -> list[Any]:
    return [tuple(int(np.clip(round(channel * _BYTE), 0, 255)) for channel in value)]


def _vector(value: Sequence[float]) -> list[Any]:
    return [tuple(value)]


def _numbers(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value or "none"
    return ", ".join(f"{number:.6g}" for number in _numbers(value))
