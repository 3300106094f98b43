"""MuJoCo's options on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mujoco
from numpy.typing import ArrayLike

from manyworlds.lab.options import read_flag
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.snapshot import Snapshot

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
    "sleep_tolerance": ("Sleep [m/s]", 0.0, 1.0, 1e-4),
}
_SWITCHES = {
    "Contacts": "contact",
    "Gravity": "gravity",
    "Joint limits": "limit",
    "Actuation": "actuation",
    "Multiple contacts per geom pair": "multiccd",
    "Sleep": "sleep",
}


class OptionsPart:
    """Options of the model; each change is a verb, and changes by other clients are shown.

    Args:
        ctx: context of the page.
    """

    period = 0.5

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        self._option = ctx.lab.world.model.opt
        self.inputs: dict[str, viser.GuiInputHandle[Any]] = {}
        gui = ctx.gui
        with gui.add_folder("Physics"):
            for name, (label, kind, prefix) in _CHOICES.items():
                values = {
                    value.name.removeprefix(prefix).lower(): value
                    for value in kind.__members__.values()
                }
                handle = gui.add_dropdown(label, tuple(values))
                self._add(name, handle, lambda chosen, values=values: int(values[chosen]))
            for name, (label, low, high, step) in _NUMBERS.items():
                value = type(step)(getattr(self._option, name))
                low, high = min(low, value), max(high, value)
                handle = gui.add_number(label, value, min=low, max=high, step=step)
                self._add(name, handle, lambda value: value)
            gravity = tuple(self._option.gravity.tolist())
            handle = gui.add_vector3("Gravity [m/s²]", gravity, step=0.01)
            self._add("gravity", handle, lambda value: value)
            for label, flag in _SWITCHES.items():
                box = gui.add_checkbox(label, True)
                self.inputs[label] = ctx.on_change(
                    box, lambda on, flag=flag: ctx.call("set_sim_flag", flag=flag, on=on)
                )
        self.update(ctx.lab.snapshot)

    def update(self, snapshot: Snapshot) -> None:
        """Show the present options."""
        values: dict[str, object] = {name: getattr(self._option, name) for name in _NUMBERS}
        values["gravity"] = tuple(self._option.gravity.tolist())
        for name, (_, kind, prefix) in _CHOICES.items():
            present = kind(getattr(self._option, name)).name
            values[name] = present.removeprefix(prefix).lower()
        for label, flag in _SWITCHES.items():
            values[label] = read_flag(self._option, flag)
        for name in _NUMBERS:
            handle: Any = self.inputs[name]
            if not handle.min <= values[name] <= handle.max:
                handle.min, handle.max = (
                    min(handle.min, values[name]),
                    max(handle.max, values[name]),
                )
        for name, value in values.items():
            self.inputs[name].value = value

    def renew(self) -> list[str]:
        """Show the options of the new world."""
        self._option = self._ctx.lab.world.model.opt
        return []

    def _add(
        self, name: str, handle: viser.GuiInputHandle[Any], convert: Callable[[Any], ArrayLike]
    ) -> None:
        def change(value: Any) -> None:
            self._ctx.call("set_sim_options", options={name: convert(value)})

        self.inputs[name] = self._ctx.on_change(handle, change)
