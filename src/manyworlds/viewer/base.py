"""The loop that every interactive viewer shares: pace the worlds, act on requests, draw."""

from __future__ import annotations

import enum
import queue
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from manyworlds.sim import Simulation

_STATS_SECONDS = 0.5
_MAX_SLEEP_SECONDS = 0.01


class VerbosityLevel(enum.IntEnum):
    """How much a viewer says on the terminal. Errors are always said."""

    SILENT = 0
    INFO = 1
    DEBUG = 2


class EnvProtocol(Protocol):
    """What a viewer needs of an environment."""

    @property
    def num_envs(self) -> int:
        """How many worlds there are."""
        ...

    @property
    def device(self) -> torch.device | str:
        """Where observations and actions live."""
        ...

    @property
    def sim(self) -> Simulation:
        """The worlds."""
        ...

    @property
    def step_dt(self) -> float:
        """Time that one `step` takes [s]."""
        ...

    @property
    def cfg(self) -> Any:
        """The configuration; its `viewer` is a `ViewerConfig`."""
        ...

    @property
    def unwrapped(self) -> Any:
        """The environment without wrappers."""
        ...

    def get_observations(self) -> Any:
        """Return the present observations."""
        ...

    def step(self, actions: torch.Tensor, /) -> tuple[Any, ...]:
        """Advance all worlds by `step_dt`."""
        ...

    def reset(self) -> Any:
        """Reset all worlds."""
        ...

    def close(self) -> None:
        """Free what the environment holds."""
        ...


class PolicyProtocol(Protocol):
    """Maps observations to actions; may have a `reset()`."""

    def __call__(self, obs: Any, /) -> torch.Tensor:
        """Return the actions, shape (num_envs, num_actions)."""
        ...


class ViewerAction(enum.Enum):
    """What a user may ask of a viewer."""

    RESET = "reset"
    TOGGLE_PAUSE = "toggle_pause"
    SINGLE_STEP = "single_step"
    RESET_SPEED = "reset_speed"
    SPEED_UP = "speed_up"
    SPEED_DOWN = "speed_down"
    PREV_ENV = "prev_env"
    NEXT_ENV = "next_env"
    TOGGLE_PLOTS = "toggle_plots"
    TOGGLE_DEBUG_VIS = "toggle_debug_vis"
    TOGGLE_SHOW_ALL_ENVS = "toggle_show_all_envs"
    FETCH_CHECKPOINT = "fetch_checkpoint"
    CUSTOM = "custom"


@dataclass(frozen=True)
class ViewerStatus:
    """How the loop is doing."""

    paused: bool
    step_count: int
    """Environment steps since the last reset by this viewer."""
    speed_multiplier: float
    speed_label: str
    """The multiplier as people write it, such as '1/4x'."""
    target_realtime: float
    """Simulated seconds per second asked for."""
    actual_realtime: float
    """Simulated seconds per second over the last half second."""
    smoothed_fps: float
    """Frames drawn per second over the last half second [1/s]."""
    capped: bool
    """The worlds cannot keep up with the speed asked for."""
    last_error: str | None
    """The error that paused the worlds, in one line."""


