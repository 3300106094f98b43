"""Rewards of the velocity task against values worked out by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from manyworlds.managers import RewardTermCfg, SceneEntityCfg
from manyworlds.tasks.velocity import mdp
from manyworlds.utils.math import quat_from_euler_xyz
from tests.envs.mdp.robot import make_env, shake
from tests.tasks.velocity.stubs import contacts, entity, stub_env

MOVING, STILL = [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]


def made(term, env, **params):
    """Instantiate a term that is a class."""
    return term(RewardTermCfg(func=term, weight=1.0, params=params), env)


def test_tracking_counts_all_components_of_linear_velocity():
    """Take the kernel of the error in x and y and of all motion along z."""
    robot = entity(root_link_lin_vel_b=[[1.0, 0.5, 0.0], [1.5, -0.5, 0.3]])
    env = stub_env([[1.0, 0.5, 9.0], [1.0, 0.5, 9.0]], robot=robot)
    reward = mdp.track_linear_velocity(env, std=0.5, command_name="twist")
    expected = [1.0, math.exp(-(0.25 + 1.0 + 0.09) / 0.25)]
    torch.testing.assert_close(reward, torch.tensor(expected))


def test_tracking_counts_all_components_of_angular_velocity():
    """Take the kernel of the error in turning and of all rolling and pitching."""
    robot = entity(root_link_ang_vel_b=[[0.1, -0.2, 0.7], [0.0, 0.0, -0.5]])
    env = stub_env([[9.0, 9.0, 0.5], [9.0, 9.0, -0.5]], robot=robot)
    reward = mdp.track_angular_velocity(env, std=math.sqrt(0.5), command_name="twist")
    expected = [math.exp(-(0.04 + 0.01 + 0.04) / 0.5), 1.0]
    torch.testing.assert_close(reward, torch.tensor(expected))


def tilted_env(num_envs: int = 3):
    """Tilt the robot's base by 0, 0.4 and -0.7 rad about y, whatever its heading."""
    env = make_env(num_envs)
    angles = torch.tensor([0.0, 0.4, -0.7])
    quat = quat_from_euler_xyz(torch.zeros(3), angles, torch.tensor([0.0, 1.0, 2.5]))
    pose = torch.cat([torch.zeros(3, 2), torch.ones(3, 1), quat], dim=1)
    env.scene["robot"].write_root_link_pose_to_sim(pose)
    env.sim.forward()
    return env, angles


def test_upright_counts_the_sine_of_the_tilt():
    """Compare a body's z axis with the vertical: the root's, or that of a body named."""
    env, angles = tilted_env()
    term = made(mdp.upright, env, std=0.3)
    expected = torch.exp(-(angles.sin() ** 2) / 0.09)
    torch.testing.assert_close(term(env, std=0.3), expected, rtol=1e-5, atol=1e-6)
    base = SceneEntityCfg("robot", body_names="upper")
    base.resolve(env.scene)
    robot = env.scene["robot"]
    robot.write_joint_position_to_sim(torch.zeros(3, 4))
    env.sim.forward()
    term = made(mdp.upright, env, std=0.3, asset_cfg=base)
    expected = torch.exp(-((angles + math.radians(20.0)).sin() ** 2) / 0.09)
    torch.testing.assert_close(term(env, std=0.3, asset_cfg=base), expected, rtol=1e-4, atol=1e-5)


def test_upright_watches_one_body():
    """Refuse several bodies."""
    env = make_env(1)
    two = SceneEntityCfg("robot", body_names=("upper", "lower"))
    two.resolve(env.scene)
    with pytest.raises(ValueError, match="upright takes one body"):
        made(mdp.upright, env, std=1.0, asset_cfg=two)


