"""Verbs of driving: velocities and bound inputs that are held, and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

import numpy as np

from manyworlds.lab.robots.bindings import BindingMode, plain_bindings
from manyworlds.lab.verbs.fields import (
    Choice,
    Field,
    Flag,
    Integer,
    Listing,
    Name,
    Number,
    NumberMap,
    Numbers,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, between_steps, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_Robot = Annotated[str, Name(of="robot", text="robot with actuators")]
_SHARES = Numbers(size=3, text="shares of the largest speeds, -1 to 1: forward, left, yaw")
_TWIST = Numbers(size=3, text="forward and left velocity [m/s], yaw rate [rad/s]")
_ACTIONS = Integer(low=0, high=2**10 - 1, text="bit mask of the ten action keys that are held")
_Driver = Annotated[str, Field(text="name of the driver")]
_Input = Annotated[str, Field(text="key, button or axis: KeyG, Digit1, Button0, Axis2 ...")]
_Actuator = Annotated[str, Field(text="actuator of the robot")]
_MODE = Choice(options=get_args(BindingMode), text="effect of the input")
_BINDINGS = Listing(text="robot, input, actuator, scale and mode of each binding")
_FORWARD = Number(low=0.0, high=2.0, unit="m/s", text="forward speed of held keys")
_LEFT = Number(low=0.0, high=1.0, unit="m/s", text="speed of held keys to the left")
_YAW = Number(low=0.0, high=3.14, unit="rad/s", text="yaw rate of held keys")
_STILL = (0.0, 0.0, 0.0)


@verb(twist=_TWIST)
def drive(
    lab: LiveLab,
    robot: _Robot,
    twist: Annotated[np.ndarray, _SHARES] = _STILL,  # type: ignore[assignment]
    inputs: Annotated[dict[str, float] | None, NumberMap(text="values of bound inputs")] = None,
    actions: Annotated[int | None, _ACTIONS] = None,
    driver: _Driver = "program",
) -> Reply:
    """Drive a robot for 0.5 s of real time; renew it while the inputs are held."""
    wanted = lab.driving.drive(
        robot, np.asarray(twist).tolist(), inputs, actions=actions, driver=driver
    )
    return {"twist": list(wanted)}


@verb(was_driven=Flag(text="false if nobody drove it"))
def stop_driving(lab: LiveLab, robot: _Robot, driver: _Driver = "") -> Reply:
    """End the driving of a robot: its velocity is zero."""
    return {"was_driven": lab.driving.stop(robot, driver)}


@verb(fastest=_TWIST)
def set_drive_speeds(
    lab: LiveLab,
    forward: Annotated[float | None, _FORWARD] = None,
    left: Annotated[float | None, _LEFT] = None,
    yaw: Annotated[float | None, _YAW] = None,
) -> Reply:
    """Set the speeds that held keys and full deflections of sticks give; others stay."""
    given = (forward, left, yaw)

    def change() -> None:
        pairs = zip(given, lab.driving.fastest, strict=True)
        lab.driving.fastest = [old if new is None else new for new, old in pairs]

    between_steps(lab, change)
    return {"fastest": list(lab.driving.fastest)}


@verb(bindings=_BINDINGS)
def bind_input(
    lab: LiveLab,
    robot: _Robot,
    input: _Input,
    actuator: _Actuator,
    scale: Annotated[float, Number(text="change of the target at full input")] = 1.0,
    mode: Annotated[BindingMode, _MODE] = "hold",
) -> Reply:
    """Bind an input to an actuator, which it moves while the robot is driven."""
    between_steps(lab, lambda: lab.bindings.bind(input, actuator, scale, mode, robot))
    return {"bindings": plain_bindings(lab.bindings)}


@verb(bindings=_BINDINGS)
def unbind_input(
    lab: LiveLab,
    input: _Input,
    actuator: _Actuator = "",
    robot: Annotated[str, Field(text="robot")] = "",
) -> Reply:
    """Remove bindings of an input: those of one actuator or robot, or all."""
    between_steps(lab, lambda: lab.bindings.unbind(input, actuator, robot))
    return {"bindings": plain_bindings(lab.bindings)}


@verb(
    reads=True,
    drivable=Values(text="true for each robot that takes a velocity; others have bindings"),
    drivers=Values(text="driver of each robot that is driven"),
    twists=Values(text="velocity that the driver of each of these robots asks for"),
    fastest=_TWIST,
    bindings=_BINDINGS,
)
def read_driving(lab: LiveLab) -> Reply:
    """Return who drives which robot, the speeds, and the bindings."""
    driving = lab.driving
    return {
        "drivable": driving.drivable(),
        "drivers": driving.drivers,
        "twists": {robot: list(driving.twist_of(robot)) for robot in driving.drivers},
        "fastest": list(driving.fastest),
        "bindings": plain_bindings(driving.bindings),
    }
