"""Curricula of terrain levels and of command ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

import torch

from manyworlds.managers import SceneEntityCfg
from manyworlds.tasks.velocity.mdp.velocity_command import UniformVelocityCommand
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_FOLLOWED = 0.8
_LOST = 0.5
"""Shares of the commanded way from which on, and up to which, terrain becomes harder or easier."""
_ROBOT = SceneEntityCfg("robot")
Range = tuple[float, float]


class VelocityStage(TypedDict):
    """Commands from a step on; entries that are left out or None do not change."""

    step: int
    """First control step of the stage (`common_step_counter`)."""
    lin_vel_x: NotRequired[Range | None]
    lin_vel_y: NotRequired[Range | None]
    ang_vel_z: NotRequired[Range | None]
    rel_standing_envs: NotRequired[float | None]
    """Probability of a zero command."""


@takes_worlds
def terrain_levels_vel(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    command_name: str,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> dict[str, torch.Tensor]:
    """Move worlds to harder terrain if the robot followed its commands, or to easier terrain.

    Harder terrain is assigned if the robot left its cell, or if its episode is complete and it made
    80 % of the commanded way: the length of the way that its commands describe, with all changes,
    turns and stops. Easier terrain is assigned if it made less than half of that way. The last
    command counts for the time that is left of an episode that ends early.

    Returns:
        Mean and maximum level, and the mean level of each kind of terrain in a terrain curriculum,
        each of shape [].
    """
    terrain = env.scene.terrain
    if terrain is None or terrain.cfg.terrain_generator is None:
        return {}
    generator = terrain.cfg.terrain_generator
    worlds = Worlds.of(env_ids, env.num_envs, env.device)
    walked = env.scene.entity(asset_cfg.name).data.root_link_pos_w - env.scene.env_origins
    distance = worlds.take(walked)[:, :2].norm(dim=1)
    made, commanded, missing = _ways(env, worlds, command_name)
    followed = (missing <= 0.0) & (commanded > 0.0) & (made >= _FOLLOWED * commanded)
    up = (distance > generator.size[0] / 2.0) | followed
    down = (torch.maximum(made, distance) < _LOST * (commanded + missing)) & ~up
    terrain.update_env_origins(worlds, up, down)
    levels = terrain.terrain_levels.float()
    log = {"mean": levels.mean(), "max": levels.max()}
    if generator.curriculum:
        kinds = len(generator.sub_terrains)
        sums = levels.new_zeros(2, kinds)
        sums[0].index_add_(0, terrain.terrain_types, levels)
        sums[1].index_add_(0, terrain.terrain_types, torch.ones_like(levels))
        means = (sums[0] / sums[1].clamp(min=1.0)).unbind()
        log |= dict(zip(generator.sub_terrains, means, strict=True))
    return log


def _ways(
    env: ManagerBasedRlEnv, worlds: Worlds, command_name: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the way made along the commands, the commanded way, and what its end lacks.

    Ways of commands that do not measure them are zero.

    Args:
        env: the environment.
        worlds: the n worlds.
        command_name: name of the command.

    Returns:
        Three lengths [m], each of shape [n].
    """
    term = env.command_manager.get_term(command_name)
    speed = worlds.take(term.command)[:, :2].norm(dim=1)
    if not isinstance(term, UniformVelocityCommand):
        none = torch.zeros_like(speed)
        return none, none, speed * env.max_episode_length_s
    left = (env.max_episode_length - worlds.take(env.episode_length_buf)).clamp(min=0)
    made = worlds.take(term.progress)
    return made, worlds.take(term.commanded_way), speed * left * env.step_dt


@takes_worlds
def commands_vel(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    command_name: str,
    velocity_stages: list[VelocityStage],
) -> dict[str, torch.Tensor]:
    """Set the ranges of commanded velocities, and how often to stand, to those of the current step.

    Returns:
        Bounds of the ranges, each of shape [].
    """
    cfg = env.command_manager.get_term_cfg(command_name)
    ranges = cfg.ranges
    log = {}
    for stage in velocity_stages:
        share = stage.get("rel_standing_envs")
        if stage["step"] <= env.common_step_counter and share is not None:
            cfg.rel_standing_envs = share
    for name in ("lin_vel_x", "lin_vel_y", "ang_vel_z"):
        for stage in velocity_stages:
            bounds = stage.get(name)
            if stage["step"] <= env.common_step_counter and bounds is not None:
                setattr(ranges, name, bounds)
        low, high = getattr(ranges, name)
        log |= {f"{name}_min": torch.tensor(float(low)), f"{name}_max": torch.tensor(float(high))}
    return log