def test_upright_watches_the_root_without_a_body():
    """Take an empty list of bodies, as a skeleton leaves it, for the root."""
    env, angles = tilted_env()
    none = SceneEntityCfg("robot", body_names=())
    none.resolve(env.scene)
    reward = made(mdp.upright, env, std=0.3, asset_cfg=none)(env, std=0.3, asset_cfg=none)
    torch.testing.assert_close(reward, torch.exp(-(angles.sin() ** 2) / 0.09), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        (lambda env, cfg: mdp.body_angular_velocity_penalty(env, cfg), "body"),
        (lambda env, cfg: mdp.feet_slip(env, "feet", "twist", 0.05, cfg), "site"),
        (lambda env, cfg: mdp.feet_clearance(env, 0.1, "heights", None, 0.05, cfg), "site"),
    ],
)
def test_names_that_were_not_filled_in_are_reported(term, kind):
    """Refuse an empty list of bodies or feet, whose reward would be zero."""
    env = make_env(2)
    sensors = {
        "feet": contacts(found=[[1], [0]]),
        "heights": SimpleNamespace(data=SimpleNamespace(heights=torch.ones(2, 1))),
    }
    env.scene.sensor = lambda name, kind: sensors[name]
    none = SceneEntityCfg("robot", **{f"{kind}_names": ()})
    none.resolve(env.scene)
    with pytest.raises(ValueError, match=f"selects no {kind} of 'robot': set {kind}_names"):
        term(env, none)


def test_upright_can_follow_the_slope(monkeypatch):
    """Compare with the ground's normal instead: tilted by as much as the ground is no error."""
    env, angles = tilted_env()
    yaw = torch.tensor([0.0, 1.0, 2.5])
    slope = torch.tensor([0.4, 0.4, 0.0])
    normal = torch.stack([slope.sin() * yaw.cos(), slope.sin() * yaw.sin(), slope.cos()], dim=1)
    monkeypatch.setattr(
        "manyworlds.tasks.velocity.mdp.rewards.terrain_normal_from_sensors",
        lambda env, names: {("scan",): normal}[names],
    )
    term = made(mdp.upright, env, std=0.5)
    expected = torch.exp(-((angles - slope).sin() ** 2) / 0.25)
    reward = term(env, std=0.5, terrain_sensor_names=("scan",))
    torch.testing.assert_close(reward, expected, rtol=1e-5, atol=1e-6)
    arrows = []
    drawn = SimpleNamespace(
        get_env_indices=lambda num_envs: [1],
        add_arrow=lambda start, end, color, width: arrows.append((end - start) / 0.4),
    )
    term.debug_vis(drawn)
    assert not arrows
    made(mdp.upright, env, std=0.5, terrain_sensor_names=("scan",)).debug_vis(drawn)
    z_axis = env.sim.data.xmat[1, env.scene["robot"].indexing.root_body_id, :, 2]
    np.testing.assert_allclose(arrows, [normal[1], z_axis], rtol=1e-5, atol=1e-6)


def test_posture_is_looser_the_faster_one_goes():
    """Take deviations for standing, walking and running by speed, bounds included upwards."""
    env = make_env(4, commands=None or {})
    command = torch.tensor([[0.4, 0.0, 0.0], [0.3, 0.0, -0.2], [1.0, 0.0, 0.5], [3.0, 4.0, 0.0]])
    env.command_manager = stub_env(command.tolist()).command_manager
    env.scene["robot"].write_joint_position_to_sim(torch.rand(4, 4))
    joints = SceneEntityCfg("robot", joint_names=("shoulder", "elbow"))
    joints.resolve(env.scene)
    params = {
        "std_standing": {".*": 0.1},
        "std_walking": {"shoulder": 0.2, "elbow": 0.3},
        "std_running": {"(shoulder|elbow)": 0.9},
        "asset_cfg": joints,
        "command_name": "twist",
    }
    term = made(mdp.variable_posture, env, **params)
    error = mdp.joint_pos_rel(env, asset_cfg=joints).double()
    std = torch.tensor([[0.1, 0.1], [0.2, 0.3], [0.9, 0.9], [0.9, 0.9]])
    expected = torch.exp(-(error / std).square().mean(dim=1)).float()
    torch.testing.assert_close(term(env, **params), expected, rtol=1e-4, atol=1e-6)
    params["std_running"] = {"shoulder": 0.9}
    with pytest.raises(ValueError, match="positive std for joint 'elbow'"):
        made(mdp.variable_posture, env, **params)


