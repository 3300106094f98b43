"""mjlab's velocity task with a robot."""

from __future__ import annotations

from manyworlds.compat.mjlab.facades.tasks.velocity.velocity_env_cfg import make_velocity_env_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import RewardTermCfg
from manyworlds.sensor import TerrainHeightSensorCfg
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity.velocity_env_cfg import (
    LeggedRobot,
    add_robot,
    flatten,
    prepare_for_play,
)


def with_robot(
    robot: LeggedRobot, self_collisions: float, rough: bool, play: bool
) -> ManagerBasedRlEnvCfg:
    """Return mjlab's task of a robot.

    Args:
        robot: the robot.
        self_collisions: weight of collisions of the robot with itself.
        rough: use generated terrain with a curriculum; else a plane.
        play: configure for playback.
    """
    cfg = make_velocity_env_cfg()
    assert cfg.scene.terrain is not None and cfg.scene.terrain.terrain_generator is not None
    cfg.scene.terrain.terrain_generator.curriculum = True
    cfg.sim.contact_sensor_maxmatch = 500
    looks = next(s for s in cfg.scene.sensors if isinstance(s, TerrainHeightSensorCfg))
    cfg.rewards["self_collisions"] = RewardTermCfg(
        func=mdp.self_collision_cost,
        weight=self_collisions,
        params={"sensor_name": "self_collision"},
    )
    add_robot(cfg, robot)
    for sensor in cfg.scene.sensors:
        if isinstance(sensor, TerrainHeightSensorCfg):
            sensor.debug_vis, sensor.viz = looks.debug_vis, looks.viz
    if not rough:
        flatten(cfg)
    if play:
        prepare_for_play(cfg)
    return cfg
