"""MuJoCo's options on the page."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.world.options import read_flag
from manyworlds.utils.newton import solver_note
from manyworlds.viewer.browser.markup import differences_html, note_html
from manyworlds.viewer.browser.widgets import MOST_DIGITS, ShownValue, add_number

if TYPE_CHECKING:
    import viser

_CHOICES = {
    "integrator": ("Integrator", mujoco.mjtIntegrator, "mjINT_"),
    "solver": ("Solver", mujoco.mjtSolver, "mjSOL_"),
    "cone": ("Friction cone", mujoco.mjtCone, "mjCONE_"),
}
_NUMBERS = {
    "timestep": ("Timestep [s]", 1e-4, 0.05, 1e-4),
    "iterations": ("Iterations", 1, 200, 1),
    "impratio": ("Impedance ratio", 0.1, 100.0, 0.1),
    "sleep_tolerance": ("Sleep tolerance [m/s]", 0.0, 1.0, 1e-4),
}
_SWITCHES = {
    "Contacts": "contact",
    "Gravity": "gravity",
    "Joint limits": "limit",
    "Actuation": "actuation",
    "Multiple contacts per geom pair": "multiccd",
    "Sleep": "sleep",
}


class OptionsPart(PagePart):
    """Options of the model; each change is a verb, and changes by other clients are shown.

    Options that differ from the model's are marked, and can be set back.
    """

    period = 0.5

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._option = ctx.lab.model.opt
        self._model = _model_values(ctx)
        """Values of the compiled model, by name."""
        self.inputs: dict[str, viser.GuiInputHandle[Any]] = {}
        self._shown: dict[str, ShownValue[Any]] = {}
        gui = ctx.gui
        with gui.add_folder("Physics"):
            for name, (label, kind, prefix) in _CHOICES.items():
                self._add(name, gui.add_dropdown(label, _names_of(kind, prefix)))
            for name, (label, low, high, step) in _NUMBERS.items():
                value = type(step)(getattr(self._option, name))
                own = self._model[name]
                low, high = min(low, value, own), max(high, value, own)
                self._add(name, add_number(gui, label, value, min=low, max=high, step=step))
            gravity = gui.add_vector3(
                "Gravity [m/s²]", tuple(self._option.gravity.tolist()), step=0.01
            )
            gravity.precision = MOST_DIGITS
            self._add("gravity", gravity)
            for label in _SWITCHES:
                self._add(label, gui.add_checkbox(label, True))
            self._labels = {name: handle.label for name, handle in self.inputs.items()}
            self.differences = gui.add_html("")
            self.solver_note = gui.add_html("")
            """Reason why the solver is not the one that the model asks for."""
            self.back = ctx.add_button(
                "Back to the model's",
                self._go_back,
                hint="Set the marked options to the values of the model.",
            )
        self.update(ctx.lab.snapshot)

    def update(self, snapshot: Snapshot) -> None:
        """Show the present options, and those that differ from the model's."""
        values = _shown_values(self._option)
        lines = []
        for name, value in values.items():
            self._shown[name].show(value)
            differs = value != self._model[name]
            self.inputs[name].label = self._labels[name] + (" *" if differs else "")
            if differs:
                lines.append(f"{self._labels[name]}: {_text(self._model[name])}")
        self.differences.content = differences_html(lines)
        self.back.visible = bool(lines)
        self.solver_note.content = note_html(solver_note(self._ctx.lab.model))

    def renew(self) -> list[str]:
        """Show the options of the new world."""
        self._option = self._ctx.lab.model.opt
        self._model = _model_values(self._ctx)
        for name in _NUMBERS:
            handle: Any = self.inputs[name]
            value = getattr(self._option, name)
            own = self._model[name]
            handle.min, handle.max = min(handle.min, value, own), max(handle.max, value, own)
        return []

    def _add(self, name: str, handle: viser.GuiInputHandle[Any]) -> None:
        self._ctx.on_change(handle, lambda value: self._set({name: value}))
        self.inputs[name] = handle
        self._shown[name] = ShownValue(handle)

    def _go_back(self) -> None:
        values = _shown_values(self._option)
        self._set({name: own for name, own in self._model.items() if values[name] != own})

    def _set(self, values: dict[str, Any]) -> None:
        options = {}
        for name, value in values.items():
            if name in _SWITCHES:
                self._ctx.verbs.set_sim_flag(flag=_SWITCHES[name], on=value)
            elif name in _CHOICES:
                _, kind, prefix = _CHOICES[name]
                options[name] = int(kind.__members__[prefix + value.upper()])
            else:
                options[name] = value
        if options:
            self._ctx.verbs.set_sim_options(options=options)


def _names_of(kind: Any, prefix: str) -> tuple[str, ...]:
    return tuple(name.removeprefix(prefix).lower() for name in kind.__members__)


def _model_values(ctx: PageContext) -> dict[str, Any]:
    """Return the values of the compiled model, before all changes."""
    options = ctx.verbs.read_sim_options()["model_options"]
    arrays = {name: np.array(value) for name, value in options.items()}
    return _shown_values(SimpleNamespace(**arrays))


def _shown_values(option: Any) -> dict[str, Any]:
    """Return the values of the inputs, by name, for options of MuJoCo."""
    values: dict[str, Any] = {}
    for name, (_, kind, prefix) in _CHOICES.items():
        values[name] = kind(int(getattr(option, name))).name.removeprefix(prefix).lower()
    for name, (_, _, _, step) in _NUMBERS.items():
        values[name] = type(step)(getattr(option, name))
    values["gravity"] = tuple(option.gravity.tolist())
    return values | {label: read_flag(option, flag) for label, flag in _SWITCHES.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ", ".join(f"{number:.9g}" for number in value)
    return value if isinstance(value, str) else f"{value:.9g}"