def test_bodies_are_not_to_roll_or_pitch():
    """Square angular velocities about x and y of the world, of the bodies named."""
    env = make_env(2)
    shake(env)
    cfg = SceneEntityCfg("robot", body_names=("upper", "tail"))
    cfg.resolve(env.scene)
    ids = [env.sim.mj_model.body(f"robot/{name}").id for name in ("upper", "tail")]
    expected = env.sim.data.cvel[:, ids, :2].square().sum(dim=(1, 2))
    torch.testing.assert_close(mdp.body_angular_velocity_penalty(env, cfg), expected)
    assert (expected > 0).all()


def test_angular_momentum_is_squared():
    """Square what the sensor measures."""
    env = stub_env(momentum=SimpleNamespace(data=torch.tensor([[1.0, -2.0, 3.0]])))
    assert mdp.angular_momentum_penalty(env, "momentum").tolist() == [14.0]


def test_air_time_counts_feet_within_both_thresholds():
    """Count feet whose flight is neither too short nor too long, where the robot is to move."""
    time = [[0.0, 0.05, 0.06, 0.49], [0.1, 0.2, 0.5, 0.6], [0.1, 0.1, 0.1, 0.1]]
    env = stub_env([[0.6, 0, 0], [0.0, 0.0, -0.6], [0.5, 0.0, 0.0]], feet=contacts(
        current_air_time=time
    ))  # fmt: skip
    assert mdp.feet_air_time(env, "feet", command_name="twist").tolist() == [2.0, 2.0, 0.0]
    assert mdp.feet_air_time(env, "feet").tolist() == [2.0, 2.0, 4.0]
    assert mdp.feet_air_time(env, "feet", mean=True).tolist() == [0.5, 0.5, 1.0]


def test_single_stance_is_one_foot_on_the_ground():
    """Reward one foot on the ground, and cost none, where the robot is to move."""
    feet = contacts(current_contact_time=[[0.0, 0.1], [0.3, 0.1], [0.0, 0.0], [0.1, 0.0]])
    env = stub_env([[0.3, 0, 0], [0.3, 0, 0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.1]], feet=feet)
    assert mdp.feet_single_stance(env, "feet").tolist() == [1.0, 0.0, -1.0, 1.0]
    assert mdp.feet_single_stance(env, "feet", "twist").tolist() == [1.0, 0.0, -1.0, 0.0]


def feet_env(command, **scene):
    """Two worlds, two feet that move at 5 m/s and 2 m/s horizontally, and one site besides."""
    velocity = torch.zeros(2, 3, 3)
    velocity[:, 0], velocity[:, 2] = torch.tensor([3.0, 4.0, 7.0]), torch.tensor([0.0, -2.0, 7.0])
    return stub_env(command, robot=entity(site_lin_vel_w=velocity), **scene)


FEET = SceneEntityCfg("robot", site_ids=[0, 2])


def test_clearance_weighs_the_error_of_height_by_speed():
    """Add up height errors times horizontal speeds of the sites named."""
    height = SimpleNamespace(data=SimpleNamespace(heights=torch.tensor([[0.3, 0.05], [0.1, 0.2]])))
    env = feet_env([MOVING, STILL], height=height)
    cost = mdp.feet_clearance(env, 0.1, "height", asset_cfg=FEET)
    torch.testing.assert_close(cost, torch.tensor([0.2 * 5 + 0.05 * 2, 0.1 * 2]))
    cost = mdp.feet_clearance(env, 0.1, "height", "twist", 0.05, FEET)
    torch.testing.assert_close(cost, torch.tensor([0.2 * 5 + 0.05 * 2, 0.0]))


