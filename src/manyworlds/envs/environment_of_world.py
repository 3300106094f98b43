"""Environment of one world that goes on from a world of a batch."""

from __future__ import annotations

import copy

import mujoco
import numpy as np

from manyworlds.entity.variants import VariantEntityCfg
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.seeding import rng_state, set_rng_state


def environment_of_world(env: ManagerBasedRlEnv, env_id: int) -> ManagerBasedRlEnv:
    """Build an environment of one world that goes on from the present state of a world.

    It has the world's state, variants, randomized model fields, commands, delays, histories and
    episode. With the same actions and random draws, its steps are those of the world in the batch,
    bit for bit. Its own draws are new ones, because those of a batch are for all worlds at once. It
    has no recorders. The batch and the global random generators do not change.

    Args:
        env: the batch.
        env_id: index of the world.

    Raises:
        ValueError: there is no such world; the engine of the batch is not bit-exact; or the task's
            model depends on the number of worlds.
    """
    if not env.sim.is_bit_exact:
        raise ValueError(
            f"An environment of one world runs MuJoCo C, but the engine of these worlds is "
            f"{env.sim.engine}: set cfg.sim.engine = 'native'."
        )
    state = env.world_state(env_id)
    before = rng_state()
    try:
        alone = type(env)(_cfg_of_world(env, env_id), device="cpu")
    finally:
        set_rng_state(before)
    if _binary(alone.sim.mj_model) != _binary(env.sim.mj_model):
        alone.close()
        raise ValueError(
            "The model of this task depends on the number of worlds, or on random numbers without "
            "a seed, so a world of the batch cannot go on alone: build the same model for any "
            "number of worlds."
        )
    alone.load_state_dict(state)
    return alone


def _cfg_of_world(env: ManagerBasedRlEnv, env_id: int) -> ManagerBasedRlEnvCfg:
    """Return the task for one world, with the terrain of the batch and the world's variants."""
    cfg = copy.deepcopy(env.cfg)
    cfg.seed, cfg.recorders = env.seed_used, {}
    cfg.scene.num_envs, cfg.viewer.env_idx = 1, 0
    for name, entity_cfg in cfg.scene.entities.items():
        if isinstance(entity_cfg, VariantEntityCfg):
            entity_cfg.assignment = [int(env.sim.world_to_variant[name][env_id])]
    for terrain_cfg in (cfg.scene.terrain, *cfg.scene.entities.values()):
        if isinstance(terrain_cfg, TerrainEntityCfg) and env.scene.terrain is not None:
            # Its seed may have been drawn.
            generator = env.scene.terrain.cfg.terrain_generator
            terrain_cfg.terrain_generator = copy.deepcopy(generator)
    return cfg


def _binary(model: mujoco.MjModel) -> bytes:
    block = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, block)
    return block.tobytes()
