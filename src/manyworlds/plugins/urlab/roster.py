"""Robots and other entities of a world, as network clients know them."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError, near
from manyworlds.lab.face import LabFace
from manyworlds.lab.verbs.fields import PlainMap
from manyworlds.lab.world.model_facts import element_names, wire_name
from manyworlds.plugins.urlab.names import ClientNames, client_names
from manyworlds.spec.elements import dof_width, qpos_width

_TRIES = 20
_FREE = mujoco.mjtJoint.mjJNT_FREE


@dataclass(frozen=True)
class NamedPart:
    """Named element of a robot."""

    id: int
    name: str
    """Name for clients, without the robot's."""
    live: str
    """Name in the world; empty without one."""
    start: int = 0
    """Index of its first value, in `qpos` or `sensordata`."""
    size: int = 0
    """Number of its values."""
    dof: int = 0
    """Index of a joint's first velocity."""


@dataclass(frozen=True, eq=False)
class Member:
    """Robot or other entity, with the places of its values in a snapshot."""

    name: str
    prefix: str
    """Beginning of its elements' names in the world."""
    id: int
    """Id of its first body."""
    joints: tuple[NamedPart, ...]
    sensors: tuple[NamedPart, ...]
    bodies: tuple[NamedPart, ...]
    controls: tuple[str, ...]
    """Name of each control, as the lab's verbs know it."""
    ctrl: np.ndarray
    """Index of each control in `ctrl`."""
    act: np.ndarray
    """Index of the activation of each control in `act`; -1 if it has none."""
    actuators: np.ndarray
    """Id of the actuator of each control."""
    qpos: np.ndarray
    """Indices of its positions."""
    qvel: np.ndarray
    """Indices of its velocities."""
    free: NamedPart | None
    """Its first free joint."""
    details: PlainMap = field(default_factory=dict)
    """Its part of the reply of `describe_world`."""

    @functools.cached_property
    def is_body(self) -> bool:
        """True for a loose body, which has a free joint only; false for an articulation."""
        return self.free is not None and len(self.joints) == 1 and not self.controls

    def to_short(self, name: str, known: Container[str]) -> str:
        """Return an element's name for clients, without the robot's.

        Args:
            name: that name, also with the robot's before it, or the name in the robot's own file
                or in the world.
            known: names for clients without the robot's.
        """
        short = name.removeprefix(f"{self.name}_")
        own = name.removeprefix(self.prefix)
        for candidate in (name, short, own, wire_name(own)):
            if candidate in known:
                return candidate
        return short

    def to_gain(self, name: str) -> str:
        """Return the name of a joint or actuator as the verb `set_gains` knows it."""
        joints = {joint.name: joint.live for joint in self.joints}
        short = self.to_short(name, [*joints, *self.controls])
        return short if short in self.controls else joints.get(short) or short

    @functools.cached_property
    def control_names(self) -> tuple[str, ...]:
        """Name of each control for clients, without the robot's."""
        counts = Counter(map(wire_name, self.controls))
        names = []
        for name in self.controls:
            short = wire_name(name)
            names.append(short if counts[short] == 1 else name)
        return tuple(names)


@dataclass(frozen=True, eq=False)
class Roster:
    """All members of a world."""

    model: mujoco.MjModel
    version: int
    """Version of the model."""
    names: ClientNames
    """Names for clients, and in the world."""
    members: Mapping[str, Member]
    details: PlainMap
    """Reply of `describe_world`."""

    @functools.cached_property
    def articulations(self) -> tuple[Member, ...]:
        """Members with joints or controls, except loose bodies."""
        members = self.members.values()
        return tuple(m for m in members if (m.joints or m.controls) and not m.is_body)

    @functools.cached_property
    def entities(self) -> tuple[Member, ...]:
        """Loose bodies."""
        return tuple(member for member in self.members.values() if member.is_body)

    @functools.cached_property
    def _articulations(self) -> dict[str, Member]:
        return {member.name: member for member in self.articulations}

    def articulation(self, name: object) -> Member:
        """Return an articulation by its name.

        Raises:
            VerbError: there is none of this name.
        """
        known = self._articulations
        if not isinstance(name, str) or name not in known:
            raise VerbError(
                "unknown_articulation",
                f"There is no articulation {name!r} (there is {', '.join(known) or 'none'})"
                f"{near(name, known)}",
            )
        return known[name]

    def check_names(self) -> None:
        """Check that a client can tell whose an element of the model is by its name.

        Raises:
            VerbError: it cannot.
        """
        try:
            self.names.check(self.model)
        except ValueError as error:
            raise VerbError(
                "not_ready",
                f"{str(error).removesuffix('.')}, or say hello with include_model = false: all "
                "else works.",
            ) from error

    def to_live(self, kind: str, name: str) -> str:
        """Return the name in the world of a client's name; other names stay.

        Raises:
            VerbError: the client's name is that of two elements.
        """
        live, wire = self.names.live[kind], self.names.wire[kind]
        if name in live or name not in wire:
            return name
        found = [live[index] for index, other in enumerate(wire) if other == name]
        if len(found) > 1:
            raise two_meanings(name, found)
        return found[0]

    def to_wire(self, kind: str, name: str) -> str:
        """Return the client's name of a name in the world; other names stay."""
        live = self.names.live[kind]
        if not name or name not in live:
            return name
        return self.names.wire[kind][live.index(name)]


