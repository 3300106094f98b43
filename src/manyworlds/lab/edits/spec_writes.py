"""Writes of values of the compiled model into the spec that it is compiled from.

A spec has values as a model file has them: angles in degrees, poses relative to frames, geoms from
end to end, inertias that follow from geoms. The functions of `WRITERS` write a value so that the
compiled model then has it, and note what was there before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from manyworlds.lab.edits.editable_fields import SPEC_LISTS, EditableField

_AS_INFERRED = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
_QUAT = mujoco.mjtOrientation.mjORIENTATION_QUAT
_ANGLES = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_BALL)
_GLOBAL = {"settotalmass": -1.0, "boundmass": 0.0, "boundinertia": 0.0, "balanceinertia": 0}
"""Settings of the compiler that change inertias, and their values without an effect."""


@dataclass(frozen=True)
class Former:
    """Value that an attribute of the spec had before a write."""

    kind: str
    """Kind of the element; `compiler` for the settings of the compiler."""
    id: int
    path: str
    value: Any


@dataclass
class SpecWriter:
    """Writes values of one compiled model into its spec.

    Args:
        spec: the spec, as it was compiled last.
        model: the model that it compiled to.
    """

    spec: mujoco.MjSpec
    model: mujoco.MjModel
    formers: list[Former] = field(default_factory=list)
    """Values before the writes, in their order."""

    def write(self, what: EditableField, id: int, value: np.ndarray | str) -> None:
        """Write a value of an element."""
        _WRITERS[what.write](self, what, id, value)

    def revert(self) -> None:
        """Restore everything that was written."""
        restore(self.spec, self.formers)
        self.formers.clear()

    def put(self, kind: str, id: int, path: str, value: object) -> None:
        """Set one attribute of an element, `alt.type` for one of a part of it."""
        target, name = _resolve(_elements(self.spec, kind)[id], path)
        before = getattr(target, name)
        if isinstance(before, np.ndarray):
            before = before.copy()
        self.formers.append(Former(kind, id, path, before))
        setattr(target, name, value)


def _elements(spec: mujoco.MjSpec, kind: str) -> dict[int, Any]:
    """Return the elements of a kind by their ids in the model that the spec compiled to."""
    if kind == "compiler":
        return {0: spec}
    return {element.id: element for element in getattr(spec, SPEC_LISTS[kind])}


def restore(spec: mujoco.MjSpec, formers: list[Former]) -> None:
    """Restore values that attributes of a spec had before; the last write first."""
    for former in reversed(formers):
        target, name = _resolve(_elements(spec, former.kind)[former.id], former.path)
        setattr(target, name, former.value)


def _resolve(target: Any, path: str) -> tuple[Any, str]:
    *parts, name = path.split(".")
    for part in parts:
        target = getattr(target, part)
    return target, name


def _plain(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    present = getattr(_elements(to.spec, what.kind)[id], what.attribute or what.name)
    new: Any = np.array(value)
    if not isinstance(present, np.ndarray):
        new = int(value[0]) if what.whole else float(value[0])
    to.put(what.kind, id, what.attribute or what.name, new)


def _reference(to: SpecWriter, what: EditableField, id: int, value: str) -> None:
    to.put(what.kind, id, what.name, value)


def _first(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    """Write the linear part of a polynomial, and the stiffness that a time constant gave."""
    element = _elements(to.spec, what.kind)[id]
    if what.kind == "joint" and (element.springdamper > 0).all():
        dof = int(to.model.jnt_dofadr[id])
        for name, now in (
            ("stiffness", to.model.jnt_stiffness[id]),
            ("damping", to.model.dof_damping[dof]),
        ):
            to.put("joint", id, name, np.array([now, *getattr(element, name)[1:]]))
        to.put("joint", id, "springdamper", np.zeros(2))
    present = np.array(getattr(element, what.name))
    present[0] = value[0]
    to.put(what.kind, id, what.name, present)


def _angle(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    element = _elements(to.spec, "joint")[id]
    in_degrees = element.compiler.degree and element.type in _ANGLES
    if in_degrees and what.name != "margin":  # which is in radians in any file
        value = np.rad2deg(value)
    _plain(to, what, id, value)


def _ctrlrange(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    to.put("actuator", id, "inheritrange", 0.0)
    _plain(to, what, id, value)


def _kp(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    element = _elements(to.spec, "actuator")[id]
    gain, bias = np.array(element.gainprm), np.array(element.biasprm)
    gain[0] = value[0]
    bias[1] = -value[0]
    to.put("actuator", id, "gainprm", gain)
    to.put("actuator", id, "biasprm", bias)


def _kv(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    element = _elements(to.spec, "actuator")[id]
    gain, bias = np.array(element.gainprm), np.array(element.biasprm)
    if bias[1] == 0.0 and np.isclose(gain[0], -bias[2]):  # of a velocity, not of a position
        gain[0] = value[0]
        to.put("actuator", id, "gainprm", gain)
    bias[2] = -value[0]
    to.put("actuator", id, "biasprm", bias)


def _size(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    kind = what.kind
    if np.isfinite(_elements(to.spec, kind)[id].fromto).all():
        position, quat = _present_pose(to.model, kind, id)
        _write_pose(to, kind, id, position, quat)
    size = np.array(_elements(to.spec, kind)[id].size)
    size[: len(value)] = value
    to.put(kind, id, "size", size)


def _pose(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    position, quat = _present_pose(to.model, what.kind, id)
    if what.name == "pos":
        position = value
    else:
        quat = value
    element = _elements(to.spec, what.kind)[id]
    if what.kind in ("geom", "site") and np.isfinite(element.fromto).all():
        size = getattr(to.model, f"{what.kind}_size")[id].copy()
        to.put(what.kind, id, "size", size)
    _write_pose(to, what.kind, id, position, quat)


def _write_pose(to: SpecWriter, kind: str, id: int, position: np.ndarray, quat: np.ndarray) -> None:
    """Write a pose in the frame of the body as a pose in the frames that the spec has."""
    element = _elements(to.spec, kind)[id]
    if kind == "geom" and element.meshname and to.model.geom_dataid[id] >= 0:
        mesh = int(to.model.geom_dataid[id])
        position, quat = _without_mesh(to.model, mesh, position, quat)
    offset, turn = _frame_of(element)
    if offset.any() or not np.array_equal(turn, (1.0, 0.0, 0.0, 0.0)):
        back, turned = np.empty(3), np.empty(4)
        inverse_pos, inverse_quat = np.empty(3), np.empty(4)
        mujoco.mju_negPose(inverse_pos, inverse_quat, offset, turn)
        mujoco.mju_mulPose(back, turned, inverse_pos, inverse_quat, position, quat)
        position = back
        quat = turned
    if kind in ("geom", "site") and np.isfinite(element.fromto).all():
        to.put(kind, id, "fromto", np.full(6, np.nan))
    to.put(kind, id, "alt.type", _QUAT)
    to.put(kind, id, "pos", np.array(position))
    to.put(kind, id, "quat", np.array(quat))


def _point(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    offset, turn = _frame_of(_elements(to.spec, what.kind)[id])
    to.put(what.kind, id, "pos", _rotated(value - offset, turn))


def _direction(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    _, turn = _frame_of(_elements(to.spec, what.kind)[id])
    to.put(what.kind, id, what.name, _rotated(value, turn))


def _rotated(vector: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Rotate a vector by the inverse of a quaternion."""
    if np.array_equal(turn, (1.0, 0.0, 0.0, 0.0)):
        return np.array(vector)
    back, result = np.empty(4), np.empty(3)
    mujoco.mju_negQuat(back, turn)
    mujoco.mju_rotVecQuat(result, np.array(vector), back)
    return result


