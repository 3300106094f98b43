"""Velocity tasks of the built-in humanoid, or of another robot with the same names of parts."""

from __future__ import annotations

from manyworlds.asset_zoo.humanoid import FEET, HUMANOID_ACTION_SCALE, get_humanoid_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.sensor import ContactMatch, RingPatternCfg
from manyworlds.sim import MujocoCfg
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity.velocity_cpu import use_biped_cpu_preset as use_cpu_preset
from manyworlds.tasks.velocity.velocity_env_cfg import LeggedRobot, with_robot
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg
from manyworlds.utils.viewer_config import ViewerConfig

__all__ = [
    "humanoid_flat_env_cfg",
    "humanoid_ppo_runner_cfg",
    "humanoid_rough_env_cfg",
    "use_cpu_preset",
]

# Standard deviations of joints from their default [rad]: large for legs, smaller for ankles and
# waist; arms are used for balance.
_WALKING = {
    ".*_hip_pitch_joint": 0.3,
    ".*_hip_(roll|yaw)_joint": 0.15,
    ".*_knee_joint": 0.35,
    ".*_ankle_pitch_joint": 0.25,
    ".*_ankle_roll_joint": 0.1,
    "waist_yaw_joint": 0.2,
    "waist_(roll|pitch)_joint": 0.1,
    ".*_shoulder_pitch_joint": 0.2,
    ".*_shoulder_(roll|yaw)_joint": 0.15,
    ".*_elbow_joint": 0.2,
    ".*_wrist_.*": 0.3,
}
_RUNNING = {
    ".*_hip_pitch_joint": 0.5,
    ".*_hip_(roll|yaw)_joint": 0.2,
    ".*_knee_joint": 0.6,
    ".*_ankle_pitch_joint": 0.35,
    ".*_ankle_roll_joint": 0.15,
    "waist_yaw_joint": 0.3,
    "waist_(roll|pitch)_joint": 0.15,
    ".*_shoulder_pitch_joint": 0.5,
    ".*_shoulder_(roll|yaw)_joint": 0.2,
    ".*_elbow_joint": 0.4,
    ".*_wrist_.*": 0.3,
}

HUMANOID = LeggedRobot(
    entity=get_humanoid_cfg,
    action_scale=HUMANOID_ACTION_SCALE,
    root="pelvis",
    trunk="torso_link",
    feet=FEET,
    feet_contact=ContactMatch(
        mode="subtree", pattern="^(left_ankle_roll_link|right_ankle_roll_link)$", entity="robot"
    ),
    foot_geoms="(left|right)_foot[0-9]_collision",
    foot_friction={"foot_friction": {"ranges": (0.3, 1.2)}},
    foot_ring=RingPatternCfg.Ring(radius=0.03, num_samples=6),
    posture=({".*": 0.05}, _WALKING, _RUNNING),
    viewer=ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_BODY,
        entity_name="robot",
        body_name="torso_link",
        distance=3.0,
        elevation=-5.0,
    ),
    mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20, ccd_iterations=500),
)


def humanoid_rough_env_cfg(
    play: bool = False, robot: LeggedRobot = HUMANOID
) -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain."""
    return _with_high_arrows(robot, rough=True, play=play)


def humanoid_flat_env_cfg(
    play: bool = False, robot: LeggedRobot = HUMANOID
) -> ManagerBasedRlEnvCfg:
    """Return the task on a plane."""
    return _with_high_arrows(robot, rough=False, play=play)


def _with_high_arrows(robot: LeggedRobot, rough: bool, play: bool) -> ManagerBasedRlEnvCfg:
    cfg = with_robot(robot, rough, play)
    command = cfg.commands["twist"]
    assert isinstance(command, mdp.UniformVelocityCommandCfg)
    command.viz.z_offset = 1.15
    return cfg


def humanoid_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return velocity_ppo_runner_cfg("humanoid_velocity", max_iterations=30000)
