"""Settings of the velocity tasks for few cores: cheaper physics of the same task."""

from __future__ import annotations

import copy

import mujoco
import pytest
import torch

from manyworlds.asset_zoo.quadruped import LEGS
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.rl.config import SYMMETRIC_MLP
from manyworlds.scene import Scene
from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset
from tests.robots import robot_file
from tests.tasks.velocity.test_env_cfgs import FILES

TASK = "Velocity-Flat-Quadruped"


def preset(task: str = TASK) -> tuple[ManagerBasedRlEnvCfg, ManagerBasedRlEnvCfg]:
    """Configure a task, and the same with its settings for few cores."""
    own, cheap = load_env_cfg(task), load_env_cfg(task)
    assert use_cpu_preset(task, cheap, load_rl_cfg(task))
    return own, cheap


def period(cfg: ManagerBasedRlEnvCfg) -> float:
    """Control period [s]."""
    assert cfg.sim.mujoco is not None
    return cfg.decimation * cfg.sim.mujoco.timestep


def weights_at(cfg: ManagerBasedRlEnvCfg, step: int) -> dict[str, float]:
    """Weights of rewards at a control step, as the curricula say."""
    weights = {name: term.weight for name, term in cfg.rewards.items()}
    for term in cfg.curriculum.values():
        for stage in term.params.get("stages", ()):
            if stage["step"] <= step and "weight" in stage:
                weights[term.params["reward_name"]] = stage["weight"]
    return weights


@pytest.mark.parametrize(
    ("task", "raised", "added"),
    [
        (TASK, {"track_linear_velocity", "action_rate_l2"}, {"is_terminated"}),
        (
            "Velocity-Rough-Humanoid",
            {"track_linear_velocity"},
            {"is_terminated", "command_progress", "single_stance"},
        ),
    ],
)
def test_the_preset_is_the_same_task_in_the_end(task, raised, added):
    """Keep what is observed, done, commanded and rewarded; let most weights become the task's."""
    own, cheap = preset(task)
    assert cheap.rewards.keys() - own.rewards.keys() == added
    assert all(weights_at(cheap, 10**9)[name] < weights_at(cheap, 0)[name] for name in added)
    for name in added:
        del cheap.rewards[name], cheap.curriculum[f"{name}_weight"]
    own_twist, twist = own.commands["twist"], cheap.commands["twist"]
    if task == TASK:  # the same commands, only more often
        assert twist.resampling_time_range < own_twist.resampling_time_range
        twist.resampling_time_range = own_twist.resampling_time_range
    else:
        assert twist.rel_standing_envs == 0.0
        twist.rel_standing_envs = own_twist.rel_standing_envs
        del cheap.terminations["stalled"]
    for name in ("observations", "actions", "commands", "events", "terminations"):
        assert getattr(cheap, name) == getattr(own, name)
    assert period(cheap) == period(own)
    for name in ("cone", "impratio", "integrator", "gravity"):
        assert getattr(cheap.sim.mujoco, name) == getattr(own.sim.mujoco, name)
    for ours, theirs in zip(cheap.scene.sensors, own.scene.sensors, strict=True):
        if steps := getattr(theirs, "history_length", 0):
            assert steps == own.decimation and ours.history_length == cheap.decimation
    assert weights_at(cheap, 0) != weights_at(own, 0)
    last, own_last = weights_at(cheap, 10**9), weights_at(own, 10**9)
    differ = {name for name, weight in last.items() if weight != own_last[name]}
    assert differ == raised
    assert all(0.0 < own_last[name] / last[name] < 1.0 for name in differ)  # more of the same
    for name, term in cheap.rewards.items():
        assert (term.func, term.params) == (own.rewards[name].func, own.rewards[name].params)


def test_the_preset_makes_contacts_cheaper_and_networks_smaller():
    """Let the robot touch the ground but not itself, in three dimensions."""
    rl_cfg = load_rl_cfg(TASK)
    use_cpu_preset(TASK, load_env_cfg(TASK), rl_cfg)
    assert rl_cfg.actor.hidden_dims == rl_cfg.critic.hidden_dims == (128, 128, 128)
    assert rl_cfg.actor.class_name == SYMMETRIC_MLP and rl_cfg.critic.class_name == "MLPModel"
    models = []
    for cfg in preset():
        cfg.scene.num_envs = 1
        models.append(ManagerBasedRlEnv(cfg).sim.mj_model)
    pairs = []
    for model in models:
        kinds, affinities = model.geom_contype, model.geom_conaffinity
        collide = (kinds[:, None] & affinities) | (kinds & affinities[:, None])
        robot = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM, i) for i in range(model.ngeom)]
        ours = [i for i, name in enumerate(robot) if name.startswith("robot/")]
        ground = robot.index("terrain")
        pairs.append((collide[ours][:, ours].any(), (collide[ours, ground] > 0).tolist()))
    assert pairs[0][0] and not pairs[1][0]
    assert pairs[0][1] == pairs[1][1] and any(pairs[0][1])
    assert [model.opt.cone for model in models] == [mujoco.mjtCone.mjCONE_ELLIPTIC] * 2
    assert models[1].geom_condim.max() == 3 < models[0].geom_condim.max()


