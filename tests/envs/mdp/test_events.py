"""Events: the worlds named and no others, the distributions asked for, and timers."""

from types import SimpleNamespace

import pytest
import torch

from manyworlds.envs import mdp
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.terrains import (
    BoxFlatTerrainCfg,
    FlatPatchSamplingCfg,
    TerrainEntityCfg,
    TerrainGeneratorCfg,
)
from manyworlds.utils.math import (
    euler_xyz_from_quat,
    quat_apply,
    quat_conjugate,
    quat_from_euler_xyz,
    quat_mul,
)
from tests.envs.mdp.robot import is_uniform, make_env, robot_cfg, shake

MANY = 2000
SOME = torch.tensor([1, 3])
POSES = {"x": (-0.5, 0.5), "z": (0.1, 0.3), "roll": (-0.2, 0.2), "yaw": (-3.0, 3.0)}
SPEEDS = {"y": (0.5, 1.0), "pitch": (-0.4, 0.8)}


@pytest.fixture(scope="module")
def many():
    """Enough worlds for statistics."""
    return make_env(num_envs=MANY)


@pytest.fixture
def env(engine):
    """Four worlds in different motion."""
    env = make_env()
    shake(env)
    return env


def untouched(env, *fields: str):
    """Return a function that says whether worlds 0 and 2 have kept their state."""
    before = {name: getattr(env.sim.data, name).clone() for name in fields}

    def check() -> bool:
        return all(
            torch.equal(getattr(env.sim.data, n)[[0, 2]], v[[0, 2]]) for n, v in before.items()
        )

    return check


def test_root_state_is_uniform_around_the_initial_one(many):
    """Draw each component of pose and velocity uniformly from its own range."""
    mdp.reset_root_state_uniform(many, None, POSES, SPEEDS)
    many.sim.forward()
    data = many.scene["robot"].data
    initial = data.default_root_state
    offset = data.root_link_pos_w - initial[:, :3] - many.scene.env_origins
    assert is_uniform(offset[:, 0], -0.5, 0.5) and is_uniform(offset[:, 2], 0.1, 0.3)
    torch.testing.assert_close(offset[:, 1], torch.zeros(MANY), atol=1e-4, rtol=0)
    turn = quat_mul(quat_conjugate(initial[:, 3:7]), data.root_link_quat_w)
    roll, pitch, yaw = euler_xyz_from_quat(turn)
    assert is_uniform(roll, -0.2, 0.2) and is_uniform(yaw, -3.0, 3.0)
    torch.testing.assert_close(pitch, torch.zeros(MANY), atol=1e-5, rtol=0)
    linear, angular = data.root_link_lin_vel_w, data.root_link_ang_vel_w
    assert is_uniform(linear[:, 1], 0.5, 1.0) and is_uniform(angular[:, 1], -0.4, 0.8)
    still = torch.cat([linear[:, [0, 2]], angular[:, [0, 2]]], dim=1)
    expected = torch.tensor([0.1, 0.0, 0.0, 0.0]).repeat(MANY, 1)
    torch.testing.assert_close(still, expected, atol=1e-4, rtol=0)
    assert not torch.corrcoef(torch.stack([offset[:, 0], offset[:, 2]]))[0, 1].abs() > 0.1


def test_the_statistic_can_fail():
    """Reject a distribution that is a little off."""
    assert is_uniform(torch.rand(MANY), 0.0, 1.0)
    assert not is_uniform(torch.rand(MANY) ** 1.2, 0.0, 1.0)
    assert not is_uniform(torch.rand(MANY), 0.0, 1.1)


def test_root_state_of_some_worlds(env):
    """Leave the other worlds alone, and repeat with the same seed."""
    kept, states = untouched(env, "qpos", "qvel"), []
    for _ in range(2):
        env.seed(5)
        mdp.reset_root_state_uniform(env, SOME, POSES, SPEEDS)
        states.append(env.sim.data.qpos.clone())
    assert kept() and torch.equal(*states)
    assert not torch.equal(states[0][1], states[0][3])


