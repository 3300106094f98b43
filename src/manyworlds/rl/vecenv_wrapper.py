"""Adapter of the environment to rsl_rl's interface."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.envs import BucketedRlEnv, ManagerBasedRlEnv
from manyworlds.utils.extras import require_extra
from manyworlds.utils.overrides import overrides

require_extra("rsl_rl", "train")
from rsl_rl.env import VecEnv  # noqa: E402
from tensordict import TensorDict  # noqa: E402

if TYPE_CHECKING:
    import gymnasium

    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.managers.symmetry import EnvSymmetry


class RslRlVecEnvWrapper(VecEnv):
    """Environment with rsl_rl's interface.

    Args:
        env: the environment.
        clip_actions: bound on the magnitude of actions; None for no bound.
    """

    def __init__(self, env: ManagerBasedRlEnv, clip_actions: float | None = None) -> None:
        self.env: Any = env  # or a wrapper of it, such as a video recorder
        self.clip_actions = clip_actions
        self.num_envs = env.num_envs
        [self.num_actions] = env.single_action_space.shape
        self.max_episode_length = env.max_episode_length
        self.device = str(env.device)
        self.step_time = 0.0
        """Time of all steps so far [s]."""
        self.mirror: EnvSymmetry | None = None
        """Mirror images of observations and actions, if learning uses them."""
        has_buckets = isinstance(self.unwrapped, BucketedRlEnv)
        if not has_buckets and overrides(
            self.unwrapped, ManagerBasedRlEnv, "reset", "_reset_worlds"
        ):
            env.reset()  # which the constructor of the environment does by its own method

    @property
    def cfg(self) -> ManagerBasedRlEnvCfg:
        """The environment's configuration."""
        return self.env.cfg

    @property
    def render_mode(self) -> str | None:
        """Render mode of the environment."""
        return self.unwrapped.render_mode

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Space of the observations of all worlds."""
        return self.env.observation_space

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Space of the actions of all worlds."""
        return self.env.action_space

    @classmethod
    def class_name(cls) -> str:
        """Name of the class."""
        return cls.__name__

    @property
    def unwrapped(self) -> ManagerBasedRlEnv:
        """Environment itself."""
        return self.env.unwrapped

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Control steps since each world's last reset, shape [num_envs]."""
        return self.env.episode_length_buf

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:  # type: ignore[override]
        lengths = self.env.episode_length_buf
        lengths.copy_(value)
        self.env.episode_length_buf = lengths  # with buckets it is a copy

    def seed(self, seed: int = -1) -> int:
        """Seed the random generators; -1 samples a seed. Returns the seed."""
        return self.env.seed(seed)

    def get_observations(self) -> TensorDict:
        """Return the observations of the last step or reset, by group, shape [num_envs, ...]."""
        return self._pack(self.env.get_observations())

    def reset(self) -> tuple[TensorDict, dict[str, Any]]:
        """Start new episodes in all worlds."""
        obs, extras = self.env.reset()
        return self._pack(obs), extras

    def step(
        self, actions: torch.Tensor
    ) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Advance every world; return observations, rewards, dones (shape [num_envs]) and extras.

        `extras["time_outs"]` marks episodes that reached their time limit, whose value rsl_rl
        bootstraps, unless the horizon is finite; `extras["final_obs"]` holds the final observations
        if at least one episode ended.
        """
        if self.clip_actions is not None:
            actions = actions.clamp(-self.clip_actions, self.clip_actions)
        start = time.perf_counter()
        obs, rewards, terminated, truncated, extras = self.env.step(actions)
        self.step_time += time.perf_counter() - start
        if not self.env.cfg.is_finite_horizon:
            extras["time_outs"] = truncated & ~terminated
        if "final_obs" in extras:
            extras["final_obs"] = self._pack(extras["final_obs"])
        return self._pack(obs), rewards, (terminated | truncated).long(), extras

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _pack(self, obs: Any) -> TensorDict:
        return TensorDict(obs, batch_size=[self.num_envs])
