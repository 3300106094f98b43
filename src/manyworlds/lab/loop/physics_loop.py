"""Loop that advances a world in its own thread, and the queue through which it is changed."""

from __future__ import annotations

import itertools
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeVar

import mujoco
import numpy as np

from manyworlds.lab.loop.callbacks import Callback, CallbackReports, Handle, is_ours, register
from manyworlds.lab.loop.commands import (
    Command,
    CommandFuture,
    CommandQueue,
    StepQueue,
    StepRequest,
)
from manyworlds.lab.loop.controls import RobotControls
from manyworlds.lab.loop.faults import (
    ControlLimits,
    FaultError,
    WarningCounter,
    explain_failure,
    find_bad_state,
    find_divergence,
    name_writers,
)
from manyworlds.lab.loop.pacing import Pace, Pacer
from manyworlds.lab.loop.scheduling import prefer_wakeups
from manyworlds.lab.loop.shared_snapshots import SnapshotPublisher
from manyworlds.lab.loop.snapshot import Snapshot, SnapshotTaker
from manyworlds.lab.loop.steppers import Physics, StackedStepper, Stepper, StepperStack
from manyworlds.lab.loop.world_lock import WorldLock
from manyworlds.utils.newton import avoid_sparse_newton

Mode = Literal["live", "direct"]
"""`live`: the world advances by itself; `direct`: it advances only by calls of `step`."""
State = Literal["ready", "running", "faulted", "stopped"]

_T = TypeVar("_T")
WorldEdit = Callable[[mujoco.MjModel, mujoco.MjData], object]
"""Change of a world, run in the physics thread."""

_IDLE_S = 0.1  # longest wait of the thread in direct mode without requests
_PAUSED_S = 1.0 / 30.0  # period of the iterations of a paused world
_JOIN_S = 10.0
_COMMAND_S = 5.0  # longest wait for a command
_YIELD_S = 0.0001
_SWITCH_S = 0.0005  # time for which another thread may keep the interpreter from physics


