"""Driving on the page: keys, pads and gamepads, and the camera behind the driven robot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from manyworlds.lab.errors import VerbError
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.camera_controls import find_target
from manyworlds.lab.page.chase_camera import ChaseCamera
from manyworlds.lab.page.drive_socket import DriveSocket
from manyworlds.lab.page.page_boxes import BoxPart
from manyworlds.lab.page.page_context import PageContext
from manyworlds.viewer.browser.server import page_access, route

if TYPE_CHECKING:
    from manyworlds.lab.verb_methods import ReadDrivingReply

_PATH = "/lab-drive"
_READ_S = 0.5  # period in which bindings are read while a browser drives


class DrivePart(BoxPart):
    """Connects the inputs that browsers hold to the lab, and follows the robot that they drive.

    Args:
        ctx: context of the page.
    """

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._robots: dict[str, str] = {}  # that browsers of this page drive, and the browsers
        self._effects: dict[str, dict[str, str]] = {}
        """What the bound inputs of each robot move, as text."""
        self._camera: ChaseCamera | None = None
        self._drawn = self._next_reading = time.monotonic()
        host, access = page_access(ctx.server)
        self.socket = DriveSocket(access, self._answer, self._leave, host)
        self.address = route(ctx.server, _PATH, self.socket.port)
        """Address of the WebSocket: `:PORT` under the page's host, or a path of its server."""
        self._add_box("drive_box", self.address)

    def renew(self) -> list[str]:
        """Keep on; a robot that is gone cannot be followed."""
        self._camera = None
        return []

    def close(self) -> None:
        """End the connections."""
        self.socket.close()

    def update(self, snapshot: Snapshot) -> None:
        """Move the cameras behind the robot that is driven."""
        now = time.monotonic()
        elapsed = now - self._drawn
        self._drawn = now
        if self._robots and now >= self._next_reading:
            self._next_reading = now + _READ_S
            self._read()
        robot = next(iter(self._robots), "") if self._ctx.chases else ""
        camera = self._camera
        if camera is not None and camera.robot != robot:
            camera.leave(snapshot)
            self._camera = camera = None
        if robot and camera is None:
            elements = self._ctx.lab.elements
            if robot not in elements.robots:
                return
            body = find_target(elements, robot)
            self._camera = camera = ChaseCamera(self._ctx.view, robot, body)
        if camera is not None:
            camera.move(snapshot, elapsed)

    def _answer(self, browser: str, message: dict[str, Any]) -> dict[str, object]:
        """Carry out the message of a browser; runs in a thread of its own."""
        verbs = self._ctx.verbs
        what = str(message.get("ask"))
        if what in self._ctx.answers:
            return self._ctx.answers[what](browser, message)
        if what == "list":
            return {
                "robots": {
                    name: {"velocity": velocity, "inputs": self._effects.get(name, {})}
                    for name, velocity in self._read()["drivable"].items()
                }
            }
        robot = str(message.get("robot", ""))
        if what == "stop":
            verbs.stop_driving(robot=robot, driver=browser)
            self._robots.pop(robot, None)
            return {}
        if what != "drive":
            raise ValueError(f"A page has no message '{what}': list, drive, stop or timeline.")
        reply = verbs.drive(
            robot=robot,
            twist=message.get("twist"),
            inputs=message.get("inputs"),
            actions=message.get("actions"),
            driver=browser,
        )
        self._robots[robot] = browser
        return {"twist": reply["twist"], "inputs": self._effects.get(robot, {})}

    def _read(self) -> ReadDrivingReply:
        """Read the bindings, for the browsers that drive; return all about driving."""
        reply = self._ctx.verbs.read_driving()
        effects: dict[str, dict[str, str]] = {}
        for binding in reply["bindings"]:
            known = effects.setdefault(binding["robot"], {})
            if binding["input"] in known:
                known[binding["input"]] = "several actuators"
            else:
                sign = "+" if binding["scale"] > 0 else "\u2212"
                known[binding["input"]] = f"{binding['actuator']} {sign}"
        self._effects = effects
        return reply

    def _leave(self, browser: str) -> None:
        """Stop what a browser drove that has gone."""
        for robot, driver in list(self._robots.items()):
            if driver == browser:
                self._robots.pop(robot, None)
                try:
                    self._ctx.verbs.stop_driving(robot=robot, driver=browser)
                except VerbError as error:
                    # The world was rebuilt without the robot, or has stopped.
                    if error.code not in ("unknown_robot", "not_ready"):
                        raise
