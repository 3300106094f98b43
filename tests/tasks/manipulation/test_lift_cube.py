"""The lifting tasks: commands, terms, pictures, and that they run."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.asset_zoo.arm import get_arm_cfg
from manyworlds.envs import ManagerBasedRlEnv, check_env
from manyworlds.lab import PRESETS, Pose, world_from_scene
from manyworlds.managers import SceneEntityCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.tasks.manipulation import mdp
from manyworlds.tasks.manipulation.config.arm import ARM
from manyworlds.tasks.manipulation.lift_cube_env_cfg import get_cube_spec, multi_cube_seg_env_cfg
from tests.rl.test_onnx_policy import exported, largest_difference
from tests.robots import robot_file

draws = pytest.mark.usefixtures("gl")


def make(task: str = "Lift-Cube-Arm", num_envs: int = 6, **command) -> ManagerBasedRlEnv:
    """Build a task's environment, small, with changes of its command."""
    if task.endswith("Yam"):
        robot_file("i2rt_yam/yam.xml")
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = num_envs, 3
    for name, value in command.items():
        setattr(cfg.commands["lift_height"], name, value)
    env = ManagerBasedRlEnv(cfg)
    env.reset()
    return env


def put_cube(env: ManagerBasedRlEnv, position: torch.Tensor, name: str = "cube") -> None:
    """Put a cube somewhere, at rest."""
    pose = torch.zeros(env.num_envs, 7)
    pose[:, :3], pose[:, 3] = position, 1.0
    env.scene[name].write_root_link_pose_to_sim(pose)
    env.sim.forward()
    env.scene.invalidate_sensors()


@pytest.mark.parametrize("task", ["Lift-Cube-Arm", "Lift-Cube-Yam", "Multi-Cube-Seg-Arm"])
def test_tasks_run(task, request):
    """Take thirty steps with random actions; all that comes back is finite."""
    if task.startswith("Multi"):
        request.getfixturevalue("gl")
    env = make(task, num_envs=3)
    for _ in range(30 if task.startswith("Lift") else 3):
        obs, reward, *_ = env.step(2.0 * torch.rand(3, 7) - 1.0)
        assert all(torch.isfinite(value).all() for value in obs.values())
        assert torch.isfinite(reward).all()
    assert not env.sim.status.any() and obs["actor"].shape[1] == (29 if task[0] == "L" else 26)


def test_the_task_has_nothing_that_users_should_mend():
    """Check the task as users check theirs."""
    assert not check_env(load_env_cfg("Lift-Cube-Arm")).findings


def test_targets_are_drawn_or_fixed():
    """Draw targets within their ranges, for each world; fixed ones are in the middle."""
    env = make(num_envs=40)
    target = env.command_manager.get_command("lift_height") - env.scene.env_origins
    low, high = torch.tensor([0.3, -0.2, 0.2]), torch.tensor([0.5, 0.2, 0.4])
    assert ((low <= target) & (target <= high)).all()
    assert (target.std(dim=0) > 0.03).all()
    fixed = make(num_envs=4, difficulty="fixed")
    target = fixed.command_manager.get_command("lift_height") - fixed.scene.env_origins
    assert torch.allclose(target, torch.tensor([0.4, 0.0, 0.3]).expand(4, 3))


def test_cubes_are_put_down_with_each_target():
    """Carry the cubes away; new targets bring them back, at rest, and observations know at once."""
    env = make(num_envs=4)
    cube, origins = env.scene["cube"], env.scene.env_origins
    put_cube(env, origins + torch.tensor([0.0, 0.0, 3.0]))
    term = env.command_manager.get_term("lift_height")
    term.time_left[1:3] = 0.001
    env.command_manager.compute(0.02)
    position = cube.data.root_link_pos_w - origins
    assert position[[0, 3], 2].tolist() == [3.0, 3.0]
    assert (position[1:3, 0] >= 0.2).all() and (position[1:3, 0] <= 0.4).all()
    assert (position[1:3, 2] <= 0.05).all()
    assert not cube.data.root_link_lin_vel_w[1:3].any()
    for _ in range(40):
        env.step(torch.zeros(4, 7))
    height = (cube.data.root_link_pos_w - origins)[1:3, 2]
    assert height == pytest.approx([0.02, 0.02], abs=2e-3)


def test_success_is_being_near_and_is_remembered():
    """Bring the cube to its target and take it away: the episode counts as one that succeeded."""
    env = make(num_envs=2)
    term = env.command_manager.get_term("lift_height")
    put_cube(env, term.command + torch.tensor([0.0, 0.03, 0.0]))
    assert term.compute_success().all()
    term._update_metrics()
    put_cube(env, term.command + torch.tensor([0.0, 0.06, 0.0]))
    assert not term.compute_success().any()
    term._update_metrics()
    assert term.metrics["episode_success"].tolist() == [1.0, 1.0]
    assert term.metrics["at_goal"].tolist() == [0.0, 0.0]
    assert term.metrics["position_error"] == pytest.approx([0.06, 0.06], abs=1e-5)
    log = env.command_manager.reset(torch.arange(2))
    assert log["Metrics/lift_height/episode_success"] == 1.0
    assert not term.metrics["episode_success"].any()


