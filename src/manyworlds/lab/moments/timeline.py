"""Timeline of a world: its last seconds, always kept, to go back to and to continue from."""

from __future__ import annotations

import bisect
import copy
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.loop.physics_loop import PhysicsLoop, WorldEdit
from manyworlds.lab.loop.steppers import StackedStepper
from manyworlds.lab.moments.frames import StepRows
from manyworlds.lab.moments.model_log import ModelLog
from manyworlds.lab.moments.moment import ControlStates, Moment
from manyworlds.lab.moments.recording import Recording, state_columns
from manyworlds.lab.moments.timeline_parts import (
    Forces,
    FrameBuffer,
    FrameExtras,
    Future,
    Mark,
    Resimulation,
    TimedEdits,
    TimedStep,
    TimelineCfg,
    put_forces,
)
from manyworlds.lab.play.perturb import Perturbation
from manyworlds.lab.world.model_facts import STATE
from manyworlds.lab.world.model_values import compute_derived

if TYPE_CHECKING:
    from manyworlds.lab.world.world import World

_BIT = mujoco.mjtState
_MOTION = int(_BIT.mjSTATE_TIME | _BIT.mjSTATE_QPOS | _BIT.mjSTATE_QVEL | _BIT.mjSTATE_ACT)
"""First part of a state, which only steps change unless a command sets it."""
_BATCH = 25  # steps after which rows are added to the frames
_CHECKPOINT_FRAMES = 100  # most steps to simulate again in order to continue from a moment
_CHECKPOINT_SHARE = 0.003  # of the time at most, to keep the memory of a task
_BRANCH_S = 300.0  # longest wait for steps that are made again, which may be slow in a task
_REPLAY = "replay"
_SHOWN = ("timeline", _REPLAY)
"""Names of steppers whose frames are not kept, because they are shown again."""
_SNAP_S = 1e-6  # far above the rounding errors of clocks that add up timesteps


