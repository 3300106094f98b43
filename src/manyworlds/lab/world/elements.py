"""Elements of a model by the robot that they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from manyworlds.lab.world.model_facts import element_names, robot_of

_KINDS_OF_BODIES = ("jnt", "geom", "site", "cam", "light")
"""Kinds of elements that are parts of bodies."""
_MOVED = {
    int(mujoco.mjtTrn.mjTRN_JOINT): "jnt",
    int(mujoco.mjtTrn.mjTRN_JOINTINPARENT): "jnt",
    int(mujoco.mjtTrn.mjTRN_SLIDERCRANK): "site",
    int(mujoco.mjtTrn.mjTRN_TENDON): "tendon",
    int(mujoco.mjtTrn.mjTRN_SITE): "site",
    int(mujoco.mjtTrn.mjTRN_BODY): "body",
}
"""Kind of what an actuator moves, by its transmission."""
_MEASURED = {
    int(mujoco.mjtObj.mjOBJ_BODY): "body",
    int(mujoco.mjtObj.mjOBJ_XBODY): "body",
    int(mujoco.mjtObj.mjOBJ_JOINT): "jnt",
    int(mujoco.mjtObj.mjOBJ_GEOM): "geom",
    int(mujoco.mjtObj.mjOBJ_SITE): "site",
    int(mujoco.mjtObj.mjOBJ_CAMERA): "cam",
    int(mujoco.mjtObj.mjOBJ_TENDON): "tendon",
    int(mujoco.mjtObj.mjOBJ_ACTUATOR): "actuator",
}
"""Kind of what a sensor measures, by the type of the object."""


class RobotElements:
    """Which elements of a compiled model belong to which robot.

    The beginning of an element's name tells it. Without a name, an element belongs to the robot of
    its body, an actuator or a sensor to that of what it moves or measures, and a body to that of
    its elements, of its parent, or of its children.

    Kinds are those of MuJoCo's fields: `body`, `jnt`, `geom`, `site`, `cam`, `light`, `tendon`,
    `actuator`, `sensor`.

    Args:
        model: the model; later changes of its values do not matter.
        robots: prefix of the elements of each robot, by the robot's name.
    """

    def __init__(self, model: mujoco.MjModel, robots: Mapping[str, str]) -> None:
        self.model = model
        self.robots = dict(robots)
        """Prefix of the elements of each robot, by the robot's name."""
        bodies = _owners_of_bodies(model, robots)
        self.owners: dict[str, list[str | None]] = {"body": bodies}
        """Robot of each element, None for none, by kind and id."""
        for kind in _KINDS_OF_BODIES:
            carriers = getattr(model, f"{kind}_bodyid").tolist()
            self._add(kind, [bodies[body] for body in carriers])
        self._add("tendon", [None] * model.ntendon)
        self._add("actuator", self._at(_MOVED, model.actuator_trntype, model.actuator_trnid[:, 0]))
        self._add("sensor", self._at(_MEASURED, model.sensor_objtype, model.sensor_objid))

    def prefix(self, robot: str) -> str:
        """Return the prefix of the elements of a robot.

        Raises:
            KeyError: there is no such robot.
        """
        if robot not in self.robots:
            known = ", ".join(self.robots) or "none"
            raise KeyError(f"There is no robot '{robot}'; available: {known}.")
        return self.robots[robot]

    def ids(self, robot: str, kind: str) -> np.ndarray:
        """Return the ids of a robot's elements of a kind in ascending order, shape [num_ids].

        Raises:
            KeyError: there is no such robot.
        """
        self.prefix(robot)  # checks that it is there
        return np.array([i for i, owner in enumerate(self.owners[kind]) if owner == robot], int)

    def names(self, robot: str, kind: str) -> dict[str, int]:
        """Return the ids of a robot's elements by their names without its prefix."""
        names = element_names(self.model, kind)
        own = ((names[i], int(i)) for i in self.ids(robot, kind))
        return {name.removeprefix(self.robots[robot]): i for name, i in own if name}

    def _add(self, kind: str, unnamed: Sequence[str | None]) -> None:
        """Find the owners of a kind.

        Args:
            kind: the kind.
            unnamed: owner of each element if it has no name.
        """
        owners: list[str | None] = []
        for name, owner in zip(element_names(self.model, kind), unnamed, strict=True):
            owners.append(_owner(name, owner or robot_of("", self.robots), self.robots))
        self.owners[kind] = owners

    def _at(self, kinds: Mapping[int, str], types: np.ndarray, ids: np.ndarray) -> list[str | None]:
        """Return the owner of each element that actuators move or sensors measure."""
        found: list[str | None] = []
        for type, id in zip(types.tolist(), ids.tolist(), strict=True):
            owner = None
            if type in kinds and id >= 0:
                owner = self.owners[kinds[type]][id]
            found.append(owner)
        return found


def _owners_of_bodies(model: mujoco.MjModel, robots: Mapping[str, str]) -> list[str | None]:
    names = element_names(model, "body")
    parents = model.body_parentid.tolist()
    inside: list[str | None] = [None] * model.nbody
    for kind in _KINDS_OF_BODIES:
        carriers = getattr(model, f"{kind}_bodyid").tolist()
        for body, name in zip(carriers, element_names(model, kind), strict=True):
            if name:
                inside[body] = inside[body] or robot_of(name, robots)
    for body in range(model.nbody - 1, 0, -1):
        if inside[parents[body]] is None:
            inside[parents[body]] = _owner(names[body], inside[body], robots)
    owners: list[str | None] = [None]  # the world belongs to nobody
    for body in range(1, model.nbody):
        unnamed = inside[body] or owners[parents[body]] or robot_of("", robots)
        owners.append(_owner(names[body], unnamed, robots))
    return owners


def _owner(name: str, unnamed: str | None, robots: Mapping[str, str]) -> str | None:
    """Return the robot of an element by its name, or by other signs if it has none."""
    return robot_of(name, robots) if name else unnamed
