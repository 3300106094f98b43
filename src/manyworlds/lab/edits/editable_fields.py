"""Fields of a model's elements that can change while the world runs.

One table says for each field what it is in the compiled model, which values it takes, and what
follows from it. `docs/lab.md` has the same table; `tests/lab/edits/test_model_edits.py` compares
both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import mujoco
import numpy as np

from manyworlds.lab.errors import near
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.spec.elements import dof_width, joint_of

Rule = Literal["", "order", "triangle", "quat", "solref", "size", "direction"]
"""Rule that the values of a field follow together, beside the bounds of each."""


class NamedView(Protocol):
    """MuJoCo's view of an element of a model."""

    @property
    def name(self) -> str:
        """Name; empty if it has none."""
        ...

    @property
    def id(self) -> int:
        """Place among the elements of its kind."""
        ...


@dataclass(frozen=True, kw_only=True)
class EditableField:
    """Field that can change while the world runs."""

    kind: str
    name: str
    """Name of the field, as in MJCF."""
    array: str
    """Name in the compiled model."""
    size: int = 1
    """Number of values of one element."""
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    above_low: bool = False
    """True if `low` itself is out of bounds."""
    whole: bool = False
    """True for whole numbers."""
    partly: bool = False
    """True if fewer values may be given; the others stay."""
    rule: Rule = ""
    column: int = -1
    """Column of the array that is the value, negated for `kv`; -1 for all columns."""
    follows: str = ""
    """Reason why the world is compiled again, where the table of model fields has none."""
    write: str = "plain"
    """Function of `spec_writes` that writes the value into the spec."""
    attribute: str = ""
    """Attribute of the spec's element; the name if empty."""
    reference: str = ""
    """Kind of the elements that the value names; empty for numbers."""

    @property
    def compiles(self) -> bool:
        """True if other values of the model follow from this one, so that it is compiled again."""
        if self.follows:
            return True
        known = MODEL_FIELD_TABLE.get(self.array)
        if known is None or known.native is None:
            return False
        return known.native > RecomputeLevel.none

    @property
    def consequence(self) -> str:
        """Recomputation that follows from a change, for people."""
        if self.follows:
            return f"compile, `mj_setConst` ({self.follows})"
        return "compile, `mj_setConst`" if self.compiles else "none: read in each step"

    def rows(self, model: mujoco.MjModel, id: int) -> slice:
        """Return the rows of the array that belong to an element, a slice."""
        if self.array.startswith("dof_"):
            start = int(model.jnt_dofadr[id])
            return slice(start, start + dof_width(int(model.jnt_type[id])))
        if self.array.startswith(("actuator_ctrlrange", "actuator_ctrllimited")):
            start = int(model.actuator_ctrladr[id])
            return slice(start, start + int(model.actuator_ctrlnum[id]))
        return slice(id, id + 1)

    def read(self, model: mujoco.MjModel, id: int) -> np.ndarray:
        """Return the present value, shape [size], or of a reference the id, shape [1]."""
        row = getattr(model, self.array)[self.rows(model, id)]
        if not len(row):
            return np.zeros(0)
        value = np.array(row[0], float).reshape(-1)
        if self.column >= 0:
            value = value[self.column : self.column + 1]
        if self.name == "kv":
            return np.abs(value)
        return value[: count_of(self, model, id)]

    def names_of(self, model: mujoco.MjModel) -> list[str]:
        """Return the names that a reference may have; empty for none."""
        count = number_of(model, self.reference)
        return ["", *(accessor(model, self.reference, i).name for i in range(count))]

    def present(self, model: mujoco.MjModel, id: int) -> object:
        """Return the present value as plain data: a number, a list, or a name."""
        value = self.read(model, id)
        if self.reference:
            index = int(value[0])
            return accessor(model, self.reference, index).name if index >= 0 else ""
        numbers = [int(v) if self.whole else float(v) for v in value]
        return numbers[0] if self.size == 1 else numbers


_SIZES = {
    mujoco.mjtGeom.mjGEOM_SPHERE: 1,
    mujoco.mjtGeom.mjGEOM_CAPSULE: 2,
    mujoco.mjtGeom.mjGEOM_CYLINDER: 2,
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: 3,
    mujoco.mjtGeom.mjGEOM_BOX: 3,
    mujoco.mjtGeom.mjGEOM_PLANE: 3,
}


