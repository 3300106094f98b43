"""Paths of a camera through waypoints."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import mujoco
import numpy as np

from manyworlds.lab.pictures.camera import quat_to_look
from manyworlds.utils.files import write_atomic

Curve = Literal["cubic", "linear"]
_LEAST_S = 1e-6
_LEVEL = 1e-3  # sine of an angle

Point = tuple[float, float, float]
Quat = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Waypoint:
    """Pose of a camera at a time; it looks along its -z, with +y up in the image.

    Args:
        time: time since the beginning of the path [s].
        pos: position in the world [m].
        quat: orientation in the world (wxyz); None takes `look_at`.
        look_at: point to look at [m], with +z up, in place of `quat`.

    Raises:
        ValueError: neither or both of `quat` and `look_at` are given, or a number is not finite.
    """

    time: float
    pos: Point
    quat: Quat | None = None
    look_at: Point | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if (self.quat is None) == (self.look_at is None):
            raise ValueError(f"The waypoint at {self.time} s needs either quat or look_at.")
        numbers = [self.time, *self.pos, *(self.quat or ()), *(self.look_at or ())]
        sizes = len(self.pos), len(self.quat or (0,) * 4), len(self.look_at or (0,) * 3)
        unit = self.quat is None or any(self.quat)
        if not np.isfinite(numbers).all() or self.time < 0.0 or sizes != (3, 4, 3) or not unit:
            raise ValueError(
                f"A waypoint needs a time of at least 0 s, three numbers of pos, and four of quat "
                f"that are not all 0 or three of look_at, got {dataclasses.asdict(self)}."
            )

    @property
    def orientation(self) -> np.ndarray:
        """Orientation as a unit quaternion (wxyz), shape (4,)."""
        quat = np.array(quat_to_look(self.pos, self.look_at) if self.look_at else self.quat, float)
        mujoco.mju_normalize4(quat)
        return quat


@dataclass(frozen=True, kw_only=True)
class CameraPath:
    """Path through waypoints, whose poses are exact at their times.

    Positions between them are on a cubic Hermite spline, with the slopes of the neighbors' chords,
    or on straight lines; orientations turn on the shortest arc at constant speed. Between waypoints
    with a level horizon, it stays level: azimuth and elevation change at constant speed.

    Raises:
        ValueError: times do not ascend, or the curve is unknown.
    """

    waypoints: tuple[Waypoint, ...] = ()
    curve: Curve = "cubic"
    loop: bool = False
    """True to start again after the last waypoint."""
    delay: float = 0.0
    """Time at the first waypoint before the path begins [s]."""
    autoplay: bool = False
    """True if a page plays the path as soon as it opens."""

    def __post_init__(self) -> None:
        """Check the waypoints and settings."""
        times = [point.time for point in self.waypoints]
        if any(after - before < _LEAST_S for before, after in itertools.pairwise(times)):
            raise ValueError(f"Times of waypoints must ascend, got {times} s.")
        if self.curve not in get_args(Curve):
            raise ValueError(f"The curve must be cubic or linear, got '{self.curve}'.")
        if not 0.0 <= self.delay < math.inf:
            raise ValueError(f"The delay must be at least 0 s, got {self.delay}.")

    @property
    def duration(self) -> float:
        """Time from the start until the last waypoint, with the delay [s]."""
        if not self.waypoints:
            return 0.0
        return self.delay + self.waypoints[-1].time - self.waypoints[0].time

    def pose(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Return position [m] and orientation (wxyz) at a time since the start [s].

        Returns:
            Arrays of shapes (3,) and (4,).

        Raises:
            ValueError: there is no waypoint.
        """
        points = self.waypoints
        if not points:
            raise ValueError("The camera path has no waypoints: capture a view first.")
        start, end = points[0].time, points[-1].time
        moment = start + max(0.0, time - self.delay)
        if self.loop and end > start and moment > end:
            moment = start + (moment - start) % (end - start)
        at = bisect.bisect_right([point.time for point in points], moment) - 1
        if moment >= end:
            at = len(points) - 1
        here = points[at]
        if at == len(points) - 1 or moment <= here.time:
            return np.array(here.pos, float), here.orientation
        there = points[at + 1]
        span = there.time - here.time
        share = (moment - here.time) / span
        pos = self._position(at, share, span)
        return pos, _turned(here.orientation, there.orientation, share)

    def _position(self, at: int, share: float, span: float) -> np.ndarray:
        here, there = (np.array(self.waypoints[i].pos, float) for i in (at, at + 1))
        if self.curve == "linear":
            return here + share * (there - here)
        s, s2, s3 = share, share**2, share**3
        slopes = self._slope(at), self._slope(at + 1)
        return (
            (2 * s3 - 3 * s2 + 1) * here
            + (s3 - 2 * s2 + s) * span * slopes[0]
            + (3 * s2 - 2 * s3) * there
            + (s3 - s2) * span * slopes[1]
        )

    def _slope(self, at: int) -> np.ndarray:
        """Return the velocity at a waypoint [m/s], along the chord of its neighbors."""
        before, after = self.waypoints[max(at - 1, 0)], self.waypoints[at + 1 :][:1]
        last = after[0] if after else self.waypoints[at]
        return (np.array(last.pos) - np.array(before.pos)) / (last.time - before.time)

    def line(self, spacing: float = 0.05) -> np.ndarray:
        """Return points along the path for a preview [m], shape (n, 3).

        Args:
            spacing: time between points [s].
        """
        if not self.waypoints:
            return np.empty((0, 3))
        length = self.duration - self.delay
        times = np.linspace(0.0, length, max(2, math.ceil(length / spacing) + 1))
        once = dataclasses.replace(self, loop=False, delay=0.0)
        return np.array([once.pose(time)[0] for time in times])

    def to_plain(self) -> dict[str, object]:
        """Return the path as plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, object]) -> CameraPath:
        """Return the path that `to_plain` described.

        Raises:
            ValueError: it is no camera path.
        """
        try:
            given: Any = plain.get("waypoints", ())
            rest: dict[str, Any] = {**plain}
            points = tuple(Waypoint(**_with_tuples(p)) for p in given)
            return cls(**{**rest, "waypoints": points})
        except (TypeError, AttributeError) as error:
            raise ValueError(f"This is no camera path: {error}.") from error

    def save(self, path: Path) -> Path:
        """Write the path as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(self.to_plain(), indent=1).encode())
        return path

    @classmethod
    def load(cls, path: Path) -> CameraPath:
        """Read a path that `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no camera path.
        """
        try:
            return cls.from_plain(json.loads(path.read_bytes()))
        except ValueError as error:
            raise ValueError(f"'{path.name}' is no camera path: {error}") from error


