"""Robot of a live world, for programs in other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.client.entity_reads import EntityReads
from manyworlds.lab.client.errors import NotOwnerError, UnknownNameError
from manyworlds.lab.client.robot_reads import entity_data
from manyworlds.lab.errors import near
from manyworlds.lab.verb_methods import Reply
from manyworlds.lab.world.elements import RobotElements

if TYPE_CHECKING:
    from manyworlds.entity.data import EntityData
    from manyworlds.lab.client.client import LabClient
    from manyworlds.lab.verb_methods import SetTwistReply


@dataclass(frozen=True)
class RobotElement:
    """Element of a robot: a body, a joint ..."""

    name: str
    """Name in the model."""
    id: int
    model: Any
    """MuJoCo's view of its fields in `MjModel`: `model.joint(name)` and so on."""
    data: Any
    """MuJoCo's view of its fields in `MjData`, which follows the lab."""


class ClientRobot(EntityReads):
    """Robot of a live world: its state under the names of `EntityData`, elements, and verbs.

    It expires when the world is rebuilt; `client[name]` returns the present one.

    Args:
        client: client of the lab.
        name: name of the robot.
        elements: elements of the model by the robot that they belong to.
        described: its part of the reply of `describe_world`.
    """

    def __init__(
        self, client: LabClient, name: str, elements: RobotElements, described: Reply
    ) -> None:
        self.name = name
        self._client = client
        self._elements = elements
        self._has_bodies = len(elements.ids(name, "body")) > 0
        starts = client.model.actuator_ctrladr
        owners = np.searchsorted(starts, described["ids"], side="right") - 1
        self._actuators = dict(zip(described["controls"], owners.tolist(), strict=True))
        self._data: mujoco.MjData | None = None
        self._entity: EntityData | None = None

    @property
    def prefix(self) -> str:
        """Beginning of the names of its elements in the model."""
        return self._elements.robots[self.name]

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of its bodies, without the prefix, by ascending id."""
        return tuple(self._elements.names(self.name, "body"))

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of its joints, a free one too, without the prefix, by ascending id."""
        return tuple(self._elements.names(self.name, "jnt"))

    @property
    def actuators(self) -> tuple[str, ...]:
        """Names of its controls, as in targets: those of its actuators, by ascending id."""
        return tuple(self._actuators)

    @property
    def sensors(self) -> tuple[str, ...]:
        """Names of its sensors, without the prefix, by ascending id."""
        return tuple(self._elements.names(self.name, "sensor"))

    def body(self, name: str) -> RobotElement:
        """Return a body by its name, with or without the prefix.

        Raises:
            UnknownNameError: the robot has none of this name.
        """
        return self._element("body", name)

    def joint(self, name: str) -> RobotElement:
        """Return a joint by its name; see `body`."""
        return self._element("joint", name)

    def geom(self, name: str) -> RobotElement:
        """Return a geom by its name; see `body`."""
        return self._element("geom", name)

    def site(self, name: str) -> RobotElement:
        """Return a site by its name; see `body`."""
        return self._element("site", name)

    def actuator(self, name: str) -> RobotElement:
        """Return an actuator by its name; see `body`."""
        return self._element("actuator", name)

    def sensor(self, name: str) -> RobotElement:
        """Return a sensor by its name; see `body`."""
        return self._element("sensor", name)

    def set_targets(self, targets: Mapping[str, float]) -> None:
        """Set targets of actuators, by name; the others stay.

        Raises:
            NotOwnerError: another owner controls the robot.
            LabError: the robot has no such actuator, or a value is no number.
        """
        reply = self._client.set_targets(self.name, targets)
        if not reply["accepted"]:
            raise NotOwnerError(
                "not_owner",
                f"'{reply['owner']}' controls '{self.name}', not 'net': "
                f"client.take_robot('{self.name}', 'net') changes that.",
            )

    def set_twist(self, forward: float, left: float, yaw: float) -> SetTwistReply:
        """Set the velocity command of the robot [m/s, m/s, rad/s]."""
        return self._client.set_twist(self.name, [forward, left, 0.0], [0.0, 0.0, yaw])

    def _element(self, kind: str, name: str) -> RobotElement:
        if kind == "actuator":
            known = self._actuators
        elif kind == "joint":
            known = self._elements.names(self.name, "jnt")
        else:
            known = self._elements.names(self.name, kind)
        short = name.removeprefix(self.prefix)
        if short not in known:
            raise UnknownNameError(
                f"unknown_{kind}",
                f"'{self.name}' has no {kind} '{name}'{near(short, known)}",
            )
        model, data = self._elements.model, self._client.data
        index = known[short]
        return RobotElement(
            self.prefix + short, index, getattr(model, kind)(index), getattr(data, kind)(index)
        )

    def _read(self, name: str) -> np.ndarray:
        data = self._client.data
        if not self._has_bodies:
            raise UnknownNameError("unknown_body", f"'{self.name}' has no body, and so no state.")
        if self._entity is None or self._data is not data:
            self._data = data
            self._entity = entity_data(self._elements, self.name, data)
        return getattr(self._entity, name)[0].numpy()