def test_slip_counts_feet_in_contact():
    """Add up squared horizontal speeds of touching feet, in worlds that are to move."""
    env = feet_env([MOVING, STILL], feet=contacts(found=[[1.0, 0.0], [2.0, 2.0]]))
    cost = mdp.feet_slip(env, "feet", "twist", 0.05, FEET)
    torch.testing.assert_close(cost, torch.tensor([25.0, 0.0]))
    cost = mdp.feet_slip(env, "feet", "twist", -1.0, FEET)
    torch.testing.assert_close(cost, torch.tensor([25.0, 29.0]))


def test_landing_counts_forces_of_feet_that_just_touched_down():
    """Add up forces of feet that landed, in worlds that are to move."""
    force = [[[3.0, 4.0, 0.0], [9.0, 9.0, 9.0]], [[0.0, 0.0, 7.0], [0.0, 1.0, 0.0]]]
    feet = contacts(landed=[[True, False], [True, True]], force=force)
    env = stub_env([MOVING, STILL], feet=feet)
    assert mdp.soft_landing(env, "feet").tolist() == [5.0, 8.0]
    assert mdp.soft_landing(env, "feet", "twist").tolist() == [5.0, 0.0]


def test_swing_height_is_that_of_the_highest_point_before_landing():
    """Follow a foot up and down: pay once, when it lands, and restart; also after a reset."""
    height = SimpleNamespace(data=SimpleNamespace(heights=torch.zeros(2, 1)))
    env = stub_env([MOVING, MOVING], height=height)
    params = {
        "sensor_name": "feet",
        "height_sensor_name": "height",
        "target_height": 0.1,
        "command_name": "twist",
        "command_threshold": 0.05,
    }
    term = made(mdp.feet_swing_height, env, **params)

    def step(heights, found, landed):
        env.scene["feet"] = contacts([[landed], [landed]], found=[[found], [found]])
        height.data.heights = torch.tensor(heights).unsqueeze(1)
        return term(env, **params)

    assert step([0.05, 0.2], 0.0, False).tolist() == [0.0, 0.0]
    assert step([0.08, 0.1], 0.0, False).tolist() == [0.0, 0.0]
    saved = term.state_dict()
    expected = torch.tensor([0.2**2, 1.0])
    torch.testing.assert_close(step([0.01, 0.01], 1.0, True), expected)
    assert step([0.01, 0.01], 1.0, False).tolist() == [0.0, 0.0]
    assert step([0.0, 0.0], 1.0, True).tolist() == [1.0, 1.0]  # landed without a swing
    term.load_state_dict(saved)
    torch.testing.assert_close(step([0.01, 0.01], 1.0, True), expected)
    term.load_state_dict(saved)
    term.reset(torch.tensor([1]))
    torch.testing.assert_close(step([0.0, 0.0], 1.0, True), expected)  # (0 / 0.1 - 1)^2 again


def test_unwanted_contacts_are_counted_by_physics_steps():
    """Count steps in which a force is above the threshold; without a history, slots."""
    history = torch.zeros(2, 2, 4, 3)
    history[0, 0, 1] = torch.tensor([6.0, 8.0, 0.1])
    history[0, 1, 1] = torch.tensor([0.0, 0.0, 20.0])
    history[0, 1, 3] = torch.tensor([0.0, -11.0, 0.0])
    history[1, 0, 0] = torch.tensor([6.0, 7.9, 0.0])
    env = stub_env(touch=contacts(found=[[1.0, 0.0, 3.0]]))
    assert mdp.self_collision_cost(env, "touch").tolist() == [2.0]
    env.scene["touch"].data.force_history = history
    assert mdp.self_collision_cost(env, "touch").tolist() == [2.0, 0.0]
    assert mdp.self_collision_cost(env, "touch", 10.5).tolist() == [2.0, 0.0]
    assert mdp.self_collision_cost(env, "touch", 9.0).tolist() == [2.0, 1.0]