def test_one_ray_tells_as_much_as_many_over_a_plane():
    """Measure the same heights of feet with the preset's single ray."""
    heights = []
    for cfg in preset():
        cfg.scene.num_envs, cfg.seed = 3, 1
        env = ManagerBasedRlEnv(cfg)
        heights.append(env.scene["foot_height_scan"].data.heights)
        assert env.scene["foot_height_scan"].num_rays_per_frame == (5, 1)[len(heights) - 1]
    assert heights[0].allclose(heights[1], atol=1e-6)


@pytest.mark.parametrize("robot", ["Humanoid", "G1"])
def test_bipeds_keep_their_self_collisions_and_begin_with_less_noise(robot):
    """Let legs touch each other as they do in the task, and noise alone not make robots fall."""
    if robot in FILES:
        robot_file(FILES[robot])
    task = f"Velocity-Flat-{robot}"
    own, cheap = preset(task)
    rl_cfg = load_rl_cfg(task)
    assert use_cpu_preset(task, load_env_cfg(task), rl_cfg)
    assert rl_cfg.actor.distribution_cfg["init_std"] < 1.0
    assert rl_cfg.algorithm.schedule == "fixed"
    assert rl_cfg.algorithm.critic_learning_rate > rl_cfg.algorithm.learning_rate
    quadruped = load_rl_cfg(TASK)
    use_cpu_preset(TASK, load_env_cfg(TASK), quadruped)
    assert rl_cfg.num_steps_per_env < quadruped.num_steps_per_env
    for cheap_one, own_one in zip(
        cheap.scene.entities["robot"].collisions,
        own.scene.entities["robot"].collisions,
        strict=True,
    ):
        assert cheap_one.contype == own_one.contype
        assert cheap_one.conaffinity == own_one.conaffinity


@pytest.mark.parametrize("task", [TASK, "Velocity-Flat-Humanoid"])
def test_the_robot_moves_as_in_the_task(task):
    """Hold the initial pose for half a second: cheap physics moves the robot by millimeters."""
    heights = []
    for cfg in preset(task):
        cfg.scene.num_envs, cfg.seed = 8, 1
        cfg.events = {name: cfg.events[name] for name in ("reset_base", "reset_robot_joints")}
        cfg.curriculum.pop("push_strength", None)
        env = ManagerBasedRlEnv(cfg)
        for _ in range(25):
            env.step(torch.zeros(8, env.action_manager.total_action_dim))
        heights.append(env.scene["robot"].data.root_link_pos_w[:, 2])
    assert heights[0].allclose(heights[1], atol=0.005)
    assert (heights[0] > 0.2).all()


def test_bounding_volumes_stay_where_the_ground_has_many_geoms():
    """Skip the midphase on a plane, and not on generated terrain; islands on both."""
    for task, flags in ((TASK, {"island", "midphase"}), ("Velocity-Rough-Quadruped", {"island"})):
        assert set(preset(task)[1].sim.mujoco.disableflags) == flags


