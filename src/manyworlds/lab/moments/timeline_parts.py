"""Parts of the timeline: its settings, marks and edits, and what frames have besides states."""

from __future__ import annotations

import bisect
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.facts import MarkFacts, TimelineFacts
from manyworlds.lab.loop.physics_loop import PhysicsLoop
from manyworlds.lab.moments.frames import FrameStore
from manyworlds.lab.moments.history import EditLists, EditStep
from manyworlds.lab.moments.model_log import ModelChange
from manyworlds.lab.moments.moment import ControlStates, Moment
from manyworlds.lab.moments.recording import Recording
from manyworlds.lab.world.model_facts import STATE

if TYPE_CHECKING:
    from manyworlds.lab.edits.model_edits import Originals
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.moments.timeline import Timeline

_INPUTS = int(mujoco.mjtState.mjSTATE_USER)
_CTRL = int(mujoco.mjtState.mjSTATE_CTRL)

_MARKS = 200

Forces = Mapping[int, np.ndarray]
"""Force and torque by id of the body, each of shape (6,)."""


@dataclass(kw_only=True)
class TimelineCfg:
    """Settings of the timeline."""

    max_duration: float = 60.0
    """Length of the timeline [s]; 0 keeps nothing."""
    max_megabytes: float = 256.0
    """Largest memory of the timeline."""


@dataclass(frozen=True)
class Mark:
    """Moment at which more than a step happened."""

    time: float
    """Time on the timeline [s]."""
    kind: str
    """`edit`, `reset`, `state`, `push` or `branch`."""
    label: str
    """Name for people: fields that were edited, body that was pushed."""


@dataclass(frozen=True)
class TimedStep:
    """Edit that was made, undone or redone, with the compiled values of edited fields around it."""

    step: EditStep
    before: Originals
    after: Originals


TimedSteps = Iterable[tuple[int, TimedStep]]
"""Such edits with the first frame after each, in their order."""


@dataclass
class FrameExtras:
    """Controls, forces, edits and checkpoints of frames, by the number of the frame, ascending."""

    lasting: deque[tuple[int, Forces]] = field(default_factory=deque)
    """Forces that stay after a frame whose forces end by themselves."""
    controls: deque[tuple[int, ControlStates]] = field(default_factory=deque)
    """Control of the robots from a frame on."""
    checkpoints: deque[tuple[int, Moment]] = field(default_factory=deque)
    """Frames of which everything is kept."""
    edits: deque[tuple[int, TimedStep]] = field(default_factory=deque)
    """Edits that were made, undone or redone, by the first frame after each."""
    marks: deque[tuple[int, Mark]] = field(default_factory=lambda: deque(maxlen=_MARKS))
    """Moments at which more than a step happened."""
    num_bytes: int = 0
    """Memory of the checkpoints."""

    def mark(self, frame: int, mark: Mark) -> None:
        """Add a mark."""
        self.marks.append((frame, mark))

    def marks_since(self, time: float) -> list[Mark]:
        """Return the marks from a time on [s]; for any thread."""
        return [mark for _, mark in self.marks.copy() if mark.time >= time]

    def checkpoint(self, frame: int, kept: Moment) -> None:
        """Keep everything of a frame."""
        self.checkpoints.append((frame, kept))
        self.num_bytes += kept.num_bytes

    def checkpoint_before(self, frame: int) -> tuple[int, Moment]:
        """Return the last frame up to one of which everything is kept."""
        return next(item for item in reversed(self.checkpoints) if item[0] <= frame)

    def forces_after(self, frame: int) -> Forces:
        """Return the forces that stay after a frame where the present ones end by themselves."""
        at = bisect.bisect_left(self.lasting, frame, key=lambda item: item[0])
        if at < len(self.lasting) and self.lasting[at][0] == frame:
            return self.lasting[at][1]
        return {}

    def forget(self, frame: int) -> None:
        """Forget what belongs to frames before one."""
        while self.checkpoints and self.checkpoints[0][0] < frame:
            self.num_bytes -= self.checkpoints.popleft()[1].num_bytes
        for timed in (self.lasting, self.controls, self.edits, self.marks):
            while timed and timed[0][0] < frame:
                timed.popleft()

    def cut(self, frame: int) -> FrameExtras:
        """Remove what belongs to frames from one on, and return it."""
        after = FrameExtras()
        for mine, theirs in (
            (self.lasting, after.lasting),
            (self.controls, after.controls),
            (self.checkpoints, after.checkpoints),
            (self.edits, after.edits),
            (self.marks, after.marks),
        ):
            while mine and mine[-1][0] >= frame:
                theirs.appendleft(mine.pop())  # type: ignore[arg-type]  # of the same kind
        after.num_bytes = sum(kept.num_bytes for _, kept in after.checkpoints)
        self.num_bytes -= after.num_bytes
        return after

    def extend(self, later: FrameExtras) -> None:
        """Add what `cut` has removed."""
        self.lasting += later.lasting
        self.controls += later.controls
        self.checkpoints += later.checkpoints
        self.edits += later.edits
        self.marks += later.marks
        self.num_bytes += later.num_bytes


@dataclass(frozen=True)
class Future:
    """Frames after the moment from which another branch was begun, and what belongs to them."""

    start: int
    """Number of the first frame."""
    frames: list[tuple[float, np.ndarray]]
    """Time on the timeline [s] and state of each."""
    extras: FrameExtras
    changes: list[ModelChange]
    present: Moment
    """The moment that was the present one."""

    @property
    def num_bytes(self) -> int:
        """Memory of the frames and of what belongs to them."""
        return sum(row.nbytes for _, row in self.frames) + self.extras.num_bytes


