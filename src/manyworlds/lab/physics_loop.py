"""The thread that moves a world on, and the one door through which it is changed."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

import mujoco
import numpy as np

from manyworlds.lab.control import RobotControls
from manyworlds.lab.drivers import Drive, Driver, DriverStack
from manyworlds.lab.pacing import Pace, Pacer
from manyworlds.lab.snapshot import Snapshot, SnapshotTaker
from manyworlds.utils.newton import avoid_sparse_newton

Mode = Literal["live", "direct"]
"""`live`: time goes by itself; `direct`: it stands until somebody asks for steps."""
State = Literal["ready", "running", "faulted", "stopped"]

WorldEdit = Callable[[mujoco.MjModel, mujoco.MjData], Any]
"""What is done to a world, in the physics thread."""
Callback = Callable[[mujoco.MjModel, mujoco.MjData, bool], None]
"""Called with the model, the data, and whether the world was moved on."""

_IDLE_S = 0.1  # how long the thread sleeps in direct mode when nobody asks for anything
_PAUSED_S = 1.0 / 30.0  # between iterations of a paused world
_JOIN_S = 3.0
_YIELD_S = 0.0001
_SWITCH_S = 0.0005  # how long another thread may keep the interpreter from physics
_BAD = {
    mujoco.mjtWarning.mjWARN_BADQPOS: "positions",
    mujoco.mjtWarning.mjWARN_BADQVEL: "velocities",
    mujoco.mjtWarning.mjWARN_BADQACC: "accelerations",
}


_WARNINGS = [
    name.removeprefix("mjWARN_").lower()
    for name in mujoco.mjtWarning.__members__
    if name.startswith("mjWARN_")
]


class FaultError(RuntimeError):
    """The world cannot go on until it is reset or restored."""


class Handle:
    """A callback that was registered; `remove` takes it away again."""

    def __init__(self, callbacks: list[Handle], call: Callback) -> None:
        self.call = call
        self._callbacks = callbacks

    def remove(self) -> None:
        """Take the callback away; a second time does nothing."""
        if self in self._callbacks:
            self._callbacks.remove(self)


@dataclass
class _Request:
    """Steps that somebody waits for."""

    left: int
    future: Future[Snapshot] = field(default_factory=Future)


class PhysicsLoop:
    """One world, the thread that moves it on, and the order in which things happen.

    An iteration is: queued commands, callbacks before the step, controls, the step (unless
    paused), callbacks after it, a snapshot. Everybody else reads snapshots, and changes the world
    by `post` only.

    Which thread does what: the physics thread alone writes the model and the data. A snapshot is
    made whole and then swapped in; nobody takes a lock to read it. Commands wait in one queue and
    run in its order. `lock` keeps the loop between two iterations. Everything that tells which
    name is where in the model is made before the thread begins, and only read from then on.

    Args:
        model: the compiled model.
        data: its data in the initial state; None makes it.
        controls: of the robots; controls of what belongs to none are left alone.
        reset_data: puts data into the initial state; None takes the model's.
        paused: whether time stands at first.
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
        self.drivers = DriverStack()
        self.pacer = Pacer()
        self._reset_data = reset_data or mujoco.mj_resetData
        self._lock = threading.RLock()
        self._holder: int | None = None  # the thread that is inside `lock`
        self._waiting: deque[None] = deque()  # one for each that wants the lock
        self._requests: deque[_Request] = deque()
        self._queue: deque[tuple[WorldEdit, Future[Any]]] = deque()
        self._queue_lock = threading.Lock()
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
        """Whether the mode stays what it is."""
        self._fault = ""
        self._stopped = False
        self.num_steps = 0
        """Physics steps since the loop was made."""
        self.callback_errors: deque[str] = deque(maxlen=20)
        """Tracebacks of callbacks that failed, the newest last."""
        self.num_threads = 0
        """Threads that help MuJoCo with one step; 0 for none."""
        if data is None:
            data = mujoco.MjData(model)
            self._reset_data(model, data)
        self.data = data
        self._taker = SnapshotTaker(self.data)
        avoid_sparse_newton(model)
        mujoco.mj_forward(model, self.data)
        self.controls.reset()
        self._take_snapshot()

    @property
    def snapshot(self) -> Snapshot:
        """The state after the newest iteration; it never changes."""
        return self._snapshot

    @property
    def state(self) -> State:
        """Whether time can go by."""
        if self._fault:
            return "faulted"
        if self._stopped:
            return "stopped"
        if self._thread is None:
            return "ready"
        return "running" if self._thread.is_alive() else "stopped"

    @property
    def fault(self) -> str:
        """Why the world cannot go on; empty if it can."""
        return self._fault

    @property
    def pace(self) -> Pace:
        """How simulated time goes."""
        return self.pacer.pace

    @property
    def paused(self) -> bool:
        """Whether time stands; callbacks and controls go on."""
        return self._paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self.post(lambda model, data: self.set_paused(paused))

    @property
    def is_asked(self) -> bool:
        """Whether somebody waits for steps just now."""
        return bool(self._requests)

    @property
    def mode(self) -> Mode:
        """Whether time goes by itself."""
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
        self.post(lambda model, data: self._set_mode(chosen))

    @property
    def speed(self) -> float:
        """Simulated seconds per second; see `Pacer.speed`."""
        return self.pacer.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if math.isnan(speed):
            raise ValueError("The speed must be a number, got nan.")
        self.post(lambda model, data: setattr(self.pacer, "speed", speed))

    @property
    def warnings(self) -> dict[str, int]:
        """How often MuJoCo warned since the last reset, by what about (`contactfull` ...)."""
        counts = zip(_WARNINGS, self.data.warning.number.tolist(), strict=True)
        return {name: count for name, count in counts if count}

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep the world between iterations: `with loop.lock(): ...`, also within another."""
        self._waiting.append(None)
        self._lock.acquire()
        self._waiting.pop()
        outer, self._holder = self._holder, threading.get_ident()
        try:
            yield
        finally:
            self._holder = outer
            self._lock.release()

    def on_pre_step(self, call: Callback) -> Handle:
        """Call before the controls of each iteration, in the physics thread."""
        return _register(self._pre, call)

    def on_post_step(self, call: Callback) -> Handle:
        """Call after each iteration, in the physics thread."""
        return _register(self._post, call)

    def on_reset(self, call: Callback) -> Handle:
        """Call after each reset, in the physics thread."""
        return _register(self._on_reset, call)

    def post(self, command: WorldEdit) -> Future[Any]:
        """Queue a command; all of them run in the order in which they were posted.

        Without a running thread it runs at the next `iterate_once` or `step`.

        Returns:
            What tells the command's result, or its error.

        Raises:
            RuntimeError: the loop was stopped.
        """
        future: Future[Any] = Future()
        with self._queue_lock:
            self._refuse_if_stopped()
            self._queue.append((command, future))
        self._wake.set()
        return future

    def do(self, command: WorldEdit, timeout: float = 5.0) -> Any:
        """Post a command, wait for it, and return its result.

        Args:
            command: what to do.
            timeout: how long to wait for it [s].

        Raises:
            TimeoutError: it did not run in time.
        """
        future = self.post(command)
        if self._is_mine():
            with self._lock:
                if self._drain():
                    self._take_snapshot()
        return future.result(timeout)

    def reset(self) -> None:
        """Return to the initial state and forget all commands; mends a fault."""
        self.do(self._reset)

    def step(self, num_steps: int = 1, timeout: float | None = None) -> Snapshot:
        """Make whole iterations that move the world on, paused or not, and wait for them.

        Args:
            num_steps: how many, at least one.
            timeout: how long to wait [s]; None waits 5 s and a second for each 100 steps more.

        Returns:
            The snapshot after the last of them.

        Raises:
            ValueError: `num_steps` is below one.
            FaultError: the world cannot go on.
            TimeoutError: it took too long.
        """
        if num_steps < 1:
            raise ValueError(f"step needs at least one step, got {num_steps}.")
        request = _Request(num_steps)
        with self._queue_lock:
            self._refuse_if_stopped()
            self._requests.append(request)
        self._wake.set()
        if self._is_mine():
            with self._lock:
                while not request.future.done():
                    self._drain()
                    if self._requests:
                        self._serve()
        try:
            return request.future.result(5.0 + num_steps / 100.0 if timeout is None else timeout)
        finally:
            request.left = 0

    def drive(self, driver: Driver, owner: str) -> Drive:
        """Let a driver move the world on, until `release`.

        Raises:
            RuntimeError: it does already.
        """
        return self.do(lambda model, data: self.drivers.push(driver, owner))

    def release(self, drive: Drive) -> None:
        """Take a driver away; the one below it goes on."""
        self.do(lambda model, data: self.drivers.remove(drive))

    def start(self) -> None:
        """Let the thread run.

        Raises:
            RuntimeError: it was started or stopped before.
        """
        if self._thread is not None or self._stopped:
            raise RuntimeError("An loop starts once: make a new one.")
        sys.setswitchinterval(min(_SWITCH_S, sys.getswitchinterval()))
        self._thread = threading.Thread(target=self._run, name="manyworlds-physics", daemon=True)
        self.pacer.restart()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; further calls do nothing.

        Raises:
            TimeoutError: the thread did not end within 3 s.
        """
        self._stopping.set()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)
            if thread.is_alive():
                raise TimeoutError(f"The physics thread did not end within {_JOIN_S} s.")
        with self._queue_lock:
            self._stopped = True
            waiting = [future for _, future in self._queue]
            self._queue.clear()
            waiting += [request.future for request in self._requests]
            self._requests.clear()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(RuntimeError("The loop was stopped before this was done."))

    def iterate_once(self) -> None:
        """Make one iteration in the calling thread, for tests and scripts without a thread.

        Raises:
            RuntimeError: the engine's own thread is running.
        """
        if self._is_running():
            raise RuntimeError(
                "The physics thread is running: iterate_once is for loops without one."
            )
        with self._lock:
            self._drain()
            self._iterate(force=False)

    def swap(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        controls: RobotControls,
        reset_data: WorldEdit,
    ) -> None:
        """Go on with another world; for commands. Callbacks and drivers stay."""
        self.model, self.data, self.controls = model, data, controls
        self._reset_data = reset_data
        self._taker = SnapshotTaker(data)
        if self.num_threads:
            mujoco.mju_threadpool(data, self.num_threads)
        self.clear_fault()
        self._take_snapshot()

    def set_threads(self, num_threads: int) -> None:
        """Let threads help MuJoCo with one step, which large worlds gain from.

        Args:
            num_threads: how many; 0 for none.

        Raises:
            ValueError: it is below zero.
        """
        if num_threads < 0:
            raise ValueError(f"num_threads must be at least 0, got {num_threads}.")

        def change(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            mujoco.mju_threadpool(data, num_threads)
            self.num_threads = num_threads

        self.do(change)

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._lock.acquire(timeout=_IDLE_S):
                continue  # somebody holds the world, and may want to stop it
            try:
                changed = self._drain()
                asked = bool(self._requests)
                live = self._mode == "live" and not self._stopping.is_set()
                if asked:
                    self._serve()
                elif live:
                    self._iterate(force=False)
                elif changed:
                    self._take_snapshot()
            finally:
                self._lock.release()
            if self._waiting:
                time.sleep(_YIELD_S)  # else this thread would have the lock again at once
            if asked:
                continue
            if not live:
                self._wake.wait(_IDLE_S)
                self._wake.clear()
            elif self._paused or self._fault:
                self._wake.wait(_PAUSED_S)
                self._wake.clear()
            else:
                self.pacer.wait(self.model.opt.timestep, self._stopping)

    def _serve(self) -> None:
        """Make one step of those that somebody waits for first."""
        request = self._requests[0]
        error: Exception | None = None
        if request.left > 0:
            self._iterate(force=True)
            request.left -= 1
            error = FaultError(self._fault) if self._fault else None
        if error is None and request.left > 0 and self._stopping.is_set():
            error = RuntimeError("The loop is being stopped.")
        if error is None and request.left > 0:
            return
        with self._queue_lock:
            if request not in self._requests:  # `stop` was called in a callback
                return
            self._requests.remove(request)
        if error is not None:
            request.future.set_exception(error)
        else:
            request.future.set_result(self._snapshot)

    def _iterate(self, force: bool) -> None:
        self._call(self._pre, False)
        self._control()
        moved = False
        if (force or not self._paused) and not self._fault:
            moved = self._move()
        self._call(self._post, moved)
        self._take_snapshot()

    def _control(self) -> None:
        for robot in self.controls:
            try:
                robot.apply(self.model, self.data)
            except Exception as error:  # that of somebody else's control law
                self._fault = self._fault or (
                    f"The control law '{robot.controller.name}' of '{robot.name}' failed at "
                    f"{self.data.time:.3f} s: {error}"
                )

    def _move(self) -> bool:
        driver = self.drivers.top.driver
        warned, time = self.data.warning.number, self.data.time
        before = warned.copy()
        avoid_sparse_newton(self.model)  # commands and callbacks may have changed its options
        try:
            moved = driver.step(self.model, self.data)
        except Exception as error:  # MuJoCo's, or that of somebody else's driver
            self._fault = f"The {driver.name} failed at {time:.3f} s: {error}"
            return False
        if (warned > before).any():
            for kind, what in _BAD.items():
                if warned[kind] <= before[kind]:
                    continue
                body = _body_of(self.model, kind, int(self.data.warning[kind].lastinfo))
                self._fault = (
                    f"The {what} went bad at {time:.3f} s, first of body '{body}': "
                    "reset the world, or restore a saved state."
                )
                return False
        self.num_steps += moved
        return moved

    def _reset(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._reset_data(model, data)
        mujoco.mj_forward(model, data)
        self.controls.reset()
        self.clear_fault()
        self._call(self._on_reset, False)

    def clear_fault(self) -> None:
        """Let the world go on after a fault; for commands that put it into a good state."""
        self._fault = ""
        self.pacer.restart()

    def set_paused(self, paused: bool) -> None:
        """Let time stand or go by from now on; for commands, others set `paused`."""
        self._paused = paused
        self.pacer.restart()

    def _set_mode(self, mode: Mode) -> None:
        self._mode = mode
        self.pacer.restart()

    def _drain(self) -> bool:
        """Run what is queued now, and what comes meanwhile later; return whether there was any."""
        with self._queue_lock:
            queue, self._queue = self._queue, deque()
        for command, future in queue:
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(command(self.model, self.data))
            except Exception as error:
                future.set_exception(error)
        return bool(queue)

    def _call(self, callbacks: list[Handle], moved: bool) -> None:
        for handle in list(callbacks):
            try:
                handle.call(self.model, self.data, moved)
            except Exception:
                self.callback_errors.append(traceback.format_exc())

    def _take_snapshot(self) -> None:
        # After a fault the last good picture stays: MuJoCo has put the data back to the start.
        block = self._snapshot.block if self._fault else self._taker.take()
        self._snapshot = Snapshot(
            frame_id=next(self._frames),
            step=self.num_steps,
            time=self._snapshot.time if self._fault else float(self.data.time),
            paused=self._paused,
            mode=self._mode,
            driver=self.drivers.top.driver.name,
            block=block,
            layout=self._taker.layout,
        )

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _is_mine(self) -> bool:
        """Whether the caller may do the thread's work: there is none, it is it, or it waits."""
        me = threading.get_ident()
        thread = self._thread
        return not self._is_running() or me == self._holder or thread is threading.current_thread()

    def _refuse_if_stopped(self) -> None:
        if self._stopped:
            raise RuntimeError("The loop was stopped and takes no commands: make a new one.")


def _register(callbacks: list[Handle], call: Callback) -> Handle:
    handle = Handle(callbacks, call)
    callbacks.append(handle)
    return handle


def _body_of(model: mujoco.MjModel, kind: mujoco.mjtWarning, number: int) -> str:
    """Name of the body to which a bad position belongs, or a bad degree of freedom."""
    if kind == mujoco.mjtWarning.mjWARN_BADQPOS:
        joint = int(np.searchsorted(model.jnt_qposadr, number, side="right")) - 1
        body = model.jnt_bodyid[joint]
    else:
        body = model.dof_bodyid[number]
    return model.body(int(body)).name
