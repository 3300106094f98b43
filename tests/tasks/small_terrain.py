"""Rough tasks on a terrain of few geoms, which MuJoCo Warp steps quickly on a CPU."""

from manyworlds.envs import ManagerBasedRlEnvCfg


def shrink_terrain(cfg: ManagerBasedRlEnvCfg) -> None:
    """Give the generated terrain of a task, if it has one, two rows and two columns."""
    terrain = cfg.scene.terrain
    if terrain is not None and terrain.terrain_generator is not None:
        terrain.terrain_generator.num_rows = 2
        terrain.terrain_generator.num_cols = 2
