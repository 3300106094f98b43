"""The velocity tasks of all robots: what they are made of, and that they run."""

from __future__ import annotations

import copy

import pytest
import torch

from manyworlds.asset_zoo.third_party import G1_ACTION_SCALE, GO1_ACTION_SCALE
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import ObservationGroupCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.tasks.velocity.velocity_env_cfg import hold_terrain_level
from manyworlds.validation.host_reads import gpu_paths
from tests.host_reads import host_reads
from tests.robots import robot_file

ROBOTS = ("Quadruped", "Humanoid", "Go1", "G1")
TASKS = [f"Velocity-{ground}-{robot}" for robot in ROBOTS for ground in ("Flat", "Rough")]
FILES = {"Go1": "unitree_go1/go1.xml", "G1": "unitree_g1/g1.xml"}


def make(
    task: str, num_envs: int = 4, play: bool = False, alike: bool = False
) -> ManagerBasedRlEnv:
    """Build a task's environment, small, or skip the test; `alike` leaves robots as compiled."""
    if (file := FILES.get(task.split("-")[2])) is not None:
        robot_file(file)
    cfg = load_env_cfg(task, play=play)
    cfg.scene.num_envs, cfg.seed = num_envs, 5
    if alike:
        cfg.events = {name: term for name, term in cfg.events.items() if term.mode != "startup"}
    if (generator := cfg.scene.terrain.terrain_generator) is not None:
        generator.num_rows, generator.seed = 3, 5
    return ManagerBasedRlEnv(cfg)


def actions(env: ManagerBasedRlEnv, steps: int) -> torch.Tensor:
    """Draw random actions from a generator of their own."""
    shape = (steps, env.num_envs, env.action_manager.total_action_dim)
    return 2.0 * torch.rand(shape, generator=torch.Generator().manual_seed(2)) - 1.0


@pytest.mark.parametrize("task", TASKS)
def test_tasks_run(task):
    """Take fifty steps with random actions: all results are finite and some world is alive."""
    env = make(task)
    for action in actions(env, 50):
        obs, reward, *_ = env.step(action)
        assert all(torch.isfinite(value).all() for value in obs.values())
        assert torch.isfinite(reward).all()
    assert not env.sim.status.any()
    names, values = env.reward_manager.active_terms, env.reward_manager.step_reward.unbind(1)
    weighted = dict(zip(names, values, strict=True))
    assert (weighted["upright"] > 0.2).any() and (weighted["action_rate_l2"] < 0).all()


@pytest.mark.parametrize("task", [f"Velocity-Flat-{robot}" for robot in ROBOTS])
def test_robots_stand_on_their_stance(task):
    """Stand for a second without an action, upright and at about the height they begin at."""
    env = make(task, play=True, alike=True)
    start = env.scene["robot"].data.default_root_state[0, 2]
    for _ in range(50):
        env.step(torch.zeros(4, env.action_manager.total_action_dim))
    data = env.scene["robot"].data
    assert (data.root_link_pos_w[:, 2] > 0.75 * start).all()
    assert (data.projected_gravity_b[:, 2] < -0.97).all()
    assert (env.scene["feet_ground_contact"].data.found > 0).all()
    assert (env.episode_length_buf == 50).all()


@pytest.mark.parametrize("task", TASKS)
def test_play_is_the_same_task_without_an_end(task):
    """Keep observations and actions; leave out noise, pushes, and curricula."""
    train, play = load_env_cfg(task), load_env_cfg(task, play=True)
    assert play.episode_length_s >= 1e6 > train.episode_length_s
    groups: list[dict[str, ObservationGroupCfg]] = [train.observations, play.observations]
    assert [g["actor"].enable_corruption for g in groups] == [True, False]
    for group in groups:
        assert not group["critic"].enable_corruption
        assert not any(term.noise for term in group["critic"].terms.values())
    for name in ("actor", "critic"):
        assert list(groups[0][name].terms) == list(groups[1][name].terms)
    assert train.actions == play.actions
    assert "push_robot" in train.events and "push_robot" not in play.events
    assert train.curriculum and not play.curriculum
    rough = "Rough" in task
    assert (train.scene.terrain.terrain_type == "generator") == rough
    if rough:
        assert train.scene.terrain.terrain_generator.curriculum
        assert not play.scene.terrain.terrain_generator.curriculum
    assert ("height_scan" in groups[0]["actor"].terms) == rough
    assert load_rl_cfg(task).experiment_name == f"{task.split('-')[2].lower()}_velocity"


@pytest.mark.parametrize("task", [f"Velocity-Flat-{robot}" for robot in ROBOTS])
def test_worlds_differ(task):
    """Draw friction of the feet, the trunk's center of mass and encoders, each once a world."""
    env = make(task, num_envs=64)
    model, data = env.sim.model, env.scene["robot"].data
    quadruped = task.endswith(("Quadruped", "Go1"))
    ids, _ = env.scene["robot"].find_geoms(".*_foot[0-9]*_collision")
    feet = env.scene["robot"].indexing.geom_ids[ids]
    bounds = [(0.3, 1.5), (1e-4, 2e-2), (1e-5, 5e-3)] if quadruped else [(0.3, 1.2)]
    friction = model.geom_friction[:, feet]
    for axis, (low, high) in enumerate(bounds):
        drawn = friction[..., axis]
        assert (drawn == drawn[:, :1]).all() and len(drawn.unique()) == 64
        assert low <= drawn.min() < 2 * low and 0.7 * high < drawn.max() <= high
    trunk = env.sim.mj_model.body("robot/trunk" if quadruped else "robot/torso_link").id
    moved = model.body_ipos - env.sim.get_default_field("body_ipos")
    assert moved.flatten(1).any(dim=0).nonzero().flatten().tolist() == [
        3 * trunk + i for i in range(3)
    ]
    for axis, bound in enumerate((0.025, 0.025, 0.03)):
        assert 0.8 * bound < moved[:, trunk, axis].abs().max() <= 1.001 * bound
    assert 0.014 < data.encoder_bias.abs().max() <= 0.015
    before = friction.clone()
    env.reset()
    assert torch.equal(model.geom_friction[:, feet], before)


