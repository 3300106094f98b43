"""Settings of the lifting task that learn on a few CPU cores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import CurriculumTermCfg, EventTermCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.cpu_physics import halve_physics_steps
from manyworlds.tasks.manipulation import mdp
from manyworlds.tasks.manipulation.hand_poses import HandPoses, hand_poses
from manyworlds.tasks.manipulation.lift_cube_env_cfg import CUBE_SIZE, Arm
from manyworlds.utils.devices import constants
from manyworlds.utils.math import quat_from_euler_xyz
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

Point = tuple[float, float, float]

_POSES = 256
"""Number of poses of the hand of one kind, from which episodes draw."""
_EPISODE_S = 5.0
_TARGET_S = (2.5, 5.0)  # time until the target changes [s]

# Bounds of the hand's positions relative to the root, which is at the world's origin [m]. Around
# the cube, the hand is as low as the fingers can be without touching the ground.
_HELD: tuple[Point, Point] = (0.25, -0.2, 0.05), (0.45, 0.2, 0.35)
_AROUND: tuple[Point, Point] = (0.2, -0.2, 0.028), (0.4, 0.2, 0.035)
_ABOVE: tuple[Point, Point] = (0.2, -0.2, 0.035), (0.4, 0.2, 0.12)


def use_cpu_preset(arm: Arm, env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Simplify physics, learn from few samples, and start episodes with the cube in the hand.

    Later episodes start with the hand around the cube, above it, and at last as in the task.
    Episodes are shorter, and a new target does not move the cube. Observations, actions and rewards
    do not change.

    Args:
        arm: the robot.
        env_cfg: the environment; it is modified.
        rl_cfg: the learner; it is modified.
    """
    # A grasp needs an accurate solver: with half as many iterations, one in twelve cubes slips.
    halve_physics_steps(env_cfg)
    for collision in env_cfg.scene.entities["robot"].collisions:
        collision.condim = 3
    _start_easily(arm, env_cfg)
    env_cfg.scene.num_envs = 512
    rl_cfg.num_steps_per_env = 12
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (128, 128, 128)
    assert rl_cfg.actor.distribution_cfg is not None
    rl_cfg.actor.distribution_cfg["init_std"] = 0.5
    rl_cfg.max_iterations = 2400
    rl_cfg.algorithm.gamma = 0.98
    rl_cfg.algorithm.use_clipped_value_loss = False
    rl_cfg.algorithm.desired_kl = 0.015
    rl_cfg.algorithm.entropy_coef = 0.002
    # The last parameters of a noisy policy push the hand into the ground more often.
    rl_cfg.algorithm.averaged_iterations = 100


def _start_easily(arm: Arm, cfg: ManagerBasedRlEnvCfg) -> None:
    """Start episodes with the cube in the hand, around it, below it, and as in the task."""
    command = cfg.commands["lift_height"]
    assert isinstance(command, mdp.LiftingCommandCfg) and command.object_pose_range is not None
    task = _AsInTask(command.object_pose_range)
    # The starts place the cube, and a new target leaves it in the hand.
    command.object_pose_range = None
    command.resampling_time_range = _TARGET_S
    cfg.episode_length_s = _EPISODE_S
    kinds = {
        "held": _AtHand(arm, _HELD, held=True),
        "around": _AtHand(arm, _AROUND),
        "above": _AtHand(arm, _ABOVE),
        "task": task,
    }
    cfg.events["start"] = EventTermCfg(
        func=mdp.reset_to_start_states,
        mode="reset",
        params={"kinds": kinds, "success": _has_succeeded},
    )
    cfg.curriculum["start"] = CurriculumTermCfg(
        func=mdp.start_state_rates, params={"event_name": "start"}
    )


def _has_succeeded(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Mask of worlds whose cube has been at its target in this episode, shape [num_envs]."""
    return env.command_manager.get_term("lift_height").metrics["episode_success"] > 0.0


@dataclass(frozen=True)
class _AtHand:
    """Start with the hand at a random position, and the cube between its fingers or below it."""

    arm: Arm
    bounds: tuple[Point, Point]
    """Bounds of the hand's positions relative to the arm's root [m]."""
    held: bool = False
    """Hold the cube, instead of having it on the ground below the hand."""

    @cached_property
    def _by_device(self) -> dict[torch.device, HandPoses]:
        arm = self.arm
        positions = np.random.default_rng(0).uniform(*self.bounds, (_POSES, 3))
        solved = hand_poses(arm.entity(), arm.grasp_site, arm.grasp, positions)
        return {solved.joint_pos.device: solved}

    def _poses(self, device: torch.device) -> HandPoses:
        if device not in self._by_device:
            solved = next(iter(self._by_device.values()))
            self._by_device[device] = HandPoses(
                joint_pos=solved.joint_pos.to(device),
                hand_pos=solved.hand_pos.to(device),
                hand_quat=solved.hand_quat.to(device),
            )
        return self._by_device[device]

    @takes_worlds
    def __call__(self, env: ManagerBasedRlEnv, env_ids: EnvIds) -> None:
        worlds = Worlds.of(env_ids, env.num_envs, env.device)
        robot = env.scene.entity("robot")
        poses = self._poses(env.device)
        drawn = env.random.integers(0, len(poses.joint_pos), env_ids=worlds)
        joints = poses.joint_pos[drawn]
        position = poses.hand_pos[drawn]
        quat = poses.hand_quat[drawn]
        if self.held:
            for name, value in self.arm.closed.items():
                joints[:, robot.joint_names.index(name)] = value
        else:
            position[:, 2] = CUBE_SIZE
            quat = _turned(env.random.uniform(-math.pi, math.pi, env_ids=worlds))
        robot.write_joint_state_to_sim(joints, torch.zeros_like(joints), env_ids=worlds)
        _place_cube(env, worlds, position, quat)


@dataclass(frozen=True)
class _AsInTask:
    """Start with the cube where the task puts it."""

    ranges: mdp.LiftingCommandCfg.ObjectPoseRangeCfg

    @takes_worlds
    def __call__(self, env: ManagerBasedRlEnv, env_ids: EnvIds) -> None:
        worlds = Worlds.of(env_ids, env.num_envs, env.device)
        bounds = (self.ranges.x, self.ranges.y, self.ranges.z, self.ranges.yaw)
        low, high = constants(bounds, env.device).T
        drawn = env.random.uniform(low, high, (4,), worlds)
        _place_cube(env, worlds, drawn[:, :3], _turned(drawn[:, 3]))


def _turned(yaw: torch.Tensor) -> torch.Tensor:
    zero = torch.zeros_like(yaw)
    return quat_from_euler_xyz(zero, zero, yaw)


def _place_cube(
    env: ManagerBasedRlEnv, worlds: Worlds, position: torch.Tensor, quat: torch.Tensor
) -> None:
    """Set the cube's pose relative to its world's origin, at rest."""
    pose = torch.cat([position + worlds.take(env.scene.env_origins), quat], dim=1)
    cube = env.scene.entity("cube")
    cube.write_root_link_pose_to_sim(pose, worlds)
    cube.write_root_link_velocity_to_sim(torch.zeros_like(pose[:, :6]), worlds)
