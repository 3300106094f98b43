"""The facts of a lab, from its parts."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.lab.facts import (
    FACTS_S,
    LabFacts,
    RecordingFacts,
    ReplayFacts,
    RobotFacts,
    StepperFacts,
)
from manyworlds.lab.moments.timeline_parts import describe
from manyworlds.lab.robots.control import RobotControl
from manyworlds.lab.robots.twist import read_twist

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.recording.recorder import Recorder
    from manyworlds.lab.recording.replay import Replay
    from manyworlds.lab.world.world import World


class GatheredFacts:
    """The newest facts of a lab, gathered once for all its readers.

    Parts of a lab do not count their changes, and half of the facts change with each step. So the
    facts are gathered and compared, only when somebody reads them, and only if the last ones are
    of another world, older than `max_age`, or older than a verb that may have changed them.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self.max_age = FACTS_S
        """Age from which facts are gathered again [s]."""
        self._lab = lab
        self._lock = threading.Lock()
        self._gathered_at = -math.inf
        self._world: World | None = None
        self._facts: LabFacts | None = None

    def read(self) -> LabFacts:
        """Return the newest facts: the same object until one of them changes."""
        with self._lock:
            now = time.monotonic()
            if self._lab.world is not self._world or now >= self._gathered_at + self.max_age:
                self._world = self._lab.world
                self._gathered_at = now  # before what may follow
                facts = gather_facts(self._lab)
                if facts != self._facts:
                    self._facts = facts
            assert self._facts is not None
            return self._facts

    def expire(self) -> None:
        """Gather the facts anew for the next reader, because something may have changed."""
        self._gathered_at = -math.inf


def gather_facts(lab: LiveLab) -> LabFacts:
    """Return the present facts of a lab."""
    loop = lab.loop
    pace = loop.pace
    top = loop.steppers.top
    return LabFacts(
        state=loop.state,
        fault=loop.fault,
        paused=loop.paused,
        mode=lab.modes.mode,
        driver=StepperFacts(top.stepper.name, top.owner),
        has_task=lab.environment is not None,
        percent=100.0 * pace.speed,
        real_time_factor=pace.real_time_factor,
        behind_s=pace.behind_s,
        model_version=loop.model_version,
        model_hash=lab.world.model_hash,
        drawings=len(lab.drawings.shapes),
        rebuild_notes=list(lab.rebuild_notes),
        warnings=loop.warnings,
        left_out=dict(lab.errors),
        world_warnings=list(lab.world.warnings),
        failures=[*loop.reports.lines, *lab.server.problems, *lab.cameras.problems],
        robots={robot.name: _robot(lab, robot) for robot in lab.controls},
        held=[robot for robot in lab.world.robots if lab.keyframes.is_holding(robot)],
        states=lab.states.names,
        recording=_recording(lab.recorder),
        replay=_replay(lab.replay),
        timeline=describe(lab.timeline),
    )


def _robot(lab: LiveLab, robot: RobotControl) -> RobotFacts:
    command = robot.command
    commands: dict[str, np.ndarray] = getattr(robot.controller, "commands", {})
    law = robot.controller.base  # that of a policy, also beneath a pose sequence
    return RobotFacts(
        owner=robot.owner,
        enabled=robot.enabled,
        law=robot.controller.name,
        targets=dict(zip(robot.actuators.names, command.targets.tolist(), strict=True)),
        targets_time=command.time,
        command_number=command.number,
        commands={name: values.ravel().tolist() for name, values in commands.items()},
        ignored=dict(robot.ignored),
        twist=read_twist(lab, robot),
        actions=robot.actions,
        asleep=robot.asleep,
        differences=list(getattr(law, "differences", [])),
        adopts_gains=bool(getattr(law, "adopts_gains", False)),
        reasons=lab.why_not_moving(robot.name),
    )


def _recording(recorder: Recorder) -> RecordingFacts:
    return RecordingFacts(
        is_recording=recorder.is_recording,
        num_frames=recorder.num_frames,
        num_segments=recorder.num_segments,
        duration_s=recorder.duration,
        file=recorder.path.name if recorder.path else "",
        error=recorder.error,
        active_session=recorder.active,
        images=recorder.images,
    )


def _replay(replay: Replay) -> ReplayFacts:
    return ReplayFacts(
        is_active=replay.is_active,
        playing=replay.playing,
        session=replay.session,
        segment=replay.segment,
        replay_time=replay.time,
        duration_s=replay.duration,
        rate=replay.rate,
        loop=replay.loop,
        label=replay.label,
        report=str(replay.report) if replay.is_active else "",
        camera=None if replay.camera is None else replay.camera.tolist(),
    )
