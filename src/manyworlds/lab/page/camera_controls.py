"""Controls of the camera: framing, and following what a policy controls."""

from __future__ import annotations

import mujoco

from manyworlds.lab.errors import near
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.robots.control import POLICY
from manyworlds.lab.world.elements import RobotElements
from manyworlds.lab.world.model_facts import element_names
from manyworlds.viewer.browser.widgets import add_choice


class CameraPart:
    """Buttons that frame everything or the selected body; follows a robot with a policy.

    Args:
        ctx: context of the page.
    """

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        self._followed = False
        actions = {"All": self.frame_all, "Selected": self.frame_selected}
        self.choice = add_choice(ctx.gui, "Frame", actions, ctx.attempt)

    def renew(self) -> list[str]:
        """Keep what is followed."""
        return []

    def frame_all(self) -> None:
        """Point all cameras at everything that moves, and the floor below it."""
        self._ctx.view.look(self._ctx.lab.snapshot, move_open=True)

    def frame_selected(self) -> None:
        """Point all cameras at the selected body.

        Raises:
            ValueError: no body is selected.
        """
        if not self._ctx.body:
            raise ValueError("No body is selected: click one, or choose it in the tab World.")
        self._ctx.view.look(self._ctx.lab.snapshot, self._ctx.body, move_open=True)

    def frame(self) -> None:
        """Point all cameras at the selected body, or at everything."""
        (self.frame_selected if self._ctx.body else self.frame_all)()

    def update(self, snapshot: Snapshot) -> None:
        """Follow the first robot that a policy controls, once, unless a user follows a body."""
        if self._followed:
            return
        for name, robot in self._ctx.lab.facts.robots.items():
            if robot.owner != POLICY:
                continue
            self._followed = True
            if not self._ctx.view.follow:
                self._ctx.view.follow = self._root_of(name)
            return

    def toggle_follow(self) -> None:
        """Follow the selected robot with the camera, or stop following.

        Raises:
            ValueError: no robot can be followed.
        """
        self._followed = True
        if self._ctx.view.follow:
            self._ctx.view.follow = 0
            return
        root = self._root_of(self._ctx.robot) if self._ctx.robot else 0
        if not root:
            raise ValueError("There is no floating robot to follow: choose a body under Follow.")
        self._ctx.view.follow = root

    def _root_of(self, robot: str) -> int:
        return _floating_root(self._ctx.lab.elements, robot)


def find_target(elements: RobotElements, name: str) -> int:
    """Return the id of a body to look at: the named one, or the root of a robot; 0 if empty.

    Args:
        elements: elements of the world by the robot that they belong to.
        name: name of the robot or body.

    Raises:
        KeyError: there is no such robot or body, or the robot has no body.
    """
    if not name:
        return 0
    names = element_names(elements.model, "body")
    robots = elements.robots
    if name in robots:
        own = elements.ids(name, "body").tolist()
        if not own:
            raise KeyError(f"'{name}' has no body to look at: leave the name out to see all.")
        return _floating_root(elements, name) or own[0]
    if name not in names:
        known = near(name, [*robots, *names], f": choose one of {', '.join(robots)}, or a body.")
        raise KeyError(f"There is no robot or body '{name}'{known}")
    return names.index(name)


def _floating_root(elements: RobotElements, robot: str) -> int:
    """Return the body of a robot's free joint; 0 if its first joint is another one."""
    model = elements.model
    for body in elements.ids(robot, "body").tolist():
        joint = int(model.body_jntadr[body])
        if joint >= 0:
            free = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
            return body if free else 0
    return 0