def test_rewards_and_observations_are_what_they_say():
    """Compare terms with their formulas where hand, cube and goal are known."""
    env = make(num_envs=2)
    robot, goal = env.scene["robot"].data, env.command_manager.get_command("lift_height")
    hand = robot.site_pos_w[:, env.scene["robot"].site_names.index("grasp_site")]
    put_cube(env, hand + torch.tensor([0.1, 0.0, 0.0]))
    manager = env.reward_manager
    terms = {name: manager.get_term_cfg(name) for name in manager.active_terms}
    values = {name: cfg.func(env, **cfg.params) for name, cfg in terms.items()}
    bring = (hand + torch.tensor([0.1, 0.0, 0.0]) - goal).norm(dim=1)
    staged = math.exp(-0.25) * (1.0 + torch.exp(-((bring / 0.3) ** 2)))
    assert torch.allclose(values["lift"], staged, atol=1e-5)
    assert torch.allclose(values["lift_precise"], torch.exp(-((bring / 0.05) ** 2)), atol=1e-5)
    site = terms["lift"].params["asset_cfg"]
    reach = mdp.ee_to_object_distance(env, "cube", site)
    assert torch.allclose(reach, torch.tensor([0.1, 0.0, 0.0]).expand(2, 3), atol=1e-5)
    way = mdp.object_to_goal_distance(env, "cube", "lift_height")
    assert torch.allclose(way.norm(dim=1), bring, atol=1e-5)
    assert not mdp.ee_velocity(env, site).any()
    for names, count in (((), 0), ((".*_site",), 2)):
        wrong = SceneEntityCfg("robot", site_names=names)
        wrong.resolve(env.scene)
        with pytest.raises(ValueError, match=f"selects {count} sites of 'robot', but the hand"):
            mdp.ee_to_object_distance(env, "cube", wrong)
    target = mdp.target_position(env, "lift_height")
    assert torch.allclose(target, goal - robot.root_link_pos_w, atol=1e-6)
    velocity = torch.zeros(2, 8)
    velocity[0, :2] = torch.tensor([0.7, -1.5])
    env.scene["robot"].write_joint_velocity_to_sim(velocity)
    cfg = terms["joint_vel_hinge"]
    assert cfg.func(env, **cfg.params) == pytest.approx([0.04 + 1.0, 0.0], abs=1e-5)


# The hand where the middle of all targets is; both robots have these axes [rad].
_AT_TARGET = dict(
    zip([f"joint{i}" for i in range(1, 7)], (0, 1.886, 2.36, -1.444, 0, 0), strict=True)
)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Lift-Cube-Arm", "Lift-Cube-Yam"])
def test_it_can_be_done(task):
    """Grasp the cube and carry it to its target, whatever the friction of the fingers."""
    lies = mdp.LiftingCommandCfg.ObjectPoseRangeCfg(
        x=(0.3, 0.3), y=(0.0, 0.0), z=(0.02, 0.02), yaw=(0.0, 0.0)
    )
    command = {"object_pose_range": lies, "resampling_time_range": (15.0, 15.0)}
    env = make(task, num_envs=8, difficulty="fixed", **command)
    friction = env.sim.model.geom_friction[..., 0]
    assert (friction.amax(dim=0) > 2 * friction.amin(dim=0)).any()
    term: Any = env.action_manager.get_term("joint_pos")
    robot = env.scene["robot"]
    angles = dict(zip(robot.joint_names, robot.data.default_joint_pos[0].tolist(), strict=True))
    carry = Pose(targets=_AT_TARGET, blend=2.0, hold=1.0)
    for pose in (*PRESETS["Arm: Reach-Grasp-Lift"][:3], carry):
        before, after = (
            torch.tensor([a[name] for name in term.target_names])
            for a in (angles, angles | pose.targets)
        )
        for i in range(round((pose.blend + pose.hold) / env.step_dt)):
            share = min(1.0, (i + 1) * env.step_dt / pose.blend)
            target = before.lerp(after, share**2 * (3 - 2 * share)).expand(env.num_envs, -1)
            _, reward, ended, _, _ = env.step((target - term.offset) / term.scale)
            assert not ended.any()
        angles |= pose.targets
    metrics = env.command_manager.get_term("lift_height").metrics
    assert (metrics["position_error"] < 0.02).all() and metrics["episode_success"].all()
    assert (reward / env.step_dt > 2.5).all()  # of 3: an axis is near its limit


