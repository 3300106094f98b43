"""Edits of fields of the model while the world runs."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.edits.editable_fields import (
    EDITABLE,
    EditableField,
    accessor,
    applies,
    check_value,
    find_field,
    name_of,
    number_of,
)
from manyworlds.lab.edits.spec_writes import Former, SpecWriter, restore
from manyworlds.lab.errors import UnknownElementError, near
from manyworlds.lab.moments.history import Edit
from manyworlds.lab.world.model_facts import find_elements, robot_of
from manyworlds.lab.world.model_values import STATISTICS, compute_derived, differences

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_INERTIAS = ("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_subtreemass")
"""Fields that a world of a batch keeps when shapes change: they may be randomized."""

Place = tuple[str, int]
"""Kind and id of an element."""
Originals = Mapping[tuple[str, str, str], object]
"""Compiled values of edited fields, by kind and name of the element, and the field."""
Rows = Mapping[str, tuple[Any, np.ndarray]]
"""Rows of arrays of the model: where, and their values."""


class ModelEdits:
    """Edits of a lab's model, which go into its spec, too, and can be undone.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab = lab
        self._spec: mujoco.MjSpec | None = None
        self._compiled: mujoco.MjModel | None = None
        self._scratch: mujoco.MjData | None = None
        self.only_spec = False
        """True while edits that are undone or redone leave the model as it is."""
        self.originals: Originals = {}
        """Compiled values of the fields that have other ones now; replaced, never modified."""

    @contextlib.contextmanager
    def of_spec_only(self) -> Iterator[None]:
        """Let edits that are undone or redone change the spec, and leave the model as it is."""
        self.only_spec = True
        try:
            yield
        finally:
            self.only_spec = False

    def set(self, element: str | tuple[str, str], field: str, value: object) -> object:
        """Set a field of an element from the next step on; see `LiveLab.set_model`."""
        with self._lab.history.edit():
            place = self.find(element)
            what = self._field(place, field)
            checked = check_value(what, self._lab.model, place[1], value)
            formers, rows = self._make(place, what, checked)
            edit = Edit(
                label=f"set {field} of {self.label_of(place)}",
                undo=lambda: self._undo(place, what, formers, rows),
                redo=lambda: self._make(place, what, checked),
                key=("set_model", *self._key(place, what)),
            )
            self._lab.history.record(edit)
            return what.present(self._lab.model, place[1])

    def reset(self, element: str | tuple[str, str], field: str = "") -> list[str]:
        """Set a field of an element, or all, to what it was before all edits.

        Returns:
            Names of the fields that were set.
        """
        with self._lab.history.edit():
            place = self.find(element)
            names = [field] if field else list(EDITABLE[place[0]])
            done = []
            for name in names:
                key = self._key(place, self._field(place, name, checked=False))
                if key in self.originals:
                    self.set(element, name, self.originals[key])
                    done.append(name)
            return done

    def read(self, element: str | tuple[str, str]) -> list[dict[str, object]]:
        """Return the fields that an element has, as plain data.

        Each has its name, value, unit, bounds, what follows from a change, and the compiled value.
        """
        place = self.find(element)
        model = self._lab.model
        kind, id = place
        found = []
        for name, what in EDITABLE[kind].items():
            if not applies(what, model, id):
                continue
            value = what.present(model, id)
            found.append(
                {
                    "name": name,
                    "value": value,
                    "model_value": self.originals.get(self._key(place, what), value),
                    "unit": what.unit,
                    "low": what.low if np.isfinite(what.low) else None,
                    "high": what.high if np.isfinite(what.high) else None,
                    "whole": what.whole,
                    "choices": what.names_of(model) if what.reference else None,
                    "consequence": what.consequence,
                }
            )
        return found

    def find(self, element: str | tuple[str, str]) -> Place:
        """Return the kind and the id of an element.

        Args:
            element: `body:cup`, or the kind and the name; the name is full or without the prefix of
                the only robot that has one, or the id of an element without a name.

        Raises:
            KeyError: there is no such element.
            ValueError: there is no such kind.
        """
        if isinstance(element, str):
            kind, colon, name = element.partition(":")
        else:
            kind, name = element
            colon = ":"
        if not colon or kind not in EDITABLE:
            raise ValueError(
                f"An element is named 'KIND:NAME', as 'body:cup', with one of the kinds "
                f"{', '.join(EDITABLE)}; got {element!r}{near(kind, EDITABLE)}"
            )
        model = self._lab.model
        ids = find_elements(model, kind, name, self._lab.world.robots.values())
        if len(ids) > 1 and name not in ids:
            raise UnknownElementError(
                f"Several robots have a {kind} '{name}': name one of {', '.join(ids)}."
            )
        if ids:
            return kind, next(iter(ids.values()))
        count = number_of(model, kind)
        if name.isdecimal() and int(name) < count:
            return kind, int(name)
        known = [accessor(model, kind, i).name for i in range(count)]
        hint = near(name, known, f": the model has {count}, named or with ids from 0.")
        raise UnknownElementError(f"There is no {kind} '{name}'{hint}")

    def label_of(self, place: Place) -> str:
        """Return `KIND:NAME` of an element, with its id if it has no name."""
        return f"{place[0]}:{name_of(self._lab.model, *place)}"

    def type_of(self, place: Place) -> str:
        """Return the type of an element as its author wrote it: `hinge`, `box`, `position` ..."""
        kind, id = place
        if kind == "actuator":
            return self._lab.world.actuator_types[id]
        types = {"joint": mujoco.mjtJoint, "geom": mujoco.mjtGeom, "site": mujoco.mjtGeom}
        types |= {"sensor": mujoco.mjtSensor, "equality": mujoco.mjtEq}
        if kind not in types:
            return kind
        array = {"joint": "jnt_type", "equality": "eq_type"}.get(kind, f"{kind}_type")
        code = int(getattr(self._lab.model, array)[id])
        return types[kind](code).name.partition("_")[2].lower()

    def names(self, kind: str = "") -> list[dict[str, object]]:
        """Return the names of elements, all kinds by default, and those in the robots' files."""
        world = self._lab.world
        found = []
        for each in [kind] if kind else EDITABLE:
            owners = world.elements.owners.get({"joint": "jnt", "camera": "cam"}.get(each, each))
            for i in range(number_of(world.model, each)):
                name = accessor(world.model, each, i).name
                robot = None
                if owners is not None:
                    robot = owners[i]
                elif name:  # materials, equalities ... belong to the robot of their name
                    robot = robot_of(name, world.robots)
                prefix = "" if robot is None else world.robots[robot]
                found.append(
                    {
                        "kind": each,
                        "id": i,
                        "name": name,
                        "robot": robot or "",
                        "original": name.removeprefix(prefix),
                        "source": world.sources.get(robot or "", ""),
                    }
                )
        return found

    def _field(self, place: Place, name: str, checked: bool = True) -> EditableField:
        what = find_field(place[0], name)
        if checked and not applies(what, self._lab.model, place[1]):
            raise ValueError(
                f"The {place[0]} '{name_of(self._lab.model, *place)}' has no '{what.name}' that "
                f"can be set{_why_not(what, self._lab.model, place[1])}."
            )
        return what

    def _key(self, place: Place, what: EditableField) -> tuple[str, str, str]:
        return place[0], name_of(self._lab.model, *place), what.name

    def _note_original(self, place: Place, what: EditableField, before: object) -> None:
        """Keep the compiled value of a field, unless the field has it again."""
        key = self._key(place, what)
        originals = {key: before, **self.originals}
        if originals[key] == what.present(self._lab.model, place[1]):
            del originals[key]
        self.originals = originals

    def _make(
        self, place: Place, what: EditableField, value: np.ndarray | str
    ) -> tuple[list[Former], Rows]:
        """Carry out an edit; return what was in the spec and in the model before."""
        before = what.present(self._lab.model, place[1])
        try:
            return self._carry_out(place, what, value)
        finally:
            self._note_original(place, what, before)

    def _undo(self, place: Place, what: EditableField, formers: list[Former], rows: Rows) -> None:
        """Restore the spec and the rows of a field as they were before an edit."""
        compiled = self._bind()
        before = what.present(self._lab.model, place[1])
        restore(self._lab.world.spec, formers)
        after = self._compile() if what.compiles else compiled
        self._write(what, compiled, after, rows)
        self._compiled = after
        self._note_original(place, what, before)

    def _carry_out(
        self, place: Place, what: EditableField, value: np.ndarray | str
    ) -> tuple[list[Former], Rows]:
        """Write a value into the spec and the model; return what was there before."""
        lab = self._lab
        id = place[1]
        compiled = self._bind()
        spec = lab.world.spec
        writer = SpecWriter(spec, compiled)
        places = _own_rows(what, lab.model, id)
        former = {name: (at, getattr(lab.model, name)[at].copy()) for name, at in places.items()}
        try:
            writer.write(what, id, value)
            if what.compiles:
                after = self._compile()
                _check_compiled(what, after, id, value, self.label_of(place))
                rows = {name: (at, getattr(after, name)[at]) for name, at in places.items()}
            else:
                after = compiled
                row = _row_of(what, lab.model, value)
                rows = {what.array: (places[what.array], row)}
            self._write(what, compiled, after, rows)
        except Exception:
            writer.revert()
            if what.compiles:
                spec.compile()  # the ids of its elements are those of the last compilation
            raise
        self._compiled = after
        return writer.formers, former

    def _write(
        self,
        what: EditableField,
        compiled: mujoco.MjModel,
        after: mujoco.MjModel,
        rows: Rows,
    ) -> None:
        """Write what two compiled models differ in, and rows, into the live model."""
        lab = self._lab
        if self.only_spec:
            return
        if not np.array_equal(after._sizes, lab.model._sizes):
            self._rebuild(what, after)
            return
        changes: dict[str, tuple[Any, np.ndarray]] = {}
        statistics: tuple[str, ...] = ()
        if after is not compiled:
            changes = differences(compiled, after)
            if lab.world.card is not None and what.write != "inertial":
                for name in _INERTIAS:
                    changes.pop(name, None)
            statistics = STATISTICS
        constant = what.compiles and self._scratch_data(lab.model)

        def write(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            for name, (at, value) in [*changes.items(), *rows.items()]:
                getattr(model, name)[at] = value
            for name in statistics:
                setattr(model.stat, name, getattr(after.stat, name))
            if constant:
                mujoco.mj_setConst(model, constant)
            compute_derived(model, data)
            lab.loop.limits.read(model)
            if lab.environment is not None:
                lab.environment.adopt_model(model)
            lab.timeline.note_edit()

        lab.loop.do(write)

    def _rebuild(self, what: EditableField, after: mujoco.MjModel) -> None:
        """Continue in a model of other sizes, as of a mass matrix with other zeros."""
        lab = self._lab
        if lab.environment is not None or lab.world.card is not None:
            raise ValueError(
                f"'{what.name}' of this {what.kind} changes the structure of the model, which "
                "worlds of a batch share: change it in the task's configuration."
            )
        result = lab.rebuild(dataclasses.replace(lab.world, model=after), keep_history=True)
        if not result:
            raise ValueError(result.error)
        self._scratch = None

    def _bind(self) -> mujoco.MjModel:
        """Return the model that the present world's spec compiles to."""
        world = self._lab.world
        if self._spec is world.spec and self._compiled is not None:
            return self._compiled
        if world.card is not None:
            world.spec = world.spec.copy()  # that of the batch stays as it is
        if self._spec is not None:
            self._keep_originals()
        self._spec = world.spec
        self._compiled = None
        self._scratch = None
        compiled = self._compile()
        if not np.array_equal(compiled._sizes, world.model._sizes):
            self._spec = None
            raise RuntimeError(
                "The spec of this world does not compile to its model, so that no field can be "
                "changed: build the world from the spec (world_from_spec)."
            )
        self._compiled = compiled
        return compiled

    def _keep_originals(self) -> None:
        """Keep the compiled values of named elements over an edit of the scene, else none."""
        kept = self.originals if self._lab.history.done else {}
        self.originals = {k: v for k, v in kept.items() if not k[1].isdecimal()}

    def _compile(self) -> mujoco.MjModel:
        try:
            return self._lab.world.spec.compile()
        except (ValueError, mujoco.FatalError) as error:
            raise ValueError(
                f"MuJoCo refuses this value: {' '.join(str(error).split())}"
            ) from error

    def _scratch_data(self, model: mujoco.MjModel) -> mujoco.MjData:
        if self._scratch is None:
            self._scratch = mujoco.MjData(model)
        return self._scratch


def _why_not(what: EditableField, model: mujoco.MjModel, id: int) -> str:
    if what.rule == "size":
        return ": its size comes from its mesh or height field, change that and rebuild"
    if what.kind == "body" and id == 0:
        return ": it is the world"
    if what.name in ("kp", "kv"):
        return ": it is no position or velocity actuator, set its 'gainprm' and 'biasprm'"
    return ": it has no such degree of freedom or control"


_LIMITED = {
    "jnt_range": "jnt_limited",
    "jnt_actfrcrange": "jnt_actfrclimited",
    "tendon_range": "tendon_limited",
    "actuator_ctrlrange": "actuator_ctrllimited",
    "actuator_forcerange": "actuator_forcelimited",
}


def _own_rows(what: EditableField, model: mujoco.MjModel, id: int) -> dict[str, Any]:
    """Return the rows that are the value of a field of an element, by array."""
    names = [what.array]
    if what.name in ("kp", "kv"):
        names = ["actuator_gainprm", "actuator_biasprm"]
    rows = {name: what.rows(model, id) for name in names}
    if what.array in _LIMITED:
        rows[_LIMITED[what.array]] = rows[what.array]
    return rows


def _row_of(what: EditableField, model: mujoco.MjModel, value: np.ndarray | str) -> Any:
    """Return the row of the model for a value."""
    if isinstance(value, str):
        if not value:
            return -1
        return accessor(model, what.reference, value).id
    return value if what.size > 1 else value[0]


def _check_compiled(
    what: EditableField, after: mujoco.MjModel, id: int, value: np.ndarray | str, label: str
) -> None:
    """Check that the compiled model has the value that was written into the spec."""
    found = what.read(after, id)
    same = [np.allclose(found, sign * value, rtol=1e-6, atol=1e-9) for sign in (1, -1)]
    if not (same[0] or (what.rule == "quat" and same[1])):
        raise ValueError(
            f"{what.name} of {label} cannot be {value}: the model's other settings make it "
            f"{found}; change the model and rebuild (LiveLab.rebuild)."
        )
