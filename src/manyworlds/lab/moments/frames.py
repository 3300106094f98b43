"""Frames of a world in memory: the states after its steps, limited in time and in bytes."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import mujoco
import numpy as np

from manyworlds.lab.loop.physics_loop import PhysicsLoop
from manyworlds.lab.moments.recording import Recording, join_segments
from manyworlds.lab.world.model_facts import STATE


class StepRows:
    """States after each step, `mjSTATE_INTEGRATION`, as one array for all that keep it.

    Args:
        loop: loop of the world.
    """

    def __init__(self, loop: PhysicsLoop) -> None:
        self._loop = loop
        self._step = -1
        self.renew()

    def renew(self) -> None:
        """Take states of the loop's present model."""
        self._size = mujoco.mj_stateSize(self._loop.model, STATE)
        self._step = -1

    def take(self, model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
        """Return the state after the step that was made last, shape [num_values]; never change it.

        Runs in the physics thread, after the step.
        """
        step = self._loop.num_steps
        if step != self._step:
            self._row = self.read(model, data)
            self._step = step
        return self._row

    def read(self, model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
        """Return a copy of the present state, shape [num_values]."""
        row = np.empty(self._size)
        mujoco.mj_getState(model, data, row, STATE)
        return row


@dataclass(frozen=True)
class Segment:
    """Frames of one model."""

    empty: Recording
    """Recording without frames, with the columns of `rows`."""
    times: deque[float] = field(default_factory=deque)
    """Time of each frame [s]."""
    rows: deque[np.ndarray] = field(default_factory=deque)
    """Values of each frame, shape [num_columns]."""

    @cached_property
    def row_bytes(self) -> int:
        """Memory of a frame."""
        return 8 * (1 + self.empty.values.shape[1])

    def recording(self, start: int = 0) -> Recording:
        """Return a recording of the rows, but for some at the beginning."""
        rows = list(islice(self.rows, start, None))
        values = np.array(rows).reshape(len(rows), self.empty.values.shape[1])
        return replace(
            self.empty, times=np.array(list(islice(self.times, start, None))), values=values
        )


class FrameStore:
    """Newest frames of a world, a segment for each model.

    Their times ascend even where the world's time goes back, as at a reset.

    Args:
        empty: recording without frames, with the columns of the rows.
        max_duration: longest time that is kept [s].
        max_bytes: largest memory of the rows.
    """

    def __init__(self, empty: Recording, max_duration: float, max_bytes: float) -> None:
        self.max_duration = max_duration
        self.max_bytes = max_bytes
        self.shift = 0.0
        """Difference of the frames' times and the world's time [s]."""
        self._lock = threading.Lock()
        self._segments = [Segment(empty)]
        self._last = -math.inf
        self._oldest = -math.inf
        self._num_bytes = 0

    def __len__(self) -> int:
        """Return the number of frames."""
        return sum(len(segment.rows) for segment in self._segments)

    @property
    def num_segments(self) -> int:
        """Number of segments: one, and one for each rebuild."""
        return len(self._segments)

    @property
    def newest(self) -> Segment:
        """Segment of the present model."""
        return self._segments[-1]

    @property
    def last_time(self) -> float:
        """Time of the newest frame so far [s]; negative infinity before the first one."""
        return self._last

    @property
    def duration(self) -> float:
        """Time from the first to the last frame [s]."""
        with self._lock:
            filled = [segment.times for segment in self._segments if segment.times]
            if not filled:
                return 0.0
            return filled[-1][-1] - filled[0][0]

    def add(self, rows: Sequence[np.ndarray], option: mujoco.MjOption) -> float:
        """Add frames, and drop those that are too old or too many.

        Args:
            rows: values of each, shape [num_columns], the first of which is the world's time [s];
                they do not change afterwards.
            option: options of the model, with the time between frames where the world's time went
                back.

        Returns:
            The time of the newest frame [s].
        """
        shift = self.shift
        last = self._last
        times = []
        for row in rows:
            time = row.item(0) + shift
            if time <= last:
                shift += last + option.timestep - time
                time = last + option.timestep
            times.append(time)
            last = time
        if not times:
            return last
        with self._lock:
            self.shift = shift
            self._last = last
            newest = self._segments[-1]
            newest.times.extend(times)
            newest.rows.extend(rows)
            self._num_bytes += len(times) * newest.row_bytes
            if self._num_bytes > self.max_bytes or self._oldest < last - self.max_duration:
                self._drop(last)
        return last

    def _drop(self, now: float) -> None:
        """Drop what is too old or too much, but for the newest frame."""
        segments = self._segments
        oldest = now - self.max_duration
        while self._num_bytes > self.max_bytes or segments[0].times[0] < oldest:
            if len(segments) == 1 and len(segments[0].rows) == 1:
                break
            segments[0].times.popleft()
            segments[0].rows.popleft()
            self._num_bytes -= segments[0].row_bytes
            if not segments[0].rows:
                del segments[0]
        self._oldest = segments[0].times[0]

    def begin(self, empty: Recording) -> Segment:
        """Begin a segment of another model."""
        with self._lock:
            if not self._segments[-1].rows:
                del self._segments[-1]
            self._segments.append(Segment(empty))
            return self._segments[-1]

    def cut(self, number: int) -> list[tuple[float, np.ndarray]]:
        """Remove the newest frames, all of the present model.

        Returns:
            Time [s] and values, shape [num_columns], of each.
        """
        segment = self._segments[-1]
        cut = []
        with self._lock:
            for _ in range(number):
                cut.append((segment.times.pop(), segment.rows.pop()))
                self._num_bytes -= segment.row_bytes
            if cut:
                self._last = segment.times[-1] if segment.times else -math.inf
        return cut[::-1]

    def extend(self, frames: Iterable[tuple[float, np.ndarray]]) -> None:
        """Add the frames that `cut` has removed from here."""
        segment = self._segments[-1]
        with self._lock:
            for time, row in frames:
                segment.times.append(time)
                segment.rows.append(row)
                self._num_bytes += segment.row_bytes
                self._last = time

    def clear(self) -> None:
        """Drop all frames."""
        with self._lock:
            self._segments[:] = [Segment(self._segments[-1].empty)]
            self._num_bytes = 0
            self._oldest = -math.inf

    def recording(self, since: float = -math.inf) -> Recording:
        """Return a recording of the frames from a time on [s]."""
        with self._lock:
            parts = [Segment(s.empty, s.times.copy(), s.rows.copy()) for s in self._segments]
        recordings = []
        for part in parts:
            start = sum(time < since for time in part.times)
            recordings.append(part.recording(start))
        return join_segments(recordings)
