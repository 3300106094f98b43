"""Facts: the state of a live world that readers see beside its snapshots, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from manyworlds.lab.verb_methods import only_reads

FACTS_S = 0.1
"""Longest time after which a change that no verb made is in the facts [s]."""

_STREAMED = frozenset(
    {"step", "show_state", "set_targets", "drive", "push_body", "drag_body", "set_recording_view"}
)
"""Verbs that programs call many times a second: reading all facts after each costs too much."""


def changes_facts(verb: str) -> bool:
    """Return True if the facts are older than the reply of a verb, and must be read again."""
    return not only_reads(verb) and verb not in _STREAMED


@dataclass(frozen=True)
class StepperFacts:
    """What advances the world."""

    name: str
    owner: str


@dataclass(frozen=True)
class RobotFacts:
    """Owner, targets and controller of a robot that has actuators."""

    owner: str
    enabled: bool
    """True if the controller computes the controls; otherwise the targets are the controls."""
    law: str
    """Name of the controller."""
    targets: dict[str, float]
    """Target of each actuator, by its name."""
    targets_time: float
    """Simulated time at which the targets were written [s]; negative before the first write."""
    command_number: int
    """Number of earlier commands."""
    commands: dict[str, list[float]]
    """Values of the policy's commands, by name."""
    ignored: dict[str, int]
    """Number of ignored commands from clients that are not the owner, by client."""
    twist: list[float]
    """Forward and left velocity [m/s] and yaw rate [rad/s]; empty without such a command."""
    actions: int
    """Bit mask of actions that a client has switched on."""
    asleep: bool
    """True if MuJoCo has put the robot's bodies to sleep."""
    differences: list[str]
    """Differences between the world and that of the policy's training."""
    adopts_gains: bool
    """True if the world has taken over the gains of training."""
    reasons: list[str]
    """Reasons that keep the robot from moving, as text; empty if nothing does."""


@dataclass(frozen=True)
class RecordingFacts:
    """Progress of the recording."""

    is_recording: bool
    num_frames: int
    """Number of frames in memory."""
    num_segments: int
    """Number of segments in memory: one, and one for each rebuild."""
    duration_s: float
    """Time from the first to the last frame in memory [s]."""
    file: str
    """Name of the file; empty if there is none."""
    error: str
    """Reason why the file is incomplete; empty if it is not."""
    active_session: str
    """Name of the session that is played or saved by default."""
    images: dict[str, dict[str, object]]
    """Numbers of images by camera: in the file, dropped, late; and errors."""


@dataclass(frozen=True)
class ReplayFacts:
    """Progress of the replay."""

    is_active: bool
    """True while a recording replaces physics, playing or not."""
    playing: bool
    session: str
    segment: int
    """Number of the segment that is shown, from 1; 0 before the first replay."""
    replay_time: float
    """Time since the first frame [s]."""
    duration_s: float
    """Time from the first to the last frame [s]."""
    rate: float
    """Recorded seconds per simulated second; negative plays backwards."""
    loop: bool
    """True to restart after the last frame."""
    label: str
    report: str
    """Recorded and moved joints, as text; empty if no recording replaces physics."""
    camera: list[float] | None
    """Recorded pose of the camera: position [m], pitch, yaw, roll [degrees]; None if none."""


@dataclass(frozen=True)
class MarkFacts:
    """Moment at which more than a step happened."""

    ago: float
    """Time since then [s]."""
    kind: str
    """`edit`, `reset`, `state`, `push` or `branch`."""
    label: str


@dataclass(frozen=True)
class TimelineFacts:
    """Length of the timeline, moment that is shown, and marks."""

    is_active: bool
    """True while a moment of the past is shown."""
    duration_s: float
    """Time from the first moment that can be gone back to until the newest one [s]."""
    ago: float
    """Time from the moment that is shown until the newest one [s]."""
    world_time: float
    """Simulated time of the moment that is shown [s]."""
    num_frames: int
    """Number of moments that can be gone back to."""
    has_other: bool
    """True if the future that the last branch left is kept."""
    notes: list[str]
    """Sentences about what the last branch could not repeat."""
    marks: list[MarkFacts]


@dataclass(frozen=True)
class LabFacts:
    """The state of a live world that its snapshots do not contain.

    `read_status` replies these fields by the same names; its declaration has their meanings.
    """

    state: Literal["ready", "running", "faulted", "stopped"]
    fault: str
    paused: bool
    mode: Literal["live", "direct", "puppet"]
    driver: StepperFacts
    has_task: bool
    percent: float
    """Requested speed [%]."""
    real_time_factor: float
    behind_s: float
    model_version: int
    model_hash: str
    drawings: int
    rebuild_notes: list[str]
    warnings: dict[str, int]
    left_out: dict[str, str]
    world_warnings: list[str]
    failures: list[str]
    robots: dict[str, RobotFacts]
    """Robots that have actuators, by name."""
    held: list[str]
    states: list[str]
    recording: RecordingFacts
    replay: ReplayFacts
    timeline: TimelineFacts

    def plain(self) -> dict[str, Any]:
        """Return the facts as plain data."""
        return to_plain(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> LabFacts:
        """Return the facts of `plain`, or of a reply of `read_status`."""
        robots = {name: RobotFacts(**robot) for name, robot in plain["robots"].items()}
        timeline = dict(plain["timeline"])
        timeline["marks"] = [MarkFacts(**mark) for mark in timeline["marks"]]
        fields = {field.name: plain[field.name] for field in dataclasses.fields(cls)}
        fields["driver"] = StepperFacts(**plain["driver"])
        fields["robots"] = robots
        fields["recording"] = RecordingFacts(**plain["recording"])
        fields["replay"] = ReplayFacts(**plain["replay"])
        fields["timeline"] = TimelineFacts(**timeline)
        return cls(**fields)


def to_plain(value: Any) -> Any:
    """Return dataclasses, dictionaries and lists as plain data; faster than `asdict`."""
    if isinstance(value, str | float | int) or value is None:  # most are
        return value
    if dataclasses.is_dataclass(value):
        return {name: to_plain(part) for name, part in vars(value).items()}
    if isinstance(value, dict):
        return {name: to_plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [to_plain(part) for part in value]
    return value
