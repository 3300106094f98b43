"""Playback of a recording in a world, in place of physics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from manyworlds.lab.loop.callbacks import Handle
from manyworlds.lab.loop.physics_loop import PhysicsLoop, WorldEdit
from manyworlds.lab.loop.steppers import StackedStepper
from manyworlds.lab.moments.moment import Moment
from manyworlds.lab.moments.recording import LIVE, Recording, joint_types, state_index
from manyworlds.lab.moments.states import SavedStates
from manyworlds.lab.recording.matching import MatchReport, match_joints
from manyworlds.lab.recording.recorder import Recorder
from manyworlds.lab.world.model_facts import STATE, robot_of

_END_S = 1e-6  # time from the last frame within which playback is at the end


@dataclass
class Binding:
    """Role of one robot in replays; read when a replay starts."""

    enabled: bool = True
    """True to move the robot; otherwise it keeps its state."""
    relative: bool | None = None
    """True to place the first frame where the robot's free root is in the initial state; None does
    so for files, and not for the live session."""


@dataclass(frozen=True)
class Placement:
    """Rigid motion of one free joint."""

    turn: np.ndarray
    """Quaternion."""
    start: np.ndarray
    """Position of the recording's first frame [m], shape [3]."""
    end: np.ndarray
    """Position at which the first frame is placed [m], shape [3]."""
    columns: tuple[int, ...] = ()
    """Columns of the joint's pose and, if it was recorded, its velocity."""

    @classmethod
    def between(cls, first: np.ndarray, pose: np.ndarray) -> Placement:
        """Return the motion from one pose of a free joint to another."""
        back, turn = np.empty(4), np.empty(4)
        mujoco.mju_negQuat(back, first[3:])
        mujoco.mju_mulQuat(turn, pose[3:], back)
        mujoco.mju_normalize4(turn)
        return cls(turn, first[:3].copy(), pose[:3].copy())

    def apply(self, row: np.ndarray) -> None:
        """Move a row in place; angular velocities are in the body's frame and stay."""
        qpos, *qvel = self.columns
        position = row[qpos:][:3]
        quat = row[qpos + 3 :][:4]
        velocity = np.empty(3)
        mujoco.mju_rotVecQuat(position, position - self.start, self.turn)
        position += self.end
        mujoco.mju_mulQuat(quat, self.turn, quat.copy())
        for column in qvel:
            mujoco.mju_rotVecQuat(velocity, row[column:][:3], self.turn)
            row[column:][:3] = velocity


@dataclass(frozen=True)
class Track:
    """Segment of a recording, and the places of its values in the world's state."""

    recording: Recording
    number: int
    """Number of the segment, from 1."""
    start: float
    """Time of its first frame since the first one of the replay [s]."""
    first: int
    """Number of its first frame in the replay."""
    sources: np.ndarray
    """Columns of the recording."""
    targets: np.ndarray
    """Columns of the state that they move, shape [len(sources)]."""
    at_rest: np.ndarray
    """Columns of the state that are zero."""
    placements: list[Placement]

    @property
    def end(self) -> float:
        """Time of its last frame since the first one of the replay [s]."""
        return self.start + self.recording.duration


