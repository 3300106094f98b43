"""Train with another library, stable-baselines3, through gymnasium's interface.

    pip install stable-baselines3
    python examples/09_gymnasium.py

You learn that a task is a gymnasium vector environment with one call, and what a library with an
interface of its own needs: here, the `VecEnv` of stable-baselines3 in forty lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from manyworlds.envs import GymVectorEnv
from manyworlds.tasks import load_env_cfg


def make(num_envs: int) -> GymVectorEnv:
    """Return the task as a `gymnasium.vector.VectorEnv` with NumPy arrays."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs, cfg.seed = num_envs, 1
    cfg.episode_length_s = 2.5
    return GymVectorEnv(cfg, device="cpu", obs_group="actor")


class WorldsForSb3(VecEnv):
    """Adapter of a gymnasium vector environment, which resets finished worlds by itself."""

    def __init__(self, env: GymVectorEnv) -> None:
        self.env = env
        self._actions = np.empty(0, np.float32)  # until the first step
        self.render_mode = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> np.ndarray:
        """Reset all worlds; return observations, shape [num_envs, ...]."""
        obs, _ = self.env.reset()
        assert isinstance(obs, np.ndarray)  # of one group of observations
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all worlds; the last observation of an episode is in its info."""
        obs, rewards, terminated, truncated, infos = self.env.step(self._actions)
        assert isinstance(obs, np.ndarray)
        dones = terminated | truncated
        per_world: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for world in np.flatnonzero(dones):
            per_world[world]["terminal_observation"] = infos["final_obs"][world]
            per_world[world]["TimeLimit.truncated"] = bool(truncated[world] & ~terminated[world])
        return obs, rewards, dones, per_world

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the environment, once for each of the worlds."""
        return [getattr(self.env, attr_name)] * len([*self._get_indices(indices)])

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment, for all worlds."""
        setattr(self.env, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list:
        """Call a method of the environment once."""
        return [getattr(self.env, method_name)(*args, **kwargs)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False: the adapter has no wrappers."""
        return [False] * len([*self._get_indices(indices)])


def learn(num_envs: int, num_steps: int) -> tuple[PPO, float]:
    """Train for some control steps of all worlds; return the learner and its mean return."""
    torch.set_num_threads(1)  # small networks learn faster so, and physics has the cores
    worlds = VecMonitor(WorldsForSb3(make(num_envs)))
    learner = PPO("MlpPolicy", worlds, n_steps=16, batch_size=num_envs * 4, n_epochs=5, seed=1)
    learner.learn(num_envs * num_steps)
    returns = [episode["r"] for episode in learner.ep_info_buffer or ()]
    return learner, float(np.mean(returns)) if returns else float("nan")


if __name__ == "__main__":
    env = make(num_envs=4)
    obs, info = env.reset(seed=1)
    obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert isinstance(obs, np.ndarray)
    print("gymnasium:", obs.shape, reward.shape, env.metadata["autoreset_mode"])
    learner, mean_return = learn(num_envs=64, num_steps=320)
    print(f"stable-baselines3: {learner.num_timesteps} steps, mean return {mean_return:.2f} of 2.5")