def count_of(field: EditableField, model: mujoco.MjModel, id: int) -> int:
    """Return the number of values that an element has of a field; 0 if it cannot have any."""
    if field.rule == "size":
        return _SIZES.get(mujoco.mjtGeom(int(getattr(model, f"{field.kind}_type")[id])), 0)
    return field.size


_POS = {"size": 3, "unit": "m", "write": "pose"}
_QUAT = {"size": 4, "unit": "wxyz", "rule": "quat", "write": "pose"}
_INERTIAL = {"write": "inertial"}
_SHARE = {"low": 0.0, "high": 1.0}
_RGBA = {"size": 4}
_SOLREF = {"size": 2, "rule": "solref", "unit": "s, 1"}
_SOLIMP = {"size": 5, "partly": True}
_RANGE = {"size": 2, "rule": "order", "follows": "limits"}
_LENGTH = {"unit": "m"}
_ARMATURE = {"unit": "kg m² or kg"}
_DAMPER = {"write": "first", "follows": "springs"}
_PRM = {"size": 10, "partly": True, "follows": "damping ratios"}
_GAIN = {"column": 0, "low": 0.0, "follows": "damping ratios"}
_WHOLE = {"whole": True, "low": 0}
_COLOR = {"size": 3}
_MATERIAL = {"reference": "material", "write": "reference"}

_FIELDS: Mapping[str, Mapping[str, tuple[str, Mapping[str, object]]]] = {
    "body": {
        "pos": ("body_pos", _POS),
        "quat": ("body_quat", _QUAT),
        "mass": ("body_mass", {"unit": "kg", **_INERTIAL}),
        "inertia": (
            "body_inertia",
            {"size": 3, "unit": "kg m²", "rule": "triangle", **_INERTIAL},
        ),
        "ipos": ("body_ipos", {"size": 3, "unit": "m", **_INERTIAL}),
        "iquat": ("body_iquat", {"size": 4, "unit": "wxyz", "rule": "quat", **_INERTIAL}),
        "gravcomp": ("body_gravcomp", {}),
    },
    "joint": {
        "range": ("jnt_range", _RANGE | {"unit": "rad or m", "write": "angle"}),
        "damping": ("dof_damping", _DAMPER | {"unit": "N m s/rad or N s/m"}),
        "stiffness": ("jnt_stiffness", _DAMPER | {"unit": "N m/rad or N/m"}),
        "armature": ("dof_armature", _ARMATURE),
        "frictionloss": ("dof_frictionloss", {"unit": "N m or N"}),
        "actuatorfrcrange": (
            "jnt_actfrcrange",
            _RANGE | {"unit": "N m or N", "attribute": "actfrcrange"},
        ),
        "axis": ("jnt_axis", {"size": 3, "rule": "direction", "write": "direction"}),
        "pos": ("jnt_pos", {"size": 3, "unit": "m", "write": "point"}),
        "margin": ("jnt_margin", {"unit": "rad or m", "write": "angle"}),
        "solreflimit": ("jnt_solref", _SOLREF | {"attribute": "solref_limit"}),
        "solimplimit": ("jnt_solimp", _SOLIMP | {"attribute": "solimp_limit"}),
        "solreffriction": ("dof_solref", _SOLREF | {"attribute": "solref_friction"}),
        "solimpfriction": ("dof_solimp", _SOLIMP | {"attribute": "solimp_friction"}),
    },
    "geom": {
        "pos": ("geom_pos", _POS),
        "quat": ("geom_quat", _QUAT),
        "size": (
            "geom_size",
            {"size": 3, "rule": "size", "unit": "m", "write": "size"},
        ),
        "rgba": ("geom_rgba", _RGBA),
        "material": ("geom_matid", _MATERIAL),
        "friction": ("geom_friction", {"size": 3, "partly": True}),
        "solref": ("geom_solref", _SOLREF),
        "solimp": ("geom_solimp", _SOLIMP),
        "solmix": ("geom_solmix", {}),
        "margin": ("geom_margin", _LENGTH),
        "gap": ("geom_gap", _LENGTH),
        "condim": ("geom_condim", {"whole": True, "low": 1, "high": 6}),
        "priority": ("geom_priority", {"whole": True}),
        "contype": ("geom_contype", _WHOLE | {"follows": "collision masks of bodies"}),
        "conaffinity": ("geom_conaffinity", _WHOLE | {"follows": "collision masks of bodies"}),
        "group": ("geom_group", _WHOLE | {"high": 30}),
    },
    "site": {
        "pos": ("site_pos", _POS),
        "quat": ("site_quat", _QUAT),
        "size": (
            "site_size",
            {"size": 3, "rule": "size", "low": 0.0, "unit": "m", "write": "size"}
            | {"follows": "volumes of sensors"},
        ),
        "rgba": ("site_rgba", _RGBA | _SHARE),
        "material": ("site_matid", _MATERIAL),
        "group": ("site_group", _WHOLE | {"high": 30}),
    },
    "camera": {
        "pos": ("cam_pos", _POS),
        "quat": ("cam_quat", _QUAT),
        "fovy": ("cam_fovy", {"unit": "deg"}),
    },
    "light": {
        "pos": ("light_pos", {"size": 3, "unit": "m", "write": "point"}),
        "dir": ("light_dir", {"size": 3, "rule": "direction", "write": "direction"}),
        "diffuse": ("light_diffuse", _COLOR),
        "ambient": ("light_ambient", _COLOR),
        "specular": ("light_specular", _COLOR),
    },
    "tendon": {
        "stiffness": ("tendon_stiffness", _DAMPER | {"unit": "N/m"}),
        "damping": ("tendon_damping", _DAMPER | {"unit": "N s/m"}),
        "frictionloss": ("tendon_frictionloss", {"unit": "N"}),
        "armature": ("tendon_armature", _ARMATURE),
        "range": ("tendon_range", _RANGE | {"unit": "m"}),
        "margin": ("tendon_margin", _LENGTH),
        "width": ("tendon_width", _LENGTH | {"low": 0.0, "above_low": True}),
        "rgba": ("tendon_rgba", _RGBA | _SHARE),
        "material": ("tendon_matid", _MATERIAL),
        "solreflimit": ("tendon_solref_lim", _SOLREF | {"attribute": "solref_limit"}),
        "solimplimit": ("tendon_solimp_lim", _SOLIMP | {"attribute": "solimp_limit"}),
    },
    "actuator": {
        "kp": ("actuator_gainprm", _GAIN | {"write": "kp"}),
        "kv": ("actuator_biasprm", _GAIN | {"column": 2, "write": "kv"}),
        "gainprm": ("actuator_gainprm", _PRM),
        "biasprm": ("actuator_biasprm", _PRM),
        "ctrlrange": ("actuator_ctrlrange", _RANGE | {"write": "ctrlrange"}),
        "forcerange": ("actuator_forcerange", _RANGE | {"unit": "N m or N"}),
        "gear": ("actuator_gear", {"size": 6, "partly": True}),
    },
    "sensor": {
        "noise": ("sensor_noise", {"low": 0.0}),
        "cutoff": ("sensor_cutoff", {"low": 0.0}),
    },
    "material": {
        "rgba": ("mat_rgba", _RGBA),
        "specular": ("mat_specular", {}),
        "shininess": ("mat_shininess", {}),
        "reflectance": ("mat_reflectance", _SHARE),
        "emission": ("mat_emission", {}),
    },
    "equality": {
        "solref": ("eq_solref", _SOLREF),
        "solimp": ("eq_solimp", _SOLIMP),
    },
}


