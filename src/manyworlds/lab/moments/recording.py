"""Recordings: states of a world over time, by the names of its elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import mujoco
import numpy as np

from manyworlds.lab.world.model_facts import STATE
from manyworlds.spec.elements import dof_width, qpos_width

Index = Mapping[str, Mapping[str, tuple[int, int]]]
"""First column and number of columns, by field of `mujoco.MjData` and name of the element."""

CAMERA = ("x", "y", "z", "pitch", "yaw", "roll")
"""Columns of the field `camera`: position [m] and orientation [degrees] of the viewer."""

LIVE = "Live"
"""Name of the session that a lab records itself."""
_SNAP_S = 1e-6  # far above the rounding errors of clocks that add up timesteps
_JOINT_TYPES = {
    mujoco.mjtJoint.mjJNT_FREE: "free",
    mujoco.mjtJoint.mjJNT_BALL: "ball",
    mujoco.mjtJoint.mjJNT_SLIDE: "slide",
    mujoco.mjtJoint.mjJNT_HINGE: "hinge",
}


class RecordingError(ValueError):
    """Error of a file that is no recording, or is damaged.

    Args:
        message: description of the error.
        file: name of the file.
        line: line of the error, from one; 0 if it concerns no line.
    """

    def __init__(self, message: str, file: str, line: int = 0) -> None:
        place = f"{file}, line {line}" if line else file
        super().__init__(f"{place}: {message}")
        self.file = file
        self.line = line


@dataclass(frozen=True, eq=False)
class Recording:
    """States over time.

    Attributes:
        times: time of each frame [s], ascending, shape [num_frames].
        values: a row for each frame, shape [num_frames, num_columns].
        index: columns of each element; columns of no element are MuJoCo's internal state.
        joint_types: free, ball, slide or hinge, by the joint's name, where it is known.
        model_hash: hash of the model that was recorded; empty if it is not known.
        complete: whether the file had its end; if not, these are the frames before the cut.
        later: what was recorded after rebuilds of the world, a segment for each model; times
            ascend from segment to segment.
    """

    times: np.ndarray
    values: np.ndarray
    index: Index
    joint_types: Mapping[str, str] = field(default_factory=dict)
    model_hash: str = ""
    complete: bool = True
    later: tuple[Recording, ...] = ()

    def __len__(self) -> int:
        """Return the number of frames of this segment."""
        return len(self.times)

    @property
    def segments(self) -> tuple[Recording, ...]:
        """This segment, and those after it."""
        return (self, *self.later)

    @cached_property
    def clock(self) -> np.ndarray:
        """Time of each frame since the first [s], shape [num_frames]."""
        return self.times - self.times[0]

    @property
    def duration(self) -> float:
        """Time from the first to the last frame [s]."""
        return float(self.times[-1] - self.times[0]) if len(self) else 0.0

    @property
    def joints(self) -> list[str]:
        """Names of the joints."""
        return list(self.index.get("qpos", ()))

    def columns(self, field: str, name: str) -> np.ndarray:
        """Return an element's numbers in all frames, shape [num_frames, width].

        Raises:
            KeyError: there is no such field or element.
        """
        start, width = self.index[field][name]
        return self.values[:, start : start + width]

    def find(self, time: float) -> tuple[int, float]:
        """Find the frame at or before a time since the first one.

        Returns:
            Its index, and the fraction of the way to the next frame, below one.
        """
        last = len(self) - 1
        frame = int(np.searchsorted(self.clock, time + _SNAP_S, side="right")) - 1
        if frame < 0 or frame >= last:
            return min(max(frame, 0), last), 0.0
        before = self.clock[frame]
        after = self.clock[frame + 1]
        if time - before < _SNAP_S:
            return frame, 0.0
        return frame, float((time - before) / (after - before))

    def sample(self, time: float) -> np.ndarray:
        """Return the values at a time since the first frame [s], shape [num_columns].

        At the time of a frame they are exactly its values. Between frames, numbers are interpolated
        linearly, quaternions on the shortest arc at constant speed (Shoemake 1985), angles of the
        camera the shorter way round.
        """
        frame, alpha = self.find(time)
        here = self.values[frame]
        if alpha:
            there = self.values[frame + 1]
            row = here + alpha * (there - here)
        else:
            there = here
            row = here.copy()
        arc = np.empty(3)
        for columns in self._quaternions:
            quat, following = here[columns].copy(), there[columns].copy()
            mujoco.mju_normalize4(quat)
            if alpha:
                mujoco.mju_normalize4(following)
                mujoco.mju_subQuat(arc, following, quat)
                mujoco.mju_quatIntegrate(quat, arc, alpha)
            row[columns] = quat
        for start, _ in self.index.get("camera", {}).values():
            angles = slice(start + 3, start + 6)
            turn = (there[angles] - here[angles] + 180.0) % 360.0 - 180.0
            row[angles] = here[angles] + alpha * turn
        return row

    @cached_property
    def _quaternions(self) -> list[slice]:
        """Columns of each quaternion."""
        joints = self.index.get("qpos", {}).values()
        ends = [start + width for start, width in joints if width in (4, 7)]
        ends += [start + width for start, width in self.index.get("mocap_quat", {}).values()]
        return [slice(end - 4, end) for end in ends]


def join_segments(segments: Sequence[Recording]) -> Recording:
    """Return one recording of all segments that have frames; the last one if none has."""
    first, *later = [segment for segment in segments if len(segment)] or segments[-1:]
    return replace(first, later=tuple(later))


def carry_values(
    before: np.ndarray, source: Recording, after: np.ndarray, target: Recording
) -> tuple[str, ...]:
    """Copy values of elements of the same name and type from one row to another, in place.

    Args:
        before: a row, shape [num_columns].
        source: recording with the columns and joint types of that row; its frames do not matter.
        after: row of another model, shape [num_other_columns].
        target: recording with the columns and joint types of that row.

    Returns:
        Names of the joints that were copied.
    """
    kept = tuple(n for n, kind in target.joint_types.items() if source.joint_types.get(n) == kind)
    for part, elements in target.index.items():
        for name, (start, width) in elements.items():
            first, old_width = source.index.get(part, {}).get(name, (0, -1))
            if width == old_width and (name in kept or part not in ("qpos", "qvel")):
                after[start : start + width] = before[first : first + width]
    return kept


def state_columns(model: mujoco.MjModel, model_hash: str = "") -> Recording:
    """Return a recording without frames whose rows are `mjSTATE_INTEGRATION`."""
    width = mujoco.mj_stateSize(model, STATE)
    return Recording(
        np.empty(0), np.empty((0, width)), state_index(model), joint_types(model), model_hash
    )


def index_from_plain(plain: Mapping[str, Any], width: int) -> Index:
    """Return the columns of elements that a file describes.

    Args:
        plain: first column and number of columns, by field and name, as JSON gives them.
        width: number of columns.

    Raises:
        ValueError: an element lies outside the columns.
    """
    index: dict[str, dict[str, tuple[int, int]]] = {}
    for part, elements in plain.items():
        index[str(part)] = {}
        for name, (start, count) in elements.items():
            if start < 0 or count < 1 or start + count > width:
                raise ValueError(
                    f"its arrays are of other sizes: '{name}' lies outside the {width} columns"
                )
            index[str(part)][str(name)] = (int(start), int(count))
    return index


def joint_names(model: mujoco.MjModel) -> list[str]:
    """Return the names of all joints; `BODY:0` stands for the first unnamed joint of a body."""
    names = []
    for joint in range(model.njnt):
        body = model.jnt_bodyid[joint]
        number = joint - model.body_jntadr[body]
        names.append(model.joint(joint).name or f"{_body_name(model, body)}:{number}")
    return names


def joint_types(model: mujoco.MjModel) -> dict[str, str]:
    """Return the type of each joint, by name."""
    kinds = (_JOINT_TYPES[mujoco.mjtJoint(int(kind))] for kind in model.jnt_type)
    return dict(zip(joint_names(model), kinds, strict=True))


def state_index(model: mujoco.MjModel) -> Index:
    """Return the columns of each element in a vector of `mjSTATE_INTEGRATION`."""
    joints = joint_names(model)
    kinds = model.jnt_type.tolist()
    actuators = [model.actuator(i).name or f"actuator_{i}" for i in range(model.nactuator)]
    mocaps = {int(i): _body_name(model, body) for body, i in enumerate(model.body_mocapid)}
    places = {
        "qpos": zip(joints, model.jnt_qposadr, map(qpos_width, kinds), strict=True),
        "qvel": zip(joints, model.jnt_dofadr, map(dof_width, kinds), strict=True),
        "act": zip(actuators, model.actuator_actadr, model.actuator_actnum, strict=True),
        "ctrl": zip(actuators, model.actuator_ctrladr, model.actuator_ctrlnum, strict=True),
        "mocap_pos": [(name, 3 * i, 3) for i, name in mocaps.items() if i >= 0],
        "mocap_quat": [(name, 4 * i, 4) for i, name in mocaps.items() if i >= 0],
    }
    index = {}
    for name, elements in places.items():
        bit = int(getattr(mujoco.mjtState, f"mjSTATE_{name.upper()}"))
        # The parts of a state are in the order of their bits.
        offset = mujoco.mj_stateSize(model, STATE & (bit - 1))
        index[name] = {
            element: (offset + int(start), int(width))
            for element, start, width in elements
            if width
        }
    return index


def _body_name(model: mujoco.MjModel, body: int) -> str:
    return model.body(body).name or f"body_{body}"
