"""Measure accelerations, contacts, and the ground around a quadruped on stairs.

    python examples/06_sensors_and_rays.py

You learn to declare sensors of MuJoCo, contact sensors with air times, and rays; that their data is
computed when it is read; to give them a rate, a latency and noise; and to cast rays of your own.
"""

from __future__ import annotations

import torch

from manyworlds.asset_zoo.quadruped import get_quadruped_cfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import EventTermCfg
from manyworlds.scene import SceneCfg
from manyworlds.sensor import (
    BuiltinSensor,
    BuiltinSensorCfg,
    ContactMatch,
    ContactSensor,
    ContactSensorCfg,
    GridPatternCfg,
    ObjRef,
    RayCastSensor,
    RayCastSensorCfg,
)
from manyworlds.signals import GaussianNoiseCfg
from manyworlds.terrains import TerrainEntityCfg, TerrainGeneratorCfg
from manyworlds.terrains.config import pyramid_stairs

SENSORS = (
    BuiltinSensorCfg(
        name="gyro",
        sensor_type="gyro",
        obj=ObjRef(type="site", name="imu", entity="robot"),
        update_period=0.01,  # a new sample every 10 ms,
        latency=0.004,  # which arrives 4 ms later,
        noise=GaussianNoiseCfg(std=0.01),  # with noise [rad/s]
    ),
    ContactSensorCfg(
        name="feet",
        primary=ContactMatch(mode="geom", pattern=".*_foot.*", entity="robot"),
        secondary=ContactMatch(mode="body", pattern="terrain"),
        fields=("found", "force"),
        reduce="netforce",
        track_air_time=True,
    ),
    RayCastSensorCfg(
        name="ground",
        frame=ObjRef(type="body", name="trunk", entity="robot"),
        pattern=GridPatternCfg(size=(1.0, 0.6), resolution=0.2),
        ray_alignment="yaw",  # the grid turns with the robot and stays level
        include_geom_groups=(0,),  # the terrain
    ),
)


def task(num_envs: int) -> ManagerBasedRlEnvCfg:
    """Return an environment of quadrupeds that stand on stairs."""
    stairs = TerrainGeneratorCfg(
        size=(6.0, 6.0),
        num_rows=2,
        num_cols=2,
        seed=1,
        sub_terrains={"stairs": pyramid_stairs(step_height_range=(0.05, 0.1), platform_width=0.6)},
    )
    terrain = TerrainEntityCfg(terrain_type="generator", terrain_generator=stairs)
    return ManagerBasedRlEnvCfg(
        decimation=4,
        seed=1,
        scene=SceneCfg(
            num_envs=num_envs,
            entities={"robot": get_quadruped_cfg()},
            sensors=SENSORS,
            terrain=terrain,
        ),
        actions={"legs": mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))},
        events={"home": EventTermCfg(func=mdp.reset_scene_to_default, mode="reset")},
    )


def stand(num_envs: int, seconds: float) -> ManagerBasedRlEnv:
    """Let quadrupeds stand; return their environment."""
    env = ManagerBasedRlEnv(task(num_envs), device="cpu")
    env.reset()
    still = torch.zeros(num_envs, env.action_manager.total_action_dim)
    for _ in range(round(seconds / env.step_dt)):
        env.step(still)
    return env


if __name__ == "__main__":
    env = stand(num_envs=4, seconds=1.0)
    feet = env.scene.sensor("feet", ContactSensor).data
    ground = env.scene.sensor("ground", RayCastSensor).data
    print("gyro of world 0 [rad/s]:", env.scene.sensor("gyro", BuiltinSensor).data[0].tolist())
    print("forces of its feet on the ground [N]:", feet.force[0, :, 2].tolist())
    print("time in contact [s]:", feet.current_contact_time[0].tolist())
    print("heights of the ground at the trunk, above the world's origin [m]; rows from right to")
    print("left, columns from back to front, 0.2 m apart:")
    heights = ground.hit_pos_w[0, :, 2] - env.scene.env_origins[0, 2]
    for row in heights.reshape(4, 6).tolist():
        print("  ".join(f"{height:6.3f}" for height in row))
    # A ray of your own: straight down, 1 m ahead of each origin.
    start = env.scene.env_origins + torch.tensor([1.0, 0.0, 3.0])
    down = torch.tensor([[0.0, 0.0, -1.0]]).expand(4, 1, 3)
    print("distance to the ground [m]:", env.sim.ray(start[:, None], down).dist.flatten().tolist())