def _bounds(array: str) -> dict[str, object]:
    """Return the bounds that the table of model fields has."""
    if array not in MODEL_FIELD_TABLE:
        return {}
    bounds = MODEL_FIELD_TABLE[array].bounds
    return {"low": bounds.low, "high": bounds.high, "above_low": bounds.above_low}


def _declared(kind: str) -> dict[str, EditableField]:
    """Return the fields of a kind that `_FIELDS` declares, by name."""
    fields = {}
    for name, (array, rest) in _FIELDS[kind].items():
        settings: dict[str, Any] = {**_bounds(array), **rest}
        fields[name] = EditableField(kind=kind, name=name, array=array, **settings)
    return fields


EDITABLE: dict[str, dict[str, EditableField]] = {kind: _declared(kind) for kind in _FIELDS}
"""Editable fields by kind of element and name."""

SPEC_LISTS = {kind: f"{kind}s" for kind in EDITABLE} | {"body": "bodies", "equality": "equalities"}
"""Name of the list of a spec that has the elements of a kind."""

_REMEDIES = {
    ("geom", "mass"): "set 'mass' of its body",
    ("geom", "density"): "set 'mass' of its body",
    ("joint", "limited"): "set its 'range', or change the model and rebuild",
}


def find_field(kind: str, name: str) -> EditableField:
    """Return an editable field, by its name in MJCF or in the compiled model.

    Raises:
        KeyError: there is none.
    """
    fields = EDITABLE[kind]
    if name in fields:
        return fields[name]
    for field in fields.values():
        if field.array == name and field.column < 0:
            return field
    if (kind, name) in _REMEDIES or hasattr(_element_type(kind), name):
        remedy = _REMEDIES.get((kind, name), "change the model and rebuild (LiveLab.rebuild)")
        raise KeyError(f"'{name}' of a {kind} cannot change while the world runs: {remedy}.")
    raise KeyError(
        f"A {kind} has no field '{name}'; it has {', '.join(fields)}{near(name, fields)}"
    )


