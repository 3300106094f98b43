"""Events of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from mjlab.envs.mdp.events import resolve_env_ids
from mjlab.managers.event_manager import requires_model_fields
from mjlab.utils.lab_api.math import sample_uniform

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.managers.scene_entity_config import SceneEntityCfg


@requires_model_fields("geom_friction")
def randomize_sliding(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    friction_range: tuple[float, float],
    asset_cfg: SceneEntityCfg,
) -> None:
    """Draw the sliding friction of geoms."""
    env_ids = resolve_env_ids(env, env_ids)
    geom_ids = env.scene[asset_cfg.name].indexing.geom_ids[asset_cfg.geom_ids]
    drawn = sample_uniform(*friction_range, (len(env_ids), len(geom_ids)), device=env.device)
    env.sim.model.geom_friction[env_ids[:, None], geom_ids, 0] = drawn
