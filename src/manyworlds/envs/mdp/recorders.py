"""Recorders of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manyworlds.envs.mdp.actions import BaseAction
from manyworlds.managers import ActionManager, RecorderTerm, RecorderTermCfg
from manyworlds.utils.episode_dataset import EpisodeDatasetWriter

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


class record_dataset(RecorderTerm):  # noqa: N801
    """Write episodes as Parquet files, in the layout of a LeRobot dataset of version 3.

    A frame has the observation before an action (`observation.state`, and images), the unprocessed
    action (`action`), and what followed it: `next.reward`, `next.done` and `next.truncated`. An
    episode is written when its world is reset; `close` of the environment completes the dataset
    and leaves out episodes that still run.

    Params:
        folder: folder of the dataset, which must not exist.
        group: observation group of `observation.state`. Default: "actor".
        images: whether observations that are images with 1 or 3 channels are written, as
            `observation.images.GROUP` or `observation.images.GROUP.TERM`. Default: True.
        task: what the episodes show, in words. Default: "".
        episodes_per_world: episodes to write of each world, so that short ones are not more
            frequent in the dataset than in the task. Default: None, for all.
    """

    def __init__(self, cfg: RecorderTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self._params: dict[str, Any] = {"group": "actor", "task": "", "images": True, **cfg.params}
        self._left = np.full(env.num_envs, np.inf)
        if self._params.get("episodes_per_world") is not None:
            self._left[:] = self._params["episodes_per_world"]
        self._frames: list[list[tuple[np.ndarray, ...]]] = [[] for _ in range(env.num_envs)]
        self._before: dict[str, torch.Tensor] | None = None
        self._taken = np.full(env.num_envs, env.common_step_counter)
        self._writer: EpisodeDatasetWriter | None = None

    @property
    def finished(self) -> bool:
        """True when all worlds have written `episodes_per_world` episodes."""
        return not self._left.any()

    def record_pre_reset(self, env_ids: torch.Tensor) -> None:
        """Write the episodes of worlds, with the frame of the step that ended them."""
        worlds = env_ids.cpu().numpy()
        self._take(worlds)
        for world in worlds:
            if self._frames[world] and self._left[world]:
                columns = [np.stack(column) for column in zip(*self._frames[world], strict=True)]
                names = (*self._observations, *_FEATURES)
                self._dataset.add_episode(dict(zip(names, columns, strict=True)))
                self._left[world] -= 1
            self._frames[world] = []

    def record_post_reset(self, env_ids: torch.Tensor) -> None:
        """Keep the first observation of episodes."""
        obs = self._observations
        if self._before is None:
            self._before = {name: value.clone() for name, value in obs.items()}
        for name, value in obs.items():
            self._before[name][env_ids] = value[env_ids]

    def record_post_step(self) -> None:
        """Take a frame of each world whose episode goes on."""
        self._take(np.arange(self.num_envs))
        self._before = {name: value.clone() for name, value in self._observations.items()}

    def close(self) -> None:
        """Complete the dataset."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @property
    def _observations(self) -> dict[str, torch.Tensor]:
        """The vector and the images of all worlds, as the dataset has them."""
        found = {"observation.state": self._vector.float()}
        if not self._params["images"]:
            return found
        for group, value in self._env.obs_buf.items():
            terms = {group: value}
            if isinstance(value, dict):
                terms = {f"{group}.{term}": image for term, image in value.items()}
            for name, image in terms.items():
                if image.ndim == 4 and image.shape[1] in (1, 3):
                    found[f"observation.images.{name}"] = _bytes(image)
        return found

    @property
    def _vector(self) -> torch.Tensor:
        group = self._params["group"]
        obs = self._env.obs_buf.get(group)
        if not isinstance(obs, torch.Tensor) or obs.ndim != 2:
            vectors = [
                name
                for name, value in self._env.obs_buf.items()
                if isinstance(value, torch.Tensor) and value.ndim == 2
            ]
            raise ValueError(
                f"record_dataset: observation group '{group}' is no vector: set `group` to one of "
                f"{vectors}."
            )
        return obs

    def _take(self, worlds: np.ndarray) -> None:
        """Take the frame of the present step, once, of the worlds that still record."""
        env = self._env
        worlds = worlds[(self._taken[worlds] < env.common_step_counter) & (self._left[worlds] > 0)]
        if not worlds.size or self._before is None:
            return
        self._taken[worlds] = env.common_step_counter
        columns = [
            value[worlds].cpu().numpy()
            for value in (
                *self._before.values(),
                env.action_manager.action.float(),
                env.reward_buf.float(),
                env.reset_buf,
                env.reset_time_outs,
            )
        ]
        for row, world in enumerate(worlds):
            self._frames[world].append(tuple(column[row] for column in columns))

    @property
    def _dataset(self) -> EpisodeDatasetWriter:
        if self._writer is None:
            env = self._env
            params = self._params
            group = params["group"]
            observations = env.observation_manager
            sizes = [shape[0] for shape in observations.group_obs_term_dim[group]]
            self._writer = EpisodeDatasetWriter(
                params["folder"],
                1.0 / env.step_dt,
                params["task"],
                {
                    "observation.state": _element_names(observations.active_terms[group], sizes),
                    "action": _action_names(env.action_manager),
                },
                robot=params.get("robot"),
            )
        return self._writer


_FEATURES = ("action", "next.reward", "next.done", "next.truncated")


def _bytes(images: torch.Tensor) -> torch.Tensor:
    """Return images of shape [worlds, channels, height, width] as uint8, channels last."""
    if images.is_floating_point():
        images = (images.clamp(0.0, 1.0) * 255.0).round()
    return images.to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def _action_names(actions: ActionManager) -> list[str]:
    """Return a name for each action: of its term and of its target, or a number without one."""
    names = []
    for term, size in zip(actions.active_terms, actions.action_term_dim, strict=True):
        action = actions.get_term(term)
        if isinstance(action, BaseAction) and len(action.target_names) == size:
            names += [f"{term}.{target}" for target in action.target_names]
        else:
            names += _element_names([term], [size])
    return names


def _element_names(terms: list[str], sizes: list[int]) -> list[str]:
    pairs = zip(terms, sizes, strict=True)
    return [f"{term}.{i}" for term, size in pairs for i in range(size)]