class Timeline:
    """Keeps the last seconds of a world, shows them again, and continues from any moment of them.

    A frame is the state after a step, with the inputs of that step: controls, forces, mocap bodies.
    States that a command sets, as a reset does, are frames, too. Going back shows frames in place
    of physics, as the stepper of the world, and changes nothing: `leave` returns to the present.
    `branch` continues from the frame that is shown: the world, its model's values and options, the
    robots' targets and controllers, and the memory of a task's environment are those of that
    moment, to the bit; see `branch`. The future that was is kept until the next branch, see `swap`.

    Frames of replays are not kept: they are in a recording already.

    Args:
        loop: loop of the world.
        rows: states after the steps.
        edits: edits of the world.
        cfg: settings; not modified.
    """

    name = "timeline"

    def __init__(
        self,
        loop: PhysicsLoop,
        rows: StepRows,
        edits: TimedEdits,
        cfg: TimelineCfg | None = None,
    ) -> None:
        self.cfg = TimelineCfg() if cfg is None else copy.copy(cfg)
        self.notes: tuple[str, ...] = ()
        """Sentences about what the last branch could not repeat."""
        self.after_branch: Callable[[], None] = lambda: None
        """Called in the physics thread where the world continues from another moment."""
        self._loop = loop
        self._rows = rows
        self._edits = edits
        self._buffer = FrameBuffer(state_columns(loop.model), self.cfg, loop.model.opt)
        self._stacked: StackedStepper | None = None
        self._other: Future | None = None
        self._end = 0
        loop.on_reset(self._on_reset)
        if self.cfg.max_duration > 0.0:
            loop.on_pre_step(self._before_step)
            loop.on_post_step(self._after_step)

    def bind(self, world: World, pulls: Perturbation) -> None:
        """Begin a segment for another model; earlier ones can be saved, but not gone back to.

        Args:
            world: the new world.
            pulls: forces on its bodies.
        """
        self._pulls = pulls
        model = world.model
        self._drop_stepper()
        self._buffer.frames.begin(state_columns(model, world.model_hash))
        self._rows.renew()
        self._base = self._end  # number of the first frame of this model
        self._log = ModelLog(model) if self.cfg.max_duration > 0.0 else None
        self._controls = ControlStates.of(self._loop)
        self._version = self._loop.model_version
        self._motion = np.empty(mujoco.mj_stateSize(model, _MOTION))
        self._buffer.option = model.opt
        self._moved = False
        self._jump: tuple[np.ndarray, Moment] | None = None
        self._reason = ""
        self._pushing = False
        self._extras = FrameExtras()
        self._edit_frame = self._end
        self._edit_label = ""
        self._note_first()
        self._checkpoint_due = 0
        self._checkpoint_time = 0.0
        self._other = None
        self._at = 0
        self._at_time = 0.0
        self._shown = False
        self._present: Moment | None = None

    def _time(self, frame: int) -> float:
        times = self._buffer.frames.newest.times
        return times[frame - self._end + len(times)]

    def _row(self, frame: int) -> np.ndarray:
        rows = self._buffer.frames.newest.rows
        return rows[frame - self._end + len(rows)]

    @property
    def is_active(self) -> bool:
        """True while a moment of the past is shown."""
        return self._stacked is not None

    @property
    def duration(self) -> float:
        """Time from the first moment that can be gone back to until the newest one [s]."""
        if self._first == self._end:
            return 0.0
        return max(0.0, self._buffer.stored.last_time - self._first_time)

    @property
    def num_frames(self) -> int:
        """Number of moments that can be gone back to."""
        return self._end - self._first

    @property
    def ago(self) -> float:
        """Time from the moment that is shown until the newest one [s]; 0 in the present."""
        if not self.is_active:
            return 0.0
        return self._buffer.stored.last_time - self._at_time

    @property
    def world_time(self) -> float:
        """Simulated time of the moment that is shown [s]."""
        return float(self._loop.snapshot.time)

    @property
    def has_other(self) -> bool:
        """True if the future that the last branch left is kept."""
        return self._other is not None

    def marks_ago(self) -> list[tuple[float, Mark]]:
        """Return the marks that can be gone back to, with the time since each [s]."""
        if not self.num_frames:
            return []
        newest = self._buffer.stored.last_time
        oldest = self._first_time
        return [(newest - mark.time, mark) for mark in self._extras.marks_since(oldest)]

    @property
    def clock(self) -> float:
        """Time of the newest moment on the timeline [s], which ascends over resets, too."""
        _ = self._buffer.frames
        return max(0.0, self._buffer.stored.last_time)

    def present(self) -> Recording:
        """Return the state that is shown now as a recording of one frame."""

        def read(model: mujoco.MjModel, data: mujoco.MjData) -> Recording:
            empty = self._buffer.frames.newest.empty
            row = self._rows.read(model, data)
            return replace(empty, times=np.zeros(1), values=row[None])

        return self._loop.do(read, edits_model=False)

    def recording(self, seconds: float = math.inf) -> Recording:
        """Return the newest frames as a recording, also those before rebuilds.

        Args:
            seconds: length [s].

        Raises:
            ValueError: it is not positive.
        """
        if not seconds > 0.0:
            raise ValueError(f"The length must be above 0 s, got {seconds}.")
        times = self._buffer.frames.newest.times
        since = times[-1] - seconds if times else -math.inf
        return self._buffer.frames.recording(since)

    def seek(self, ago: float) -> None:
        """Pause, and show the moment some time before the newest one.

        Args:
            ago: the time [s].

        Raises:
            ValueError: it is not kept, or is before a rebuild; then nothing changes.
        """

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self._check_history()
            if not 0.0 <= ago <= self.duration + 1e-9:
                limit = f"0 to {self.duration:.3f} s are kept"
                if self._base and self._first <= self._base + _CHECKPOINT_FRAMES:
                    limit += ", because the world was rebuilt before"
                raise ValueError(f"The timeline cannot go back {ago:g} s: {limit}.")
            wanted = self._time(self._end - 1) - ago
            frames = range(self._first, self._end)
            at = bisect.bisect_left(frames, wanted - _SNAP_S, key=self._time)
            self._enter(model, data, frames[at])

        self._loop.do(go, edits_model=False)

    def step_frames(self, num_frames: int = 1) -> None:
        """Pause, and show the moment some frames later, or earlier if negative.

        Raises:
            ValueError: there is no such moment; then nothing changes.
        """

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self._check_history()
            shown = self._at if self.is_active else self._end - 1
            frame = shown + num_frames
            if not self._first <= frame < self._end:
                if num_frames > 0:
                    which = "newest moment of the timeline: step the world to go on"
                else:
                    which = "first moment of the timeline that is kept"
                raise ValueError(f"This is the {which}.")
            self._enter(model, data, frame)

        self._loop.do(go, edits_model=False)

    def leave(self) -> None:
        """Return to the present, from which the world continues; does nothing in the present."""
        self._loop.do(self.return_to_present, edits_model=False)

    def return_to_present(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Do the same as `leave`, in the physics thread."""
        if self.is_active:
            present = self._present
            paused = self._was_paused
            self.give_way(model, data)
            assert present is not None
            present.put_state(self._loop, model, data)
            present.controls.put_commands(self._loop)
            self.after_branch()
            self._loop.set_paused(paused)

    def give_way(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """End showing the past, as for a reset; the model has its present values again."""
        if self.is_active:
            self._drop_stepper()
            self._set_model(self._end)
            self._loop.set_paused(self._was_paused)

    def before(self, call: WorldEdit) -> WorldEdit:
        """Return a function that ends showing the past, and then calls another one."""

        def both(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self.give_way(model, data)
            call(model, data)

        return both

    def branch(self, play: bool | None = None) -> tuple[str, ...]:
        """Continue from the moment that is shown, as if what came after it had not been.

        The world is computed again from the last moment before it at which everything was kept, at
        most a hundred steps unless a task's environment drives it, so that controllers, derived
        fields and the environment are those of that moment, too. The bits are compared with those
        of the frames. Edits of fields that came later are taken back in the spec, too, and are no
        longer in the history of edits.

        Args:
            play: whether time goes on; None for as before the past was shown.

        Returns:
            Sentences about controllers that did not repeat their controls.

        Raises:
            RuntimeError: no moment of the past is shown, or the task's environment does not repeat
                its steps; then nothing changes.
        """

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> Future:
            other = self._branch(model, data)
            self.after_branch()
            if play is None:
                self._loop.set_paused(self._was_paused)
            else:
                self._loop.set_paused(not play)
            return other

        with self._edits.lock:
            other = self._loop.do(go, _BRANCH_S, edits_model=False)
            self._edits.take_back(other.extras.edits)
        return self.notes

    def swap(self) -> None:
        """Return to the future that the last branch left, with its edits; the present is kept.

        Raises:
            RuntimeError: there is none.
        """
        with self._edits.lock:
            mine, other = self._loop.do(self._swap, edits_model=False)
            self._edits.take_back(mine.extras.edits)
            self._edits.make_again(other.extras.edits)

    def note_edit(self, label: str = "") -> None:
        """Note that an edit acts from the next step on; called in the physics thread.

        Args:
            label: text of its mark; empty for the fields that it has changed.
        """
        self._edit_frame = self._end
        self._edit_label = label

    def keep_edit(self, step: TimedStep) -> None:
        """Keep an edit that was made, undone or redone, whose write `note_edit` noted."""
        if self._log is not None:
            self._extras.edits.append((self._edit_frame, step))

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Show the next frame, or return to the present after the last; called by the loop."""
        if self._at + 1 < self._end:
            self._show(model, data, self._at + 1)
        else:
            self._was_paused = self._loop.paused
            self.return_to_present(model, data)
            return self._loop.steppers.top.stepper.step(model, data)
        self._shown = True
        return True

    def _check_history(self) -> None:
        if self._log is not None:
            self._buffer.flush()
            self._trim()
        if not self.num_frames:
            why = "the world was not stepped since it was built"
            if self.cfg.max_duration <= 0.0:
                why = "TimelineCfg.max_duration is 0"
            raise ValueError(f"The timeline has no moment to go back to: {why}.")
        top = self._loop.steppers.top
        if top.stepper.name == _REPLAY:
            raise ValueError(f"The timeline is not there while '{top.owner}' plays: stop it first.")

    def _enter(self, model: mujoco.MjModel, data: mujoco.MjData, frame: int) -> None:
        if not self.is_active:
            self._note_commands()
            self._present = self._capture(model, data)
            self._was_paused = self._loop.paused
            self._stacked = self._loop.steppers.push(self, "timeline")
        self._loop.set_paused(True)
        self._loop.clear_fault()
        self._show(model, data, frame)

    def _capture(self, model: mujoco.MjModel, data: mujoco.MjData) -> Moment:
        return Moment.capture(self._loop, model, data)

    def _note_commands(self) -> None:
        """Keep changes of the model since the last step, which belong to the present only."""
        if self._log is not None and self._loop.model_version != self._version:
            self._note_model(self._end, inside=False)

    def _show(self, model: mujoco.MjModel, data: mujoco.MjData, frame: int) -> None:
        self._at = frame
        self._at_time = self._time(frame)
        self._set_model(frame)
        mujoco.mj_setState(model, data, self._row(frame), STATE)
        compute_derived(model, data)

    def _set_model(self, frame: int, *, inside: bool = True) -> None:
        if self._log is not None and self._log.go(frame, inside=inside):
            self._loop.model_version += 1
            self._version = self._loop.model_version
            self._loop.limits.read(self._loop.model)

    def _drop_stepper(self) -> None:
        stacked = self._stacked
        self._stacked = None
        if stacked is not None:
            self._loop.steppers.remove(stacked)
        self._present = None

    def _on_reset(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        self.give_way(model, data)
        self._reason = "reset"

    def _before_step(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        """Keep what commands have changed since the last step, or a hand while it was paused."""
        loop = self._loop
        if (self._moved and not loop.touched) or self._stacked is not None:
            return
        loop.touched = False
        self._note_commands()
        mujoco.mj_getState(model, data, self._motion, _MOTION)
        motion = self._motion.tobytes()
        rows = self._buffer.frames.newest.rows
        last = np.empty(0)
        if self._jump:
            last = self._jump[0]
        elif rows:
            last = rows[-1]
        if motion == last[: len(self._motion)].tobytes() or self._is_replay:
            return
        row = self._rows.read(model, data)
        self._jump = row, self._capture(model, data)

    def _after_step(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        self._moved = moved
        if not moved:
            return
        if self._shown or self._loop.steppers.top.stepper.name in _SHOWN:
            self._shown = False
            return
        if self._jump is not None:
            self._add_jump(model)
        frame = self._end
        self._buffer.pending.append(self._rows.take(model, data))
        self._end = frame + 1
        if not self._controls.is_of(self._loop):
            self._note_controls(frame)
        lasting = self._pulls.lasting()
        if lasting or self._pushing:
            self._note_forces(frame, lasting)
        if self._loop.model_version != self._version:
            self._note_model(frame, inside=True)
        if len(self._buffer.pending) >= _BATCH:
            self._buffer.flush()
            self._trim()
            if frame >= self._checkpoint_due:
                self._checkpoint(frame, model, data)

    @property
    def _is_replay(self) -> bool:
        return self._loop.steppers.top.stepper.name == _REPLAY

    def _add_jump(self, model: mujoco.MjModel) -> None:
        """Keep the state before a step that did not begin where the last one ended."""
        assert self._jump is not None
        (row, kept), self._jump = self._jump, None
        self._buffer.pending.append(row)
        self._end += 1
        self._controls = kept.controls
        self._keep_checkpoint(self._end - 1, kept)
        if self._end - 1 > self._base:
            self._mark(self._reason or "state", "")
        self._reason = ""

    def _note_controls(self, frame: int) -> None:
        self._controls = ControlStates.of(self._loop)
        self._extras.controls.append((frame, self._controls))

    def _note_forces(self, frame: int, lasting: Forces) -> None:
        if lasting:
            self._extras.lasting.append((frame, lasting))
            if not self._pushing:
                names = (self._loop.model.body(body).name or f"body {body}" for body in lasting)
                self._mark("push", ", ".join(names))
        self._pushing = bool(lasting)

    def _note_model(self, frame: int, *, inside: bool) -> None:
        self._version = self._loop.model_version
        assert self._log is not None
        fields = self._log.note(frame, inside)
        if fields and not inside:
            shown = ", ".join(fields[:3]) + " ..." * (len(fields) > 3)
            self._mark("edit", self._edit_label or shown)
        self._edit_label = ""

    def _mark(self, kind: str, label: str) -> None:
        frames = self._buffer.frames
        moment = frames.last_time
        if frames.newest.times:
            moment = frames.newest.times[-1]
        self._extras.mark(self._end - 1, Mark(moment, kind, label))

    def _checkpoint(self, frame: int, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Keep all that a frame lacks, unless that would take too much time."""
        self._checkpoint_due = frame + _CHECKPOINT_FRAMES
        is_far = True
        if self._extras.checkpoints:  # the last one may be dropped before the next
            is_far = frame - self._extras.checkpoints[-1][0] >= self._buffer.num_frames / 2
        if time.monotonic() < self._checkpoint_time and not is_far:
            return
        begun = time.thread_time()
        self._keep_checkpoint(frame, self._capture(model, data))
        if self._loop.steppers.with_memory is not None:
            rest = (time.thread_time() - begun) / _CHECKPOINT_SHARE
            self._checkpoint_time = time.monotonic() + rest

    def _keep_checkpoint(self, frame: int, kept: Moment) -> None:
        self._extras.checkpoint(frame, kept)
        if len(self._extras.checkpoints) == 1:
            self._note_first()

    def _note_first(self) -> None:
        """Find the first moment from which the world can continue."""
        checkpoints = self._extras.checkpoints
        self._first = self._end
        self._first_time = math.inf
        if checkpoints:
            self._first = checkpoints[0][0]
            self._first_time = self._time(self._first)

    def _trim(self) -> None:
        """Forget what belongs to frames that were dropped; count the memory of what is kept."""
        assert self._log is not None
        oldest = self._end - len(self._buffer.frames.newest.rows)
        self._extras.forget(oldest)
        self._log.forget(oldest)
        if self._first < oldest:
            self._note_first()
        most = self.cfg.max_megabytes * 1e6 - self._log.num_bytes - self._extras.num_bytes
        other = self._other
        if other is not None:
            if other.start <= oldest or other.num_bytes > most / 2.0:
                self._other = None
            else:
                most -= other.num_bytes
        self._buffer.frames.max_bytes = most

    def _branch(self, model: mujoco.MjModel, data: mujoco.MjData) -> Future:
        if not self.is_active:
            raise RuntimeError("The present is shown: go back on the timeline first.")
        assert self._log is not None and self._present is not None
        frame = self._at
        present = self._present
        controls = ControlStates.of(self._loop)
        edits = self._log.take_back()  # made while the past was shown: they are kept
        self._drop_stepper()
        try:
            self.notes = self._resimulate(model, data, frame)
        except Exception as error:
            self._set_model(self._end)
            controls.put(self._loop)
            present.put_state(self._loop, model, data)
            self._present = present
            self._stacked = self._loop.steppers.push(self, "timeline")
            self._show(model, data, frame)
            self._log.edit(edits)
            at = self._row(frame)[0]
            raise RuntimeError(f"The world cannot continue from {at:.3f} s: {error}") from error
        self._other = other = self._cut(frame, present)
        self._log.edit(edits)
        self._loop.model_version += bool(edits)
        controls.put_changes(self._loop, present.controls)  # made while the past was shown, too
        self._mark("branch", "")
        return other

    def _resimulate(
        self, model: mujoco.MjModel, data: mujoco.MjData, frame: int
    ) -> tuple[str, ...]:
        """Compute the world of a frame again, from the last moment at which all was kept."""
        again = Resimulation(self._loop)
        extras = self._extras
        start, kept = extras.checkpoint_before(frame)
        self._set_model(start)
        kept.put(self._loop, model, data)
        put_forces(data, extras.forces_after(start))
        changed = dict(extras.controls)
        for number in range(start + 1, frame + 1):
            self._set_model(number, inside=not again.has_task)
            if number in changed:
                changed[number].put(self._loop)
            again.step(model, data, self._row(number))
            put_forces(data, extras.forces_after(number))
        self._loop.clear_fault()
        return again.notes

    def _cut(self, frame: int, present: Moment) -> Future:
        """Remove the frames after one, and return them; the model has the values of that one."""
        assert self._log is not None
        start = frame + 1
        other = Future(
            start,
            self._buffer.frames.cut(self._end - start),
            self._extras.cut(start),
            self._log.cut(),
            present,
        )
        self._end = start
        self._checkpoint_due = start
        self._jump = None
        self._pushing = False
        self._controls = ControlStates.of(self._loop)
        return other

    def _swap(self, model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Future, Future]:
        other = self._other
        if other is None or other.start <= self._end - len(self._buffer.frames.newest.rows):
            raise RuntimeError(
                "There is no other future: it is kept when the world continues from the past, for "
                "as long as the moment of that is kept."
            )
        assert self._log is not None
        self.return_to_present(model, data)
        self._note_commands()
        mine = self._capture(model, data)
        self._set_model(other.start - 1)
        self._other = left = self._cut(other.start - 1, mine)
        self._buffer.frames.extend(other.frames)
        self._end += len(other.frames)
        self._extras.extend(other.extras)
        self._log.changes += other.changes
        self._set_model(self._end)
        other.present.put(self._loop, model, data)
        self._note_controls(self._end)  # they may be other ones than at its last step
        self.after_branch()
        return left, other