@pytest.mark.parametrize("robot", ["Quadruped", "Go1"])
def test_only_the_hips_of_a_quadruped_pass_through_rough_terrain(robot):
    """Keep the contacts of all other parts, which terms and sensors watch."""
    if robot in FILES:
        robot_file(FILES[robot])
    touching = []
    for cfg in preset(f"Velocity-Rough-{robot}"):
        cfg.scene.num_envs = 1
        model = Scene(cfg.scene).compile()
        names = [model.geom(i).name.partition("robot/")[2] for i in range(model.ngeom)]
        affinities = zip(names, model.geom_conaffinity, strict=True)
        touching.append({name for name, affinity in affinities if name and affinity})
    own, cheap = touching
    assert cheap and own - cheap == {f"{leg}_hip_collision" for leg in LEGS}


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["Quadruped", "Humanoid", "Go1", "G1"])
def test_contacts_with_terrain_are_found_on_the_world_body(robot):
    """Step on rough terrain whose geoms belong to the world: sensors and states are the same."""
    if robot in FILES:
        robot_file(FILES[robot])
    own, cheap = preset(f"Velocity-Rough-{robot}")
    assert cheap.scene.terrain.on_world_body and not own.scene.terrain.on_world_body
    apart = copy.deepcopy(cheap)
    apart.scene.terrain.on_world_body = False
    seen = []
    for cfg in (apart, cheap):
        cfg.scene.num_envs, cfg.seed = 8, 1
        env = ManagerBasedRlEnv(cfg)
        found = []
        for _ in range(20):
            obs, reward, *_ = env.step(torch.zeros(8, env.action_manager.total_action_dim))
            found.append(env.scene["feet_ground_contact"].data.found.clone())
        seen.append((torch.stack(found), obs["actor"], obs["critic"], reward))
    assert (seen[0][0] > 0).any()
    for one, two in zip(*seen, strict=True):
        assert one.allclose(two, atol=1e-5)


def test_an_odd_number_of_physics_steps_is_refused():
    """Name the decimation that cannot be halved."""
    cfg = load_env_cfg(TASK)
    cfg.decimation = 3
    with pytest.raises(ValueError, match="decimation must be even, got 3.*--preset gpu"):
        use_cpu_preset(TASK, cfg, load_rl_cfg(TASK))


@pytest.mark.parametrize("robot", ["Quadruped", "Humanoid", "Go1"])
def test_sensors_that_no_term_reads_are_left_out(robot):
    """Step without the accelerometer: states, and what the other sensors measure, are the same."""
    if robot in FILES:
        robot_file(FILES[robot])
    task = f"Velocity-Flat-{robot}"
    cheap, seen = preset(task)[1], []
    kept = ("robot/imu_ang_vel", "robot/imu_lin_vel", "robot/root_angmom")
    assert cheap.scene.kept_sensors == kept
    for names in (kept, None):
        cfg = copy.deepcopy(cheap)
        cfg.scene.kept_sensors = names
        cfg.scene.num_envs, cfg.seed = 4, 1
        env = ManagerBasedRlEnv(cfg)
        for _ in range(20):
            obs, reward, *_ = env.step(torch.ones(4, env.action_manager.total_action_dim))
        seen.append((obs["actor"], obs["critic"], reward, env.sim.get_state()["state"]))
        assert ("robot/imu_lin_acc" in env.scene.sensors) == (names is None)
    for one, two in zip(*seen, strict=True):
        assert torch.equal(one, two)


def test_tasks_of_bipeds_begin_easily_and_become_the_task():
    """Begin with weak pushes and commands straight ahead, end episodes that stall; later not."""
    own, cheap = preset("Velocity-Flat-Humanoid")
    cheap.scene.num_envs, cheap.seed = 4, 1
    del cheap.terminations["fell_over"]  # without actions, robots fall forward first
    env = ManagerBasedRlEnv(cheap)
    push = env.event_manager.get_term_cfg("push_robot").params
    whole = own.events["push_robot"].params["velocity_range"]
    twist = env.command_manager.get_term_cfg("twist")
    ranges = twist.ranges
    stalled = env.termination_manager.get_term_cfg("stalled").params
    assert push["velocity_range"]["x"] == pytest.approx([0.2 * bound for bound in whole["x"]])
    assert ranges.lin_vel_x[0] > 0.0 and ranges.lin_vel_y[1] == 0.1
    stands = torch.zeros(4, env.action_manager.total_action_dim)
    while not env.termination_manager.get_term("stalled").any():
        env.step(stands)
        assert env.common_step_counter < 300
    env.common_step_counter = 9000
    env.reset()
    assert 0.2 * whole["x"][1] < push["velocity_range"]["x"][1] < whole["x"][1]
    assert -1.0 < ranges.lin_vel_x[0] < 0.0
    env.common_step_counter = 13000
    env.reset()
    assert push["velocity_range"] == whole and stalled["limit"] < -1.0
    assert ranges == own.commands["twist"].ranges
    assert twist.rel_standing_envs == own.commands["twist"].rel_standing_envs > 0.0
    for name in ("command_progress", "single_stance"):
        assert env.reward_manager.get_term_cfg(name).weight == 0.0