@draws
def test_the_picture_shows_the_cube_that_is_meant():
    """Look for the meant cube in the mask: there, and of no other, as its colour tells."""
    cfg = multi_cube_seg_env_cfg(ARM)
    cfg.scene.num_envs, cfg.seed = 4, 3
    camera = cfg.scene.sensors[-1]
    camera.data_types = ("segmentation", "rgb")
    env = ManagerBasedRlEnv(cfg)
    obs, _ = env.reset()
    mask = obs["camera"]
    assert mask.shape == (4, 1, 48, 48) and set(mask.unique().tolist()) == {0.0, 1.0}
    colors = mdp.camera_rgb(env, "front")
    term = env.command_manager.get_term("lift_height")
    assert term.target_geom_ids.shape == (4, 1)
    seen = 0
    for world in range(4):
        shown = colors[world][:, mask[world, 0] > 0]
        if not shown.shape[1]:
            continue  # behind another cube, or behind the arm
        seen += 1
        # Cubes are red, green and blue, in this order.
        assert int(shown.mean(dim=1).argmax()) == int(term._chosen[world])
        kinds = mdp.camera_segmentation(env, "front")[world, 1][mask[world, 0] > 0]
        assert (kinds == int(mujoco.mjtObj.mjOBJ_GEOM)).all()
    assert seen >= 3


@draws
def test_depth_tells_how_far_things_are():
    """Look at the floor from a camera 0.5 m up: depth is within its bounds and grows upwards."""
    env = make("Lift-Cube-Arm-Depth", num_envs=2)
    depth = env.observation_manager.compute()["camera"]
    assert depth.shape == (2, 1, 48, 48) and depth.min() > 0.01 and depth.max() == 1.0
    column = depth[0, 0, :, 2]
    assert (column.diff() <= 1e-6).all() and column[-1] < 0.7 < column[0]
    with pytest.raises(ValueError, match="'front' provides no rgb images"):
        mdp.camera_rgb(env, "front")


@pytest.mark.parametrize("name", ["Lift-Cube-Arm", "Lift-Cube-Arm-Depth", "Multi-Cube-Seg-Arm"])
def test_play_is_the_same_task_without_an_end(name):
    """Keep observations and actions; leave out noise and curricula."""
    train, play = load_env_cfg(name), load_env_cfg(name, play=True)
    assert play.episode_length_s >= 1e6 and not play.curriculum
    assert not play.observations["actor"].enable_corruption
    assert {k: list(g.terms) for k, g in train.observations.items()} == {
        k: list(g.terms) for k, g in play.observations.items()
    }
    groups = load_rl_cfg(name).obs_groups
    assert set(groups["actor"]) | set(groups["critic"]) == set(train.observations)


def test_wrong_commands_are_refused():
    """Lift what is fixed, nothing, or one of one; look for one cube where many are."""
    cfg = load_env_cfg("Lift-Cube-Arm")
    cfg.scene.num_envs = 2
    cfg.commands["lift_height"].entity_name = "robot"
    with pytest.raises(ValueError, match="lifts 'robot', whose base is fixed"):
        ManagerBasedRlEnv(cfg)
    with pytest.raises(ValueError, match="num_cubes >= 2, not 1"):
        multi_cube_seg_env_cfg(ARM, num_cubes=1)
    env = make(num_envs=2)
    with pytest.raises(TypeError, match="is a LiftingCommand, but this term needs a MultiCube"):
        mdp.multi_cube_bring_object_reward(env, "lift_height", std=0.1)
    empty = mdp.MultiCubeLiftingCommandCfg(resampling_time_range=(1.0, 1.0))
    with pytest.raises(ValueError, match="has no objects"):
        empty.build(env)


@pytest.mark.parametrize("task", ["Lift-Cube-Arm", "Multi-Cube-Seg-Arm"])
def test_nothing_begins_inside_of_something_else(task):
    """Look at the scene as it is described, which the lab shows: cubes lie before the robot."""
    cfg = load_env_cfg(task)
    cfg.scene.sensors = ()
    world = world_from_scene(cfg.scene)
    model, data = world.model, world.new_data()
    mujoco.mj_forward(model, data)
    assert data.contact.dist.min(initial=0.0) > -1e-3
    cubes = [data.body(i).xpos for i in range(model.nbody) if "cube" in model.body(i).name]
    assert cubes and all(x > 0.2 and z >= 0.02 for x, _, z in cubes)


def test_the_cube_is_as_it_is_told():
    """Make a cube: its size, mass and free joint."""
    model = get_cube_spec(cube_size=0.03, mass=0.2).compile()
    assert model.geom_size[0].tolist() == [0.03] * 3 and model.nv == 6
    assert model.body_mass[1] == pytest.approx(0.2)
    assert get_arm_cfg().init_state.joint_pos


def test_plain_mujoco_sees_and_moves_as_the_environment(tmp_path):
    """Follow the environment's observations, actions and states in plain MuJoCo."""
    cfg = load_env_cfg("Lift-Cube-Arm", play=True)
    cfg.events = {}
    runner, policy, data = exported(cfg, load_rl_cfg("Lift-Cube-Arm"), tmp_path)
    env = runner.env.unwrapped
    policy.commands["lift_height"][:] = env.command_manager.get_command("lift_height")[0].numpy()
    assert largest_difference(runner, policy, data, steps=30) < 1e-5
    expected = runner.env.get_observations()["actor"][0].numpy()
    np.testing.assert_allclose(policy.observe(data, "actor"), expected, atol=1e-4)
