"""Writers of entities: what is written is what is read back after `forward`."""

import numpy as np
import pytest
import torch

from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.math import quat_apply
from tests.entity.test_data import WORLDS, Case


@pytest.fixture(scope="module")
def floating() -> Case:
    """Give a floating entity."""
    return Case("floating")


@pytest.fixture(scope="module")
def fixed() -> Case:
    """Give an entity on a fixed base."""
    return Case("fixed")


def random_pose(count: int, seed: int = 0) -> torch.Tensor:
    """Draw positions and orientations."""
    torch.manual_seed(seed)
    quat = torch.nn.functional.normalize(torch.randn(count, 4), dim=1)
    return torch.cat([torch.randn(count, 3), quat], dim=1)


def near(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Compare at single precision of numbers around one."""
    return torch.allclose(ours, theirs, atol=1e-5)


SELECTIONS = {
    "all": None,
    "ids": torch.tensor([2, 0]),
    "a list": [3, 1],
    "mask": torch.tensor([True, False, True, False]),
    "a slice": slice(1, 3),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_root_states_are_read_back(floating, name):
    """Write pose and world velocity of the worlds named, and leave the others."""
    env_ids = SELECTIONS[name]
    robot, sim = floating.scene["robot"], floating.sim
    rows = slice(None) if env_ids is None else env_ids
    count = robot.data.root_link_pos_w[rows].shape[0]
    state = torch.cat([random_pose(count, len(name)), torch.randn(count, 6)], dim=1)
    before = sim.data.qpos.clone()
    robot.write_root_state_to_sim(state, env_ids)
    changed = (sim.data.qpos != before).any(dim=1)
    expected = torch.zeros(WORLDS, dtype=torch.bool)
    expected[rows] = True
    assert torch.equal(changed, expected)
    sim.forward()
    assert near(robot.data.root_link_pose_w[rows], state[:, :7])
    assert near(robot.data.root_link_vel_w[rows], state[:, 7:])


def test_arrays_are_taken_like_tensors(floating):
    """Write states, velocities and wrenches that NumPy holds in double precision."""
    robot, sim = floating.scene["robot"], floating.sim
    state = torch.cat([random_pose(WORLDS, 7), torch.randn(WORLDS, 6)], dim=1)
    robot.write_root_state_to_sim(state.double().numpy())
    sim.forward()
    assert near(robot.data.root_link_vel_w, state[:, 7:])
    robot.write_root_com_velocity_to_sim(state[:, 7:].double().numpy())
    sim.forward()
    assert near(robot.data.root_com_vel_w, state[:, 7:])
    robot.write_external_wrench_to_sim(np.ones((WORLDS, 1, 3)), np.zeros((WORLDS, 1, 3)), None, [0])
    assert robot.data.body_external_force[:, 0].eq(1.0).all()
    robot.reset()


def test_ids_that_select_nothing_are_refused(floating):
    """Refuse an id out of range, which would write nothing."""
    robot = floating.scene["robot"]
    for ids in ([-1], [99]):
        with pytest.raises(ValueError, match=f"World id {ids[0]} is out of range"):
            robot.write_root_com_velocity_to_sim(torch.ones(1, 6), ids)
        with pytest.raises(ValueError, match=f"Id {ids[0]} is out of range"):
            robot.set_joint_position_target(torch.ones(WORLDS, 1), ids)
        with pytest.raises(ValueError, match=f"Id {ids[0]} is out of range"):
            robot.write_joint_position_to_sim(torch.ones(WORLDS, 1), ids)


def test_velocities_may_be_given_in_three_ways(floating):
    """Set the origin's velocity in its own frame, or the center of mass's in the world."""
    robot, sim = floating.scene["robot"], floating.sim
    robot.write_root_link_pose_to_sim(random_pose(WORLDS, 1))
    velocity = torch.randn(WORLDS, 6)
    robot.write_root_link_velocity_b_to_sim(velocity)
    sim.forward()
    assert near(robot.data.root_link_lin_vel_b, velocity[:, :3])
    assert near(robot.data.root_link_ang_vel_b, velocity[:, 3:])
    robot.write_root_com_velocity_to_sim(velocity[:2], torch.tensor([3, 0]))
    sim.forward()
    assert near(robot.data.root_com_vel_w[[3, 0]], velocity[:2])
    assert (robot.data.root_com_pos_w != robot.data.root_link_pos_w).any()


@pytest.mark.parametrize("name", ["", "_link_velocity", "_link_velocity_b", "_com_velocity"])
def test_one_row_is_for_all_worlds(floating, name):
    """Take a row for all worlds like one for each, and name another number of rows."""
    robot, sim = floating.scene["robot"], floating.sim
    write = getattr(robot, f"write_root{name or '_state'}_to_sim")
    row = torch.randn(6) if name else torch.cat([random_pose(1, 2)[0], torch.randn(6)])
    found = []
    for values in (row.expand(WORLDS, -1), row[None], row):
        sim.reset()
        write(values)
        found.append(torch.cat([sim.data.qpos, sim.data.qvel], dim=1))
    sim.reset()
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    with pytest.raises(ValueError, match=rf"Values of shape \({WORLDS}, \d\) were expected, got"):
        write(row.expand(WORLDS + 1, -1))
    assert not sim.data.qvel.any()


def test_the_angular_part_follows_the_orientation_just_written(floating):
    """Rotate by the orientation in qpos although derived orientations are old."""
    robot, sim = floating.scene["robot"], floating.sim
    sim.forward()
    pose, velocity = random_pose(WORLDS, 5), torch.randn(WORLDS, 6)
    robot.write_root_link_pose_to_sim(pose)
    robot.write_root_link_velocity_to_sim(velocity)
    angular = sim.data.qvel[:, robot.indexing.free_joint_v_adr[3:]]
    assert near(quat_apply(pose[:, 3:], angular), velocity[:, 3:])


def test_fixed_bases_are_placed_by_their_mocap_body(fixed):
    """Move a fixed base per world, and refuse what only floating bases have."""
    robot, sim = fixed.scene["robot"], fixed.sim
    pose = random_pose(2, 2)
    robot.write_mocap_pose_to_sim(pose, torch.tensor([1, 3]))
    sim.forward()
    assert near(robot.data.root_link_pose_w[[1, 3]], pose)
    assert robot.data.root_link_pos_w[0].tolist() == [0.5, -0.25, 2.0]
    for write in (robot.write_root_link_pose_to_sim, robot.write_root_com_velocity_to_sim):
        with pytest.raises(ValueError, match=r"of a fixed base: use write_mocap_pose_to_sim"):
            write(torch.zeros(WORLDS, 7))
    with pytest.raises(ValueError, match="the root is no mocap body"):
        fixed.scene["other"].write_mocap_pose_to_sim(random_pose(WORLDS))


def test_joints_and_ball_joints_are_read_back(floating):
    """Write outer products of worlds and joints."""
    robot, sim = floating.scene["robot"], floating.sim
    worlds, before = torch.tensor([2, 1]), robot.data.joint_pos.clone()
    position, velocity = torch.rand(2, 1), torch.rand(2, 1)
    robot.write_joint_state_to_sim(position, velocity, [1], worlds)
    assert torch.equal(robot.data.joint_pos[worlds, 1:], position)
    assert torch.equal(robot.data.joint_vel[worlds, 1:], velocity)
    assert torch.equal(robot.data.joint_pos[:, 0], before[:, 0])
    assert torch.equal(robot.data.joint_pos[[0, 3], 1], before[[0, 3], 1])
    quat = random_pose(2, 4)[:, None, 3:]
    ang_vel = torch.randn(2, 1, 3)
    robot.write_ball_joint_state_to_sim(quat, ang_vel, env_ids=worlds)
    assert near(robot.data.ball_joint_quat[worlds], quat)
    assert torch.equal(robot.data.ball_joint_ang_vel[worlds], ang_vel)
    sim.forward()
    assert not sim.status.any()


TARGETS = {
    "set_joint_position_target": "joint_pos_target",
    "set_joint_velocity_target": "joint_vel_target",
    "set_joint_effort_target": "joint_effort_target",
}


@pytest.mark.parametrize("setter", TARGETS)
def test_targets_are_set_in_outer_products_and_cleared(fixed, setter):
    """Set targets of some joints in some worlds; forget them at reset."""
    robot = fixed.scene["robot"]
    robot.reset()
    target = getattr(robot.data, TARGETS[setter])
    getattr(robot, setter)(torch.ones(2, 1), [1], [0, 2])
    assert target.tolist() == [[0, 1], [0, 0], [0, 1], [0, 0]]
    getattr(robot, setter)(torch.full((WORLDS, 2), 2.0))
    robot.reset(torch.tensor([1]))
    assert target[1].tolist() == [0, 0] and target[0].tolist() == [2, 2]
    robot.reset()
    assert not target.any()


def test_tendons_and_sites_have_no_targets_without_actuators(fixed):
    """Keep no columns for what nothing drives."""
    data = fixed.scene["robot"].data
    assert data.tendon_len_target.shape == (WORLDS, 0) == data.site_effort_target.shape


def test_wrenches_last_until_reset(fixed):
    """Push a body step after step, in the worlds named."""
    robot, sim = fixed.scene["robot"], fixed.sim
    sim.reset()
    bodies, _ = robot.find_bodies("tip")
    force = torch.tensor([[[0.0, 0.0, 5.0]]]).repeat(2, 1, 1)
    robot.write_external_wrench_to_sim(force, 0.5 * force, torch.tensor([1, 2]), bodies)
    sim.step(3)
    wrench = robot.data.body_external_wrench
    assert wrench[1, bodies[0]].tolist() == [0, 0, 5, 0, 0, 2.5]
    assert wrench.abs().sum().item() == 15.0
    robot.reset(torch.tensor([2]))
    wrench = robot.data.body_external_wrench
    assert wrench[2].abs().sum() == 0 and wrench[1].abs().sum() > 0


def test_shapes_that_fit_by_accident_are_refused(fixed):
    """Name the shape of one value a world, even where there are as many worlds as bodies."""
    robot, before = fixed.scene["robot"], fixed.sim.data.xfrc_applied.clone()
    bodies = list(range(WORLDS))
    for force in (torch.ones(WORLDS, 3), torch.ones(3), torch.ones(WORLDS, WORLDS, 6)):
        message = rf"force must have shape \[.*, 3\], got \({', '.join(map(str, force.shape))}"
        with pytest.raises(ValueError, match=message):
            robot.write_external_wrench_to_sim(force, force, body_ids=bodies)
    with pytest.raises(ValueError, match=rf"shape \(2, 4, 3\) were expected, got \({WORLDS}, 4, 3"):
        force = torch.ones(WORLDS, 4, 3)
        robot.write_external_wrench_to_sim(force, force, [0, 1], bodies)
    assert torch.equal(fixed.sim.data.xfrc_applied, before)
    with pytest.raises(ValueError, match=rf"quat must have shape \[.*, 4\], got \({WORLDS}, 3\)"):
        robot.write_ball_joint_state_to_sim(torch.ones(WORLDS, 3), torch.ones(WORLDS, 1, 3))


@pytest.mark.parametrize("body_ids", [[2], torch.tensor([2]), slice(2, 3), "mask"])
def test_one_element_needs_no_dimension(fixed, body_ids):
    """Take a row for each world where one body or ball joint is named, as with a dimension of 1."""
    robot, sim = fixed.scene["robot"], fixed.sim
    if body_ids == "mask":
        body_ids = torch.arange(robot.num_bodies) == 2
    sim.reset()
    force = torch.rand(WORLDS, 3)
    robot.write_external_wrench_to_sim(force, -force, body_ids=body_ids)
    assert torch.equal(robot.data.body_external_force[:, 2], force)
    assert torch.equal(robot.data.body_external_torque[:, 2], -force)
    robot.write_external_wrench_to_sim(2.0 * force[:2], force[:2].numpy(), [0, 3], body_ids)
    assert torch.equal(robot.data.body_external_force[[0, 3], 2], 2.0 * force[:2])
    assert torch.equal(robot.data.body_external_force[1, 2], force[1])
    assert robot.data.body_external_wrench.count_nonzero() == WORLDS * 6
    with pytest.raises(ValueError, match=r"\(2, 1, 3\) were expected, got \(4, 1, 3\)"):
        robot.write_external_wrench_to_sim(force, force, [0, 3], body_ids)
    robot.reset()
    quat = torch.nn.functional.normalize(torch.rand(WORLDS, 4), dim=-1)
    robot.write_ball_joint_state_to_sim(quat, force)
    assert torch.equal(robot.data.ball_joint_quat[:, 0], quat)
    assert torch.equal(robot.data.ball_joint_ang_vel[:, 0], force)


def test_data_knows_what_it_is_of(floating, fixed):
    """Tell base, joints and actuators; write half a wrench, and clear it."""
    robot = floating.scene["robot"]
    data = robot.data
    assert (data.is_fixed_base, data.is_articulated, data.is_actuated) == (False, True, True)
    assert fixed.scene["robot"].data.is_fixed_base
    assert data.default_root_state.shape == (WORLDS, data.ROOT_STATE_DIM)
    robot.write_external_wrench_to_sim(torch.ones(WORLDS, 1, 3), None, body_ids=[1])
    robot.write_external_wrench_to_sim(None, 2 * torch.ones(2, 1, 3), [0, 3], [1])
    assert data.body_external_wrench[3, 1].tolist() == [1, 1, 1, 2, 2, 2]
    assert data.body_external_wrench[1, 1].tolist() == [1, 1, 1, 0, 0, 0]
    data.clear_state([3])
    assert not data.body_external_wrench[3].any() and data.body_external_wrench[0].any()
    data.clear_state()


def test_controls_may_be_written_past_the_actuators(fixed):
    """Write `ctrl` by local ids of actuators."""
    robot, sim = fixed.scene["robot"], fixed.sim
    ids, _ = robot.find_actuators("pull")
    robot.write_ctrl_to_sim(torch.tensor([[0.25]]), ids, [3])
    column = sim.mj_model.actuator("robot/pull").id
    assert sim.data.ctrl[3, column] == 0.25


def test_targets_of_each_kind_are_those_of_the_named_setters(fixed):
    """Set targets by kind of element and of target; sites have efforts only."""
    robot = fixed.scene["robot"]
    robot.set_target(TransmissionType.JOINT, "velocity", torch.full((2, 1), 3.0), [1], [0, 2])
    assert robot.data.joint_vel_target.tolist() == [[0, 3], [0, 0], [0, 3], [0, 0]]
    assert robot.data.drive_targets(TransmissionType.JOINT).velocity is robot.data.joint_vel_target
    robot.reset()
    with pytest.raises(ValueError, match="A site has no position target: set its effort target"):
        robot.set_target(TransmissionType.SITE, "position", torch.zeros(WORLDS, 0))
