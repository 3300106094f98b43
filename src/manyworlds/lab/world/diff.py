"""Differences of two compiled models, element by element."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.spec.elements import dof_width
from manyworlds.spec.load import explained

_PREFIXES = {
    "body": "body",
    "joint": "jnt",
    "geom": "geom",
    "site": "site",
    "camera": "cam",
    "light": "light",
    "actuator": "actuator",
    "sensor": "sensor",
    "tendon": "tendon",
    "equality": "eq",
    "mesh": "mesh",
    "material": "mat",
    "key": "key",
}
"""Prefix of the model fields of each kind of element."""
_COUNTS = {"joint": "njnt", "camera": "ncam", "equality": "neq", "material": "nmat"}
_REFERENCES = {
    "body_parentid": "body",
    "jnt_bodyid": "body",
    "geom_bodyid": "body",
    "geom_matid": "material",
    "site_bodyid": "body",
    "cam_bodyid": "body",
    "light_bodyid": "body",
}
_OF_DOFS = ("armature", "damping", "dampingpoly", "frictionloss", "solref", "solimp")
# Fields of MuJoCo's internal bookkeeping, and fields that it computes from others.
_BOOKS = re.compile(r"(adr|num|id|simple|sameframe|pos0|mat0|dir0|poscom0)$|_lengthrange$|0$")
_COMPUTED = {
    "body_subtreemass",
    "body_contype",
    "body_conaffinity",
    "body_margin",
    "geom_rbound",
    "geom_aabb",
    "light_texid",
    "sensor_needstage",
}
_SHAPES = {"mesh_vertnum", "mesh_facenum"}


@dataclass(frozen=True)
class Difference:
    """One field of one element, or an element that only one of the models has."""

    kind: str
    """Kind of the element (body, joint, geom ...), or `option`."""
    name: str
    """Name of the element; `BODY:0` for the first unnamed one of a body."""
    field: str
    """MuJoCo's name of the field; empty if the whole element is missing."""
    first: str
    second: str

    def __str__(self) -> str:
        """Return one line of text."""
        what = f"{self.kind} {self.name}".strip()
        return f"{what}: {self.field} {self.first} -> {self.second}".replace(":  ", ": ")


