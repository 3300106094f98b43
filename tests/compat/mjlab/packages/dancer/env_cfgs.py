"""The task."""

from mjlab.envs import ManagerBasedRlEnvCfg
from mjlab.envs.mdp import dr
from mjlab.envs.mdp.actions import JointPositionActionCfg
from mjlab.managers.action_manager import ActionTermCfg
from mjlab.managers.command_manager import CommandTermCfg
from mjlab.managers.curriculum_manager import CurriculumTermCfg
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.metrics_manager import MetricsTermCfg
from mjlab.managers.observation_manager import ObservationGroupCfg, ObservationTermCfg
from mjlab.managers.reward_manager import RewardTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.managers.termination_manager import TerminationTermCfg
from mjlab.scene import SceneCfg
from mjlab.sensor import BuiltinSensorCfg, ContactMatch, ContactSensorCfg, ObjRef
from mjlab.sim import MujocoCfg, SimulationCfg
from mjlab.terrains import TerrainEntityCfg
from mjlab.utils.noise import UniformNoiseCfg as Unoise
from mjlab.viewer import ViewerConfig

from . import mdp
from .commands import DanceCommandCfg
from .robot import DANCER_ACTION_SCALE, get_dancer_cfg

JOINTS = ("L_hip_pitch", "R_hip_pitch")


def _observations() -> dict[str, ObservationGroupCfg]:
    actor_terms = {
        "command": ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "dance"}
        ),
        "imu": ObservationTermCfg(
            func=mdp.imu,
            params={"sensor_names": ["robot/imu_ang_vel", "robot/up"]},
            noise=Unoise(n_min=-0.1, n_max=0.1),
        ),
        "joint_pos": ObservationTermCfg(
            func=mdp.joint_pos_rel,
            params={"biased": True},
            noise=Unoise(n_min=-0.01, n_max=0.01),
            history_length=3,
            flatten_history_dim=True,
        ),
        "joint_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel, scale=0.05, delay_min_lag=0, delay_max_lag=2, clip=(-100, 100)
        ),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }
    critic_terms = {
        **actor_terms,
        "anchor": ObservationTermCfg(func=mdp.dance_anchor_pos_b, params={"command_name": "dance"}),
        "contact": ObservationTermCfg(func=mdp.feet_contact, params={"sensor_name": "feet"}),
        "acceleration": ObservationTermCfg(
            func=mdp.builtin_sensor, params={"sensor_name": "imu_acc"}, scale=0.1
        ),
        "friction": ObservationTermCfg(
            func=mdp.friction_of_feet,
            params={"asset_cfg": SceneEntityCfg("robot", geom_names=(".*_foot1_collision",))},
        ),
    }
    return {
        "actor": ObservationGroupCfg(
            terms=actor_terms, concatenate_terms=True, enable_corruption=True, history_length=1
        ),
        "critic": ObservationGroupCfg(
            terms=critic_terms, concatenate_terms=True, enable_corruption=False
        ),
    }


def _events() -> dict[str, EventTermCfg]:
    feet = SceneEntityCfg("robot", geom_names=(r".*_foot[12]_collision",))
    return {
        "friction": EventTermCfg(
            mode="startup",
            func=dr.geom_friction,
            params={"asset_cfg": feet, "operation": "abs", "ranges": (1.2, 0.3)},
        ),
        "bias": EventTermCfg(
            mode="startup",
            func=dr.encoder_bias,
            params={"asset_cfg": SceneEntityCfg("robot"), "bias_range": (-0.01, 0.01)},
        ),
        "load": EventTermCfg(
            mode="startup",
            func=mdp.carry_load,
            params={
                "mass_range": (0.0, 1.0),
                "asset_cfg": SceneEntityCfg("robot", body_names=("base_link",)),
            },
        ),
        "damping": EventTermCfg(
            mode="startup",
            func=dr.joint_friction,
            params={"asset_cfg": SceneEntityCfg("robot"), "ranges": (-0.1, 0.1)},
        ),
        "push": EventTermCfg(
            mode="interval",
            interval_range_s=(2.0, 1.0),
            func=mdp.push_by_setting_velocity,
            params={"velocity_range": {"x": (-0.3, 0.3), "y": (-0.3, 0.3), "sideways": (0, 1)}},
        ),
        "gusts": EventTermCfg(
            mode="interval",
            interval_range_s=(0.1, 0.2),
            is_global_time=False,
            func=mdp.gusts,
            params={
                "strength": 2.0,
                "asset_cfg": SceneEntityCfg("robot", body_names=("base_link",)),
            },
        ),
    }