def test_fixed_bases_are_placed():
    """Move a fixed base by its mocap body; it takes no velocity, and no misspelt axis."""
    env = make_env(floating=False)
    kept = untouched(env, "mocap_pos", "mocap_quat")
    mdp.reset_root_state_uniform(env, SOME, {"yaw": (0.5, 0.5), "x": (1.0, 1.0)}, {})
    assert kept()
    env.sim.forward()
    data = env.scene["robot"].data
    start = data.default_root_state[:, :3] + env.scene.env_origins
    moved = data.root_link_pos_w - start
    expected = torch.zeros(4, 3)
    expected[SOME, 0] = 1.0
    torch.testing.assert_close(moved, expected, atol=1e-6, rtol=0)
    turned = quat_from_euler_xyz(*torch.tensor([0.0, 0.0, 0.5]))
    goal = quat_mul(data.default_root_state[1, 3:], turned)
    torch.testing.assert_close(data.root_link_quat_w[1], goal, atol=1e-6, rtol=0)
    with pytest.raises(ValueError, match="leave out velocity_range"):
        mdp.reset_root_state_uniform(env, SOME, {}, {"x": (0.0, 1.0)})
    with pytest.raises(ValueError, match=r"\['jaw'\]"):
        mdp.reset_root_state_uniform(env, SOME, {"jaw": (0.0, 1.0)})


def terrain_env(num_envs: int, patches: bool = True):
    """Build an environment on two by three flat cells, each with patches."""
    sampling = {"spawn": FlatPatchSamplingCfg(num_patches=5, patch_radius=0.2)}
    cell = BoxFlatTerrainCfg(proportion=1.0, flat_patch_sampling=sampling if patches else None)
    generator = TerrainGeneratorCfg(
        size=(4.0, 4.0), num_rows=2, num_cols=3, sub_terrains={"flat": cell}, seed=1
    )
    terrain = TerrainEntityCfg(terrain_type="generator", terrain_generator=generator)
    entities = {"robot": robot_cfg()}
    return make_env(scene=SceneCfg(num_envs=num_envs, terrain=terrain, entities=entities))


def test_roots_on_flat_patches():
    """Stand on one of the patches of one's cell, on each of them about as often."""
    env = terrain_env(600)
    mdp.reset_root_state_from_flat_patches(env, None, velocity_range={"z": (2.0, 2.0)})
    env.sim.forward()
    terrain, data = env.scene.terrain, env.scene["robot"].data
    place = data.root_link_pos_w - data.default_root_state[:, :3]
    patches = terrain.flat_patches["spawn"][terrain.terrain_levels, terrain.terrain_types]
    distance, nearest = (patches - place[:, None]).norm(dim=-1).min(dim=1)
    assert distance.max() < 1e-4
    counts = nearest.bincount(minlength=5)
    assert len(counts) == 5 and counts.min() > 80
    torch.testing.assert_close(data.root_link_lin_vel_w[:, 2], torch.full((600,), 2.0))
    with pytest.raises(ValueError, match=r"flat patches 'goal', only \['spawn'\]"):
        mdp.reset_root_state_from_flat_patches(env, None, "goal")


def test_planes_are_flat_everywhere(env):
    """Stand at the world's origin where there is no generated terrain."""
    mdp.reset_root_state_from_flat_patches(env, SOME)
    data = env.scene["robot"].data
    expected = data.default_root_state[SOME, :3] + env.scene.env_origins[SOME]
    assert torch.equal(env.sim.data.qpos[SOME, :3], expected)


def test_terrain_is_drawn_anew(env):
    """Move the worlds named to other cells; without a terrain nothing happens."""
    mdp.randomize_terrain(env, SOME)
    env = terrain_env(40, patches=False)
    terrain = env.scene.terrain
    before = terrain.env_origins.clone()
    mdp.randomize_terrain(env, torch.arange(20))
    assert torch.equal(terrain.env_origins[20:], before[20:])
    assert not torch.equal(terrain.env_origins[:20], before[:20])


def test_joints_stay_within_soft_limits(many):
    """Offset joints uniformly, and clamp positions only."""
    some = SceneEntityCfg("robot", joint_names=("elbow", "finger"))
    some.resolve(many.scene)
    mdp.reset_joints_by_offset(many, None, (-1.0, 1.0), (0.0, 2.0), some)
    data = many.scene["robot"].data
    limit = data.soft_joint_pos_limits[0, 1, 1]
    elbow, finger = data.joint_pos[:, 1], data.joint_pos[:, 2]
    assert elbow.max() == limit and elbow.min() == -limit
    inside = elbow.abs() < limit
    assert is_uniform(elbow[inside], -limit.item(), limit.item())
    assert is_uniform(finger, -1.0, 1.0)
    assert is_uniform(data.joint_vel[:, 2], 0.05, 2.05)
    assert (data.joint_pos[:, 0] == data.default_joint_pos[:, 0]).all()