def load_model(path: Path) -> mujoco.MjModel:
    """Compile an MJCF or URDF file, or read a binary one (`.mjb`).

    Raises:
        FileNotFoundError: there is no such file.
        ModelFileError: it does not compile.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file '{path}'.")
    path.open("rb").close()  # MuJoCo reads a file without read permission as an empty one
    try:
        if path.suffix == ".mjb":
            return mujoco.MjModel.from_binary_path(str(path))
        return mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, mujoco.FatalError) as error:
        raise explained(path, error) from None


def diff_models(
    first: mujoco.MjModel, second: mujoco.MjModel, prefix: str = "", tolerance: float = 1e-4
) -> list[Difference]:
    """Compare options, and elements of the same name; skip fields that derive from others.

    Args:
        first: a model.
        second: another model.
        prefix: name prefix of the elements of `second` to compare, which the names in `first` lack;
            if it is given, all other elements, unnamed elements without a body, and the options
            are skipped.
        tolerance: largest relative difference of equal numbers; files have six digits.
    """
    found = [] if prefix else _options(first.opt, second.opt, tolerance)
    for kind in _PREFIXES:
        mine = _elements(first, kind, "")
        theirs = _elements(second, kind, prefix)
        if prefix:  # an unnamed element without a body may be of any robot
            mine = {
                name: fields for name, fields in mine.items() if not name.startswith(f"{kind}:")
            }
        for name in mine | theirs:
            if name not in theirs:
                found.append(Difference(kind, name, "", "here", "missing"))
            elif name not in mine:
                found.append(Difference(kind, name, "", "missing", "here"))
            else:
                found += [
                    Difference(kind, name, field, _text(value), _text(theirs[name][field]))
                    for field, value in mine[name].items()
                    if not _same(value, theirs[name][field], tolerance)
                ]
    return found


def _options(first: mujoco.MjOption, second: mujoco.MjOption, tolerance: float) -> list[Difference]:
    values = {
        name: (getattr(first, name), getattr(second, name))
        for name in dir(first)
        if not name.startswith("_")
    }
    return [
        Difference("option", "", name, _text(a), _text(b))
        for name, (a, b) in values.items()
        if not _same(a, b, tolerance)
    ]


def _elements(model: mujoco.MjModel, kind: str, prefix: str) -> dict[str, dict[str, ArrayLike]]:
    """Fields of each element of a kind but the world, by its name without the prefix."""
    start = f"{_PREFIXES[kind]}_"
    names = []
    unnamed = Counter[str]()
    owners = getattr(model, f"{start}bodyid", None)
    for i in range(getattr(model, _COUNTS.get(kind, f"n{kind}"))):
        name = _name(model, kind, i)
        # Entities name unnamed elements `geom_3` and so on.
        if not name or re.fullmatch(rf"{re.escape(prefix)}{kind}_\d+", name):
            owner = kind if owners is None else _name(model, "body", int(owners[i]))
            name = f"{owner}:{unnamed[owner]}"
            unnamed[owner] += 1
        names.append(name)
    arrays = {}
    for field in dir(model):
        derived = field not in _SHAPES and (_BOOKS.search(field) or field in _COMPUTED)
        if not field.startswith(start) or derived:
            continue
        array = getattr(model, field)
        if isinstance(array, np.ndarray) and array.shape[:1] == (len(names),):
            arrays[field] = array
    elements: dict[str, dict[str, ArrayLike]] = {}
    for i, name in enumerate(names):
        if name.startswith(prefix) and name != "world":
            fields: dict[str, ArrayLike] = {field: array[i] for field, array in arrays.items()}
            for field, value in _others(model, kind, i):
                if isinstance(value, str):
                    value = value.removeprefix(prefix)
                fields[field] = value
            elements[name.removeprefix(prefix)] = fields
    return elements


def _others(model: mujoco.MjModel, kind: str, i: int) -> Iterator[tuple[str, ArrayLike]]:
    """Names of the elements that an element refers to, and fields of its degrees of freedom."""
    for field, other in _REFERENCES.items():
        if field.startswith(f"{_PREFIXES[kind]}_"):
            yield field, _name(model, other, int(getattr(model, field)[i]))
    if kind == "joint":
        width = dof_width(mujoco.mjtJoint(model.jnt_type[i]))
        dofs = slice(model.jnt_dofadr[i], model.jnt_dofadr[i] + width)
        yield from ((f"dof_{name}", getattr(model, f"dof_{name}")[dofs]) for name in _OF_DOFS)
    if kind == "actuator":
        joint = mujoco.mjtTrn(model.actuator_trntype[i]).name.removeprefix("mjTRN_").lower()
        target = {"jointinparent": "joint", "slidercrank": "site"}.get(joint, joint)
        if target in _PREFIXES:
            yield "actuator_trnid", _name(model, target, int(model.actuator_trnid[i, 0]))
    if kind == "sensor" and model.sensor_objid[i] >= 0:
        name = mujoco.mj_id2name(model, int(model.sensor_objtype[i]), int(model.sensor_objid[i]))
        yield "sensor_objid", name or ""


def _name(model: mujoco.MjModel, kind: str, i: int) -> str:
    code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    if i < 0:
        return ""
    return mujoco.mj_id2name(model, code, i) or ""


def _same(first: ArrayLike, second: ArrayLike, tolerance: float) -> bool:
    if isinstance(first, str):
        return first == second
    return np.array_equal(first, second) or (
        np.shape(first) == np.shape(second)
        and np.allclose(first, second, rtol=tolerance, atol=tolerance * 1e-2)
    )


def _text(value: ArrayLike) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return np.array2string(np.asarray(value), precision=6, separator=" ", threshold=20)
