"""Terminations of legged locomotion, each booleans of shape [num_envs]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.managers import ManagerTermBase, SceneEntityCfg, TerminationTermCfg
from manyworlds.tasks.velocity.mdp.rewards import command_progress
from manyworlds.validation.worlds import takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.terrains import TerrainGeneratorCfg
    from manyworlds.validation.worlds import EnvIds

_ROBOT = SceneEntityCfg("robot")
_FIRST_PROGRESS = 0.5


class stalled(ManagerTermBase):  # noqa: N801
    """Mask of robots that hardly advanced in the commanded direction in the last second.

    The mean of `command_progress` is exponential, and starts at 0.5; worlds with small commands
    count as if they advanced. For training: where standing still ends an episode like a fall does,
    a policy cannot settle for it.
    """

    selects = frozenset()
    state_attributes = ("_progress",)

    def __init__(self, cfg: TerminationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        with torch.inference_mode(False):
            self._progress = torch.full((self.num_envs,), _FIRST_PROGRESS, device=self.device)

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        limit: float,
        command_name: str,
        command_threshold: float = 0.2,
        period_s: float = 1.0,
        asset_cfg: SceneEntityCfg = _ROBOT,
    ) -> torch.Tensor:
        """Compute the term, shape [num_envs].

        Args:
            env: the environment.
            limit: mean progress below which an episode ends; below -1 for never.
            command_name: name of the velocity command.
            command_threshold: linear speed above which a robot must advance [m/s].
            period_s: time constant of the mean [s].
            asset_cfg: the entity.
        """
        progress = command_progress(env, command_name, command_threshold, asset_cfg)
        command = env.command_manager.get_command(command_name)[:, :2]
        progress.masked_fill_(command.norm(dim=1) <= command_threshold, 1.0)
        self._progress += (progress - self._progress) * (env.step_dt / period_s)
        return self._progress < limit

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Reset the means of the given worlds."""
        self._worlds(env_ids).put(self._progress, _FIRST_PROGRESS)


def out_of_terrain_bounds(
    env: ManagerBasedRlEnv, margin: float = 0.3, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Mask of roots less than `margin` [m] from the terrain's end, border included, [num_envs].

    A plane has no end.
    """
    generator = _generator(env)
    if generator is None:
        return torch.zeros_like(env.reset_buf)
    cells = (generator.num_rows, generator.num_cols)
    limits = [
        count * size / 2.0 + generator.border_width - margin
        for count, size in zip(cells, generator.size, strict=True)
    ]
    return _beyond(env.scene.entity(asset_cfg.name).data.root_link_pos_w, limits)


def terrain_edge_reached(
    env: ManagerBasedRlEnv, threshold_fraction: float = 0.95, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Mask of roots beyond a fraction of the way to the edge of their cell, shape [num_envs].

    False on a plane.
    """
    generator = _generator(env)
    if generator is None:
        return torch.zeros_like(env.reset_buf)
    limits = [threshold_fraction * size / 2.0 for size in generator.size]
    position = env.scene.entity(asset_cfg.name).data.root_link_pos_w
    return _beyond(position - env.scene.env_origins, limits)


def _beyond(position: torch.Tensor, limits: list[float]) -> torch.Tensor:
    distance = position[:, :2].abs()
    return (distance[:, 0] > limits[0]) | (distance[:, 1] > limits[1])


def _generator(env: ManagerBasedRlEnv) -> TerrainGeneratorCfg | None:
    terrain = env.scene.terrain
    if terrain is None:
        return None
    return terrain.cfg.terrain_generator
