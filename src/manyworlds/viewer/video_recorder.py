"""Recording of videos of an environment that is stepped by other code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manyworlds.viewer.offscreen_renderer import attach_renderer
from manyworlds.viewer.video import write_video

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.types import VecEnvObs, VecEnvStepReturn
    from manyworlds.utils.debug_visualizer import DebugVisualizer


class VideoRecorder:
    """Steps an environment and records videos of its world `cfg.viewer.env_idx`.

    It wraps the environment: all other attributes are those of the environment.

    Args:
        env: environment with `render_mode="rgb_array"`; it gets a renderer if it has none.
        video_folder: folder of the videos.
        episode_trigger: function that returns whether to record an episode of that world, by its
            number.
        step_trigger: function that returns whether to start a video, by the number of steps so far.
        video_length: frames of a video, one per control step; None records until the episode ends.
        name_prefix: prefix of file names; the step or episode follows.
        disable_logger: whether to skip the upload to an active Weights & Biases run.

    Raises:
        ValueError: there is no trigger, no frame, or the environment renders nothing.
        RuntimeError: there is no working OpenGL.
    """

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        video_folder: str | Path,
        episode_trigger: Callable[[int], bool] | None = None,
        step_trigger: Callable[[int], bool] | None = None,
        video_length: int | None = None,
        name_prefix: str = "rl-video",
        disable_logger: bool = False,
    ) -> None:
        if episode_trigger is None and step_trigger is None:
            raise ValueError(
                "VideoRecorder records nothing: give episode_trigger or step_trigger, such as "
                "step_trigger=lambda step: step % 2000 == 0."
            )
        if video_length is not None and video_length < 1:
            raise ValueError(f"video_length must be at least 1 frame, got {video_length}.")
        if env.render_mode != "rgb_array":
            raise ValueError(
                f"VideoRecorder needs an environment with render_mode='rgb_array', got "
                f"{env.render_mode!r}: pass it to the environment's constructor."
            )
        self.env = env
        self.files: list[Path] = []
        """Paths of the videos written so far."""
        self._folder = Path(video_folder)
        self._prefix = name_prefix
        self._episode_trigger = episode_trigger
        self._step_trigger = step_trigger
        self._length = video_length
        self._logs = not disable_logger
        self._frames: list[np.ndarray] = []
        self._name = ""
        self._steps = self._episodes = 0
        if env.unwrapped.renderer is None:
            attach_renderer(env.unwrapped)
        self._begin(new_episode=True)

    def __getattr__(self, name: str) -> Any:
        if name == "env":  # not set yet, for example during unpickling
            raise AttributeError(name)
        return getattr(self.env, name)

    @property
    def is_vector_env(self) -> bool:
        """True: the environment steps several worlds."""
        return self.env.is_vector_env

    @property
    def metadata(self) -> dict[str, object]:
        """Render modes and frame rate, as Gymnasium names them."""
        return self.env.metadata

    @property
    def num_envs(self) -> int:
        """Number of worlds."""
        return self.env.num_envs

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self.env.device

    @property
    def physics_dt(self) -> float:
        """Physics timestep [s]."""
        return self.env.physics_dt

    @property
    def step_dt(self) -> float:
        """Control period [s]."""
        return self.env.step_dt

    @property
    def max_episode_length_s(self) -> float:
        """Maximum length of an episode [s]."""
        return self.env.max_episode_length_s

    @property
    def max_episode_length(self) -> int:
        """Maximum length of an episode [control steps]."""
        return self.env.max_episode_length

    def seed(self, seed: int = -1) -> int:
        """Seed all random numbers; -1 samples a seed. Returns the seed."""
        return self.env.seed(seed)

    def load_managers(self) -> None:
        """Build the managers of the environment."""
        self.env.load_managers()

    def setup_manager_visualizers(self) -> None:
        """Collect the managers and sensors that have a `debug_vis`."""
        self.env.setup_manager_visualizers()

    def update_visualizers(self, visualizer: DebugVisualizer) -> None:
        """Draw the managers and sensors whose visualization is enabled."""
        self.env.update_visualizers(visualizer)

    def get_observations(self) -> VecEnvObs:
        """Return the observations of the last step or reset, by group, shape [num_envs, ...]."""
        return self.env.get_observations()

    @property
    def unwrapped(self) -> ManagerBasedRlEnv:
        """The environment without wrappers."""
        return self.env.unwrapped

    def reset(self, **kwargs: Any) -> Any:
        """Start new episodes; a video of the last one ends."""
        result = self.env.reset(**kwargs)
        if self._length is None:
            self.finish()
        self._begin(new_episode=True)
        return result

    def step(self, action: torch.Tensor) -> VecEnvStepReturn:
        """Advance all worlds by one control step, and record it if a video is running."""
        result = self.env.step(action)
        self._steps += 1
        world = self.env.unwrapped.cfg.viewer.env_idx
        ended = bool(result[2][world] | result[3][world])
        if self._name:
            frame = self.env.render()
            assert frame is not None  # the render mode was checked
            self._frames.append(frame)
            if len(self._frames) == self._length or (self._length is None and ended):
                self.finish()
        self._episodes += ended
        self._begin(new_episode=ended)
        return result

    def render(self) -> np.ndarray | None:
        """Return an image of the world, shape (height, width, 3); None without a render mode."""
        return self.env.render()

    def close(self) -> None:
        """End the present video and close the environment."""
        self.finish()
        self.env.close()

    def finish(self) -> None:
        """End the present video, and write its frames."""
        if self._frames:
            path = write_video(self._folder / self._name, self._frames, 1.0 / self.env.step_dt)
            self.files.append(path)
            wandb = sys.modules.get("wandb")
            if self._logs and wandb is not None and wandb.run is not None:
                wandb.log({"video": wandb.Video(str(path))})
        self._frames = []
        self._name = ""

    def _begin(self, new_episode: bool) -> None:
        """Start a video if a trigger requires one and none is running."""
        if self._name:
            return
        on_step = self._step_trigger
        on_episode = self._episode_trigger
        if on_step is not None and on_step(self._steps):
            self._name = f"{self._prefix}-step-{self._steps}"
        elif new_episode and on_episode is not None and on_episode(self._episodes):
            self._name = f"{self._prefix}-episode-{self._episodes}"