def dancer_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Create the configuration."""
    actions: dict[str, ActionTermCfg] = {
        "joint_pos": JointPositionActionCfg(
            entity_name="robot",
            actuator_names=(".*",),
            scale=DANCER_ACTION_SCALE,
            offset=0.1,
            use_default_offset=True,
        )
    }
    commands: dict[str, CommandTermCfg] = {
        "dance": DanceCommandCfg(
            entity_name="robot",
            motion_file="",
            anchor_body_name="base_link",
            joint_names=JOINTS,
            resampling_time_range=(1.0e9, 1.0e9),
            debug_vis=True,
            pose_range={"x": (-0.05, 0.05), "y": (-0.05, 0.05), "yaw": (-0.2, 0.2)},
        )
    }
    every = SceneEntityCfg("robot", joint_names=(".*",))
    rewards = {
        "dance": RewardTermCfg(
            func=mdp.joint_pos_tracking,
            weight=2.0,
            params={
                "command_name": "dance",
                "std": {".*_hip_.*": 0.3, ".*_(knee|ankle)": 0.5},
                "asset_cfg": every,
            },
        ),
        "bonus": RewardTermCfg(func=mdp.is_alive, weight=0.1),
        "landing": RewardTermCfg(
            func=mdp.soft_landing, weight=-1e-4, params={"sensor_name": "feet"}
        ),
        "smooth": RewardTermCfg(func=mdp.action_smoothness, weight=-0.01),
        "limits": RewardTermCfg(
            func=mdp.joint_pos_limits, weight=-1.0, params={"asset_cfg": SceneEntityCfg("robot")}
        ),
        "unused": RewardTermCfg(func=mdp.flat_orientation_l2, weight=0.0, params={"typo": 1}),
    }
    cfg = ManagerBasedRlEnvCfg(
        scene=SceneCfg(
            terrain=TerrainEntityCfg(terrain_type="plane"),
            entities={"robot": get_dancer_cfg()},
            sensors=(
                BuiltinSensorCfg(
                    name="imu_acc",
                    sensor_type="accelerometer",
                    obj=ObjRef(type="site", name="imu", entity="robot"),
                ),
                ContactSensorCfg(
                    name="feet",
                    primary=ContactMatch(mode="subtree", pattern=r"^(L|R)_foot$", entity="robot"),
                    secondary=ContactMatch(mode="body", pattern="terrain"),
                    fields=("found", "force"),
                    reduce="netforce",
                    num_slots=1,
                    track_air_time=True,
                ),
            ),
            num_envs=1,
            extent=2.0,
        ),
        observations=_observations(),
        actions=actions,
        commands=commands,
        events=_events(),
        rewards=rewards,
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "lost": TerminationTermCfg(
                func=mdp.lost_the_dance, params={"command_name": "dance", "threshold": 0.25}
            ),
        },
        curriculum={
            "dance": CurriculumTermCfg(
                func=mdp.dance_curriculum,
                params={
                    "command_name": "dance",
                    "stages": [
                        {"step": 0, "threshold": 0.25, "weight": -0.01},
                        {"step": 24, "threshold": 0.2, "joint_position_range": (-0.1, 0.1)},
                    ],
                },
            )
        },
        metrics={
            "mean_action_acc": MetricsTermCfg(func=mdp.mean_action_acc),
            "speed": MetricsTermCfg(
                func=lambda env: env.scene["robot"].data.root_link_lin_vel_b.norm(dim=-1)
            ),
        },
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_BODY,
            entity_name="robot",
            body_name="base_link",
            distance=2.0,
            elevation=-5.0,
            azimuth=90.0,
        ),
        sim=SimulationCfg(
            nconmax=35,
            njmax=250,
            mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20),
        ),
        decimation=4,
        episode_length_s=1.0,
    )
    if play:
        cfg.episode_length_s = int(1e9)
        cfg.observations["actor"].enable_corruption = False
        cfg.commands["dance"].sampling_mode = "start"
        cfg.events.pop("push")
    return cfg
