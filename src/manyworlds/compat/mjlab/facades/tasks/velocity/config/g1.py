"""mjlab's velocity tasks of G1."""

from __future__ import annotations

from dataclasses import replace

from manyworlds.asset_zoo.third_party import G1_ACTION_SCALE
from manyworlds.compat.mjlab.facades.tasks.velocity.config.robot import with_robot
from manyworlds.compat.mjlab.robots import get_g1_robot_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.tasks.velocity.config import g1 as ours
from manyworlds.tasks.velocity.config.g1 import unitree_g1_ppo_runner_cfg, use_cpu_preset
from manyworlds.tasks.velocity.mdp import UniformVelocityCommandCfg

__all__ = [
    "G1_ACTION_SCALE",
    "unitree_g1_flat_env_cfg",
    "unitree_g1_ppo_runner_cfg",
    "unitree_g1_rough_env_cfg",
    "use_cpu_preset",
]

# Standard deviations of joints from their default [rad], walking and running.
_POSTURE = {
    ".*hip_pitch.*": (0.3, 0.5),
    ".*hip_roll.*": (0.15, 0.2),
    ".*hip_yaw.*": (0.15, 0.2),
    ".*knee.*": (0.35, 0.6),
    ".*ankle_pitch.*": (0.25, 0.35),
    ".*ankle_roll.*": (0.1, 0.15),
    ".*waist_yaw.*": (0.2, 0.3),
    ".*waist_roll.*": (0.1, 0.15),
    ".*waist_pitch.*": (0.1, 0.15),
    ".*shoulder_pitch.*": (0.2, 0.5),
    ".*shoulder_roll.*": (0.15, 0.2),
    ".*shoulder_yaw.*": (0.15, 0.2),
    ".*elbow.*": (0.2, 0.4),
    ".*wrist.*": (0.3, 0.3),
}
_G1 = replace(
    ours.G1,
    entity=get_g1_robot_cfg,
    foot_geoms=tuple(
        f"{side}_foot{i}_collision" for side in ("left", "right") for i in range(1, 8)
    ),
    posture=(
        {".*": 0.05},
        {name: std[0] for name, std in _POSTURE.items()},
        {name: std[1] for name, std in _POSTURE.items()},
    ),
    weights={"body_ang_vel": -0.05, "angular_momentum": -0.02},
)


def unitree_g1_rough_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain."""
    return _env_cfg(rough=True, play=play)


def unitree_g1_flat_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on a plane."""
    return _env_cfg(rough=False, play=play)


def _env_cfg(rough: bool, play: bool) -> ManagerBasedRlEnvCfg:
    cfg = with_robot(_G1, self_collisions=-1.0, rough=rough, play=play)
    cfg.sim.nconmax = 70
    cfg.rewards["self_collisions"].params["force_threshold"] = 10.0
    command = cfg.commands["twist"]
    assert isinstance(command, UniformVelocityCommandCfg)
    command.viz.z_offset = 1.15
    return cfg