@pytest.mark.parametrize("task", ["Velocity-Rough-Go1", "Velocity-Flat-G1"])
def test_seeds_reproduce(task):
    """Return the same observations and rewards twice."""
    results = []
    for _ in range(2):
        env = make(task)
        results.append([torch.cat([*env.step(a)[0].values()], dim=1) for a in actions(env, 10)])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Velocity-Flat-Go1", "Velocity-Rough-G1"])
def test_runs_go_on_bit_for_bit(task):
    """Restore a state in the middle of episodes: everything that follows is the same."""
    env = make(task)
    drawn = actions(env, 40)
    env.episode_length_buf[:] = env.max_episode_length - torch.tensor([22, 25, 500, 600])
    for action in drawn[:20]:
        env.step(action)
    state = copy.deepcopy(env.state_dict())

    def go_on(env: ManagerBasedRlEnv) -> list[torch.Tensor]:
        seen = []
        for action in drawn[20:]:
            obs, reward, terminated, truncated, _ = env.step(action)
            seen += [*(value.clone() for value in obs.values()), reward, terminated, truncated]
        return seen

    first = go_on(env)
    other = make(task)
    other.load_state_dict(state)
    for restored in (env, other):
        restored.load_state_dict(state)
        assert all(torch.equal(a, b) for a, b in zip(first, go_on(restored), strict=True))
    assert any(value.dtype == torch.bool and value.any() for value in first)


@pytest.mark.parametrize(("ours", "theirs"), [("Quadruped", "Go1"), ("Humanoid", "G1")])
@pytest.mark.parametrize("ground", ["Flat", "Rough"])
def test_twins_do_the_same_task(ours, theirs, ground):
    """Read and command the same things in the same order: a policy of one fits the other."""
    envs = [make(f"Velocity-{ground}-{robot}", num_envs=1) for robot in (ours, theirs)]
    sizes = [env.observation_manager.group_obs_dim for env in envs]
    assert sizes[0] == sizes[1]
    names = [env.scene["robot"].joint_names for env in envs]
    assert names[0] == names[1]
    terms = [
        [env.reward_manager.active_terms, env.termination_manager.active_terms] for env in envs
    ]
    assert terms[0] == terms[1]


def test_action_scales_are_a_quarter_of_the_effort_over_the_stiffness():
    """Have the action scales that the robots' tasks are known by."""
    known = {".*_hip_joint": 0.3727530387083568, ".*_calf_joint": 0.24850202580557115}
    for name, scale in known.items():
        assert GO1_ACTION_SCALE[name] == pytest.approx(scale, rel=1e-6)
    known = {
        ".*_elbow_joint": 0.43857731392336724,
        ".*_hip_pitch_joint": 0.5475464629911068,
        ".*_knee_joint": 0.35066146637882434,
        ".*_wrist_yaw_joint": 0.07450087032950714,
        "waist_pitch_joint": 0.43857731392336724,
    }
    for name, scale in known.items():
        assert G1_ACTION_SCALE[name] == pytest.approx(scale, rel=1e-6)


@pytest.mark.parametrize("task", ["Velocity-Flat-Go1", "Velocity-Rough-Go1"])
def test_the_host_reads_from_the_device_once_a_step(task: str, monkeypatch):
    """Wait for a GPU in one place, through pushes, new commands and resets."""
    env = make(task, num_envs=8)
    env.episode_length_buf.random_(0, env.max_episode_length)
    env.episode_length_buf[3] = env.max_episode_length - 4
    ended = 0
    for action in actions(env, 8):
        env.command_manager.get_term("twist").time_left[5] = 0.0
        env.event_manager._time_left[:, 6] = 0.0
        with gpu_paths(), host_reads(monkeypatch) as places:
            env.step(action)
        ended += int(env.reset_buf.sum())
        assert places == ["envs/manager_based_rl_env.py:_tell"]
    assert ended > 0


@pytest.mark.parametrize("play", [False, True])
def test_worlds_are_held_on_one_level_of_the_terrain(play):
    """Begin every episode on a cell of the level, without the curriculum, in playback, too."""
    cfg = load_env_cfg("Velocity-Rough-Quadruped", play)
    cfg.scene.num_envs, cfg.seed, cfg.episode_length_s = 8, 5, 0.1
    cfg.scene.terrain.terrain_generator.num_rows = 3
    hold_terrain_level(cfg, 2)
    env = ManagerBasedRlEnv(cfg)
    env.reset()
    columns = set()
    for action in actions(env, 12):
        env.step(action)
        terrain = env.scene.terrain
        assert (terrain.terrain_levels == 2).all()
        columns |= set(terrain.terrain_types.tolist())
        expected = terrain.terrain_origins[2, terrain.terrain_types]
        assert torch.equal(env.scene.env_origins, expected)
    assert len(columns) > 4


def test_levels_that_do_not_exist_are_refused():
    """Name the levels that a terrain has, and tasks without one."""
    with pytest.raises(ValueError, match="no generated terrain, so that it has no level 5"):
        hold_terrain_level(load_env_cfg("Velocity-Flat-Quadruped"), 5)
    for level in (-1, 10):
        with pytest.raises(ValueError, match=f"levels from 0 to 9, got {level}"):
            hold_terrain_level(load_env_cfg("Velocity-Rough-Quadruped"), level)
