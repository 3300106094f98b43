"""The sorting environment; the config is a class of our own."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass, field, replace

from mjlab.envs import ManagerBasedRlEnvCfg
from mjlab.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RecorderTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from mjlab.scene import SceneCfg
from mjlab.sensor import (
    CameraSensorCfg,
    ContactMatch,
    ContactSensorCfg,
    GridPatternCfg,
    ObjRef,
    RayCastSensorCfg,
)
from mjlab.sim import MujocoCfg, SimulationCfg
from mjlab.terrains import TerrainEntityCfg
from mjlab.utils.noise import ConstantNoiseCfg, NoiseModelWithAdditiveBiasCfg, UniformNoiseCfg
from mjlab.viewer import ViewerConfig

from ..assets import get_entities
from ..sensors import ProximitySensorCfg
from ..terrain import SORTER_TERRAINS_CFG
from . import mdp

SCENE_CFG = SceneCfg(
    terrain=TerrainEntityCfg(
        terrain_type="generator",
        terrain_generator=replace(SORTER_TERRAINS_CFG),
        max_init_terrain_level=1,
    ),
    num_envs=1,
    env_spacing=3.0,
    extent=1.5,
    sensors=(
        ProximitySensorCfg(name="near", objects=("red", "blue"), debug_vis=True),
        RayCastSensorCfg(
            name="scan",
            frame=ObjRef(type="site", name="eye", entity="robot"),
            ray_alignment="yaw",
            pattern=GridPatternCfg(size=(0.2, 0.2), resolution=0.1, direction=(1.0, 0.0, -0.3)),
            max_distance=2.0,
            exclude_parent_body=True,
            debug_vis=False,
        ),
        ContactSensorCfg(
            name="grasp",
            primary=ContactMatch(mode="geom", pattern=r"finger_[LR]_col", entity="robot"),
            secondary=ContactMatch(mode="body", pattern="block", entity="red"),
            fields=("found", "force"),
            reduce="maxforce",
        ),
        CameraSensorCfg(
            name="front",
            camera_name="robot/front",
            width=16,
            height=12,
            data_types=("rgb",),
        ),
    ),
)


def _policy() -> ObservationGroupCfg:
    return ObservationGroupCfg(
        terms={
            "command": ObservationTermCfg(
                func=mdp.envs_mdp.generated_commands, params={"command_name": "sort"}
            ),
            "target": ObservationTermCfg(
                func=mdp.target_in_rover,
                params={"command_name": "sort"},
                noise=NoiseModelWithAdditiveBiasCfg(
                    noise_cfg=UniformNoiseCfg(n_min=-0.01, n_max=0.01),
                    bias_noise_cfg=UniformNoiseCfg(n_min=-0.02, n_max=0.02),
                ),
            ),
            "bin": ObservationTermCfg(func=mdp.bin_in_rover, noise=ConstantNoiseCfg(bias=0.001)),
            "velocity": ObservationTermCfg(func=mdp.envs_mdp.base_lin_vel),
            "joints": ObservationTermCfg(
                func=mdp.envs_mdp.joint_pos_rel,
                params={
                    "asset_cfg": SceneEntityCfg(
                        "robot", joint_names=("finger_R", "finger_L", "lift"), preserve_order=True
                    )
                },
                scale=(10.0, 10.0, 5.0),
            ),
            "scan": ObservationTermCfg(func=mdp.ranges_ahead, params={"sensor_name": "scan"}),
            "touch": ObservationTermCfg(func=mdp.touch, params={"sensor_name": "grasp"}),
            "actions": ObservationTermCfg(func=mdp.envs_mdp.last_action),
        },
        enable_corruption=True,
        concatenate_terms=True,
        nan_policy="sanitize",
    )


def _privileged() -> ObservationGroupCfg:
    return ObservationGroupCfg(
        {
            "near": ObservationTermCfg(func=mdp.proximity, params={"sensor_name": "near"}),
            "image": ObservationTermCfg(func=mdp.image_mean, params={"sensor_name": "front"}),
        }
    )


@dataclass(kw_only=True)
class SortEnvCfg(ManagerBasedRlEnvCfg):
    """The task, with fields of its own."""

    scene: SceneCfg = field(default_factory=lambda: deepcopy(SCENE_CFG))
    decimation: int = 4
    episode_length_s: float = 2.0
    block_names: tuple[str, ...] = ("red", "blue")
    reach_weight: float = 1.0

    def __post_init__(self) -> None:
        self.scene.entities = get_entities()
        self.rewards["reach"].weight = self.reach_weight
        self.commands["sort"].object_names = self.block_names


def sort_env_cfg(rough: bool = False, play: bool = False) -> SortEnvCfg:
    """Create the configuration."""
    red = SceneEntityCfg("red", body_names=("block",))
    cfg = SortEnvCfg(
        observations={"policy": _policy(), "privileged": _privileged()},
        actions={
            "drive": mdp.DriveActionCfg(entity_name="robot", wheel_names=("wheel_L", "wheel_R")),
            "lift": mdp.envs_mdp.JointPositionActionCfg(
                entity_name="robot", actuator_names=("lift",), scale=0.05
            ),
            "fingers": mdp.JointVelocityActionCfg(
                entity_name="robot", actuator_names=("finger_L",), scale=0.1
            ),
            "squeeze": mdp.envs_mdp.JointEffortActionCfg(
                entity_name="robot", actuator_names=("finger_R",), scale=10.0
            ),
        },
        commands={
            "sort": mdp.SortCommandCfg(
                object_names=(), bin_name="bin", resampling_time_range=(1.0, 2.0), debug_vis=True
            )
        },
        rewards={
            "reach": RewardTermCfg(
                func=mdp.reach,
                weight=1.0,
                params={"sensor_name": "near", "command_name": "sort", "std": 0.3},
            ),
            "spin": RewardTermCfg(func=mdp.spin, weight=-0.01),
            "success": RewardTermCfg(
                func=mdp.sorted_success, weight=5.0, params={"command_name": "sort"}
            ),
            "rate": RewardTermCfg(func=mdp.envs_mdp.action_rate_l2, weight=-0.01),
        },
        terminations={
            "time_out": TerminationTermCfg(func=mdp.envs_mdp.time_out, time_out=True),
            "flipped": TerminationTermCfg(
                func=mdp.flipped, params={"asset_cfg": SceneEntityCfg("robot")}
            ),
            "nan": TerminationTermCfg(func=mdp.envs_mdp.nan_detection),
        },
        events={
            "reset": EventTermCfg(func=mdp.envs_mdp.reset_scene_to_default, mode="reset"),
            "place": EventTermCfg(
                func=mdp.envs_mdp.reset_root_state_uniform,
                mode="reset",
                params={
                    "pose_range": {"yaw": (-math.pi, math.pi)},
                    "velocity_range": {},
                    "asset_cfg": SceneEntityCfg("robot"),
                },
            ),
            "joints": EventTermCfg(
                func=mdp.envs_mdp.reset_joints_by_offset,
                mode="reset",
                params={
                    "position_range": (0.01, 0.0),
                    "velocity_range": (0.0, 0.0),
                    "asset_cfg": SceneEntityCfg("robot", joint_names=("lift", "finger_.*")),
                },
            ),
            "scatter": EventTermCfg(
                func=mdp.scatter,
                mode="interval",
                interval_range_s=(0.5, 1.0),
                is_global_time=True,
                params={"names": ("red", "blue"), "speed": 0.2},
            ),
            "mass": EventTermCfg(
                func=mdp.dr.body_mass,
                mode="startup",
                params={"asset_cfg": red, "ranges": (0.5, 2.0), "operation": "scale"},
            ),
            "color": EventTermCfg(
                func=mdp.dr.geom_rgba,
                mode="reset",
                params={
                    "asset_cfg": SceneEntityCfg("blue", geom_names=("block",)),
                    "ranges": (0.2, 1.0),
                    "axes": [0, 1],
                    "operation": "abs",
                },
            ),
        },
        metrics={
            "grip_speed": MetricsTermCfg(func=lambda env: env.scene["near"].speed, reduce="last")
        },
        recorders={"trajectory": RecorderTermCfg(func=mdp.Trajectory)},
        sim=SimulationCfg(
            njmax=400,
            nconmax=100,
            mujoco=MujocoCfg(
                timestep=0.005, integrator="implicitfast", cone="pyramidal", disableflags=()
            ),
        ),
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_ROOT, entity_name="robot", distance=1.5
        ),
    )
    if rough:
        cfg.curriculum["levels"] = CurriculumTermCfg(
            func=mdp.terrain_levels, params={"command_name": "sort"}
        )
        cfg.events["spawn"] = EventTermCfg(
            func=mdp.envs_mdp.reset_root_state_from_flat_patches,
            mode="reset",
            params={
                "patch_name": "spawn",
                "pose_range": {"yaw": (-3.0, 3.0)},
                "velocity_range": {},
                "asset_cfg": SceneEntityCfg("robot"),
            },
        )
    else:
        cfg.scene.terrain = TerrainEntityCfg(terrain_type="plane")
    if play:
        cfg.episode_length_s = 1e9
        cfg.observations["policy"].enable_corruption = False
        cfg.curriculum = {}
    return cfg
