"""Fork of a world: an environment of one world that continues from a world of a batch."""

from __future__ import annotations

import copy

from manyworlds.entity.variants import VariantEntityCfg
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.live.edits import edit_log
from manyworlds.live.snapshot import WorldSnapshot, model_hash, take_snapshot
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.seeding import rng_state, set_rng_state


def fork_env(env: ManagerBasedRlEnv, env_id: int) -> ManagerBasedRlEnv:
    """Build an environment of one world that continues from the present state of a world.

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
    return env_from_snapshot(take_snapshot(env, env_id), env.cfg, type(env))


def env_from_snapshot(
    snapshot: WorldSnapshot,
    cfg: ManagerBasedRlEnvCfg,
    env_type: type[ManagerBasedRlEnv] = ManagerBasedRlEnv,
) -> ManagerBasedRlEnv:
    """Build an environment of one world that continues from a snapshot; see `fork_env`.

    Args:
        snapshot: the snapshot.
        cfg: the task; it is copied.
        env_type: class of the environment.

    Raises:
        ValueError: the snapshot is of another model.
    """
    before = rng_state()
    try:
        alone = env_type(cfg_of_snapshot(snapshot, cfg), device="cpu")
    finally:
        set_rng_state(before)
    try:
        restore_snapshot(alone, snapshot)
    except ValueError:
        alone.close()
        raise
    return alone


def restore_snapshot(env: ManagerBasedRlEnv, snapshot: WorldSnapshot) -> None:
    """Continue an environment of one world, built for the same variants, from a snapshot.

    Raises:
        ValueError: the snapshot is of another model.
    """
    if model_hash(env.sim.mj_model) != snapshot.model_hash:
        raise ValueError(
            "The model of this task depends on the number of worlds, or on random numbers without "
            "a seed, or has changed since, so a world of the batch cannot continue alone: build "
            "the same model for any number of worlds."
        )
    edit_log(env)  # so that the state's edits are restored
    env.load_state_dict(snapshot.state)


def cfg_of_snapshot(snapshot: WorldSnapshot, cfg: ManagerBasedRlEnvCfg) -> ManagerBasedRlEnvCfg:
    """Return the task for one world, with the terrain of the batch and the world's variants."""
    cfg = copy.deepcopy(cfg)
    cfg.seed = snapshot.seed
    cfg.recorders = {}
    cfg.scene.num_envs = 1
    cfg.viewer.env_idx = 0
    cfg.sim.engine = "native"
    for name, entity_cfg in cfg.scene.entities.items():
        if isinstance(entity_cfg, VariantEntityCfg):
            entity_cfg.assignment = [snapshot.variants[name]]
    for terrain_cfg in (cfg.scene.terrain, *cfg.scene.entities.values()):
        if isinstance(terrain_cfg, TerrainEntityCfg) and terrain_cfg.terrain_generator is not None:
            # It may have been drawn.
            terrain_cfg.terrain_generator.seed = snapshot.terrain_seed
    return cfg
