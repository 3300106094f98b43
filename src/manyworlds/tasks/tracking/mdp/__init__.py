"""Terms of the tracking task, and the general terms."""

from manyworlds.envs.mdp import (
    JointPositionActionCfg,
    action_rate_l2,
    bad_world,
    builtin_sensor,
    generated_commands,
    joint_pos_limits,
    joint_pos_rel,
    joint_vel_rel,
    last_action,
    push_by_setting_velocity,
    time_out,
)
from manyworlds.tasks.tracking.mdp.actions import (
    MotionJointPositionAction,
    MotionJointPositionActionCfg,
)
from manyworlds.tasks.tracking.mdp.commands import MotionCommand, MotionCommandCfg
from manyworlds.tasks.tracking.mdp.curriculums import start_velocities
from manyworlds.tasks.tracking.mdp.metrics import (
    compute_ee_orientation_error,
    compute_ee_position_error,
    compute_joint_velocity_error,
    compute_mpkpe,
    compute_root_relative_mpkpe,
)
from manyworlds.tasks.tracking.mdp.motion_loader import MotionLoader
from manyworlds.tasks.tracking.mdp.observations import (
    motion_anchor_ori_b,
    motion_anchor_pos_b,
    robot_body_ori_b,
    robot_body_pos_b,
)
from manyworlds.tasks.tracking.mdp.rewards import (
    motion_global_anchor_orientation_error_exp,
    motion_global_anchor_position_error_exp,
    motion_global_body_angular_velocity_error_exp,
    motion_global_body_linear_velocity_error_exp,
    motion_relative_body_orientation_error_exp,
    motion_relative_body_position_error_exp,
    self_collision_cost,
)
from manyworlds.tasks.tracking.mdp.terminations import (
    bad_anchor_ori,
    bad_anchor_pos,
    bad_anchor_pos_z_only,
    bad_motion_body_pos,
    bad_motion_body_pos_z_only,
)

__all__ = [
    "JointPositionActionCfg",
    "MotionCommand",
    "MotionCommandCfg",
    "MotionJointPositionAction",
    "MotionJointPositionActionCfg",
    "MotionLoader",
    "action_rate_l2",
    "bad_anchor_ori",
    "bad_anchor_pos",
    "bad_anchor_pos_z_only",
    "bad_motion_body_pos",
    "bad_motion_body_pos_z_only",
    "bad_world",
    "builtin_sensor",
    "compute_ee_orientation_error",
    "compute_ee_position_error",
    "compute_joint_velocity_error",
    "compute_mpkpe",
    "compute_root_relative_mpkpe",
    "generated_commands",
    "joint_pos_limits",
    "joint_pos_rel",
    "joint_vel_rel",
    "last_action",
    "motion_anchor_ori_b",
    "motion_anchor_pos_b",
    "motion_global_anchor_orientation_error_exp",
    "motion_global_anchor_position_error_exp",
    "motion_global_body_angular_velocity_error_exp",
    "motion_global_body_linear_velocity_error_exp",
    "motion_relative_body_orientation_error_exp",
    "motion_relative_body_position_error_exp",
    "push_by_setting_velocity",
    "robot_body_ori_b",
    "robot_body_pos_b",
    "self_collision_cost",
    "start_velocities",
    "time_out",
]
