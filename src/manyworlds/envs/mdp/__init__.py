"""Terms: observations, rewards, terminations, events, and actions."""

from manyworlds.envs.mdp.actions import JointEffortAction, JointEffortActionCfg
from manyworlds.envs.mdp.events import (
    reset_joints_by_offset,
    reset_scene_to_default,
    resolve_env_ids,
)
from manyworlds.envs.mdp.observations import joint_pos_rel, joint_vel_rel, last_action
from manyworlds.envs.mdp.rewards import action_rate_l2, is_alive, is_terminated, joint_vel_l2
from manyworlds.envs.mdp.terminations import bad_world, nan_detection, time_out

__all__ = [
    "JointEffortAction",
    "JointEffortActionCfg",
    "action_rate_l2",
    "bad_world",
    "is_alive",
    "is_terminated",
    "joint_pos_rel",
    "joint_vel_l2",
    "joint_vel_rel",
    "last_action",
    "nan_detection",
    "reset_joints_by_offset",
    "reset_scene_to_default",
    "resolve_env_ids",
    "time_out",
]