def _inertial(to: SpecWriter, what: EditableField, id: int, value: np.ndarray) -> None:
    """Write inertias of their own, which do not follow from geoms any more."""
    spec = to.spec
    ids = [id]
    bodies = _elements(spec, "body")
    rules = [b for b, body in bodies.items() if b and int(body.compiler.inertiafromgeom) == 1]
    acting = {n: off for n, off in _GLOBAL.items() if getattr(spec.compiler, n) > max(off, 0)}
    if rules or acting:
        ids = [b for b in bodies if b]  # also those that the compiler would change again
    for body in ids:
        _pin(to, body)
    for body in rules:
        to.put("body", body, "compiler.inertiafromgeom", _AS_INFERRED)
    for name, off in acting.items():
        to.put("compiler", 0, f"compiler.{name}", off)
    _plain(to, what, id, value)


def _pin(to: SpecWriter, id: int) -> None:
    """Give a body the inertia that it has in the compiled model."""
    model = to.model
    to.put("body", id, "explicitinertial", True)
    to.put("body", id, "fullinertia", np.full(6, np.nan))
    to.put("body", id, "ialt.type", _QUAT)
    to.put("body", id, "mass", float(model.body_mass[id]))
    for name in ("ipos", "iquat", "inertia"):
        to.put("body", id, name, getattr(model, f"body_{name}")[id].copy())


_SHORT = {"camera": "cam"}


def _present_pose(model: mujoco.MjModel, kind: str, id: int) -> tuple[np.ndarray, np.ndarray]:
    short = _SHORT.get(kind, kind)
    pose = (getattr(model, f"{short}_{part}")[id].copy() for part in ("pos", "quat"))
    position, quat = pose
    return position, quat


def _without_mesh(
    model: mujoco.MjModel, mesh: int, position: np.ndarray, quat: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose of a mesh's own frame for that of its center, which a model has."""
    back_pos, back_quat = np.empty(3), np.empty(4)
    mujoco.mju_negPose(back_pos, back_quat, model.mesh_pos[mesh], model.mesh_quat[mesh])
    own_pos, own_quat = np.empty(3), np.empty(4)
    mujoco.mju_mulPose(own_pos, own_quat, np.array(position), np.array(quat), back_pos, back_quat)
    return own_pos, own_quat


def _frame_of(element: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose of an element's frame in its body."""
    position = np.zeros(3)
    quat = np.array([1.0, 0.0, 0.0, 0.0])
    frame = element.frame
    while frame is not None:
        turn = _orientation(frame)
        whole_pos, whole_quat = np.empty(3), np.empty(4)
        mujoco.mju_mulPose(whole_pos, whole_quat, np.array(frame.pos), turn, position, quat)
        position = whole_pos
        quat = whole_quat
        frame = frame.frame
    return position, quat


def _orientation(frame: Any) -> np.ndarray:
    """Return the orientation of a frame, in whatever way it is given."""
    if frame.alt.type == _QUAT:
        return frame.quat / np.linalg.norm(frame.quat)
    compiler = frame.compiler
    turn = mujoco.MjSpec.resolve_orientation(
        degree=compiler.degree, sequence=compiler.eulerseq, orientation=frame.alt
    )
    return np.array(turn)


_WRITERS: Mapping[str, Callable[[SpecWriter, EditableField, int, Any], None]] = {
    "plain": _plain,
    "reference": _reference,
    "first": _first,
    "angle": _angle,
    "ctrlrange": _ctrlrange,
    "kp": _kp,
    "kv": _kv,
    "size": _size,
    "pose": _pose,
    "point": _point,
    "direction": _direction,
    "inertial": _inertial,
}