def check_value(
    field: EditableField, model: mujoco.MjModel, id: int, value: object
) -> np.ndarray | str:
    """Return a value in the shape that the field has in the model; a name for a reference.

    Raises:
        ValueError: the value is not valid for the field, with one sentence that says why.
    """
    what = f"{field.name} of the {field.kind} '{name_of(model, field.kind, id)}'"
    if field.reference:
        names = field.names_of(model)
        if not isinstance(value, str) or value not in names:
            known = ", ".join(names[1:]) or "none"
            raise ValueError(
                f"{what} must be empty or one of {known}, got {value!r}{near(value, names)}"
            )
        return value
    return _Checked(field, model, id, what).check(value)


@dataclass
class _Checked:
    """Check of numbers for one element."""

    field: EditableField
    model: mujoco.MjModel
    id: int
    what: str

    def check(self, value: object) -> np.ndarray:
        """Return all values, shape [size]; raise ValueError if one is not valid."""
        field = self.field
        what = self.what
        count = count_of(field, self.model, self.id)
        if not count:
            raise ValueError(f"{what} comes from its mesh: change the mesh and rebuild.")
        present = field.read(self.model, self.id)
        if not len(present):
            raise ValueError(f"{what} cannot be set: it has no degrees of freedom, or no control.")
        numbers = self._numbers(value, count)
        full = present.copy()
        full[: len(numbers)] = numbers
        full = self._normalized(full)
        low, high = field.low, field.high
        bad = (full < low) | (full > high)
        if field.above_low:
            bad |= full == low
        if bad.any():
            raise ValueError(f"{what} must be {self._bounds()}, got {_text(numbers)}.")
        if field.whole and (full != np.round(full)).any():
            raise ValueError(f"{what} must be a whole number, got {_text(numbers)}.")
        reason = _broken_rule(field, full, self.model, self.id)
        if reason:
            raise ValueError(f"{what} {reason}, got {_text(numbers)}.")
        return full

    def _numbers(self, value: object, count: int) -> np.ndarray:
        try:
            numbers = np.array(value, float)
        except (TypeError, ValueError):
            raise ValueError(f"{self.what} must be numbers, got {value!r}.") from None
        flat = numbers.reshape(-1)
        exact = flat.size == count or (self.field.partly and 0 < flat.size <= count)
        exact |= self.field.rule == "size" and flat.size == 3
        if numbers.ndim > 1 or not exact:
            many = "one number" if count == 1 else f"{count} numbers"
            if self.field.partly:
                many = f"up to {many}"
            raise ValueError(f"{self.what} must be {many}, got {_text(flat)} ({flat.size}).")
        if not np.isfinite(flat).all():
            raise ValueError(f"{self.what} must be finite, got {_text(flat)}.")
        return flat[:count]

    def _normalized(self, full: np.ndarray) -> np.ndarray:
        """Return a quaternion or a direction of length 1."""
        if self.field.rule not in ("quat", "direction"):
            return full
        length = float(np.linalg.norm(full))
        if length < mujoco.mjMINVAL:
            raise ValueError(f"{self.what} must not be zero, got {_text(full)}.")
        return full if abs(length - 1.0) < 1e-15 else full / length

    def _bounds(self) -> str:
        field = self.field
        if field.above_low:
            text = f"above {field.low:g}"
        elif math.isinf(field.high):
            text = f"at least {field.low:g}"
        else:
            text = f"from {field.low:g}"
        if not math.isinf(field.high):
            text += f" to {field.high:g}"
        return f"{text} {field.unit}" if field.unit else text


