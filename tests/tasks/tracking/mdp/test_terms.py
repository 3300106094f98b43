"""Observations, rewards, terminations and metrics of tracking, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manyworlds.managers import SceneEntityCfg
from manyworlds.tasks.tracking import mdp
from manyworlds.tasks.tracking.mdp import rewards
from manyworlds.utils.math import matrix_from_quat


@pytest.fixture
def env(make_env):
    """Three worlds in which the robot has left the motion for ten steps."""
    env = make_env(sampling_mode="uniform")
    generator = torch.Generator().manual_seed(2)
    for _ in range(10):
        env.step(2.0 * torch.randn(3, 29, generator=generator))
    command = env.command_manager.get_term("motion")
    command.update_relative_body_poses()
    return env


@pytest.fixture
def command(env):
    """The command of that environment."""
    return env.command_manager.get_term("motion")


def _matrix(quat):
    return matrix_from_quat(quat).double().numpy()


def _angle(a, b):
    """Angles between rotations, from the trace of matrices."""
    trace = np.trace(np.swapaxes(_matrix(a), -1, -2) @ _matrix(b), axis1=-2, axis2=-1)
    return np.arccos(((trace - 1.0) / 2.0).clip(-1.0, 1.0))


def test_observations_are_seen_from_the_robot_s_anchor(env, command):
    """Compare with rotation matrices."""
    turn = np.swapaxes(_matrix(command.robot_anchor_quat_w), -1, -2)
    offset = (command.anchor_pos_w - command.robot_anchor_pos_w).double().numpy()
    np.testing.assert_allclose(
        mdp.motion_anchor_pos_b(env, "motion"), np.einsum("nij,nj->ni", turn, offset), atol=1e-5
    )
    columns = (turn @ _matrix(command.anchor_quat_w))[..., :2].reshape(3, 6)
    np.testing.assert_allclose(mdp.motion_anchor_ori_b(env, "motion"), columns, atol=1e-5)
    arms = (command.robot_body_pos_w - command.robot_anchor_pos_w[:, None]).double().numpy()
    np.testing.assert_allclose(
        mdp.robot_body_pos_b(env, "motion"),
        np.einsum("nij,nbj->nbi", turn, arms).reshape(3, -1),
        atol=1e-5,
    )
    bodies = turn[:, None] @ _matrix(command.robot_body_quat_w)
    np.testing.assert_allclose(
        mdp.robot_body_ori_b(env, "motion"), bodies[..., :2].reshape(3, -1), atol=1e-5
    )


def _square(a, b):
    return ((a - b).double().numpy() ** 2).sum(-1)


# Reward -> squared error, shape [num_envs] or [num_envs, bodies].
ERRORS = {
    "motion_global_anchor_position_error_exp": lambda c: _square(
        c.anchor_pos_w, c.robot_anchor_pos_w
    ),
    "motion_global_anchor_orientation_error_exp": lambda c: (
        _angle(c.anchor_quat_w, c.robot_anchor_quat_w) ** 2
    ),
    "motion_relative_body_position_error_exp": lambda c: _square(
        c.body_pos_relative_w, c.robot_body_pos_w
    ),
    "motion_relative_body_orientation_error_exp": lambda c: (
        _angle(c.body_quat_relative_w, c.robot_body_quat_w) ** 2
    ),
    "motion_global_body_linear_velocity_error_exp": lambda c: _square(
        c.body_lin_vel_w, c.robot_body_lin_vel_w
    ),
    "motion_global_body_angular_velocity_error_exp": lambda c: _square(
        c.body_ang_vel_w, c.robot_body_ang_vel_w
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_rewards_are_kernels_of_mean_squares(env, command, name):
    """Compare with the formula, for all bodies and for two of them in another order."""
    error = ERRORS[name](command)
    mean = error if error.ndim == 1 else error.mean(axis=1)
    params = {"command_name": "motion", "std": float(np.sqrt(mean.mean()))}
    np.testing.assert_allclose(
        getattr(rewards, name)(env, **params), np.exp(-mean / params["std"] ** 2), rtol=1e-4
    )
    if error.ndim == 2:
        names = ("right_knee_link", "pelvis")
        some = error[:, [5, 0]].mean(axis=1)
        value = getattr(rewards, name)(env, **params, body_names=names)
        np.testing.assert_allclose(value, np.exp(-some / params["std"] ** 2), rtol=1e-4)


def test_terminations_compare_with_thresholds(env, command):
    """Put each threshold just below and just above the error of world 1."""
    asked, actual = command.anchor_pos_w, command.robot_anchor_pos_w
    gravity = (
        _matrix(command.anchor_quat_w)[:, 2, 2] - _matrix(command.robot_anchor_quat_w)[:, 2, 2]
    )
    bodies = (command.body_pos_relative_w - command.robot_body_pos_w).double().numpy()
    asset = {"asset_cfg": SceneEntityCfg("robot")}
    hands = {"body_names": ("left_wrist_yaw_link", "right_wrist_yaw_link")}
    for function, error, params in (
        (mdp.bad_anchor_pos, (asked - actual).norm(dim=1).numpy(), {}),
        (mdp.bad_anchor_pos_z_only, (asked - actual)[:, 2].abs().numpy(), {}),
        (mdp.bad_anchor_ori, np.abs(gravity), asset),
        (mdp.bad_motion_body_pos, np.linalg.norm(bodies, axis=-1).max(axis=1), {}),
        (mdp.bad_motion_body_pos_z_only, np.abs(bodies[..., 2]).max(axis=1), {}),
        (mdp.bad_motion_body_pos_z_only, np.abs(bodies[:, [10, 13], 2]).max(axis=1), hands),
    ):
        for threshold in (error[1] - 1e-4, error[1] + 1e-4):
            value = function(env, command_name="motion", threshold=float(threshold), **params)
            np.testing.assert_array_equal(value, error > threshold)


def test_metrics_are_mean_distances(command):
    """Compare with the formulas; relative ones do not depend on where the anchor is."""
    asked, actual = (v.double().numpy() for v in (command.body_pos_w, command.robot_body_pos_w))
    distance = np.linalg.norm(asked - actual, axis=-1).mean(axis=1)
    np.testing.assert_allclose(mdp.compute_mpkpe(command), distance, rtol=1e-5)
    anchors = [
        v.double().numpy()[:, None] for v in (command.anchor_pos_w, command.robot_anchor_pos_w)
    ]
    relative = np.linalg.norm((asked - anchors[0]) - (actual - anchors[1]), axis=-1).mean(axis=1)
    np.testing.assert_allclose(mdp.compute_root_relative_mpkpe(command), relative, rtol=1e-4)
    velocity = (command.joint_vel - command.robot_joint_vel).norm(dim=1)
    np.testing.assert_allclose(mdp.compute_joint_velocity_error(command), velocity, rtol=1e-6)
    ends = ("left_wrist_yaw_link",)
    position = np.sqrt(_square(command.body_pos_relative_w, command.robot_body_pos_w)[:, 10])
    np.testing.assert_allclose(mdp.compute_ee_position_error(command, ends), position, rtol=1e-4)
    angle = _angle(command.body_quat_relative_w, command.robot_body_quat_w)[:, 10]
    np.testing.assert_allclose(mdp.compute_ee_orientation_error(command, ends), angle, rtol=1e-3)
    for compute in (mdp.compute_ee_position_error, mdp.compute_ee_orientation_error):
        with pytest.raises(ValueError, match=r"\['nose'\] are not tracked"):
            compute(command, ("nose",))


def test_actions_are_added_to_the_motion(env, command):
    """Step with an action: targets are the frame's joint positions plus the scaled action."""
    term = env.action_manager.get_term("joint_pos")
    asked = command.joint_pos.clone()
    action = torch.linspace(-1.0, 1.0, 29).repeat(3, 1)
    env.step(action)
    torch.testing.assert_close(term._processed_actions, asked + action * term.scale)
    data = env.scene["robot"].data
    expected = asked + action * term.scale - data.encoder_bias
    torch.testing.assert_close(data.joint_pos_target, expected)