@pytest.mark.parametrize(("rows", "lowest", "highest"), [(10, 2, 6), (4, 0, 3)])
def test_levels_of_rough_terrain_grow_with_time(rows, lowest, highest):
    """Begin on level 0; end on five levels, or on those that the terrain has."""
    cfg = load_env_cfg("Velocity-Rough-Quadruped")
    terrain = cfg.scene.terrain
    assert terrain is not None and terrain.terrain_generator is not None
    terrain.terrain_generator.num_rows, terrain.terrain_generator.num_cols = rows, 6
    use_cpu_preset("Velocity-Rough-Quadruped", cfg, load_rl_cfg("Velocity-Rough-Quadruped"))
    cfg.scene.num_envs, cfg.seed = 64, 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    levels = env.scene.terrain.terrain_levels
    env.reset()
    assert set(levels.tolist()) == {0}
    env.common_step_counter = 10000
    env.reset()
    assert set(levels.tolist()) == set(range(lowest, highest + 1))
    env.close()


@pytest.mark.slow
def test_stairs_are_frequent_late_in_the_training():
    """Draw kinds alike at first, and stairs more often at last; skip kinds that are not there."""
    name = "Velocity-Rough-Quadruped"
    cfg = load_env_cfg(name)
    assert cfg.scene.terrain is not None and cfg.scene.terrain.terrain_generator is not None
    del cfg.scene.terrain.terrain_generator.sub_terrains["random_rough"]
    use_cpu_preset(name, cfg, load_rl_cfg(name))
    cfg.scene.num_envs, cfg.seed = 600, 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    shares = []
    for step in (10000, 19000):
        env.common_step_counter = step
        env.reset()
        terrain = env.scene.terrain
        assert set(terrain.terrain_levels.tolist()) == {2, 3, 4, 5, 6}
        kinds = [terrain.cell_of(i)[0] for i in range(env.num_envs)]
        shares.append([kinds.count(kind) / 600 for kind in ("flat", "pyramid_stairs_inv")])
    assert shares[0] == pytest.approx([1 / 6, 1 / 6], abs=0.06)
    assert shares[1][0] < 0.08 and shares[1][1] > 0.24
    env.close()


@pytest.mark.parametrize(
    ("name", "rate", "posture"),
    [
        ("Velocity-Rough-Quadruped", -0.1, 1.0),
        ("Velocity-Flat-Quadruped", -0.2, 2.0),
        ("Velocity-Flat-Go1", -0.2, 1.0),
    ],
)
def test_weights_of_the_action_rate_and_the_posture_change(name, rate, posture):
    """Raise the cost of the action rate for a while, and the weight of the posture at first."""
    cfg = load_env_cfg(name)
    own = weights_at(cfg, 0)
    assert (own["action_rate_l2"], own["pose"]) == (-0.1, 1.0)
    use_cpu_preset(name, cfg, load_rl_cfg(name))
    rates = [weights_at(cfg, step)["action_rate_l2"] for step in (0, 1500, 3000, 10**9)]
    assert rates == [-0.01, -0.05, -0.2, rate]
    assert [weights_at(cfg, step)["pose"] for step in (0, 2999, 3000)] == [posture, posture, 1.0]


@pytest.mark.parametrize("robot", ["Quadruped", "Humanoid"])
def test_quadrupeds_keep_noise_and_average_for_longer_on_rough_terrain(robot):
    """Reduce the bonus for noise later than on a plane; bipeds have settings of their own."""
    learners = []
    for ground in ("Rough", "Flat"):
        name = f"Velocity-{ground}-{robot}"
        rl_cfg = load_rl_cfg(name)
        assert use_cpu_preset(name, load_env_cfg(name), rl_cfg)
        learners.append(rl_cfg.algorithm)
    rough, plane = learners
    quadruped = robot == "Quadruped"
    assert plane.averaged_iterations > 1.0
    assert (rough.averaged_iterations > plane.averaged_iterations) == quadruped
    assert (rough.entropy_stages[0][0] > plane.entropy_stages[0][0]) == quadruped


def test_a_task_whose_terrain_became_a_plane_has_no_levels():
    """Take the settings although a curriculum of levels was left behind."""
    cfg = load_env_cfg("Velocity-Rough-Quadruped")
    plane = load_env_cfg(TASK)
    plane.curriculum["terrain_levels"] = cfg.curriculum["terrain_levels"]
    assert use_cpu_preset(TASK, plane, load_rl_cfg(TASK))
    assert "randomize_terrain" not in plane.events
