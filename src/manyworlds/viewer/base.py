"""Loop of all interactive viewers: pace the worlds, carry out requests, draw."""

from __future__ import annotations

import enum
import math
import queue
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from manyworlds.viewer import requests
from manyworlds.viewer.requests import ViewerAction, ViewerRequest

if TYPE_CHECKING:
    from tensordict import TensorDict

    from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
    from manyworlds.envs.types import VecEnvObs
    from manyworlds.sim import Simulation

__all__ = [
    "BaseViewer",
    "EnvProtocol",
    "PolicyProtocol",
    "VerbosityLevel",
    "ViewerAction",
    "ViewerStatus",
]

_STATS_SECONDS = 0.5
_MAX_SLEEP_SECONDS = 0.01


class VerbosityLevel(enum.IntEnum):
    """Amount of output of a viewer on the terminal; errors are always printed."""

    SILENT = 0
    INFO = 1
    DEBUG = 2


class EnvProtocol(Protocol):
    """Environment, as far as viewers use it."""

    @property
    def num_envs(self) -> int:
        """Number of worlds."""
        ...

    @property
    def device(self) -> torch.device | str:
        """Device of observations and actions."""
        ...

    @property
    def cfg(self) -> ManagerBasedRlEnvCfg:
        """Configuration; its `viewer` is a `ViewerConfig`."""
        ...

    @property
    def unwrapped(self) -> ManagerBasedRlEnv:
        """Environment without wrappers, with its simulation."""
        ...

    def get_observations(self) -> VecEnvObs | TensorDict:
        """Return the present observations."""
        ...

    def step(self, actions: torch.Tensor, /) -> tuple[object, ...]:
        """Advance all worlds by one control step."""
        ...

    def reset(self) -> object:
        """Reset all worlds."""
        ...

    def close(self) -> None:
        """Free the resources of the environment."""
        ...


class PolicyProtocol(Protocol):
    """Map from observations to actions; may have a `reset()`."""

    def __call__(self, obs: Any, /) -> torch.Tensor:
        """Return the actions, shape (num_envs, num_actions)."""
        ...


@dataclass(frozen=True)
class ViewerStatus:
    """State of the loop."""

    paused: bool
    step_count: int
    """Environment steps since the last reset by this viewer."""
    speed_multiplier: float
    speed_label: str
    """Multiplier as text, such as '1/4x'."""
    target_realtime: float
    """Requested speed, in simulated seconds per second."""
    actual_realtime: float
    """Simulated seconds per second over the last half second."""
    smoothed_fps: float
    """Frames drawn per second over the last half second [1/s]."""
    capped: bool
    """True if the worlds cannot keep up with the requested speed."""
    last_error: str | None
    """Error that paused the worlds, or with which the last action failed, in one line."""