class FrameBuffer:
    """Frames to which new rows are added together, because that costs less than one by one.

    Args:
        columns: columns of the rows.
        cfg: settings of the timeline.
        option: options of the model.
    """

    def __init__(self, columns: Recording, cfg: TimelineCfg, option: mujoco.MjOption) -> None:
        self.stored = FrameStore(columns, cfg.max_duration, cfg.max_megabytes * 1e6)
        """All but the newest rows."""
        self.pending: deque[np.ndarray] = deque()
        """Rows that are not in the frames yet."""
        self.option = option
        """Options of the present model."""
        self._flushing = threading.Lock()

    @property
    def num_frames(self) -> int:
        """Number of frames of the present model that are not pending."""
        return len(self.stored.newest.rows)

    @property
    def frames(self) -> FrameStore:
        """All frames, up to the last step."""
        self.flush()
        return self.stored

    def flush(self) -> None:
        """Add the newest rows to the frames."""
        with self._flushing:
            rows = [self.pending.popleft() for _ in range(len(self.pending))]
            self.stored.add(rows, self.option)


class Resimulation:
    """Steps that are made again with the inputs that they had.

    Args:
        loop: loop of the world.
    """

    def __init__(self, loop: PhysicsLoop) -> None:
        self._loop = loop
        self.has_task = loop.steppers.with_memory is not None
        """True if the environment of a task makes the steps."""
        self._notes: dict[str, str] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about controllers that gave other controls than then."""
        return tuple(self._notes.values())

    def step(self, model: mujoco.MjModel, data: mujoco.MjData, row: np.ndarray) -> None:
        """Make the step that led to a state.

        Args:
            model: the model.
            data: its data, in the state before.
            row: the state, with the inputs of the step.

        Raises:
            RuntimeError: the environment of the task comes to another state.
        """
        inputs = _INPUTS
        if self.has_task:
            inputs &= ~_CTRL
        for robot in self._loop.controls:
            robot.apply(model, data)
        ctrl = data.ctrl.copy()
        part = np.empty(mujoco.mj_stateSize(model, inputs))
        mujoco.mj_extractState(model, row, STATE, part, inputs)
        mujoco.mj_setState(model, data, part, inputs)
        self._compare_controls(ctrl, data)
        if self.has_task:
            self._loop.steppers.top.stepper.step(model, data)
        else:
            mujoco.mj_step(model, data)
        again = np.empty_like(row)
        mujoco.mj_getState(model, data, again, STATE)
        if again.tobytes() == row.tobytes():
            return
        if self.has_task:
            raise RuntimeError(
                f"the task's environment does not repeat its steps ({row[0]:.3f} s is different): "
                "a term, or the policy, depends on what its state_dict lacks, or a client acted on "
                "the environment directly."
            )
        mujoco.mj_setState(model, data, row, STATE)  # something else moved the world then

    def _compare_controls(self, ctrl: np.ndarray, data: mujoco.MjData) -> None:
        for robot in self._loop.controls:
            ids = robot.actuators.ids
            if ctrl[ids].tobytes() != data.ctrl[ids].tobytes() and robot.name not in self._notes:
                self._notes[robot.name] = (
                    f"the controller '{robot.controller.name}' of '{robot.name}' gives other "
                    f"controls at {data.time:.3f} s than it did then: it continues from here"
                )


def describe(timeline: Timeline) -> TimelineFacts:
    """Return the state of a timeline."""
    return TimelineFacts(
        is_active=timeline.is_active,
        duration_s=timeline.duration,
        ago=timeline.ago,
        world_time=timeline.world_time,
        num_frames=timeline.num_frames,
        has_other=timeline.has_other,
        notes=list(timeline.notes),
        marks=[MarkFacts(ago, mark.kind, mark.label) for ago, mark in timeline.marks_ago()],
    )


def put_forces(data: mujoco.MjData, forces: Forces) -> None:
    """Write forces on bodies."""
    for body, wrench in forces.items():
        data.xfrc_applied[body] = wrench


class TimedEdits:
    """Keeps the edits of a lab on its timeline, and reverts and repeats them.

    Only the spec and the lists of edits are changed: the timeline itself has the model's values, to
    the bit. An edit while a moment of the past is shown first continues from there.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab = lab
        self._originals = lab.edits.originals
        self.lock = lab.history.lock
        """Held while edits and the timeline change."""
        lab.history.on_step = self._keep
        lab.history.before_edit = self._begin

    def take_back(self, steps: TimedSteps) -> None:
        """Revert edits, the last one first."""
        with self._lab.edits.of_spec_only():
            for _, timed in reversed(list(steps)):
                timed.step.back()
                self._set(timed.step.before, timed.before)

    def make_again(self, steps: TimedSteps) -> None:
        """Repeat edits that `take_back` reverted."""
        with self._lab.edits.of_spec_only():
            for _, timed in steps:
                timed.step.forth()
                self._set(timed.step.after, timed.after)

    def _set(self, lists: EditLists, originals: Originals) -> None:
        self._lab.history.lists = lists
        self._lab.edits.originals = self._originals = originals

    def _begin(self) -> None:
        if self._lab.timeline.is_active:
            self._lab.timeline.branch(play=False)

    def _keep(self, step: EditStep) -> None:
        before, self._originals = self._originals, self._lab.edits.originals
        self._lab.timeline.keep_edit(TimedStep(step, before, self._originals))
