"""Adapters of environments to gymnasium's interfaces, with NumPy arrays."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.utils.spaces import unbounded_box

Arrays: TypeAlias = "np.ndarray | dict[str, Arrays]"
"""Observations: an array, or arrays by name."""


class _Adapter:
    """Common part of both adapters: an environment, bounded spaces, and arrays.

    Args:
        cfg: the task; it is copied.
        device: torch device; None selects CUDA if it is available, else the CPU.
        render_mode: "rgb_array" or None; see `ManagerBasedRlEnv.render`.
        obs_group: observation group to return as a box; None returns all groups as a dict of boxes.
        action_limit: bound of the action space. Actions beyond it are not clipped.
    """

    env: ManagerBasedRlEnv
    """Adapted environment."""

    def _open(
        self,
        cfg: ManagerBasedRlEnvCfg,
        device: str | torch.device | None,
        render_mode: str | None,
        obs_group: str | None,
        action_limit: float,
    ) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        self.env = ManagerBasedRlEnv(cfg, device, render_mode)
        self.render_mode = render_mode
        self._obs_group = obs_group
        groups: Any = self.env.single_observation_space
        if obs_group is not None and obs_group not in groups.spaces:
            raise ValueError(
                f"Observation group '{obs_group}' does not exist: choose one of {[*groups.spaces]}."
            )
        seen = groups
        if obs_group is not None:
            seen = groups[obs_group]
        width = self.env.action_manager.total_action_dim
        return _bounded(seen), gymnasium.spaces.Box(-action_limit, action_limit, (width,))

    def _metadata(self, mode: AutoresetMode) -> dict[str, Any]:
        fps = round(1.0 / self.env.step_dt)
        return {"render_modes": ["rgb_array"], "render_fps": fps, "autoreset_mode": mode}

    def _arrays(self, obs: Any) -> Any:
        if self._obs_group is not None:
            obs = obs[self._obs_group]
        return _to_numpy(obs)

    def _tensor(self, actions: ArrayLike) -> torch.Tensor:
        return torch.as_tensor(np.asarray(actions), dtype=torch.float32, device=self.env.device)


class GymVectorEnv(_Adapter, gymnasium.vector.VectorEnv):  # type: ignore[type-arg]
    """Vector environment with all worlds of a task, one row per world in each NumPy array.

    Finished worlds are reset within the step (`AutoresetMode.SAME_STEP`): `infos["final_obs"]`
    then holds the final observation of each episode, where `infos["_final_obs"]` is true.
    """

    def __init__(
        self,
        cfg: ManagerBasedRlEnvCfg,
        device: str | torch.device | None = None,
        render_mode: str | None = None,
        obs_group: str | None = None,
        action_limit: float = 1.0,
    ) -> None:
        cfg = copy.deepcopy(cfg)
        cfg.auto_reset = True
        spaces = self._open(cfg, device, render_mode, obs_group, action_limit)
        self.single_observation_space, self.single_action_space = spaces
        self.num_envs = self.env.num_envs
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = self._metadata(AutoresetMode.SAME_STEP)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Arrays, dict[str, object]]:
        """Reset all worlds, or those for which `options["reset_mask"]` is true.

        Args:
            seed: seed of all random numbers. The numbers of a list are combined into one seed,
                because worlds share a generator.
            options: may hold "reset_mask", booleans of shape [num_envs].

        Returns:
            Observations, shape [num_envs, ...], and infos.
        """
        if isinstance(seed, list):
            numbers = [number for number in seed if number is not None]
            seed = None
            if numbers:
                seed = int(np.random.SeedSequence(numbers).generate_state(1)[0])
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask")
        obs, extras = self.env.reset(seed=seed, env_ids=mask)
        return self._arrays(obs), _log(extras)

    def step(
        self, actions: ArrayLike
    ) -> tuple[Arrays, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance every world by one control step.

        Args:
            actions: shape [num_envs, total_action_dim].

        Returns:
            Observations, rewards, terminated, truncated, each of shape [num_envs, ...], and infos.
        """
        obs, rewards, terminated, truncated, extras = self.env.step(self._tensor(actions))
        infos = _log(extras)
        ends = _to_numpy(terminated)
        cuts = _to_numpy(truncated)
        if "final_obs" in extras:
            final = self._arrays(extras["final_obs"])
            infos["_final_obs"] = ends | cuts
            infos["final_obs"] = np.full(self.num_envs, None, dtype=object)
            for world in np.flatnonzero(infos["_final_obs"]):
                infos["final_obs"][world] = _row(final, int(world))
        return self._arrays(obs), _to_numpy(rewards), ends, cuts, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Render the environment's image, shape [height, width, 3], as a tuple of one element."""
        picture = self.env.render()
        if picture is None:
            return None
        return (picture,)

    def close_extras(self, **kwargs: object) -> None:
        """Close the environment."""
        self.env.close()


class GymEnv(_Adapter, gymnasium.Env):  # type: ignore[type-arg]
    """Environment with one world of a task, which the caller resets."""

    def __init__(
        self,
        cfg: ManagerBasedRlEnvCfg,
        device: str | torch.device | None = None,
        render_mode: str | None = None,
        obs_group: str | None = None,
        action_limit: float = 1.0,
    ) -> None:
        cfg = copy.deepcopy(cfg)
        cfg.scene.num_envs = 1
        cfg.auto_reset = False
        spaces = self._open(cfg, device, render_mode, obs_group, action_limit)
        self.observation_space, self.action_space = spaces
        self.metadata = self._metadata(AutoresetMode.DISABLED)

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Arrays, dict[str, object]]:
        """Reset the world; `seed` is for all random numbers, `options` is not used."""
        super().reset(seed=seed)
        obs, extras = self.env.reset(seed=seed)
        return _row(self._arrays(obs), 0), _log(extras)

    def step(self, action: ArrayLike) -> tuple[Arrays, float, bool, bool, dict[str, object]]:
        """Advance the world by one control step; `action` has shape [total_action_dim]."""
        obs, reward, terminated, truncated, extras = self.env.step(self._tensor(action)[None])
        obs = _row(self._arrays(obs), 0)
        return obs, float(reward), bool(terminated), bool(truncated), _log(extras)

    def render(self) -> np.ndarray | None:
        """Render the environment's image, shape [height, width, 3]."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def _bounded(space: Any) -> Any:
    """Return the space with the largest finite bounds."""
    if isinstance(space, gymnasium.spaces.Dict):
        return gymnasium.spaces.Dict({k: _bounded(v) for k, v in space.spaces.items()})
    return unbounded_box(space.shape)


def _to_numpy(value: Any) -> Any:
    """Copy tensors to arrays, because later steps may overwrite the tensors."""
    if isinstance(value, dict):
        return {key: _to_numpy(item) for key, item in value.items()}
    return value.detach().cpu().numpy().copy()


def _row(value: Any, world: int) -> Any:
    if isinstance(value, dict):
        return {key: _row(item, world) for key, item in value.items()}
    return value[world].copy()


def _log(extras: dict[str, Any]) -> dict[str, Any]:
    if not extras["log"]:
        return {}
    return {"log": {key: float(value) for key, value in extras["log"].items()}}
