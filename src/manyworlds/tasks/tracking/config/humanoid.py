"""Motion tracking with the built-in humanoid."""

from __future__ import annotations

from manyworlds.asset_zoo.humanoid import HUMANOID_ACTION_SCALE, get_humanoid_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.sim import MujocoCfg
from manyworlds.tasks.tracking.clip import ClipRobot, wave_and_squat
from manyworlds.tasks.tracking.motion import Motion
from manyworlds.tasks.tracking.tracking_cpu import use_cpu_preset
from manyworlds.tasks.tracking.tracking_env_cfg import TrackedRobot, with_robot
from manyworlds.tasks.tracking.tracking_rl_cfg import tracking_ppo_runner_cfg
from manyworlds.utils.viewer_config import ViewerConfig

__all__ = [
    "humanoid_clip",
    "humanoid_flat_tracking_env_cfg",
    "humanoid_flat_tracking_no_state_estimation_env_cfg",
    "humanoid_tracking_ppo_runner_cfg",
    "use_cpu_preset",
]

CLIP = ClipRobot(
    entity=get_humanoid_cfg,
    feet=("left_ankle_roll_link", "right_ankle_roll_link"),
    raised={
        "right_shoulder_pitch_joint": -0.9,
        "right_shoulder_roll_joint": -0.4,
        "right_shoulder_yaw_joint": -0.3,
        "right_elbow_joint": -0.3,
    },
    waving={"right_shoulder_yaw_joint": 0.4},
)


def humanoid_clip() -> Motion:
    """Compute the clip that is tracked if no motion file is given."""
    return wave_and_squat(CLIP)


HUMANOID = TrackedRobot(
    entity=get_humanoid_cfg,
    action_scale=HUMANOID_ACTION_SCALE,
    motion=humanoid_clip,
    root="pelvis",
    anchor="torso_link",
    bodies=(
        "pelvis",
        "left_hip_roll_link",
        "left_knee_link",
        "left_ankle_roll_link",
        "right_hip_roll_link",
        "right_knee_link",
        "right_ankle_roll_link",
        "torso_link",
        "left_shoulder_roll_link",
        "left_elbow_link",
        "left_wrist_yaw_link",
        "right_shoulder_roll_link",
        "right_elbow_link",
        "right_wrist_yaw_link",
    ),
    extremities=(
        "left_ankle_roll_link",
        "right_ankle_roll_link",
        "left_wrist_yaw_link",
        "right_wrist_yaw_link",
    ),
    foot_geoms="(left|right)_foot[0-9]_collision",
    relative_actions=True,
    viewer=ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_BODY,
        entity_name="robot",
        body_name="torso_link",
        distance=2.8,
        elevation=-5.0,
        azimuth=120.0,
        fovy=55.0,
    ),
    mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20),
)


def humanoid_flat_tracking_env_cfg(
    has_state_estimation: bool = True, play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the task; see `with_robot`."""
    return with_robot(HUMANOID, has_state_estimation, play)


def humanoid_flat_tracking_no_state_estimation_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task without observations of the anchor's position and of the linear velocity."""
    return with_robot(HUMANOID, has_state_estimation=False, play=play)


def humanoid_tracking_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return tracking_ppo_runner_cfg("humanoid_tracking", max_iterations=30000)
