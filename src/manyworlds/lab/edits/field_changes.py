"""Fields of a model that were changed in a lab, as randomization of a training."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from manyworlds.envs.mdp import dr
from manyworlds.envs.mdp.dr.distributions import ABS, ADD, SCALE, Operation, resolve_operation
from manyworlds.lab.edits.editable_fields import EDITABLE, EditableField
from manyworlds.lab.world.card import RandomizedRows, read_card
from manyworlds.live.edits import AddRandomization, EnvironmentEdit, SetValue
from manyworlds.managers.event_manager import plain_function

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.lab.lab import LiveLab

_GAINS = {"kp": "kp_range", "kv": "kd_range"}
_NO_NAME = re.compile(r"\W+")


@dataclass(frozen=True)
class FieldChange:
    """Field of an element that has another value than before the edits in a lab."""

    field: EditableField
    element: str
    """Name of the element, with its entity."""
    id: int
    """Place among the elements of its kind."""
    before: np.ndarray
    now: np.ndarray

    @property
    def text(self) -> str:
        """The change in one line."""
        what = f"{self.field.name} of {self.field.kind} {self.element}"
        return f"{what}: {_text(self.before)} to {_text(self.now)}"

    @property
    def columns(self) -> list[int]:
        """Columns that differ."""
        return np.flatnonzero(self.before != self.now).tolist()


def _text(row: np.ndarray) -> str:
    return " ".join(f"{value:.6g}" for value in row)


def changes_of(lab: LiveLab) -> list[FieldChange]:
    """Return the numeric fields that `set_model` has changed, in the order of the changes."""
    found = []
    for (kind, name, field), original in lab.edits.originals.items():
        what = EDITABLE[kind][field]
        if what.reference:
            continue
        place = lab.edits.find((kind, name))
        before = np.atleast_1d(np.asarray(original, float))
        found.append(FieldChange(what, name, place[1], before, what.read(lab.model, place[1])))
    return found


def edits_of(env: ManagerBasedRlEnv, changes: list[FieldChange]) -> list[EnvironmentEdit]:
    """Return edits of a training that let its worlds have values up to the changed ones.

    The range of an event that draws the field already becomes wide enough; else a new event draws
    between the compiled and the changed value.

    Args:
        env: environment of one world of the training.
        changes: the changes.

    Raises:
        ValueError: a field cannot be randomized, or an event draws it from something else than a
            range.
    """
    rows = read_card(env, 0).randomized
    gains: dict[str, list[FieldChange]] = {}
    for change in changes:
        if change.field.name in _GAINS:
            gains.setdefault(change.element, []).append(change)
    edits = [_gains(env, of_element) for of_element in gains.values()]
    for change in changes:
        if change.field.name in _GAINS:
            continue
        left = change.columns
        for row in rows:
            drawn = [column for column in left if _draws(row, change, column)]
            if drawn:
                edits.append(_widened(env, row, change, drawn))
                left = [column for column in left if column not in drawn]
        if left:
            edits.append(_new(env, change, left))
    return edits


def _draws(row: RandomizedRows, change: FieldChange, column: int) -> bool:
    """Return True if an event draws a column of a changed field."""
    if row.field != change.field.array or change.element not in row.names:
        return False
    if row.low is None:
        return True
    return bool(np.isfinite(row.low[row.names.index(change.element), column]))


def _widened(
    env: ManagerBasedRlEnv, row: RandomizedRows, change: FieldChange, columns: list[int]
) -> EnvironmentEdit:
    """Return the edit that widens the ranges of an event for some columns."""
    term = env.event_manager.get_term_cfg(row.event)
    known = inspect.signature(plain_function(term.func)).parameters
    settings = {name: p.default for name, p in known.items()} | dict(term.params)
    if "ranges" not in settings or row.low is None:
        raise ValueError(
            f"The event '{row.event}' draws {change.field.array} in a way that has no range to be "
            f"widened ({row.draw}): set its parameters by send_value."
        )
    operation = resolve_operation(settings["operation"])
    nominal = row.nominal[row.names.index(change.element)]
    ranges = settings["ranges"]
    for column in columns:
        pair = float(change.now[column]), float(nominal[column])
        wanted = _in_terms_of(operation, *pair, change)
        ranges = _wider(ranges, column, change.element.partition("/")[2], wanted)
    return SetValue(path=f"events.{row.event}.params.ranges", value=ranges)


def _in_terms_of(operation: Operation, value: float, nominal: float, change: FieldChange) -> float:
    """Return the draw from which an operation makes a value."""
    if operation not in (ABS, ADD, SCALE):
        raise ValueError(
            f"The event that draws the {change.text} has an operation of its own, "
            f"'{operation.name}', so that no range follows: set its parameters by send_value."
        )
    if operation == ADD:
        return value - nominal
    if operation == SCALE:
        if nominal == 0.0:
            raise ValueError(
                f"The event that draws the {change.text} multiplies the compiled value, which is "
                "0: add another event."
            )
        return value / nominal
    return value


def _wider(ranges: Any, column: int, element: str, value: float) -> Any:
    """Return ranges of an event, with a value in them."""
    if not isinstance(ranges, Mapping):
        return min(ranges[0], value), max(ranges[1], value)
    wider = dict(ranges)
    for key, pair in ranges.items():
        if key == column or (isinstance(key, str) and re.fullmatch(key, element)):
            wider[key] = _wider(pair, column, element, value)
    return wider


def _new(env: ManagerBasedRlEnv, change: FieldChange, columns: list[int]) -> EnvironmentEdit:
    """Return the edit that adds an event for some columns of a field."""
    functions = {}
    for name in dr.__all__:
        function = getattr(dr, name)
        draws = hasattr(function, "model_fields")
        if draws and "ranges" in inspect.signature(function).parameters:
            functions[function.model_fields[0]] = name
    field = change.field
    if field.array not in functions:
        raise ValueError(
            f"'{field.name}' of a {field.kind} cannot be randomized by a range: "
            f"{', '.join(sorted(functions))} can. Set it back, or send a start state."
        )
    nominal = field.read(env.sim.mj_model, change.id)
    # Back to the compiled value is a change, too: from the drawn one.
    pairs = {column: (float(nominal[column]), float(change.now[column])) for column in columns}
    ranges = {column: (min(pair), max(pair)) for column, pair in pairs.items() if len({*pair}) > 1}
    if not ranges:
        raise ValueError(f"The {change.text} is the compiled value: no range follows from it.")
    name = functions[field.array]
    return AddRandomization(
        name=_name(f"{name} {change.element}"),
        func=name,
        params={"ranges": ranges, "operation": "abs", "asset_cfg": _selected(change)},
    )


def _gains(env: ManagerBasedRlEnv, changes: list[FieldChange]) -> EnvironmentEdit:
    """Return the edit that randomizes the gains of an actuator."""
    params: dict[str, Any] = dict.fromkeys(_GAINS.values(), (1.0, 1.0))
    for change in changes:
        nominal = float(change.field.read(env.sim.mj_model, change.id)[0])
        factor = _in_terms_of(SCALE, float(change.now[0]), nominal, change)
        params[_GAINS[change.field.name]] = min(1.0, factor), max(1.0, factor)
    params |= {"operation": "scale", "asset_cfg": _selected(changes[0])}
    return AddRandomization(
        name=_name(f"pd_gains {changes[0].element}"), func="pd_gains", params=params
    )


def _selected(change: FieldChange) -> dict[str, Any]:
    """Return the parameter `asset_cfg` for the element of a change."""
    entity, slash, element = change.element.partition("/")
    if not slash:
        raise ValueError(
            f"The {change.field.kind} '{change.element}' belongs to no entity of the task, so that "
            "no event can randomize it."
        )
    return {"name": entity, f"{change.field.kind}_names": (re.escape(element),)}


def _name(text: str) -> str:
    """Return a name of an event."""
    return "sent_" + _NO_NAME.sub("_", text)