def test_pushes_add_velocity_in_the_world(many, env):
    """Add to the present velocity, also where an event has just set it."""
    robot, data = many.scene["robot"], many.scene["robot"].data
    robot.write_root_link_velocity_to_sim(torch.arange(6.0).repeat(MANY, 1))
    many.sim.forward()
    before = data.root_link_vel_w.clone()
    push = {"x": (-1.0, 0.0), "yaw": (0.5, 1.5)}
    mdp.push_by_setting_velocity(many, None, push)
    mdp.push_by_setting_velocity(many, None, {"z": (0.25, 0.25)})
    many.sim.forward()
    change = data.root_link_vel_w - before
    assert is_uniform(change[:, 0], -1.0, 0.0) and is_uniform(change[:, 5], 0.5, 1.5)
    torch.testing.assert_close(change[:, 2], torch.full((MANY,), 0.25), atol=1e-4, rtol=0)
    torch.testing.assert_close(change[:, [1, 3, 4]], torch.zeros(MANY, 3), atol=1e-4, rtol=0)
    kept = untouched(env, "qvel", "qpos")
    mdp.push_by_setting_velocity(env, SOME, push)
    assert kept()


def test_external_wrenches(many, env):
    """Draw a wrench for each body named, in the worlds named."""
    two = SceneEntityCfg("robot", body_names=("tip", "tail"))
    two.resolve(many.scene)
    mdp.apply_external_force_torque(many, None, (1.0, 3.0), (-2.0, 0.0), two)
    bodies = [many.sim.mj_model.body(f"robot/{name}").id for name in ("tip", "tail")]
    wrench = many.sim.data.xfrc_applied[:, bodies]
    for column in range(3):
        assert is_uniform(wrench[:, :, column], 1.0, 3.0)
        assert is_uniform(wrench[:, :, 3 + column], -2.0, 0.0)
    assert many.sim.data.xfrc_applied.count_nonzero() == wrench.count_nonzero()
    kept = untouched(env, "xfrc_applied")
    mdp.apply_external_force_torque(env, SOME, (1.0, 3.0), (-2.0, 0.0), two)
    assert kept() and env.sim.data.xfrc_applied[SOME][:, bodies].all()


def impulse(env, **params):
    """Build an impulse on the robot's tip, and what advances it by a step."""
    tip = SceneEntityCfg("robot", body_names="tip")
    tip.resolve(env.scene)
    defaults = {
        "force_range": (2.0, 4.0),
        "torque_range": (0.0, 0.0),
        "duration_s": (0.02, 0.02),
        "cooldown_s": (0.03, 0.03),
        "asset_cfg": tip,
    }
    params = {**defaults, **params}
    cfg = EventTermCfg(func=mdp.apply_body_impulse, mode="step", params=params)
    term = mdp.apply_body_impulse(cfg, env)
    body = env.sim.mj_model.body("robot/tip").id

    def advance(env_ids=None) -> torch.Tensor:
        term(env, env_ids, **params)
        return env.sim.data.xfrc_applied[:, body].clone()

    return term, advance


def test_impulses_take_turns_with_pauses(env):
    """Push for two control steps of 10 ms, pause for three, and push otherwise then."""
    _, advance = impulse(env)
    wrenches = torch.stack([advance() for _ in range(12)])
    on = wrenches[..., :3].all(dim=-1)
    pattern = [False, False, True, True, False, False, False, True, True, False, False, False]
    assert (on == torch.tensor(pattern)[:, None]).all()
    assert torch.equal(on, wrenches.any(dim=-1))
    assert torch.equal(wrenches[2], wrenches[3]) and not torch.equal(wrenches[2], wrenches[7])
    forces = wrenches[on][:, :3]
    assert ((forces >= 2.0) & (forces <= 4.0)).all() and forces.unique().numel() > 20


def test_durations_and_pauses_are_uniform(many):
    """Draw how long each impulse and each pause lasts."""
    term, advance = impulse(many, duration_s=(0.5, 1.0), cooldown_s=(0.0, 0.2))
    assert is_uniform(term._time_left, 0.0, 0.2)
    for _ in range(20):
        advance()
        fresh = term._active & (term._time_left > 1.0 - 0.5 * many.step_dt)
    assert term._active.all() and not fresh.all()
    assert (term._time_left > 0.3).all() and (term._time_left < 1.0).all()
    for _ in range(80):
        advance()
    assert not term._active[term._time_left < 0.0].any()