class BaseViewer(ABC):
    """Steps an environment with a policy at a chosen multiple of real time, and draws it.

    Each `tick` adds the elapsed wall time to a budget and spends it in whole steps; the rest stays
    for the next tick. If the worlds cannot keep up, the budget is dropped after one frame's time,
    so that drawing continues. Requests may come from any thread and are carried out in `tick`.

    Args:
        env: the environment, bare or in a wrapper such as `RslRlVecEnvWrapper`.
        policy: maps observations to actions.
        frame_rate: frames to draw per second [1/s].
        verbosity: amount of output on the terminal.

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
        self._requests: queue.SimpleQueue[ViewerRequest] = queue.SimpleQueue()
        self._paused = False
        self._step_count = 0
        self._steps_left = math.inf
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
        """Apply users' actions in the view to the environment, such as a push of a body."""

    @abstractmethod
    def close(self) -> None:
        """Close the view; a second call does nothing."""

    @abstractmethod
    def is_running(self) -> bool:
        """Return True if the view is open."""

    def carry_out(self, action: ViewerRequest) -> None:
        """Carry out an action, in the thread that ticks.

        Viewers with further actions override this, and leave the others to their base class.

        Raises:
            ValueError: this viewer has no such action.
        """
        match action:
            case requests.Reset():
                self.reset_environment()
            case requests.TogglePause():
                self.toggle_pause()
            case requests.SingleStep():
                self.pause()
                self._execute_step()
            case requests.SpeedUp():
                self.increase_speed()
            case requests.SpeedDown():
                self.decrease_speed()
            case requests.ResetSpeed():
                self.reset_speed()
            case requests.SelectEnv(env_idx):
                self.select_env(env_idx)
            case requests.PreviousEnv():
                self.select_env(self.env_idx - 1)
            case requests.NextEnv():
                self.select_env(self.env_idx + 1)
            case _:
                payload = None
                if isinstance(action, requests.Custom):
                    payload = action.payload
                if not self._handle_custom_action(requests.name_of(action), payload):
                    raise ValueError(f"{type(self).__name__} has no action {action}.")

    def _handle_custom_action(self, action: ViewerAction, payload: object) -> bool:
        """Carry out an action that a subclass adds; return True if there is one."""
        return False

    @property
    def _sim(self) -> Simulation:
        """Simulation of the worlds."""
        return self.env.unwrapped.sim

    @property
    def _step_dt(self) -> float:
        """Duration of a step of the environment [s]."""
        return self.env.unwrapped.step_dt

    @property
    def target_realtime(self) -> float:
        """Requested speed, in simulated seconds per second."""
        return self.SPEED_MULTIPLIERS[self._speed_index]

    @property
    def actual_realtime(self) -> float:
        """Recently achieved speed, in simulated seconds per second; 0 while paused."""
        return self._actual_realtime

    def get_status(self) -> ViewerStatus:
        """Return the state of the loop."""
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
        """Print a message if the verbosity includes its level."""
        if self.verbosity >= level:
            print(message, flush=True)

    # Requests: safe to call from any thread, carried out in the next tick.

    def request(self, action: ViewerRequest) -> None:
        """Request an action."""
        self._requests.put(action)

    def request_action(self, name: str, payload: object = None) -> None:
        """Request an action by the name of a `ViewerAction`, in lower or upper case.

        Args:
            name: name, such as 'next_env'; 'custom' is for actions that a subclass adds.
            payload: payload of 'custom'.

        Raises:
            ValueError: there is no such action, or it takes no payload.
        """
        self.request(requests.action_of(name, payload))

    def request_reset(self) -> None:
        """Request a reset of all worlds."""
        self.request(requests.Reset())

    def request_toggle_pause(self) -> None:
        """Request to pause, or to resume."""
        self.request(requests.TogglePause())

    def request_single_step(self) -> None:
        """Request one environment step; pauses if running."""
        self.request(requests.SingleStep())

    def request_speed_up(self) -> None:
        """Request the next higher speed."""
        self.request(requests.SpeedUp())

    def request_speed_down(self) -> None:
        """Request the next lower speed."""
        self.request(requests.SpeedDown())

    def request_reset_speed(self) -> None:
        """Request real time."""
        self.request(requests.ResetSpeed())

    # Effects of requests; for the thread that ticks.

    def increase_speed(self) -> None:
        """Set the next higher speed."""
        self._speed_index = min(self._speed_index + 1, len(self.SPEED_MULTIPLIERS) - 1)

    def decrease_speed(self) -> None:
        """Set the next lower speed."""
        self._speed_index = max(self._speed_index - 1, 0)

    def reset_speed(self) -> None:
        """Return to real time."""
        self._speed_index = self.SPEED_MULTIPLIERS.index(1.0)

    def pause(self) -> None:
        """Stop stepping."""
        self._paused = True
        self._budget = 0.0
        self._capped = False
        self._actual_realtime = 0.0

    def resume(self) -> None:
        """Resume stepping; clears the last error."""
        self._paused = False
        self._last_error = None
        self._stats_start = None

    def toggle_pause(self) -> None:
        """Pause or resume."""
        if self._paused:
            self.resume()
        else:
            self.pause()

    def reset_environment(self) -> None:
        """Reset all worlds and the policy's memory; clears the last error."""

        def reset() -> None:
            self.env.reset()
            policy_reset = getattr(self.policy, "reset", None)
            if callable(policy_reset):
                policy_reset()

        if self._guarded(reset):
            self._step_count = 0
            self._budget = 0.0

    def select_env(self, env_idx: int) -> None:
        """Select a world; ids beyond the last continue at 0."""
        self.env_idx = env_idx % self.env.num_envs

    def tick(self) -> bool:
        """Carry out requests, step the worlds by the elapsed time, draw if a frame is due.

        Returns:
            Whether a frame was drawn.
        """
        now = self._clock()
        elapsed = 0.0
        if self._last_tick is not None:
            elapsed = now - self._last_tick
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
        # After a long delay, one frame is due, not one for each that was missed.
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
        self._steps_left = math.inf
        if num_steps is not None:
            self._steps_left = num_steps
        try:
            self.setup()
            while self.is_running() and self._steps_left > 0:
                if num_steps is not None and self._last_error:
                    break
                self.tick()
                time.sleep(self._idle_seconds())
        except KeyboardInterrupt:
            if not catch_sigint:
                raise
        finally:
            self._steps_left = math.inf
            self.close()

    def _spend_budget(self, deadline: float) -> None:
        """Step within the budget, until the deadline on the clock [s]."""
        # The tolerance covers rounding errors.
        step_dt = self._step_dt * (1 - 1e-9)
        if self._budget < step_dt:
            return
        self._capped = False
        while self._budget >= step_dt and self._steps_left > 0:
            if not self._execute_step():
                return
            self._budget -= self._step_dt
            if self._clock() >= deadline:
                self._capped = self._budget >= step_dt
                break
        if self._capped:
            self._budget = 0.0

    def _execute_step(self) -> bool:
        """Run one environment step; an error pauses and is kept. Return True if it succeeded."""

        def step() -> None:
            with torch.no_grad():
                self.env.step(self.policy(self.env.get_observations()))

        if not self._guarded(step):
            return False
        self._step_count += 1
        self._steps_left -= 1
        self._stats_steps += 1
        return True

    def _guarded(self, function: Callable[[], None]) -> bool:
        """Call the environment or the policy as `_attempt` does; success clears the last error."""
        if not self._attempt(function):
            return False
        self._last_error = None
        return True

    def _attempt(self, function: Callable[[], None]) -> bool:
        """Call a function; an error pauses, is printed, and is kept in the status."""
        try:
            function()
        except Exception as error:
            self.pause()
            self._last_error = type(error).__name__
            text = " ".join(str(error).split())
            if text:
                self._last_error += f": {text}"
            self.log(traceback.format_exc(), VerbosityLevel.SILENT)
            return False
        return True

    def _update_stats(self, now: float) -> None:
        """Measure frames and simulated time per second, over some seconds."""
        if self._stats_start is None:
            self._stats_start = now
            self._stats_steps = 0
            self._stats_frames = 0
        seconds = now - self._stats_start
        if seconds >= _STATS_SECONDS:
            self._fps = self._stats_frames / seconds
            if not self._paused:
                self._actual_realtime = self._stats_steps * self._step_dt / seconds
            self._stats_start = now
            self._stats_steps = 0
            self._stats_frames = 0

    def _carry_out_requests(self) -> None:
        """Carry out present requests; those that they add must not keep the loop from going on."""
        for _ in range(self._requests.qsize()):
            action = self._requests.get()
            self._attempt(lambda action=action: self.carry_out(action))

    def _idle_seconds(self) -> float:
        """Return the time until something is due [s]."""
        due = self._until_frame
        if not self._paused:
            due = min(due, (self._step_dt - self._budget) / self.target_realtime)
        return min(max(due, 0.0), _MAX_SLEEP_SECONDS)

    @staticmethod
    def _format_speed(multiplier: float) -> str:
        """Format a speed: '1/4x', '2x'."""
        if 0 < multiplier < 1 and (1 / multiplier).is_integer():
            return f"1/{round(1 / multiplier)}x"
        return f"{multiplier:g}x"
