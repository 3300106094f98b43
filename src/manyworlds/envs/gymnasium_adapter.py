"""Environments as gymnasium wants them, with NumPy arrays in and out."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg

_FLOAT_MAX = float(np.finfo(np.float32).max)


class _Adapter:
    """What both adapters share: an environment, spaces with bounds, and arrays.

    Args:
        cfg: the task, which is copied.
        device: a torch device; None takes CUDA where there is one, else the CPU.
        render_mode: "rgb_array" or None; see `ManagerBasedRlEnv.render`.
        obs_group: the only group to observe, as a box; None observes all, as a dict of boxes.
        action_limit: bound of the action space. Actions beyond it are taken as they are.
    """

    env: ManagerBasedRlEnv
    """The environment inside."""

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
                f"There is no observation group '{obs_group}': choose one of {[*groups.spaces]}."
            )
        seen = groups if obs_group is None else groups[obs_group]
        width = self.env.action_manager.total_action_dim
        return _bounded(seen), gymnasium.spaces.Box(-action_limit, action_limit, (width,))

    def _metadata(self, mode: AutoresetMode) -> dict[str, Any]:
        fps = round(1.0 / self.env.step_dt)
        return {"render_modes": ["rgb_array"], "render_fps": fps, "autoreset_mode": mode}

    def _arrays(self, obs: Any) -> Any:
        if self._obs_group is not None:
            obs = obs[self._obs_group]
        return _to_numpy(obs)

    def _tensor(self, actions: Any) -> torch.Tensor:
        return torch.as_tensor(np.asarray(actions), dtype=torch.float32, device=self.env.device)


class GymVectorEnv(_Adapter, gymnasium.vector.VectorEnv):  # type: ignore[type-arg]
    """All worlds of a task as one vector environment, each with NumPy rows.

    Finished worlds are reset within the step (`AutoresetMode.SAME_STEP`): `infos["final_obs"]`
    then holds the observation that each ended with, where `infos["_final_obs"]` is true.
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
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes, in all worlds or where `options["reset_mask"]` is true.

        Args:
            seed: for all random draws; the numbers of a list are put together, because worlds
                draw from one generator.
            options: see above.
        """
        if isinstance(seed, list):
            numbers = [number for number in seed if number is not None]
            seed = int(np.random.SeedSequence(numbers).generate_state(1)[0]) if numbers else None
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask")
        obs, extras = self.env.reset(seed=seed, env_ids=mask)
        return self._arrays(obs), _log(extras)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance every world by one control step."""
        obs, rewards, terminated, truncated, extras = self.env.step(self._tensor(actions))
        infos = _log(extras)
        ends, cuts = _to_numpy(terminated), _to_numpy(truncated)
        if "final_obs" in extras:
            final = self._arrays(extras["final_obs"])
            infos["_final_obs"] = ends | cuts
            infos["final_obs"] = np.full(self.num_envs, None, dtype=object)
            for world in np.flatnonzero(infos["_final_obs"]):
                infos["final_obs"][world] = _row(final, world)
        return self._arrays(obs), _to_numpy(rewards), ends, cuts, infos

    def render(self) -> tuple[Any, ...] | None:
        """The picture that the environment draws."""
        picture = self.env.render()
        return None if picture is None else (picture,)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environment."""
        self.env.close()


class GymEnv(_Adapter, gymnasium.Env):  # type: ignore[type-arg]
    """One world of a task as a plain environment, which is reset by its user."""

    def __init__(
        self,
        cfg: ManagerBasedRlEnvCfg,
        device: str | torch.device | None = None,
        render_mode: str | None = None,
        obs_group: str | None = None,
        action_limit: float = 1.0,
    ) -> None:
        cfg = copy.deepcopy(cfg)
        cfg.scene.num_envs, cfg.auto_reset = 1, False
        spaces = self._open(cfg, device, render_mode, obs_group, action_limit)
        self.observation_space, self.action_space = spaces
        self.metadata = self._metadata(AutoresetMode.DISABLED)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new episode; `seed` is for all random draws, `options` is not used."""
        super().reset(seed=seed)
        obs, extras = self.env.reset(seed=seed)
        return _row(self._arrays(obs), 0), _log(extras)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by one control step."""
        obs, reward, terminated, truncated, extras = self.env.step(self._tensor(action)[None])
        obs = _row(self._arrays(obs), 0)
        return obs, float(reward), bool(terminated), bool(truncated), _log(extras)

    def render(self) -> Any:
        """The picture that the environment draws."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def _bounded(space: Any) -> Any:
    """The same space with the largest finite bounds, as gymnasium's checker asks."""
    if isinstance(space, gymnasium.spaces.Dict):
        return gymnasium.spaces.Dict({k: _bounded(v) for k, v in space.spaces.items()})
    return gymnasium.spaces.Box(-_FLOAT_MAX, _FLOAT_MAX, space.shape, np.float32)


def _to_numpy(value: Any) -> Any:
    """Copy tensors, which later steps may write to, into arrays."""
    if isinstance(value, dict):
        return {key: _to_numpy(item) for key, item in value.items()}
    return value.detach().cpu().numpy().copy()


def _row(value: Any, world: int) -> Any:
    if isinstance(value, dict):
        return {key: _row(item, world) for key, item in value.items()}
    return value[world].copy()


def _log(extras: dict[str, Any]) -> dict[str, Any]:
    log = {key: float(value) for key, value in extras["log"].items()}
    return {"log": log} if log else {}
