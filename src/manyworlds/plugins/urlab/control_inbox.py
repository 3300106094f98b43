"""Targets and gains that clients publish (port 5556)."""

from __future__ import annotations

import contextlib
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.robots.control import NET
from manyworlds.lab.server.config import Limits
from manyworlds.lab.server.messages import decode_json
from manyworlds.plugins.urlab.roster import Member, Roster

_PAIR = np.dtype([("id", "<i4"), ("value", "<f4")])
_COUNT_BYTES = 4
GAINS = {"kp": "kp", "kv": "kd", "torque_limit": "limit"}
"""Field of the verb `set_gains`, by its name in URLab's protocol."""
_WARN_EVERY = 500


class ControlInbox:
    """Collects the messages between two steps: of each value, the last one counts.

    Args:
        warn: receives a sentence about a message that is not as it should be, the first time and
            every 500th.
    """

    def __init__(self, warn: Callable[[str], None] = lambda text: None) -> None:
        self.stats: Counter[str] = Counter()
        """Number of messages and values by what became of them."""
        self._warn = warn
        self._targets: dict[str, dict[str, float]] = {}
        self._gains: dict[str, dict[str, dict[str, float]]] = {}

    def put(self, frames: Sequence[bytes], roster: Roster) -> None:
        """Take one message; a bad one is counted and changes nothing.

        Args:
            frames: topic `ROBOT/control` or `ROBOT/set_gains`, also with a space at its end, and
                the payload.
            roster: members of the world.
        """
        self.stats["messages"] += 1
        if len(frames) != 2:
            self._count("malformed", f"a message of {len(frames)} frames instead of 2")
            return
        topic = frames[0].decode(errors="replace").removesuffix(" ")
        name, _, kind = topic.rpartition("/")
        take = {"control": self._take_control, "set_gains": self._take_gains}.get(kind)
        if take is None:
            self._count("unknown_topic", f"the topic '{topic[:80]}'")
            return
        robot = roster.members.get(name)
        if robot is None or not robot.controls:
            self._count("unknown_robot", f"'{name[:80]}', which is no robot with actuators")
            return
        take(frames[1], robot)

    def flush(self, face: LabFace) -> None:
        """Hand the collected targets and gains to the lab, one call for each robot."""
        targets, self._targets = self._targets, {}
        gains, self._gains = self._gains, {}
        for robot, values in gains.items():
            with self._refused():
                face.verbs.set_gains(robot=robot, **values)
        for robot, values in targets.items():
            with self._refused():
                reply = face.verbs.set_targets(robot=robot, targets=values, owner=NET)
                if not reply["accepted"]:
                    self._count("not_owner", f"targets of '{robot}', which '{reply['owner']}' owns")

    @property
    def is_empty(self) -> bool:
        """True if nothing is collected."""
        return not self._targets and not self._gains

    def _take_control(self, payload: bytes, robot: Member) -> None:
        count = -1
        if len(payload) >= _COUNT_BYTES:
            (count,) = struct.unpack_from("<i", payload)
        if count < 0 or len(payload) < _COUNT_BYTES + count * _PAIR.itemsize:
            self._count("malformed", f"{len(payload)} bytes for {count} targets of '{robot.name}'")
            return
        names = dict(zip(robot.ctrl.tolist(), robot.controls, strict=True))
        fresh = {}
        for index, value in np.frombuffer(payload, _PAIR, count, _COUNT_BYTES).tolist():
            if index not in names:
                self._count("unknown_actuator", f"actuator {index}, which '{robot.name}' has not")
            elif not math.isfinite(value):
                self._count("not_finite", f"{value} for '{names[index]}' of '{robot.name}'")
            else:
                fresh[names[index]] = value
        if fresh:
            self.stats["control"] += 1
            self._targets.setdefault(robot.name, {}).update(fresh)

    def _take_gains(self, payload: bytes, robot: Member) -> None:
        gains = _read_gains(payload, robot)
        if isinstance(gains, str):
            self._count("malformed", f"gains of '{robot.name}': {gains}")
            return
        self.stats["set_gains"] += 1
        known = self._gains.setdefault(robot.name, {})
        for kind, values in gains.items():
            known.setdefault(kind, {}).update(values)

    @contextlib.contextmanager
    def _refused(self) -> Iterator[None]:
        """Count what the lab refuses, instead of raising it."""
        try:
            yield
        except VerbError as error:
            self._count("refused", str(error))

    def _count(self, what: str, text: str) -> None:
        self.stats[what] += 1
        if self.stats[what] % _WARN_EVERY == 1:
            self._warn(f"control port: {text} ({what}, {self.stats[what]} so far)")


def _read_gains(payload: bytes, robot: Member) -> dict[str, dict[str, float]] | str:
    """Return gains by kind and joint, or the reason why they cannot be read."""
    try:
        read = decode_json(payload, Limits())
    except VerbError as error:
        return str(error)
    gains: dict[str, dict[str, float]] = {}
    for joint, values in read.items():
        if not isinstance(values, dict):
            return f"no map at '{joint[:40]}'"
        for kind, value in values.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if kind not in GAINS or not number or not math.isfinite(value):
                return f"{kind[:40]!r} of '{joint[:40]}' is {str(value)[:40]}"
            gains.setdefault(GAINS[kind], {})[robot.to_gain(joint)] = float(value)
    return gains