class BaseViewer(ABC):
    """Steps an environment with a policy at a chosen multiple of real time, and draws it.

    Each `tick` earns simulated time for the wall time that passed and spends it in whole steps;
    what is left over is kept for the next tick. If the worlds cannot keep up, the debt is dropped
    after one frame's time, so that drawing goes on. Requests may come from any thread and are
    carried out in `tick`.

    Args:
        env: the environment.
        policy: maps observations to actions.
        frame_rate: frames to draw per second [1/s].
        verbosity: how much to say on the terminal.

    Raises:
        ValueError: `frame_rate` is not positive, or `env.cfg.viewer.env_idx` is no world.
    """

    SPEED_MULTIPLIERS = [1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0]
    _clock = staticmethod(time.perf_counter)

    def __init__(
        self,
        env: EnvProtocol,
        policy: PolicyProtocol,
        frame_rate: float = 30.0,
        verbosity: int = VerbosityLevel.SILENT,
    ) -> None:
        if not frame_rate > 0:
            raise ValueError(f"frame_rate must be above 0, got {frame_rate}: 30 suits most uses.")
        self.env = env
        self.policy = policy
        self.frame_time = 1.0 / frame_rate
        self.verbosity = VerbosityLevel(verbosity)
        self.cfg = env.cfg.viewer
        if not 0 <= self.cfg.env_idx < env.num_envs:
            raise ValueError(
                f"ViewerConfig.env_idx is {self.cfg.env_idx} but there are {env.num_envs} worlds: "
                f"give one in [0, {env.num_envs})."
            )
        self.env_idx: int = self.cfg.env_idx
        self._requests: queue.SimpleQueue[tuple[ViewerAction, Any]] = queue.SimpleQueue()
        self._paused = False
        self._step_count = 0
        self._speed_index = self.SPEED_MULTIPLIERS.index(1.0)
        self._budget = 0.0
        self._capped = False
        self._last_error: str | None = None
        self._last_tick: float | None = None
        self._until_frame = 0.0
        self._stats_start: float | None = None
        self._stats_steps = 0
        self._stats_frames = 0
        self._actual_realtime = 0.0
        self._fps = 0.0

    @abstractmethod
    def setup(self) -> None:
        """Open the view."""

    @abstractmethod
    def sync_env_to_viewer(self) -> None:
        """Draw the present state."""

    def sync_viewer_to_env(self) -> None:  # noqa: B027
        """Bring what users did in the view, such as pushing a body, to the environment."""

    @abstractmethod
    def close(self) -> None:
        """Close the view; a second call does nothing."""

    @abstractmethod
    def is_running(self) -> bool:
        """Whether the view is open."""

    def _handle_custom_action(self, action: ViewerAction, payload: Any) -> bool:
        """Carry out an action that this class does not know; return whether it was one."""
        return False

    @property
    def target_realtime(self) -> float:
        """Simulated seconds per second asked for."""
        return self.SPEED_MULTIPLIERS[self._speed_index]

    @property
    def actual_realtime(self) -> float:
        """Simulated seconds per second reached lately; 0 while paused."""
        return self._actual_realtime

    def get_status(self) -> ViewerStatus:
        """Return how the loop is doing."""
        return ViewerStatus(
            paused=self._paused,
            step_count=self._step_count,
            speed_multiplier=self.target_realtime,
            speed_label=self._format_speed(self.target_realtime),
            target_realtime=self.target_realtime,
            actual_realtime=self._actual_realtime,
            smoothed_fps=self._fps,
            capped=self._capped,
            last_error=self._last_error,
        )

    def log(self, message: str, level: VerbosityLevel = VerbosityLevel.INFO) -> None:
        """Say something on the terminal if the verbosity asks for it."""
        if self.verbosity >= level:
            print(message, flush=True)

    # Requests: safe to call from any thread, carried out in the next tick.

    def request_action(self, name: str, payload: Any = None) -> None:
        """Ask for an action by the name of a `ViewerAction`, in lower or upper case.

        Args:
            name: such as 'next_env'; 'custom' is for what a viewer adds of its own.
            payload: what the action needs to know.

        Raises:
            ValueError: there is no such action.
        """
        if name.upper() not in ViewerAction.__members__:
            names = ", ".join(action.value for action in ViewerAction)
            raise ValueError(f"There is no viewer action '{name}': use one of {names}.")
        self._requests.put((ViewerAction[name.upper()], payload))

    def request_reset(self) -> None:
        """Ask for a reset of all worlds."""
        self._requests.put((ViewerAction.RESET, None))

    def request_toggle_pause(self) -> None:
        """Ask to pause, or to go on."""
        self._requests.put((ViewerAction.TOGGLE_PAUSE, None))

    def request_single_step(self) -> None:
        """Ask for one environment step; pauses if running."""
        self._requests.put((ViewerAction.SINGLE_STEP, None))

    def request_speed_up(self) -> None:
        """Ask for the next higher speed."""
        self._requests.put((ViewerAction.SPEED_UP, None))

    def request_speed_down(self) -> None:
        """Ask for the next lower speed."""
        self._requests.put((ViewerAction.SPEED_DOWN, None))

    def request_reset_speed(self) -> None:
        """Ask for real time."""
        self._requests.put((ViewerAction.RESET_SPEED, None))

    # What requests do; call these from the thread that ticks.

    def increase_speed(self) -> None:
        """Take the next higher speed."""
        self._speed_index = min(self._speed_index + 1, len(self.SPEED_MULTIPLIERS) - 1)

    def decrease_speed(self) -> None:
        """Take the next lower speed."""
        self._speed_index = max(self._speed_index - 1, 0)

    def reset_speed(self) -> None:
        """Go back to real time."""
        self._speed_index = self.SPEED_MULTIPLIERS.index(1.0)

    def pause(self) -> None:
        """Stop stepping."""
        self._paused = True
        self._budget = 0.0
        self._capped = False
        self._actual_realtime = 0.0

    def resume(self) -> None:
        """Go on stepping; forgets the last error."""
        self._paused = False
        self._last_error = None
        self._stats_start = None

    def toggle_pause(self) -> None:
        """Pause, or go on."""
        if self._paused:
            self.resume()
        else:
            self.pause()

    def reset_environment(self) -> None:
        """Reset all worlds and the policy's memory; forgets the last error."""

        def reset() -> None:
            self.env.reset()
            policy_reset = getattr(self.policy, "reset", None)
            if callable(policy_reset):
                policy_reset()

        if self._guarded(reset):
            self._step_count = 0
            self._budget = 0.0

    def select_env(self, env_idx: int) -> None:
        """Select a world; ids beyond the last begin again at 0."""
        self.env_idx = env_idx % self.env.num_envs

    def tick(self) -> bool:
        """Carry out requests, step the worlds by the time that passed, draw if a frame is due.

        Returns:
            Whether a frame was drawn.
        """
        now = self._clock()
        elapsed = now - (now if self._last_tick is None else self._last_tick)
        self._last_tick = now
        self._carry_out_requests()
        self.sync_viewer_to_env()
        if not self._paused:
            self._budget += elapsed * self.target_realtime
            self._spend_budget(now + self.frame_time)
        self._update_stats(now)
        self._until_frame -= elapsed
        if self._until_frame > 0:
            return False
        # After a long stall, one frame is due, not one for each that was missed.
        self._until_frame = max(self._until_frame + self.frame_time, 0.0)
        self.sync_env_to_viewer()
        self._stats_frames += 1
        return True

    def run(self, num_steps: int | None = None, catch_sigint: bool = True) -> None:
        """Open the view and tick until it is closed.

        Args:
            num_steps: end after this many environment steps, or at the first error; None for no
                end.
            catch_sigint: let Ctrl-C end the loop without a traceback.
        """
        steps_before = self._step_count
        try:
            self.setup()
            while self.is_running():
                if num_steps is not None and (
                    self._step_count - steps_before >= num_steps or self._last_error
                ):
                    break
                self.tick()
                time.sleep(self._idle_seconds())
        except KeyboardInterrupt:
            if not catch_sigint:
                raise
        finally:
            self.close()

    def _carry_out_requests(self) -> None:
        actions: dict[ViewerAction, Callable[[], None]] = {
            ViewerAction.RESET: self.reset_environment,
            ViewerAction.TOGGLE_PAUSE: self.toggle_pause,
            ViewerAction.SINGLE_STEP: self._single_step,
            ViewerAction.SPEED_UP: self.increase_speed,
            ViewerAction.SPEED_DOWN: self.decrease_speed,
            ViewerAction.RESET_SPEED: self.reset_speed,
            ViewerAction.PREV_ENV: lambda: self.select_env(self.env_idx - 1),
            ViewerAction.NEXT_ENV: lambda: self.select_env(self.env_idx + 1),
        }
        # Only what is there now: a request that makes requests must not hold the loop up.
        for _ in range(self._requests.qsize()):
            action, payload = self._requests.get()
            if action in actions:
                actions[action]()
            elif not self._handle_custom_action(action, payload):
                self.log(f"This viewer has no action '{action.value}'.", VerbosityLevel.DEBUG)

    def _single_step(self) -> None:
        self.pause()
        self._execute_step()

    def _spend_budget(self, deadline: float) -> None:
        """Step while there is budget, until the deadline on the clock [s]."""
        # A step that is due but for rounding is due.
        step_dt = self.env.step_dt * (1 - 1e-9)
        if self._budget < step_dt:
            return
        self._capped = False
        while self._budget >= step_dt:
            if not self._execute_step():
                return
            self._budget -= self.env.step_dt
            if self._clock() >= deadline:
                self._capped = self._budget >= step_dt
                break
        if self._capped:
            self._budget = 0.0

    def _execute_step(self) -> bool:
        """Take one environment step; an error pauses and is kept. Returns whether it worked."""

        def step() -> None:
            with torch.no_grad():
                self.env.step(self.policy(self.env.get_observations()))

        if not self._guarded(step):
            return False
        self._step_count += 1
        self._stats_steps += 1
        return True

    def _guarded(self, function: Callable[[], None]) -> bool:
        """Call into the environment or the policy; an error pauses and is kept in the status."""
        try:
            function()
        except Exception as error:
            self.pause()
            text = " ".join(str(error).split())
            self._last_error = f"{type(error).__name__}: {text}" if text else type(error).__name__
            self.log(traceback.format_exc(), VerbosityLevel.SILENT)
            return False
        self._last_error = None
        return True

    def _update_stats(self, now: float) -> None:
        if self._stats_start is None:
            self._stats_start, self._stats_steps, self._stats_frames = now, 0, 0
        seconds = now - self._stats_start
        if seconds >= _STATS_SECONDS:
            self._fps = self._stats_frames / seconds
            if not self._paused:
                self._actual_realtime = self._stats_steps * self.env.step_dt / seconds
            self._stats_start, self._stats_steps, self._stats_frames = now, 0, 0

    def _idle_seconds(self) -> float:
        """How long nothing is due [s]."""
        due = self._until_frame
        if not self._paused:
            due = min(due, (self.env.step_dt - self._budget) / self.target_realtime)
        return min(max(due, 0.0), _MAX_SLEEP_SECONDS)

    @staticmethod
    def _format_speed(multiplier: float) -> str:
        """Write a speed as people do: '1/4x', '2x'."""
        if 0 < multiplier < 1 and (1 / multiplier).is_integer():
            return f"1/{round(1 / multiplier)}x"
        return f"{multiplier:g}x"
