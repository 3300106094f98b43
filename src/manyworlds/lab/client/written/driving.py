"""Verbs of `manyworlds.lab.verbs.driving`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class DrivingVerbs(VerbCaller):
    """Verbs of a live world: driving."""

    def drive(
        self,
        robot: str,
        twist: ArrayLike | None = None,
        inputs: Mapping[str, float] | None = None,
        actions: int | None = None,
        driver: str = "program",
    ) -> Reply:
        """Drive a robot for 0.5 s of real time; renew it while the inputs are held.

        Args:
            robot: robot with actuators.
            twist: shares of the largest speeds, -1 to 1: forward, left, yaw.
            inputs: values of bound inputs.
            actions: bit mask of the ten action keys that are held, from 0, to 1023.
            driver: name of the driver.

        Returns:
            `twist` (float[], forward and left velocity [m/s], yaw rate [rad/s]), `frame_id`,
            `time`.
        """
        return self.call(
            "drive", robot=robot, twist=twist, inputs=inputs, actions=actions, driver=driver
        )

    def stop_driving(
        self,
        robot: str,
        driver: str = "",
    ) -> Reply:
        """End the driving of a robot: its velocity is zero.

        Args:
            robot: robot with actuators.
            driver: name of the driver.

        Returns:
            `was_driven` (bool, false if nobody drove it), `frame_id`, `time`.
        """
        return self.call("stop_driving", robot=robot, driver=driver)

    def set_drive_speeds(
        self,
        forward: float | None = None,
        left: float | None = None,
        yaw: float | None = None,
    ) -> Reply:
        """Set the speeds that held keys and full deflections of sticks give; others stay.

        Args:
            forward: forward [m/s], from 0, to 2.
            left: left [m/s], from 0, to 1.
            yaw: yaw [rad/s], from 0, to 3.14.

        Returns:
            `fastest` (float[], forward and left velocity [m/s], yaw rate [rad/s]), `frame_id`,
            `time`.
        """
        return self.call("set_drive_speeds", forward=forward, left=left, yaw=yaw)

    def bind_input(
        self,
        robot: str,
        input: str,
        actuator: str,
        scale: float = 1.0,
        mode: Literal["hold", "toggle", "accumulate"] = "hold",
    ) -> Reply:
        """Bind an input to an actuator, which it moves while the robot is driven.

        Args:
            robot: robot with actuators.
            input: key, button or axis: KeyG, Digit1, Button0, Axis2 ....
            actuator: actuator of the robot.
            scale: change of the target at full input.
            mode: effect of the input.

        Returns:
            `bindings` (map[], robot, input, actuator, scale and mode of each binding), `frame_id`,
            `time`.
        """
        return self.call(
            "bind_input", robot=robot, input=input, actuator=actuator, scale=scale, mode=mode
        )

    def unbind_input(
        self,
        input: str,
        actuator: str = "",
        robot: str = "",
    ) -> Reply:
        """Remove bindings of an input: those of one actuator or robot, or all.

        Args:
            input: key, button or axis: KeyG, Digit1, Button0, Axis2 ....
            actuator: actuator of the robot.
            robot: robot.

        Returns:
            `bindings` (map[], robot, input, actuator, scale and mode of each binding), `frame_id`,
            `time`.
        """
        return self.call("unbind_input", input=input, actuator=actuator, robot=robot)

    def read_driving(self) -> Reply:
        """Return who drives which robot, the speeds, and the bindings.

        Returns:
            `drivable` (map, true for each robot that takes a velocity; others have bindings),
            `drivers` (map, driver of each robot that is driven), `twists` (map, velocity that the
            driver of each of these robots asks for), `fastest` (float[], forward and left velocity
            [m/s], yaw rate [rad/s]), `bindings` (map[], robot, input, actuator, scale and mode of
            each binding), `frame_id`, `time`.
        """
        return self.call("read_driving")