def _broken_rule(field: EditableField, value: np.ndarray, model: mujoco.MjModel, id: int) -> str:
    """Return the rule that values do not follow, as the end of a sentence; empty if they do."""
    if field.rule == "order" and not value[0] < value[1]:
        return "must have its low end below its high end"
    if field.rule == "triangle" and 2.0 * value.max() > value.sum() * (1.0 + 1e-12):
        return "violates the triangle inequality: the largest must not exceed the sum of the others"
    if field.rule == "solref" and (value > 0).all() != (value > 0).any():
        return "must be both above 0 (time constant, damping ratio) or both at most 0"
    if field.rule == "size":
        sizes = value
        if field.kind == "geom" and model.geom_type[id] == mujoco.mjtGeom.mjGEOM_PLANE:
            sizes = value[2:]  # half lengths of 0 are infinite
        if sizes.min(initial=1.0) <= 0.0:
            return "must be above 0 m"
    if field.name.startswith("solimp") and (value[[0, 1, 3]].max() > 1.0 or value[4] < 1.0):
        return "must have dmin, dmax and midpoint from 0 to 1, and a power of at least 1"
    if field.name == "condim" and value[0] not in (1.0, 3.0, 4.0, 6.0):
        return "must be 1, 3, 4 or 6"
    return ""


def name_of(model: mujoco.MjModel, kind: str, id: int) -> str:
    """Return the name of an element, or its id if it has none."""
    return accessor(model, kind, id).name or str(id)


def accessor(model: mujoco.MjModel, kind: str, id: int | str) -> NamedView:
    """Return MuJoCo's view of an element, by id or name."""
    short = {"equality": "eq", "material": "mat", "camera": "cam"}.get(kind, kind)
    return getattr(model, short)(id)


def body_of(model: mujoco.MjModel, kind: str, id: int) -> int:
    """Return the body that an element is on, or acts on; 0 if it is on none, or on several."""
    if kind == "body":
        return id
    arrays = {"joint": "jnt_bodyid", "camera": "cam_bodyid"}
    array = arrays.get(kind, f"{kind}_bodyid")
    if hasattr(model, array):
        return int(getattr(model, array)[id])
    if kind == "actuator":
        joint = joint_of(model, id)
        if joint >= 0:
            return int(model.jnt_bodyid[joint])
    if kind == "sensor":
        on = mujoco.mjtObj(int(model.sensor_objtype[id])).name.removeprefix("mjOBJ_").lower()
        if on == "xbody":
            on = "body"
        if on in EDITABLE and on != "sensor":
            return body_of(model, on, int(model.sensor_objid[id]))
    return 0


def number_of(model: mujoco.MjModel, kind: str) -> int:
    """Return the number of elements of a kind."""
    short = {"joint": "njnt", "camera": "ncam", "material": "nmat", "equality": "neq"}
    return int(getattr(model, short.get(kind, f"n{kind}")))


def applies(field: EditableField, model: mujoco.MjModel, id: int) -> bool:
    """Return True if an element has the field: gains of actuators that have none are left out."""
    if field.kind == "body" and id == 0:
        return False
    if field.name in ("kp", "kv"):
        return has_gain(model, id, field.name)
    free = field.kind == "joint" and model.jnt_type[id] == mujoco.mjtJoint.mjJNT_FREE
    if free and field.name in ("range", "axis", "pos", "margin", "actuatorfrcrange"):
        return False
    return bool(count_of(field, model, id)) and bool(len(field.read(model, id)))


def has_gain(model: mujoco.MjModel, actuator: int, name: str) -> bool:
    """Return True if an actuator has a gain `kp` of a position, or `kv` of a velocity."""
    bias = model.actuator_biasprm[actuator]
    gain = model.actuator_gainprm[actuator, 0]
    if model.actuator_biastype[actuator] != mujoco.mjtBias.mjBIAS_AFFINE:
        return False
    return name == "kv" or bool(bias[1]) or not gain


def field_table() -> list[tuple[str, str, str, str, str, str]]:
    """Return kind, field, name in the model, shape, unit and consequence of each field."""
    rows = []
    for fields in EDITABLE.values():
        for field in fields.values():
            array = field.array if field.column < 0 else f"{field.array}[{field.column}]"
            shape = "name" if field.reference else str(field.size)
            rows.append((field.kind, field.name, array, shape, field.unit, field.consequence))
    return rows


def _element_type(kind: str) -> type:
    return getattr(mujoco, f"Mjs{kind.capitalize()}")


def _text(values: Sequence[float] | np.ndarray) -> str:
    return " ".join(f"{value:g}" for value in np.ravel(values))
