"""Verb that returns everything about a live world that its snapshots do not contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.lab.control import RobotControl
from manyworlds.lab.verbs.fields import Choice, Field, Flag, Integer, Number, Texts, Values
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab


@verb(
    state=Choice(options=("ready", "running", "faulted", "stopped")),
    fault=Field(text="reason why the world stopped; empty if it can advance"),
    paused=Flag(),
    mode=Choice(options=("live", "direct")),
    driver=Values(text="name and owner of the driver that advances the world"),
    percent=Number(unit="%", infinite=True, text="requested speed"),
    real_time_factor=Number(text="achieved speed over the last second"),
    behind_s=Number(unit="s", text="delay behind the wall clock"),
    model_version=Integer(text="number of changes of the model"),
    model_hash=Field(text="hash of the compiled model, before later changes"),
    warnings=Values(text="MuJoCo's warnings since the last reset, by type"),
    failures=Texts(text="sentences about callbacks that failed"),
    robots=Values(text="owner, targets and control law by robot, and why it does not move"),
    held=Texts(text="robots that are held in a keyframe"),
    states=Texts(text="names of the saved states"),
    recording=Values(text="progress of the recording"),
    replay=Values(text="progress of the replay"),
)
def read_status(lab: LiveLab) -> Reply:
    """Return the state of the loop, the robots' owners, recordings, and all failures."""
    loop, recorder, replay = lab.loop, lab.recorder, lab.replay
    pace, top = loop.pace, loop.drivers.top
    return {
        "state": loop.state,
        "fault": loop.fault,
        "paused": loop.paused,
        "mode": loop.mode,
        "driver": {"name": top.driver.name, "owner": top.owner},
        "percent": 100.0 * pace.speed,
        "real_time_factor": pace.real_time_factor,
        "behind_s": pace.behind_s,
        "model_version": loop.model_version,
        "model_hash": lab.world.model_hash,
        "warnings": loop.warnings,
        "failures": loop.reports.lines,
        "robots": {robot.name: _robot(lab, robot) for robot in lab.controls},
        "held": [robot for robot in lab.world.robots if lab.keyframes.is_holding(robot)],
        "states": lab.states.names,
        "recording": {
            "is_recording": recorder.is_recording,
            "num_frames": recorder.num_frames,
            "duration_s": recorder.duration,
            "file": recorder.path.name if recorder.path else "",
            "error": recorder.error,
            "active_session": recorder.active,
            "images": recorder.images,
        },
        "replay": {
            "is_active": replay.is_active,
            "playing": replay.playing,
            "session": replay.session,
            "replay_time": replay.time,
            "duration_s": replay.duration,
            "rate": replay.rate,
            "loop": replay.loop,
        },
    }


def _robot(lab: LiveLab, robot: RobotControl) -> Reply:
    names, targets = robot.actuators.names, robot.command.targets.tolist()
    return {
        "owner": robot.owner,
        "enabled": robot.enabled,
        "law": robot.controller.name,
        "targets": dict(zip(names, targets, strict=True)),
        "ignored": dict(robot.ignored),
        "asleep": robot.asleep,
        "reasons": lab.why_not_moving(robot.name),
    }