def two_meanings(name: str, found: Sequence[str]) -> VerbError:
    """Return the error of a client's name that several elements have, by their names in the lab."""
    return VerbError(
        "bad_value",
        f"'{name}' may be '{found[0]}' or '{found[1]}' here: give the name that the lab knows.",
    )


def build_roster(model: mujoco.MjModel, details: PlainMap) -> Roster:
    """Find the members of a world.

    Args:
        model: the model.
        details: reply of the verb `describe_world`.
    """
    robots = {name: member["prefix"] for name, member in details["robots"].items()}
    names = client_names(model, robots)
    members = {}
    for name, member in details["robots"].items():
        members[name] = _member(model, name, member, names)
    for joint in np.flatnonzero(model.jnt_type == _FREE).tolist():
        body = int(model.jnt_bodyid[joint])
        name = names.wire["body"][body] or f"body_{body}"
        if names.owners["jnt"][joint] is None and name not in members:
            members[name] = _loose_body(model, name, joint)
    return Roster(model, int(details["model_version"]), names, members, details)


def _member(model: mujoco.MjModel, name: str, details: PlainMap, names: ClientNames) -> Member:
    def mine(kind: str) -> list[tuple[int, str, str]]:
        """Return the ids of its elements, their names for clients, and those in the world."""
        live = element_names(model, kind)
        rows = zip(names.wire[kind], live, names.owners[kind], strict=True)
        return [
            (index, wire.removeprefix(f"{name}_"), own)
            for index, (wire, own, owner) in enumerate(rows)
            if owner == name and wire
        ]

    joints = tuple(_joint(model, *part) for part in mine("jnt"))
    sensors = tuple(
        NamedPart(i, short, live, int(model.sensor_adr[i]), int(model.sensor_dim[i]))
        for i, short, live in mine("sensor")
    )
    bodies = tuple(NamedPart(*part) for part in mine("body"))
    ctrl = np.array(details["ids"], int)
    actuators = np.searchsorted(model.actuator_ctrladr, ctrl, side="right") - 1
    starts = model.actuator_actadr[actuators]
    return Member(
        name=name,
        prefix=details["prefix"],
        id=bodies[0].id if bodies else 0,
        joints=joints,
        sensors=sensors,
        bodies=bodies,
        controls=tuple(details["controls"]),
        ctrl=ctrl,
        act=np.array(starts, int),
        actuators=actuators.astype(int),
        qpos=_indices([(j.start, j.size) for j in joints]),
        qvel=_indices([(j.dof, dof_width(model.jnt_type[j.id])) for j in joints]),
        free=next((j for j in joints if model.jnt_type[j.id] == _FREE), None),
        details=details,
    )


def _loose_body(model: mujoco.MjModel, name: str, joint: int) -> Member:
    free = _joint(model, joint, name, model.joint(joint).name)
    body = int(model.jnt_bodyid[joint])
    none = np.empty(0, int)
    return Member(
        name=name,
        prefix="",
        id=body,
        joints=(free,),
        sensors=(),
        bodies=(NamedPart(body, name, model.body(body).name),),
        controls=(),
        ctrl=none,
        act=none,
        actuators=none,
        qpos=_indices([(free.start, 7)]),
        qvel=_indices([(free.dof, 6)]),
        free=free,
    )


def _joint(model: mujoco.MjModel, joint: int, name: str, live: str) -> NamedPart:
    return NamedPart(
        joint,
        name,
        live,
        int(model.jnt_qposadr[joint]),
        qpos_width(model.jnt_type[joint]),
        int(model.jnt_dofadr[joint]),
    )


def _indices(places: list[tuple[int, int]]) -> np.ndarray:
    indices: list[int] = []
    for start, size in places:
        indices += range(start, start + size)
    return np.array(indices, int)


class RosterCache:
    """The roster of a face, found again when its model has changed; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._face: LabFace | None = None
        self._roster: Roster | None = None
        self._model: mujoco.MjModel | None = None
        """Model of the roster: another lab behind the same face has another one."""

    def get(self, face: LabFace) -> Roster:
        """Return the roster of the newest snapshot's model.

        Args:
            face: the live world.

        Raises:
            VerbError: the model does not stay the same for long enough.
        """
        with self._lock:
            if face is not self._face:
                self._face = face
                self._roster = None
            for _ in range(_TRIES):
                face.sync_model()
                model = face.model
                version = face.snapshot.model_version
                known = self._roster
                if known is not None and known.version == version and self._model is model:
                    return known
                details = face.verbs.describe_world()
                # Otherwise the model has just changed again, or another thread took a rebuilt one.
                if details["model_version"] == version and face.model is model:
                    self._roster = build_roster(model, details)
                    self._model = model
                    return self._roster
        raise VerbError("not_ready", "The model changes all the time: try again later.")