class Replay:
    """Plays recordings, as the stepper of the world, until `stop`, a reset or a restored state.

    A keyframe that is applied or held ends a replay, too: `give_way` is called before it.

    Only recorded elements that the world has are moved: joints by `match_joints`, controls and
    mocap bodies by their names; all others keep their state. `mj_forward` computes derived fields,
    and the world's time is the time since the recording's first frame.

    A recording over rebuilds of the world has a segment for each model. All segments that have
    joints of this world are played, one after the other; `report` names the others.

    Args:
        loop: loop of the world.
        recorder: recorder with the recordings.
        states: saved states of the world.
        prefixes: prefix of each robot's elements, by the robot's name.
        reset_data: function that puts data into the initial state.
    """

    name = "replay"

    def __init__(
        self,
        loop: PhysicsLoop,
        recorder: Recorder,
        states: SavedStates,
        prefixes: Mapping[str, str],
        reset_data: WorldEdit,
    ) -> None:
        self.bindings = {robot: Binding() for robot in prefixes}
        """Role of each robot, by its name."""
        self.loop = True
        """True to restart after the last frame."""
        self.session = ""
        """Name of the session that is played."""
        self.report = MatchReport()
        """Recorded and moved joints of the newest replay."""
        self._loop = loop
        self._recorder = recorder
        self._states = states
        self.before_start: WorldEdit = lambda model, data: None
        """Called by `start` in the physics thread, before the world changes."""
        self._on_reset: Handle | None = None
        self._prefixes = dict(prefixes)
        self._reset_data = reset_data
        self._tracks: list[Track] = []
        self._num_segments = 0
        self._stacked: StackedStepper | None = None
        self._before: Moment | None = None
        self._was_paused = False
        self._time = 0.0
        self._rate = 1.0
        self._playing = False
        self._row: np.ndarray | None = None
        self._is_file = False

    def continue_settings(self, other: Replay) -> None:
        """Take over the settings of the replay of a world that this one replaces."""
        self.loop = other.loop
        self.rate = other.rate
        same = {robot: role for robot, role in other.bindings.items() if robot in self.bindings}
        self.bindings.update(same)

    @property
    def is_active(self) -> bool:
        """True while a recording replaces physics, playing or not."""
        return self._stacked is not None

    @property
    def active_session(self) -> str:
        """Name of the session that replaces physics; empty if none does."""
        return self.session if self.is_active else ""

    @property
    def playing(self) -> bool:
        """True while playback continues with the world's time."""
        return self._playing

    @property
    def time(self) -> float:
        """Time since the first frame [s]."""
        return self._time

    @property
    def duration(self) -> float:
        """Time from the first to the last frame [s]."""
        return self._tracks[-1].end if self._tracks else 0.0

    @property
    def num_frames(self) -> int:
        """Number of frames of the session that are played."""
        return sum(len(track.recording) for track in self._tracks)

    @property
    def segment(self) -> int:
        """Number of the segment that is shown, from 1; 0 before the first replay."""
        return self._track().number if self._tracks else 0

    @property
    def rate(self) -> float:
        """Recorded seconds per simulated second; negative to play backwards."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        if not math.isfinite(rate) or rate == 0.0:
            raise ValueError(f"The rate must be a number other than zero, got {rate}.")
        self._rate = rate

    @property
    def label(self) -> str:
        """Text to display; empty if nothing is played."""
        if not self.is_active:
            return ""
        part = f", segment {self.segment} of {self._num_segments}" * (self._num_segments > 1)
        return f"REPLAY: {self.time:.2f} / {self.duration:.2f} [{self.session}{part}]"

    @property
    def camera(self) -> np.ndarray | None:
        """Recorded `CAMERA` at this moment, shape (6,); None if it was not recorded."""
        row = self._row
        if row is None or not self._tracks:
            return None
        recording = self._track().recording
        if "camera" not in recording.index or len(row) != recording.values.shape[1]:
            return None
        ((start, width),) = recording.index["camera"].values()
        return row[start : start + width]

    def start(self, session: str = "", restore: bool = True) -> MatchReport:
        """Show the first frame and play; the world runs, and its recording pauses.

        Args:
            session: session to play, by default the recorder's active one.
            restore: whether `stop` returns to the present state; otherwise physics continues from
                the frame that is shown then.

        Returns:
            The recorded joints and the joints that they move.

        Raises:
            ValueError: it has no frames, or none of its joints is here; then nothing changes.
            RecordingError: it cannot be read.
            FileNotFoundError: there is no such file.
        """
        session = session or self._recorder.active
        recording = self._recorder.load(session)
        if not len(recording):
            raise ValueError(f"The session '{session}' has no frames to play.")
        types = joint_types(self._loop.model)
        segments = recording.segments
        reports = [match_joints(segment, types, self._robot_of) for segment in segments]
        played = [report for report in reports if report.matched]
        if not played:
            raise ValueError(f"The session '{session}' fits no joint of this world:\n{reports[0]}")
        report = replace(played[0], notes=self._notes(segments, reports))
        self._recorder.stop()

        def begin(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self._end(model, data)
            self.before_start(model, data)
            self._was_paused = self._loop.paused
            self._loop.set_paused(False)
            self._before = None
            if restore:
                self._before = Moment.capture(self._loop, model, data)
            self.session = session
            self.report = report
            self._is_file = session != LIVE
            self._tracks = []
            self._num_segments = len(segments)
            for number, (segment, matches) in enumerate(zip(segments, reports, strict=True), 1):
                if matches.matched:
                    self._tracks.append(self._map(model, number, segment, matches))
            self._time = 0.0
            self._playing = True
            self._show(model, data)
            self._stacked = self._loop.steppers.push(self, self.name)
            self._on_reset = self._loop.on_reset(self._interrupt)

        self._loop.do(begin, edits_model=False)
        return report

    def stop(self, restore: bool = True) -> None:
        """End the replay, or do nothing without one.

        Args:
            restore: whether to return to the state before, if `start` had `restore`; otherwise
                physics continues from the frame that is shown.
        """
        if self.is_active:
            self._loop.do(lambda model, data: self._end(model, data, restore), edits_model=False)

    def _end(self, model: mujoco.MjModel, data: mujoco.MjData, restore: bool = True) -> None:
        before = self._before
        if self.give_way(model, data) and restore and before is not None:
            before.put_state(self._loop, model, data)

    def give_way(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """End the replay in the present state, as for a reset; return False if there is none."""
        stacked = self._stacked
        self._stacked = None
        if stacked is None:
            return False
        self._playing = False
        self._loop.steppers.remove(stacked)
        if self._on_reset is not None:
            self._on_reset.remove()
        if self._before is not None:
            self._loop.set_paused(self._was_paused)
        return True

    def _interrupt(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        self.give_way(model, data)

    def play(self) -> None:
        """Continue; from the beginning if it was at the end."""

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            end = self.duration if self._rate > 0.0 else 0.0
            if abs(self._time - end) < _END_S:
                self._time = self.duration - end
                self._show(model, data)
            self._playing = True

        self._do(go)

    def pause(self) -> None:
        """Stay at the frame that is shown."""
        self._do(lambda model, data: setattr(self, "_playing", False))

    def seek(self, time: float) -> None:
        """Show a moment, also in a paused world.

        Args:
            time: time since the first frame [s]; clipped to the recording.

        Raises:
            ValueError: it is no number.
            RuntimeError: nothing is played.
        """
        if math.isnan(time):
            raise ValueError(
                f"The time of a replay must be from 0 to {self.duration:g} s, got nan."
            )

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self._time = min(max(float(time), 0.0), self.duration)
            self._show(model, data)

        self._do(go)

    def step_frames(self, num_frames: int = 1) -> None:
        """Pause, and show the frame `num_frames` later, or earlier if negative.

        Raises:
            RuntimeError: nothing is played.
        """

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self._playing = False
            track = self._track()
            frame = track.first + track.recording.find(self._time - track.start)[0] + num_frames
            frame = min(max(frame, 0), self.num_frames - 1)
            track = next(track for track in reversed(self._tracks) if track.first <= frame)
            self._time = track.start + float(track.recording.clock[frame - track.first])
            self._show(model, data)

        self._do(go)

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Show the next moment; called by the loop."""
        playing = self._playing
        if playing:
            self._advance(self._rate * model.opt.timestep)
        self._show(model, data)
        return playing

    def _advance(self, by: float) -> None:
        time = self._time + by
        end = self.duration
        if self.loop and end > 0.0:
            # The last frame lasts as long as the others do on average.
            period = end * self.num_frames / (self.num_frames - 1)
            time = (time + _END_S) % period - _END_S
        elif (by > 0.0 and time >= end - _END_S) or (by <= 0.0 and time <= _END_S):
            self._playing = False
        self._time = min(max(time, 0.0), end)

    def _show(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Write the present moment into the world."""
        track = self._track()
        row = track.recording.sample(self._time - track.start)
        for placement in track.placements:
            placement.apply(row)
        state = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, state, STATE)
        state[0] = self._time
        state[track.at_rest] = 0.0
        state[track.targets] = row[track.sources]
        mujoco.mj_setState(model, data, state, STATE)
        mujoco.mj_forward(model, data)
        self._row = row

    def _track(self) -> Track:
        """Return the segment of the present time; the one before, between two segments."""
        begun = (track for track in reversed(self._tracks) if track.start <= self._time + _END_S)
        return next(begun, self._tracks[0])

    def _notes(self, segments: Sequence[Recording], reports: Sequence[MatchReport]) -> list[str]:
        """Return sentences about the segments of other models than the world's."""
        notes = []
        for number, (segment, report) in enumerate(zip(segments, reports, strict=True), 1):
            if len(segments) == 1 or segment.model_hash == self._states.model_hash:
                continue
            count = f"{len(report.matched)} of its {len(segment.joints)} joints are moved"
            if not report.matched:
                count = "it has no joint of this world and is not played"
            notes.append(
                f"segment {number} of {len(segments)} is of another model "
                f"({segment.model_hash[:12]}): {count}"
            )
        return notes

    def _map(
        self, model: mujoco.MjModel, number: int, recording: Recording, report: MatchReport
    ) -> Track:
        """Find the columns of a segment and their places in the state."""
        index = state_index(model)
        names = {match.joint: match.recorded for match in report.matched}
        joints = [joint for joint in names if self._binding(joint).enabled]
        pairs = [("qpos", names[joint], joint) for joint in joints]
        pairs += [("qvel", names[joint], joint) for joint in joints]
        for field in ("act", "ctrl", "mocap_pos", "mocap_quat"):
            same = (name for name in recording.index.get(field, ()) if name in index[field])
            pairs += [(field, name, name) for name in same if self._binding(name).enabled]
        sources = []
        targets = []
        at_rest = []
        for field, recorded, name in pairs:
            source = recording.index.get(field, {}).get(recorded)
            target = index[field][name]
            if source is not None and source[1] == target[1]:
                sources += _columns(source)
                targets += _columns(target)
            elif field == "qvel":
                at_rest += _columns(target)
        start = 0.0
        if self._tracks:
            start = float(recording.times[0] - self._tracks[0].recording.times[0])
        return Track(
            recording,
            number,
            start,
            self.num_frames,
            np.array(sources, int),
            np.array(targets, int),
            np.array(at_rest, int),
            self._place(model, recording, {joint: names[joint] for joint in joints}),
        )

    def _place(
        self, model: mujoco.MjModel, recording: Recording, joints: Mapping[str, str]
    ) -> list[Placement]:
        """Move robots played relative to their initial state, by their first free joint."""
        data = mujoco.MjData(model)
        self._reset_data(model, data)
        types = joint_types(model)
        placements = []
        addresses = dict(zip(types, model.jnt_qposadr, strict=True))
        roots: dict[str | None, Placement] = {}
        for joint, recorded in joints.items():
            relative = self._binding(joint).relative
            if relative is None:
                relative = self._is_file
            if types[joint] != "free" or not relative:
                continue
            robot = self._robot_of(joint)
            pose = data.qpos[addresses[joint] :][:7]
            first = recording.columns("qpos", recorded)[0]
            root = roots.setdefault(robot, Placement.between(first, pose))
            places = (recording.index.get(field, {}).get(recorded) for field in ("qpos", "qvel"))
            placements.append(replace(root, columns=tuple(p[0] for p in places if p)))
        return placements

    def _binding(self, name: str) -> Binding:
        """Return the role of the robot that an element belongs to."""
        return self.bindings.get(self._robot_of(name) or "", Binding())

    def _do(self, command: WorldEdit) -> None:
        def checked(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            # Only in the command is it certain that no other thread has stopped the replay.
            if self._stacked is None:
                raise RuntimeError("Nothing is played: start a replay first.")
            command(model, data)

        self._loop.do(checked, edits_model=False)

    def _robot_of(self, name: str) -> str | None:
        return robot_of(name, self._prefixes)


def _columns(place: tuple[int, int]) -> range:
    return range(place[0], place[0] + place[1])