def _axis(quat: np.ndarray, axis: int) -> np.ndarray:
    """Return an axis of a camera in the world: 0 is to the right, 1 up, 2 backward."""
    result = np.empty(3)
    mujoco.mju_rotVecQuat(result, np.eye(3)[axis], quat)
    return result


def _turned(here: np.ndarray, there: np.ndarray, share: float) -> np.ndarray:
    """Return the orientation at a share of the way between two."""
    if not (_is_level(here) and _is_level(there)):
        arc, quat = np.empty(3), here.copy()
        mujoco.mju_subQuat(arc, there, here)
        mujoco.mju_quatIntegrate(quat, arc, share)
        return quat
    (x, y, z), (x1, y1, z1) = _axis(here, 2), _axis(there, 2)
    turn = math.remainder(math.atan2(y1, x1) - math.atan2(y, x), 2.0 * math.pi)
    azimuth = math.atan2(y, x) + share * turn
    elevation = math.asin(z) + share * (math.asin(z1) - math.asin(z))
    level = math.cos(elevation)
    back = level * math.cos(azimuth), level * math.sin(azimuth), math.sin(elevation)
    return np.array(quat_to_look(back, (0.0, 0.0, 0.0)))


def _is_level(quat: np.ndarray) -> bool:
    """Return True if a camera's horizon is level, and its image not upside down."""
    return abs(_axis(quat, 0)[2]) < _LEVEL and _axis(quat, 1)[2] > _LEVEL


def _with_tuples(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
