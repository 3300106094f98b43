"""A small robot and its environment, written with mjlab's names; import it under the alias."""

from __future__ import annotations

import math

import mujoco
from mjlab.actuator import BuiltinPositionActuatorCfg
from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
from mjlab.envs import ManagerBasedRlEnvCfg, mdp
from mjlab.envs.mdp.actions import JointPositionActionCfg
from mjlab.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from mjlab.scene import SceneCfg
from mjlab.sensor import ContactMatch, ContactSensorCfg
from mjlab.sim import MujocoCfg, SimulationCfg
from mjlab.terrains import TerrainEntityCfg
from mjlab.utils.noise import UniformNoiseCfg as Unoise
from mjlab.viewer import ViewerConfig

XML = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 0.4">
      <freejoint name="floating_base_joint"/>
      <site name="imu"/>
      <geom name="base_collision" type="box" size="0.2 0.1 0.05" mass="4"/>
      <body name="left_leg" pos="0 0.15 0">
        <joint name="left_hip" axis="0 1 0" range="-1.5 1.5"/>
        <geom name="left_foot_collision" type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/>
        <site name="left_foot" pos="0 0 -0.33"/>
      </body>
      <body name="right_leg" pos="0 -0.15 0">
        <joint name="right_hip" axis="0 1 0" range="-1.5 1.5"/>
        <geom name="right_foot_collision" type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/>
        <site name="right_foot" pos="0 0 -0.33"/>
      </body>
    </body>
  </worldbody>
  <sensor>
    <gyro name="imu_ang_vel" site="imu"/>
    <velocimeter name="imu_lin_vel" site="imu"/>
  </sensor>
</mujoco>
"""


def robot_cfg() -> EntityCfg:
    """Configure the robot."""
    legs = BuiltinPositionActuatorCfg(
        target_names_expr=(".*_hip",), stiffness=40.0, damping=1.0, effort_limit=20.0
    )
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(XML),
        init_state=EntityCfg.InitialStateCfg(pos=(0, 0, 0.4), joint_pos={".*": 0.0}),
        articulation=EntityArticulationInfoCfg(actuators=(legs,), soft_joint_pos_limit_factor=0.9),
    )


def _scene() -> SceneCfg:
    feet = ContactSensorCfg(
        name="feet",
        primary=ContactMatch(mode="geom", pattern=r".*_foot_collision", entity="robot"),
        secondary=ContactMatch(mode="body", pattern="terrain"),
        fields=("found", "force"),
        reduce="netforce",
        track_air_time=True,
    )
    return SceneCfg(
        num_envs=3,
        entities={"robot": robot_cfg()},
        sensors=(feet,),
        terrain=TerrainEntityCfg(terrain_type="plane"),
    )


def _observations() -> dict[str, ObservationGroupCfg]:
    terms = {
        "gravity": ObservationTermCfg(func=mdp.projected_gravity, noise=Unoise(-0.05, 0.05)),
        "joint_pos": ObservationTermCfg(mdp.joint_pos_rel, noise=Unoise(n_min=-0.01, n_max=0.01)),
        "gyro": ObservationTermCfg(mdp.builtin_sensor, {"sensor_name": "robot/imu_ang_vel"}),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }
    return {
        "actor": ObservationGroupCfg(terms, concatenate_terms=True, enable_corruption=True),
        "critic": ObservationGroupCfg({**terms}, concatenate_terms=False),
    }


def _events() -> dict[str, EventTermCfg]:
    return {
        "reset_base": EventTermCfg(
            func=mdp.reset_root_state_uniform,
            mode="reset",
            params={"pose_range": {"yaw": (-math.pi, math.pi)}, "velocity_range": {}},
        ),
        "push": EventTermCfg(
            func=mdp.push_by_setting_velocity,
            mode="interval",
            interval_range_s=(0.1, 0.2),
            params={"velocity_range": {"x": (-0.5, 0.5)}},
        ),
    }


def env_cfg() -> ManagerBasedRlEnvCfg:
    """Configure the environment."""
    hips = SceneEntityCfg("robot", (".*_hip",))
    return ManagerBasedRlEnvCfg(
        decimation=2,
        scene=_scene(),
        observations=_observations(),
        actions={"joint_pos": JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))},
        events=_events(),
        rewards={
            "alive": RewardTermCfg(func=mdp.is_alive, weight=1.0),
            "posture": RewardTermCfg(
                func=mdp.posture, weight=0.5, params={"std": {".*": 0.3}, "asset_cfg": hips}
            ),
        },
        terminations={
            "time_out": TerminationTermCfg(mdp.time_out, time_out=True),
            "fell": TerminationTermCfg(mdp.bad_orientation, {"limit_angle": math.radians(70.0)}),
        },
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.01, iterations=10)),
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_ROOT, entity_name="robot", distance=2.0
        ),
        episode_length_s=5.0,
    )
