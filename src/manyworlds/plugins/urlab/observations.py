"""States in replies and in the topic `state/full`."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np

from manyworlds.lab.facts import LabFacts
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.server.operations import mode_of
from manyworlds.lab.verbs.fields import PlainDict, PlainMap
from manyworlds.plugins.urlab.roster import Member, Roster

Level = Literal["minimal", "standard", "full"]
"""`minimal` has positions and velocities; `standard` also controls and sensors; `full` also
bodies and forces."""
LEVELS: tuple[Level, ...] = ("minimal", "standard", "full")


def observe(roster: Roster, snapshot: Snapshot, level: Level, inputs: PlainMap) -> PlainDict:
    """Return the state of a world at one moment.

    Args:
        roster: members of the world.
        snapshot: the moment.
        level: amount of data.
        inputs: twist and actions by robot, as `robot_inputs` or the verb `step` returns them.
    """
    return {
        **clocks(snapshot),
        "per_articulation": {
            robot.name: articulation(robot, snapshot, level, inputs.get(robot.name, {}))
            for robot in roster.articulations
        },
        "entities": {body.name: _entity(body, snapshot) for body in roster.entities},
    }


def robot_inputs(facts: LabFacts) -> PlainDict:
    """Return twist and actions of each robot that has actuators."""
    return {
        name: {"twist": robot.twist, "actions": robot.actions}
        for name, robot in facts.robots.items()
    }


def clocks(snapshot: Snapshot) -> PlainDict:
    """Return times and counters of a moment."""
    now = time.time_ns()
    return {
        "time": snapshot.time,
        "step": snapshot.step,
        "sim_time": _clock(round(snapshot.time * 1e9)),
        "wall_time": _clock(now),
        "server_time": now * 1e-9,
        "frame_id": snapshot.frame_id,
        "mode": mode_of(snapshot),
    }


def _clock(nanoseconds: int) -> dict[str, int]:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return {"sec": seconds, "nsec": rest}


def articulation(robot: Member, snapshot: Snapshot, level: Level, inputs: PlainMap) -> PlainDict:
    """Return the state of a robot; arrays are in the order of joints and controls."""
    state: PlainDict = {
        "qpos": snapshot.qpos[robot.qpos],
        "qvel": snapshot.qvel[robot.qvel],
    }
    if level == "minimal":
        return state
    act = np.zeros(snapshot.act.size + 1)  # stateless actuators have index -1
    act[:-1] = snapshot.act
    state["ctrl"] = snapshot.ctrl[robot.ctrl]
    state["act"] = act[robot.act]
    state["sensors"] = {
        sensor.name: snapshot.sensordata[sensor.start : sensor.start + sensor.size]
        for sensor in robot.sensors
    }
    if inputs.get("twist"):
        forward, left, yaw = inputs["twist"]
        state["twist"] = {"linear": [forward, left, 0.0], "angular": [0.0, 0.0, yaw]}
    if inputs.get("actions"):
        state["actions"] = inputs["actions"]
    if level == "full":
        state["bodies"] = {
            body.name: {"xpos": snapshot.xpos[body.id], "xquat": snapshot.xquat[body.id]}
            for body in robot.bodies
        }
        state["actuator_force"] = snapshot.actuator_force[robot.actuators]
    return state


def _entity(body: Member, snapshot: Snapshot) -> PlainDict:
    return {
        "xpos": snapshot.xpos[body.id],
        "xquat": snapshot.xquat[body.id],
        "qpos": snapshot.qpos[body.qpos],
        "qvel": snapshot.qvel[body.qvel],
    }