def test_a_point_of_application_turns_with_the_body(env):
    """Add the torque of the force about the center of mass, at the body's present orientation."""
    point = (0.1, -0.2, 0.3)
    _, advance = impulse(env, body_point_offset=point, torque_range=(1.0, 1.0))
    data = env.scene["robot"].data
    index = env.scene["robot"].body_names.index("tip")
    torques = []
    for step in range(4):
        wrench = advance()
        if step < 2:
            continue
        arm = quat_apply(data.body_link_quat_w[:, index], torch.tensor(point).repeat(4, 1))
        expected = 1.0 + torch.linalg.cross(arm, wrench[:, :3])
        torch.testing.assert_close(wrench[:, 3:], expected)
        torques.append(wrench[:, 3:])
        env.scene["robot"].write_root_link_pose_to_sim(
            torch.nn.functional.normalize(torch.rand(4, 7), dim=1)
        )
        env.sim.forward()
    assert not torch.allclose(*torques)


def test_impulses_leave_other_wrenches_and_worlds_alone(env):
    """Write only while pushing, and only in the worlds named."""
    _, advance = impulse(env)
    env.sim.data.xfrc_applied[:] = 7.0
    assert (advance() == 7.0).all()
    assert (advance(SOME) == 7.0).all()
    wrench = advance(SOME)
    assert (wrench[[0, 2]] == 7.0).all() and (wrench[SOME] != 7.0).all()
    assert (env.sim.data.xfrc_applied == 7.0).sum() == env.sim.data.xfrc_applied.numel() - 12


def test_resets_begin_a_pause(env):
    """Stop pushing in the worlds that are reset, through the environment's own managers."""
    tip = SceneEntityCfg("robot", body_names="tip")
    params = {
        "force_range": (2.0, 4.0),
        "torque_range": (0.0, 0.0),
        "duration_s": (1.0, 1.0),
        "cooldown_s": (0.05, 0.05),
        "asset_cfg": tip,
    }
    events = {"push": EventTermCfg(func=mdp.apply_body_impulse, mode="step", params=params)}
    env = make_env(events=events)
    force = env.scene["robot"].data
    for _ in range(5):
        assert not force.body_external_force.any()
        env.step(torch.zeros(4, 2))
    assert force.body_external_force.any(dim=-1).sum() == 4
    env.reset(env_ids=SOME)
    pushed = force.body_external_force.any(dim=-1).any(dim=-1)
    assert pushed.tolist() == [True, False, True, False]
    for _ in range(5):
        env.step(torch.zeros(4, 2))
        pushed = force.body_external_force.any(dim=-1).any(dim=-1)
        assert pushed[0]
    assert pushed.all()


def test_impulses_resume(env):
    """Go on from a saved state as if nothing had happened."""
    term, advance = impulse(env)
    advance()
    advance()
    state, wrenches = (term.state_dict(), env.random_streams.state_dict()), []
    for _ in range(2):
        term.load_state_dict(state[0])
        env.random_streams.load_state_dict(state[1])
        env.sim.data.xfrc_applied.zero_()
        wrenches.append(torch.stack([advance() for _ in range(7)]))
    assert torch.equal(*wrenches) and wrenches[0].any()


def test_impulses_are_drawn(env):
    """Draw an arrow a metre per 200 N where the force acts, in the worlds shown."""
    term, advance = impulse(env, body_point_offset=(0.0, 0.0, 0.5))
    arrows = []
    visualizer = SimpleNamespace(
        get_env_indices=lambda count: [1],
        add_arrow=lambda start, end, color, width: arrows.append((start, end)),
    )
    term.debug_vis(visualizer)
    assert not arrows
    for _ in range(3):
        wrench = advance()
    term.debug_vis(visualizer)
    [(start, end)] = arrows
    torch.testing.assert_close(200.0 * torch.tensor(end - start), wrench[1, :3], atol=1e-3, rtol=0)
    index = env.scene["robot"].body_names.index("tip")
    center = env.scene["robot"].data.body_com_pos_w[1, index]
    assert (torch.tensor(start) - center).norm().item() == pytest.approx(0.5, abs=1e-5)


def test_impulses_need_every_step(env):
    """Refuse another mode."""
    cfg = EventTermCfg(func=mdp.apply_body_impulse, mode="reset")
    with pytest.raises(ValueError, match="mode is 'reset'"):
        mdp.apply_body_impulse(cfg, env)
