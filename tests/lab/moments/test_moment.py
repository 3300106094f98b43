"""A moment of a world has all that its robots, its task and its physics continue from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, world_from_file
from manyworlds.lab.moments.moment import ControlState, Moment
from manyworlds.lab.robots.control import RobotControl
from manyworlds.lab.robots.controllers import PdController
from tests.lab.scene.test_rebuild import suite_file
from tests.lab.task.test_env_stepper import open_task

NOT_STATE = {
    "name": "of the world",
    "actuators": "of the world",
    "neutral": "of the world",
    "_lock": "no state",
    "_now": "time of the state",
    "asleep": "follows from the state",
    "ignored": "counts commands of clients for messages",
}
"""Attributes of a robot's control that a moment does not have, with the reason."""
NAMES = {"_command": "command", "_controller": "controller"}
UNLIKE = ("number", "task_memory")
"""Counter of commands; and the memory of a task as a file, whose bytes differ for equal values."""


def capture(lab: LiveLab) -> Moment:
    """The present moment."""
    return lab.loop.do(lambda model, data: Moment.capture(lab.loop, model, data), edits_model=False)


def plain(value: object) -> object:
    """A value whose equality compares arrays by their bytes."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {f.name: plain(getattr(value, f.name)) for f in fields if f.name not in UNLIKE}
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value


def open_world(model: str, world) -> LiveLab:
    """A world that waits for steps; a robot has a controller with gains, unless a task has it."""
    if model == "task":
        return open_task("Velocity-Flat-Quadruped")
    if model != "arm":
        world = world_from_file(suite_file(model))
    lab = LiveLab(world, LabCfg(mode="direct", recorder=RecorderCfg(to_file=False)))
    robot = next(iter(lab.controls))
    robot.controller = PdController(lab.model, robot.actuators, kp=2.0)
    return lab


def disturb(lab: LiveLab) -> None:
    """Change everything that a client can change of robots and state, and go on."""
    for robot in lab.controls:
        robot.take("net")
        robot.write("net", np.full(len(robot.neutral), 0.3))
        robot.enabled = not robot.enabled
        robot.actions = 5
        for values in robot.controller.base.settings().values():
            values[...] = 1.5
    if lab.environment is not None:
        lab.environment.steer("twist", (0.1, 0.2, 0.3))
    lab.loop.do(lambda model, data: data.qvel.__iadd__(0.1))
    lab.step(30)


@pytest.mark.filterwarnings("ignore:PD cannot control")
@pytest.mark.parametrize("model", ["arm", "walker", "quadruped", "task"])
def test_a_moment_comes_back(model, world):
    """Disturb all that can be changed, and put the moment: it is the same, and so is its future."""
    with open_world(model, world) as lab:
        lab.step(20)
        moment = capture(lab)
        lab.step(25)
        future = capture(lab)
        disturb(lab)
        assert plain(capture(lab)) != plain(future)
        lab.loop.do(lambda model, data: moment.put(lab.loop, model, data))
        assert plain(capture(lab)) == plain(moment)
        lab.step(25)
        assert plain(capture(lab)) == plain(future)


def test_nothing_of_a_robot_s_control_is_forgotten(world):
    """Look at the attributes of a robot's control: each is of moments, or listed with a reason."""
    with LiveLab(world) as lab:
        robot = next(iter(lab.controls))
        assert isinstance(robot, RobotControl)
        kept = {f.name for f in dataclasses.fields(ControlState)} - {"settings"}
        assert {NAMES.get(name, name) for name in vars(robot)} == kept | NOT_STATE.keys()
