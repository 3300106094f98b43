"""G1 follows velocity commands."""

from __future__ import annotations

from typing import Any

from manyworlds.asset_zoo.third_party import G1_ACTION_SCALE, get_g1_robot_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.sensor import ContactMatch, RingPatternCfg
from manyworlds.sim import MujocoCfg
from manyworlds.tasks.velocity.velocity_env_cfg import LeggedRobot, with_robot
from manyworlds.utils.viewer_config import ViewerConfig

# Deviations of joints from their stance [rad], walking and running: legs swing, ankles and waist
# do less, arms balance.
_POSTURE = {
    ".*_hip_pitch_joint": (0.3, 0.5),
    ".*_hip_(roll|yaw)_joint": (0.15, 0.2),
    ".*_knee_joint": (0.35, 0.6),
    ".*_ankle_pitch_joint": (0.25, 0.35),
    ".*_ankle_roll_joint": (0.1, 0.15),
    "waist_yaw_joint": (0.2, 0.3),
    "waist_(roll|pitch)_joint": (0.1, 0.15),
    ".*_shoulder_pitch_joint": (0.2, 0.5),
    ".*_shoulder_(roll|yaw)_joint": (0.15, 0.2),
    ".*_elbow_joint": (0.2, 0.4),
    ".*_wrist_.*": (0.3, 0.3),
}

G1 = LeggedRobot(
    entity=get_g1_robot_cfg,
    action_scale=G1_ACTION_SCALE,
    root="pelvis",
    trunk="torso_link",
    feet=("left_foot", "right_foot"),
    feet_contact=ContactMatch(
        mode="subtree", pattern="^(left_ankle_roll_link|right_ankle_roll_link)$", entity="robot"
    ),
    foot_ring=RingPatternCfg.Ring(radius=0.03, num_samples=6),
    posture=(
        {".*": 0.05},
        {name: std[0] for name, std in _POSTURE.items()},
        {name: std[1] for name, std in _POSTURE.items()},
    ),
    viewer=ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_BODY,
        entity_name="robot",
        body_name="torso_link",
        distance=3.0,
        elevation=-5.0,
    ),
    mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20, ccd_iterations=500),
)


def unitree_g1_rough_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Make the task on rough ground."""
    return _g1(rough=True, play=play)


def unitree_g1_flat_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Make the task on a plane."""
    return _g1(rough=False, play=play)


def _g1(rough: bool, play: bool) -> ManagerBasedRlEnvCfg:
    cfg = with_robot(G1, rough, play)
    command: Any = cfg.commands["twist"]
    command.viz.z_offset = 1.15
    return cfg
