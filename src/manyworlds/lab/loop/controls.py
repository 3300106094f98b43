"""Controls of all robots of a world, as the loop applies them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.lab.robots.control import RobotControl


class RobotControls:
    """Controls of all robots.

    Args:
        robots: controls by name of the robot.
    """

    def __init__(self, robots: Mapping[str, RobotControl]) -> None:
        self._robots = dict(robots)

    def __getitem__(self, name: str) -> RobotControl:
        """Return the controls of a robot.

        Raises:
            KeyError: there is no such robot.
        """
        if name not in self._robots:
            known = ", ".join(self._robots) or "none"
            raise KeyError(f"There is no robot '{name}'; available: {known}.")
        return self._robots[name]

    def find(self, name: str) -> RobotControl | None:
        """Return the controls of a robot, or None if there is no such robot."""
        return self._robots.get(name)

    def __iter__(self) -> Iterator[RobotControl]:
        return iter(self._robots.values())

    def reset(self) -> None:
        """Return all robots to their neutral targets."""
        for robot in self:
            robot.reset()
