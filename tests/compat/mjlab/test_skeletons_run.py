"""Environments of mjlab's skeletons and tasks run, and users' edits of them take effect."""

import copy
from dataclasses import fields, replace

import pytest
import torch

from manyworlds.asset_zoo.arm import PADS, get_arm_cfg
from manyworlds.asset_zoo.humanoid import get_humanoid_cfg
from manyworlds.asset_zoo.quadruped import get_quadruped_cfg
from manyworlds.asset_zoo.third_party import get_go1_robot_cfg
from manyworlds.compat import mjlab
from manyworlds.compat.mjlab.names import TASKS
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks.tracking.config.humanoid import humanoid_clip
from tests.robots import robot_file

FILES = {
    "Go1": "unitree_go1/go1.xml",
    "G1": "unitree_g1/g1.xml",
    "Yam": "i2rt_yam/yam.xml",
}


@pytest.fixture(autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


def _load(task):
    """Load four worlds of a task, or skip the test where its robot is absent."""
    from mjlab.tasks.registry import load_env_cfg

    for robot, file in FILES.items():
        if robot in task:
            robot_file(file)
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 4, 3
    return cfg


def _run(env, steps=20):
    """Step with random actions; check that every result is finite and each reward is computed."""
    env.reset()
    draw = torch.Generator().manual_seed(1)
    computed = torch.zeros(len(env.reward_manager.active_terms), dtype=torch.bool)
    for _ in range(steps):
        actions = torch.rand((env.num_envs, env.action_manager.total_action_dim), generator=draw)
        obs, reward, *_ = env.step(2.0 * actions - 1.0)
        assert all(torch.isfinite(value).all() for value in obs.values())
        assert torch.isfinite(reward).all()
        computed |= (env.reward_manager.step_reward != 0.0).any(dim=0)
    assert not env.sim.status.any()
    return dict(zip(env.reward_manager.active_terms, computed.tolist(), strict=True))


@pytest.mark.parametrize("task", [t for t in TASKS if "-Rgb" not in t and "-Depth" not in t])
def test_tasks_run(task, request):
    """Take twenty steps of four worlds: all rewards are computed, and most of them count."""
    if "Seg" in task:
        request.getfixturevalue("gl")
    cfg = _load(task)
    computed = _run(ManagerBasedRlEnv(cfg))
    assert list(computed) == list(cfg.rewards)
    weighted = [name for name, term in cfg.rewards.items() if term.weight]
    assert not any(computed[name] for name in set(computed) - set(weighted))
    # Contacts, limits and landings are rare in 20 steps of random actions.
    rare = ("collision", "limit", "landing", "swing", "lift_precise")
    expected = [name for name in weighted if not any(word in name for word in rare)]
    assert expected and all(computed[name] for name in expected), computed


def _add_robot(cfg, robot, root, feet, geoms):
    """Add a robot to the skeleton as mjlab's projects do: fill in the names."""
    from mjlab.sensor import ContactMatch, ContactSensorCfg, ObjRef, RingPatternCfg

    cfg.scene.entities = {"robot": robot}
    for sensor in cfg.scene.sensors:
        if sensor.name == "terrain_scan":
            sensor.frame.name = root
        if sensor.name == "foot_height_scan":
            sensor.frame = tuple(ObjRef(type="site", name=foot, entity="robot") for foot in feet)
            sensor.pattern = RingPatternCfg.single_ring(radius=0.04, num_samples=4)
    cfg.scene.sensors += (
        ContactSensorCfg(
            name="feet_ground_contact",
            primary=ContactMatch(mode="geom", pattern=geoms, entity="robot"),
            secondary=ContactMatch(mode="body", pattern="terrain"),
            reduce="netforce",
            track_air_time=True,
        ),
    )
    cfg.events["foot_friction"].params["asset_cfg"].geom_names = geoms
    cfg.events["foot_friction"].params["ranges"] = (0.7, 0.7)
    cfg.events["base_com"].params["asset_cfg"].body_names = (root,)
    for name in ("upright", "body_ang_vel"):
        cfg.rewards[name].params["asset_cfg"].body_names = (root,)
    for name in ("foot_clearance", "foot_slip"):
        cfg.rewards[name].params["asset_cfg"].site_names = feet
    cfg.viewer.body_name = root


ROBOTS = {
    "quadruped": (
        get_quadruped_cfg,
        "trunk",
        ("FR", "FL", "RR", "RL"),
        tuple(f"{leg}_foot_collision" for leg in ("FR", "FL", "RR", "RL")),
    ),
    "go1": (
        get_go1_robot_cfg,
        "trunk",
        ("FR", "FL", "RR", "RL"),
        tuple(f"{leg}_foot_collision" for leg in ("FR", "FL", "RR", "RL")),
    ),
    "humanoid": (
        get_humanoid_cfg,
        "pelvis",
        ("left_foot", "right_foot"),
        ("left_foot1_collision", "right_foot1_collision"),
    ),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_the_skeleton_takes_another_robot(name):
    """Fill in the names of a robot, edit parameters, add and remove terms: all take effect."""
    from mjlab.envs import mdp
    from mjlab.managers import RewardTermCfg
    from mjlab.tasks.velocity.velocity_env_cfg import make_velocity_env_cfg

    if name == "go1":
        robot_file(FILES["Go1"])
    robot, root, feet, geoms = ROBOTS[name]
    cfg = make_velocity_env_cfg()
    cfg.scene.num_envs, cfg.seed = 4, 3
    cfg.scene.terrain.terrain_generator.num_rows = 2
    _add_robot(cfg, robot(), root, feet, geoms)
    for gait, std in (("standing", 0.05), ("walking", 0.3), ("running", 0.4)):
        cfg.rewards["pose"].params[f"std_{gait}"] = {".*": std}
    cfg.rewards["pose"].weight = 1.5
    cfg.rewards["alive"] = RewardTermCfg(func=mdp.is_alive, weight=0.25)
    del cfg.rewards["soft_landing"], cfg.events["push_robot"]
    env = ManagerBasedRlEnv(cfg)
    computed = _run(env, steps=5)
    assert "soft_landing" not in computed and computed["alive"]
    assert env.observation_manager.group_obs_dim["critic"][0] > 200
    entity, sensor = env.scene["robot"], env.scene["feet_ground_contact"]
    ids = [entity.indexing.geom_ids[entity.geom_names.index(geom)] for geom in geoms]
    assert torch.equal(env.sim.model.geom_friction[:, ids, 0], torch.full((4, len(ids)), 0.7))
    assert sensor.data.found.shape == env.scene["foot_height_scan"].data.heights.shape
    speed = env.command_manager.get_term("twist").speed
    std = torch.where(speed < 0.05, 0.05, torch.where(speed < 1.5, 0.3, 0.4))
    error = entity.data.joint_pos - entity.data.default_joint_pos
    expected = 1.5 * torch.exp(-(error / std.unsqueeze(1)).square().mean(dim=1))
    term = env.reward_manager.active_terms.index("pose")
    live = ~env.reset_buf
    assert torch.allclose(env.reward_manager.step_reward[live, term], expected[live], atol=1e-6)


def test_the_tracking_skeleton_takes_another_robot():
    """Track a motion with a humanoid whose names are filled in, and remove a termination."""
    from mjlab.sensor import ContactMatch, ContactSensorCfg
    from mjlab.tasks.tracking.tracking_env_cfg import make_tracking_env_cfg

    cfg = make_tracking_env_cfg()
    cfg.scene.num_envs, cfg.seed = 4, 3
    cfg.scene.entities = {"robot": get_humanoid_cfg()}
    cfg.scene.sensors = (
        ContactSensorCfg(
            name="self_collision",
            primary=ContactMatch(mode="subtree", pattern="pelvis", entity="robot"),
            secondary=ContactMatch(mode="subtree", pattern="pelvis", entity="robot"),
            reduce="none",
            history_length=4,
        ),
    )
    motion = cfg.commands["motion"]
    motion.motion_fn, motion.anchor_body_name = humanoid_clip, "torso_link"
    motion.body_names = ("pelvis", "torso_link", "left_knee_link", "right_knee_link")
    cfg.events["base_com"].params["asset_cfg"].body_names = ("torso_link",)
    cfg.events["foot_friction"].params["asset_cfg"].geom_names = (".*_foot[0-9]_collision",)
    cfg.terminations["ee_body_pos"].params["body_names"] = ("left_knee_link",)
    cfg.rewards["motion_body_pos"].params["std"] = 0.2
    del cfg.terminations["anchor_ori"]
    computed = _run(ManagerBasedRlEnv(cfg))
    assert all(on for name, on in computed.items() if name.startswith("motion_"))


def test_the_lift_skeleton_takes_another_arm():
    """Lift a larger cube with this project's arm, whose names are filled in."""
    from mjlab.entity import EntityCfg
    from mjlab.tasks.manipulation.config.yam.env_cfgs import get_cube_spec
    from mjlab.tasks.manipulation.lift_cube_env_cfg import make_lift_cube_env_cfg

    cfg = make_lift_cube_env_cfg()
    cfg.scene.num_envs, cfg.seed = 4, 3
    cube = EntityCfg(spec_fn=lambda: get_cube_spec(cube_size=0.03))
    cfg.scene.entities = {"robot": get_arm_cfg(), "cube": cube}
    (sensor,) = cfg.scene.sensors
    sensor.primary.pattern = "link_6"
    for term in (cfg.observations[group].terms["ee_to_cube"] for group in ("actor", "critic")):
        term.params["asset_cfg"].site_names = ("grasp_site",)
    cfg.rewards["lift"].params["asset_cfg"].site_names = ("grasp_site",)
    for name in ("slide", "spin", "roll"):
        friction = cfg.events[f"fingertip_friction_{name}"]
        friction.params["asset_cfg"].geom_names = (PADS,)
    cfg.events["fingertip_friction_slide"].params["ranges"] = (1.1, 1.1)
    computed = _run(env := ManagerBasedRlEnv(cfg))
    assert computed["lift"] and computed["joint_vel_hinge"]
    pads = env.scene["robot"].find_geoms(PADS)[0]
    ids = env.scene["robot"].indexing.geom_ids[pads]
    assert torch.equal(env.sim.model.geom_friction[:, ids, 0], torch.full((4, len(ids)), 1.1))


def test_the_cartpole_is_pushed_by_ten_newtons():
    """Push with the maximum force for an action of 1, and with no more for a larger one."""
    env = ManagerBasedRlEnv(_load("Mjlab-Cartpole-Balance"))
    env.reset()
    env.step(torch.tensor([[0.0], [0.5], [1.0], [3.0]]))
    joint = env.scene["cartpole"].joint_names.index("slider")
    force = env.sim.data.qfrc_actuator[:, joint]
    assert torch.allclose(force, torch.tensor([0.0, 5.0, 10.0, 10.0]))


def test_a_motion_file_replaces_the_clip(tmp_path):
    """Track the motion of a file, as mjlab's projects set it."""
    from mjlab.tasks.registry import load_env_cfg

    robot_file(FILES["G1"])
    cfg = load_env_cfg("Mjlab-Tracking-Flat-Unitree-G1", play=True)
    clip = cfg.commands["motion"].motion_fn()
    names = [field.name for field in fields(clip) if hasattr(getattr(clip, field.name), "shape")]
    shorter = replace(clip, **{name: getattr(clip, name)[:50] for name in names})
    shorter.save(tmp_path / "clip.npz")
    cfg.commands["motion"].motion_file = str(tmp_path / "clip.npz")
    cfg.scene.num_envs = 2
    env = ManagerBasedRlEnv(cfg)
    env.reset()
    command = env.command_manager.get_term("motion")
    assert command.motion.time_step_total == len(shorter.joint_pos) < clip.num_frames


@pytest.mark.parametrize("task", ["Mjlab-Lift-Cube-Yam-Depth"])
def test_a_policy_with_a_camera_learns(task, gl, tmp_path):
    """Train for one iteration with images for actor and critic."""
    from mjlab.rl import RslRlVecEnvWrapper
    from mjlab.tasks.registry import load_rl_cfg, load_runner_cls

    env = ManagerBasedRlEnv(_load(task))
    cfg = load_rl_cfg(task)
    cfg.num_steps_per_env = 4
    runner = load_runner_cls(task)(RslRlVecEnvWrapper(env), cfg, str(tmp_path), "cpu")
    models = {"actor": runner.alg.actor, "critic": runner.alg.critic}
    weights = {name: model.cnns["camera"].state_dict() for name, model in models.items()}
    before = copy.deepcopy(weights)
    runner.learn(num_learning_iterations=1)
    for name, values in weights.items():
        layers = [key for key in values if key.endswith("weight")]
        assert layers and not any(torch.equal(values[key], before[name][key]) for key in layers)