class PhysicsLoop:
    """Loop that advances one world, and the order of its operations.

    An iteration is: queued commands, callbacks before the step, controls, the step (unless
    paused), callbacks after it, a snapshot. All other threads read snapshots, and change the world
    by `post` only.

    Only the thread that holds `lock` writes the model and the data: the physics thread, or in
    direct mode a caller of `step` (see `_serve_here`). A snapshot is completed before it
    replaces the previous one, so that reading it takes no lock. Commands run in the order of one
    queue. `lock` prevents iterations while it is held. Lookup tables of names are made before the
    thread starts, and are only read afterwards.

    Args:
        model: the compiled model.
        data: its data in the initial state; None creates it.
        controls: controls of the robots; those of other actuators are not written.
        reset_data: function that puts data into the initial state; None takes the model's.
        paused: whether to start paused.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData | None = None,
        controls: RobotControls | None = None,
        reset_data: WorldEdit | None = None,
        paused: bool = False,
    ) -> None:
        self.model = model
        self.controls = RobotControls({}) if controls is None else controls
        self.steppers = StepperStack()
        self.pacer = Pacer()
        self._reset_data = reset_data or mujoco.mj_resetData
        self._lock = WorldLock()
        self._requests = StepQueue()
        self._queue = CommandQueue()
        self._ran: list[Command[Any]] = []  # commands whose effect no snapshot shows yet
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._pre: list[Handle] = []
        self._post: list[Handle] = []
        self._on_reset: list[Handle] = []
        self._frames = itertools.count()
        self._paused = paused
        self._mode: Mode = "live"
        self.mode_locked = False
        """True to refuse changes of the mode."""
        self._fault = ""
        self.num_steps = 0
        """Number of physics steps since the loop was created."""
        self.model_version = 0
        """Number of changes of the model."""
        self.reports = CallbackReports()
        """Failures of callbacks."""
        self.touched = True  # a command has run; the timeline sets it to False
        self.publisher = SnapshotPublisher()
        """Snapshots in shared memory, for readers in other processes."""
        self.num_threads = 0
        """Number of MuJoCo's additional threads for one step; 0 for none."""
        if data is None:
            data = mujoco.MjData(model)
            self._reset_data(model, data)
        self._bind(data)
        avoid_sparse_newton(model)
        mujoco.mj_forward(model, self.data)
        self.controls.reset()
        self._take_snapshot()

    @property
    def snapshot(self) -> Snapshot:
        """Snapshot of the newest iteration; immutable."""
        return self._snapshot

    @property
    def state(self) -> State:
        """Readiness of the world to advance."""
        if self._fault:
            return "faulted"
        if self._queue.is_closed:
            return "stopped"
        if self._thread is None:
            return "ready"
        return "running" if self._thread.is_alive() else "stopped"

    @property
    def fault(self) -> str:
        """Reason why the world stopped; empty if it can advance."""
        return self._fault

    @property
    def pace(self) -> Pace:
        """Speed of simulated time."""
        return self.pacer.pace

    @property
    def paused(self) -> bool:
        """True while the world is paused; callbacks and controls still run."""
        return self._paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self.do(lambda model, data: self.set_paused(paused), edits_model=False)

    @property
    def has_requests(self) -> bool:
        """True while a caller waits for steps."""
        return bool(self._requests)

    @property
    def mode(self) -> Mode:
        """`live` or `direct`."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode | Literal["auto"]) -> None:
        chosen: Mode = "live" if mode == "auto" else mode
        if chosen not in ("live", "direct"):
            raise ValueError(f"The mode must be 'live', 'direct' or 'auto', got '{mode}'.")
        if self.mode_locked and chosen != self._mode:
            raise RuntimeError(
                f"The mode is locked to '{self._mode}' (LabCfg.mode_lock): it cannot be '{mode}'."
            )
        self.do(lambda model, data: self._set_mode(chosen), edits_model=False)

    @property
    def speed(self) -> float:
        """Simulated seconds per second; see `Pacer.speed`."""
        return self.pacer.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if math.isnan(speed):
            raise ValueError("The speed must be a number, got nan.")
        self.do(lambda model, data: setattr(self.pacer, "speed", speed), edits_model=False)

    @property
    def warnings(self) -> dict[str, int]:
        """Number of MuJoCo's warnings since the last reset, by type (`contactfull` ...)."""
        return dict(self._warnings.counts)

    @property
    def callback_errors(self) -> deque[str]:
        """Tracebacks of callbacks that failed, the newest last."""
        return self.reports.tracebacks

    def lock(self) -> AbstractContextManager[object]:
        """Prevent iterations while the lock is held: `with loop.lock(): ...`, also nested."""
        return self._lock.hold()

    def on_pre_step(self, call: Callback) -> Handle:
        """Register a function to call before each iteration's controls, in the physics thread."""
        return register(self._pre, call)

    def on_post_step(self, call: Callback) -> Handle:
        """Register a function to call after each iteration, in the physics thread."""
        return register(self._post, call)

    def on_reset(self, call: Callback) -> Handle:
        """Register a function to call after each reset, in the physics thread."""
        return register(self._on_reset, call)

    def post(
        self, command: Callable[[mujoco.MjModel, mujoco.MjData], _T], *, edits_model: bool = True
    ) -> CommandFuture[_T]:
        """Queue a command; commands run in the order in which they were posted.

        Without a running thread it runs in the next `iterate_once` or `step`.

        Args:
            command: the command.
            edits_model: whether it may change the model, which raises `model_version`.

        Returns:
            A future with the command's result or error. When it is done, `snapshot` is the state
            after the command, and its `frame_id` is the number of the first such snapshot.

        Raises:
            RuntimeError: the loop was stopped.
        """
        queued = Command(command, edits_model)
        self._queue.put(queued)
        self._wake.set()
        return queued.future

    def do(
        self,
        command: Callable[[mujoco.MjModel, mujoco.MjData], _T],
        timeout: float | None = None,
        *,
        edits_model: bool = True,
    ) -> _T:
        """Post a command, wait for it, and return its result.

        Args:
            command: the command.
            timeout: longest wait [s]; None waits 5 s.
            edits_model: see `post`.

        Raises:
            TimeoutError: it did not run in time.
        """
        future = self.post(command, edits_model=edits_model)
        if self._is_mine():
            with self._lock.hold():
                self._drain()
                self._show_commands()
        return future.result(_COMMAND_S if timeout is None else timeout)

    def reset(self) -> None:
        """Return to the initial state, and clear all targets and a fault."""
        self.do(self._reset, edits_model=False)

    def step(self, num_steps: int = 1, timeout: float | None = None) -> Snapshot:
        """Run whole iterations that advance the world, paused or not, and wait for them.

        Args:
            num_steps: number of iterations, at least one.
            timeout: longest wait [s]; None waits 5 s, and 1 s more for each 100 steps.

        Returns:
            The snapshot after the last one.

        Raises:
            ValueError: `num_steps` is below one.
            FaultError: the world stopped because of a fault.
            TimeoutError: the steps did not end in time.
        """
        if num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, got {num_steps}.")
        if timeout is None:
            timeout = _COMMAND_S + num_steps / 100.0
        request = StepRequest(num_steps)
        self._requests.put(request)
        end = time.monotonic() + timeout
        try:
            while not request.future.done() and self._serve_here(end - time.monotonic()):
                pass
            return request.future.result(max(end - time.monotonic(), 0.0))
        finally:
            request.left = 0

    def push_stepper(self, stepper: Stepper, owner: str) -> StackedStepper:
        """Add a stepper, which advances the world until `remove_stepper`.

        Raises:
            RuntimeError: it is on the stack already.
        """
        return self.do(lambda model, data: self.steppers.push(stepper, owner), edits_model=False)

    def remove_stepper(self, stacked: StackedStepper) -> None:
        """Remove a stepper; the one below it continues."""
        self.do(lambda model, data: self.steppers.remove(stacked), edits_model=False)

    drive = push_stepper
    """Former name of `push_stepper`."""
    release = remove_stepper
    """Former name of `remove_stepper`."""

    def start(self) -> None:
        """Start the physics thread.

        Raises:
            RuntimeError: the loop was started or stopped before.
        """
        if self._thread is not None or self._queue.is_closed:
            raise RuntimeError("A loop starts only once: create a new one.")
        sys.setswitchinterval(min(_SWITCH_S, sys.getswitchinterval()))
        self._thread = threading.Thread(target=self._run, name="manyworlds-physics", daemon=True)
        self.pacer.restart()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; further calls do nothing.

        Raises:
            TimeoutError: the thread did not end within 10 s.
        """
        self._stopping.set()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)
            if thread.is_alive():
                raise TimeoutError(f"The physics thread did not end within {_JOIN_S} s.")
        waiting = self._queue.close() + self._requests.close()
        self.pacer.restart()
        self.publisher.close()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(RuntimeError("The loop was stopped before this command ran."))

    def iterate_once(self) -> None:
        """Run one iteration in the calling thread, for tests and scripts without a thread.

        Raises:
            RuntimeError: the loop's own thread is running.
        """
        if self._is_running():
            raise RuntimeError(
                "The physics thread is running: iterate_once is for loops without one."
            )
        with self._lock.hold():
            self._drain()
            self._iterate(force=False)

    def swap(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        controls: RobotControls,
        reset_data: WorldEdit,
    ) -> None:
        """Replace the world in a command, whose snapshot shows it; callbacks and steppers stay."""
        self.model = model
        self.controls = controls
        self._reset_data = reset_data
        self._bind(data)
        self.model_version += 1
        if self.num_threads:
            mujoco.mju_threadpool(data, self.num_threads)
        self.clear_fault()

    def set_threads(self, num_threads: int) -> None:
        """Set the number of additional threads for one step, which speed up large worlds.

        Args:
            num_threads: number of threads; 0 for none.

        Raises:
            ValueError: it is below zero.
        """
        if num_threads < 0:
            raise ValueError(f"num_threads must be at least 0, got {num_threads}.")

        def change(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            mujoco.mju_threadpool(data, num_threads)
            self.num_threads = num_threads

        self.do(change, edits_model=False)

    def _run(self) -> None:
        prefer_wakeups()
        while not self._stopping.is_set():
            with self._lock.hold(_IDLE_S) as held:
                if not held:
                    continue  # another thread holds the lock, and may want to stop the loop
                self._drain()
                asked = bool(self._requests)
                live = self._mode == "live" and not self._stopping.is_set()
                if asked:
                    self._serve()
                elif live:
                    self._iterate(force=False)
                self._show_commands()
            self._let_others()
            if asked:
                continue
            if not live or self._paused or self._fault:
                self._wake.wait(_PAUSED_S if live else _IDLE_S)
                self._wake.clear()
            else:
                self.pacer.wait(self.model.opt.timestep, self._stopping)

    def _serve_here(self, timeout: float) -> bool:
        """Run a step in the calling thread, which saves waking the loop's; return False if not.

        A caller may be held up for `timeout` [s] only: it leaves code of clients to that thread.
        """
        mine = self._is_mine()
        with self._lock.hold(-1.0 if mine else max(timeout, 0.0)) as held:
            if mine:
                self._drain()
            elif timeout <= 0.0 or not held or not self._is_calm():
                self._wake.set()
                return False
            if self._requests:
                self._serve()
            self._show_commands()
        if not mine:
            self._let_others()
        return True

    def _is_calm(self) -> bool:
        """Return True if the next step runs code of this package only."""
        if self._mode == "live" or self._queue or self._stopping.is_set():
            return False
        calls = [handle.call for handle in self._pre + self._post]
        for robot in self.controls:
            calls += [type(robot.controller), type(robot.controller.base)]
        return isinstance(self.steppers.top.stepper, Physics) and all(map(is_ours, calls))

    def _let_others(self) -> None:
        if self._lock.is_wanted:
            time.sleep(_YIELD_S)  # otherwise the caller would take the lock again at once

    def _serve(self) -> None:
        """Run one step of the first request."""
        request = self._requests.first
        error: Exception | None = None
        if request.left > 0:
            self._iterate(force=True)
            request.left -= 1
            if self._fault:
                error = FaultError(self._fault)
        if error is None and request.left > 0:
            if not self._stopping.is_set():
                return
            error = RuntimeError("The loop is being stopped.")
        if not self._requests.remove(request):  # `stop` was called in a callback
            return
        if error is not None:
            request.future.set_exception(error)
        else:
            request.future.set_result(self._snapshot)

    def _iterate(self, force: bool) -> None:
        if self._ran and not self._diverged(self.data.time):
            self._keep(self._taker.take())
        self._call(self._pre, False)
        if not self._fault:
            self._control()
        moves = (force or not self._paused) and not self._fault
        moved = moves and self._move()
        self._call(self._post, moved)
        self._take_snapshot()

    def _control(self) -> None:
        for robot in self.controls:
            try:
                robot.apply(self.model, self.data)
            except Exception as error:  # of a controller from outside this package
                self.fail(f"The controller '{robot.controller.name}' of '{robot.name}'", error)
                return
        bad = self.limits.find_bad(self.model, self.data, self.controls)
        if bad:
            self._warnings.add("badctrl")
            self._halt(bad)

    def _move(self) -> bool:
        stepper = self.steppers.top.stepper
        time = self.data.time
        avoid_sparse_newton(self.model)  # commands and callbacks may have changed its options
        try:
            moved = stepper.step(self.model, self.data)
        except Exception as error:  # of MuJoCo, or of a stepper from outside this package
            self.fail(f"The {stepper.name}", error)
            return False
        moved = not self._diverged(time) and moved  # also counts warnings
        self.num_steps += moved
        return moved

    def _diverged(self, time: float) -> bool:
        """Count MuJoCo's new warnings; stop the world if it has reset bad data."""
        kinds = self._warnings.update()
        if not kinds:
            return False
        reason = find_divergence(self.model, self.data, kinds, time, self.steppers.top)
        if reason:
            self._halt(reason)
        return bool(reason)

    def fail(self, who: str, error: Exception) -> None:
        """Stop the world because of an error of code from outside this package."""
        self._halt(explain_failure(who, self.data.time, error))

    def _halt(self, reason: str) -> None:
        """Stop the world in its last valid state, because of bad values in the present one."""
        self._fault = self._fault or reason
        self.pacer.restart()
        if self._valid is not None:
            self.data.time, block = self._valid
            self._taker.put_back(block)

    def _keep(self, block: np.ndarray) -> bool:
        """Keep a block of the present state for `_halt`; return False if the state is not valid."""
        if not self._taker.is_finite(block) or not math.isfinite(self.data.time):
            return False
        self._valid = self.data.time, block
        return True

    def _reset(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._reset_data(model, data)
        self._warnings.clear()
        self.reports.clear()
        mujoco.mj_forward(model, data)
        self.controls.reset()
        self.clear_fault()
        self._call(self._on_reset, False)

    def clear_fault(self) -> None:
        """Clear a fault; for commands that put the world into a valid state."""
        self._fault = ""
        self.pacer.restart()

    def set_paused(self, paused: bool) -> None:
        """Pause or resume; for commands, other code sets `paused`."""
        self._paused = paused
        self.pacer.restart()

    def _set_mode(self, mode: Mode) -> None:
        self._mode = mode
        self.pacer.restart()

    def _bind(self, data: mujoco.MjData) -> None:
        """Create the parts that belong to one model and its data."""
        self.data = data
        self._taker = SnapshotTaker(data)
        self._warnings = WarningCounter(data)
        self.limits = ControlLimits(self.model)
        self._valid: tuple[float, np.ndarray] | None = None  # time [s] and block of a valid state

    def _drain(self) -> None:
        """Run the commands that are queued now; the next snapshot ends their futures."""
        for command in self._queue.take():
            if command.run(self.model, self.data):
                self.touched = True
                self.model_version += command.edits_model
                self._ran.append(command)

    def _show_commands(self) -> None:
        """Take a snapshot unless all commands that ran are in one."""
        if self._ran:
            self._take_snapshot()

    def _call(self, callbacks: list[Handle], moved: bool) -> None:
        for handle in list(callbacks):
            self.reports.attempt(handle.call, self.model, self.data, moved)

    def _take_snapshot(self) -> None:
        self._diverged(self.data.time)  # in a command, a controller or a callback
        block = self._taker.take()
        if not self._keep(block):
            who = name_writers(self._ran, self.steppers.top)
            self._halt(find_bad_state(self.model, self.data, who))
            block = self._taker.take()
        self._snapshot = Snapshot(
            frame_id=next(self._frames),
            step=self.num_steps,
            time=float(self.data.time),
            paused=self._paused,
            mode=self._mode,
            stepper=self.steppers.top.stepper.name,
            fault=self._fault,
            warnings=self._warnings.counts,
            model_version=self.model_version,
            block=block,
            layout=self._taker.layout,
        )
        self.reports.attempt(self.publisher.publish, self._snapshot)
        ran, self._ran = self._ran, []
        for command in ran:
            command.finish(self._snapshot.frame_id)

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _is_mine(self) -> bool:
        """Return True if the caller may do the thread's work: it is it, blocks it, or none runs."""
        me = threading.current_thread()
        return not self._is_running() or self._lock.is_mine or self._thread is me
