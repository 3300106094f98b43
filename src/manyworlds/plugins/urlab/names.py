"""Names that URLab's clients know elements by: with `_` after the robot, in place of `/`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco

from manyworlds.lab.world.elements import RobotElements
from manyworlds.lab.world.model_facts import element_names, robot_of, wire_name

KINDS = (
    *("body", "jnt", "geom", "site", "cam", "light", "flex", "mesh"),
    *("skin", "hfield", "tex", "mat", "pair", "exclude", "eq", "tendon"),
    *("actuator", "sensor", "numeric", "text", "tuple", "key", "plugin"),
)
"""Kinds of named elements, in the order in which MuJoCo stores their names' addresses."""
_NAMED_FOR_CLIENTS = ("jnt", "actuator", "sensor")
"""Kinds whose elements get a name if they have none, because clients know them by name only."""
_ASSIGNED_BY_CLIENTS = ("body", "jnt", "actuator", "sensor")
"""Kinds whose elements clients assign to robots by the beginning of their names."""

Names = Mapping[str, Sequence[str]]
"""Name of each element, by kind and id."""


@dataclass(frozen=True, eq=False)
class ClientNames:
    """Names of all elements of a model for clients, by kind and id."""

    robots: Mapping[str, str]
    """Prefix of the elements of each robot, by the robot's name."""
    owners: Mapping[str, Sequence[str | None]]
    """Robot of each element of the kinds that robots have, None for none."""
    live: Names
    """Names in the world; elements that clients know by name only have one in any case."""
    wire: Names
    """Names for clients."""

    def check(self, model: mujoco.MjModel) -> None:
        """Check that a client can tell the robots apart by the beginning of their elements' names.

        Args:
            model: the model that the names are of.

        Raises:
            ValueError: it cannot, or two elements have the same name.
        """
        known = [f"{robot}_" for robot in _articulations(model, self)]
        for kind in _ASSIGNED_BY_CLIENTS:
            rows = zip(self.live[kind], self.wire[kind], self.owners[kind], strict=True)
            for live, wire, owner in rows:
                own = f"{owner}_"
                for begin in known:
                    if begin != own and wire.startswith(begin):
                        raise ValueError(
                            f"Network clients cannot tell '{begin[:-1]}' and '{owner or live}' "
                            f"apart, because '{begin}' begins both: rename one of them."
                        )
        for kind, names in self.wire.items():
            seen: dict[str, str] = {}
            for live, wire in zip(self.live[kind], names, strict=True):
                if wire and seen.setdefault(wire, live) != live:
                    raise ValueError(
                        f"'{seen[wire]}' and '{live}' would have one name for network clients, "
                        f"'{wire}': rename one of them."
                    )


def client_names(model: mujoco.MjModel, robots: Mapping[str, str]) -> ClientNames:
    """Return the names that clients know elements by.

    `/` becomes `_`, but in a robot that has two such elements, which keep the names they have.

    Args:
        model: the live model.
        robots: prefix of the elements of each robot, by the robot's name.
    """
    owners = RobotElements(model, robots).owners
    live: dict[str, list[str]] = {}
    wire: dict[str, list[str]] = {}
    for kind in KINDS:
        names = element_names(model, kind)
        mine = owners.get(kind) or [robot_of(name, robots) for name in names]
        if kind in _NAMED_FOR_CLIENTS:
            names = _name_all(kind, names, mine, robots)
        live[kind] = names
        wire[kind] = _to_wire(names, mine, robots)
    return ClientNames(robots, owners, live, wire)


def _name_all(
    kind: str, names: list[str], owners: Sequence[str | None], robots: Mapping[str, str]
) -> list[str]:
    """Return names for all elements of a kind; those without a name get one by their id."""
    known = set(names)
    found = []
    for index, (name, owner) in enumerate(zip(names, owners, strict=True)):
        if not name:
            prefix = "" if owner is None else robots[owner]
            name = f"{prefix}{kind}_{index}"
            while name in known:
                name += "_"
        found.append(name)
    return found


def _to_wire(
    names: list[str], owners: Sequence[str | None], robots: Mapping[str, str]
) -> list[str]:
    own = []
    for name, owner in zip(names, owners, strict=True):
        prefix = "" if owner is None else robots[owner]
        own.append(name.removeprefix(prefix))
    counts = Counter(zip(owners, map(wire_name, own), strict=True))
    found = []
    for name, short, owner in zip(names, own, owners, strict=True):
        fresh = wire_name(short)
        if counts[owner, fresh] > 1:
            fresh = short
        if owner is not None and name:
            fresh = f"{owner}_{fresh}"
        found.append(fresh)
    return found


def _articulations(model: mujoco.MjModel, names: ClientNames) -> list[str]:
    """Return the robots that have joints or actuators, without loose bodies."""
    types: dict[str, list[int]] = {robot: [] for robot in names.robots}
    for owner, kind in zip(names.owners["jnt"], model.jnt_type.tolist(), strict=True):
        if owner is not None:
            types[owner].append(kind)
    free = [int(mujoco.mjtJoint.mjJNT_FREE)]
    moved = set(names.owners["actuator"])
    return [robot for robot, kinds in types.items() if robot in moved or kinds not in ([], free)]
