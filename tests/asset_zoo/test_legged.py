"""Legged robots that this project did not write, and its own ones: facts, and their tasks."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.asset_zoo import arm, humanoid, quadruped
from manyworlds.asset_zoo.legged import (
    LeggedModel,
    default_pose,
    derive_legged_model,
    foot_geoms,
    legged_entity,
    name_elements,
    sole_site,
)
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.scene import Scene, SceneCfg
from manyworlds.spec.edits import non_default_option_fields
from manyworlds.spec.load import load_spec
from manyworlds.tasks.velocity.config.derived import (
    cpu_preset,
    derive_robot,
    describe_robot,
    settled_height,
    velocity_env_cfg,
    velocity_rl_cfg,
)
from manyworlds.tasks.velocity.velocity_cpu import use_biped_cpu_preset, use_cpu_preset
from tests.robots import robot_file

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def model_file(package: str, file: str) -> Path:
    """Return a model of an installed package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(spec.origin).parent / file


def foreign(name: str) -> Path:
    """Return a robot that this project did not write."""
    if name in ("ant", "humanoid"):
        return model_file("gymnasium", f"envs/mujoco/assets/{name}.xml")
    if name in SUITE:
        return model_file("dm_control", SUITE[name])
    return robot_file(f"{name}/{name.removeprefix('unitree_')}.xml")


@pytest.mark.parametrize("name", ["suite", "humanoid", "ant"])
def test_options_of_the_model_are_those_of_the_task(name):
    """Drop the options of a robot's file without a warning: the task sets its own."""
    spec = mujoco.MjSpec.from_file(str(foreign(name)))
    assert non_default_option_fields(spec.option), "the file sets no option"
    entity = legged_entity(spec, derive_legged_model(spec, effort_limit=50.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Scene(SceneCfg(entities={"robot": entity}))
    assert not [w for w in caught if "<option>" in str(w.message)]


SUITE = {
    "suite": "suite/humanoid.xml",
    "cmu": "suite/humanoid_CMU.xml",
    "dog": "locomotion/walkers/assets/dog_v2/dog.xml",
}
EXPECTED = {
    # Name: effort limit given, root, feet, number of joints, knees.
    "ant": (None, "torso", tuple(f"ankle_{i}_body" for i in (1, 2, 3, 4)), 8, ()),
    "humanoid": (None, "torso", ("right_shin", "left_shin"), 17, ("right_knee", "left_knee")),
    "suite": (None, "torso", ("right_foot", "left_foot"), 21, ("right_knee", "left_knee")),
    "cmu": (None, "root", ("lfoot", "rfoot"), 56, ("ltibiarx", "rtibiarx")),
    "unitree_go1": (
        23.7,
        "trunk",
        ("FR_calf", "FL_calf", "RR_calf", "RL_calf"),
        12,
        tuple(f"{leg}_calf_joint" for leg in ("FR", "FL", "RR", "RL")),
    ),
    "unitree_g1": (
        60.0,
        "pelvis",
        ("left_ankle_roll_link", "right_ankle_roll_link"),
        29,
        ("left_knee_joint", "right_knee_joint"),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_facts(name):
    """Find root, feet, joints and knees, and a pose within the joints' ranges."""
    effort, root, feet, joints, knees = EXPECTED[name]
    spec, _ = load_spec(foreign(name))
    found = derive_legged_model(spec, effort_limit=effort)
    assert (found.root, found.feet, len(found.drives)) == (root, feet, joints)
    assert found.knees == knees and set(knees) <= set(found.pitch) <= set(found.legs)
    assert set(found.legs) <= set(found.drives)
    model = spec.compile()
    for joint, drive in found.drives.items():
        low, high = model.joint(joint).range
        assert low < drive.pos < high
        assert drive.effort_limit == pytest.approx(effort or drive.effort_limit)
        assert min(drive.stiffness, drive.damping, drive.armature) > 0.0
    if name == "ant":  # its motors: a gear of 150 and controls up to 1
        assert {drive.effort_limit for drive in found.drives.values()} == {150.0}


@pytest.mark.parametrize("name", EXPECTED)
def test_soles(name):
    """Stand on the ground in the default pose; a site is at the lowest point of each foot."""
    spec, _ = load_spec(foreign(name))
    robot = derive_legged_model(spec, effort_limit=EXPECTED[name][0])
    model = legged_entity(spec, robot).build().spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:7] = 0.0, 0.0, robot.height, 1.0, 0.0, 0.0, 0.0
    for joint, drive in robot.drives.items():
        data.joint(joint).qpos[0] = drive.pos
    mujoco.mj_kinematics(model, data)
    heights = [data.site(sole_site(foot)).xpos[2] for foot in robot.feet]
    assert min(heights) == pytest.approx(0.0, abs=1e-4)
    assert max(heights) < 0.15 * robot.height + 1e-4
    for geom in foot_geoms(spec, robot):
        body = model.body(model.geom(geom).bodyid[0])
        carrier = model.body(body.weldid[0])
        assert {carrier.name, model.body(carrier.parentid[0]).name} & {*robot.feet}  # or of a toe
    if len(robot.feet) == 4:
        assert len(foot_geoms(spec, robot)) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ground"),
    [("ant", "flat"), ("suite", "flat"), ("cmu", "flat"), ("unitree_go1", "rough")],
)
def test_the_task_runs(name, ground):
    """Step the task: four feet stay on the ground, and feet are sensed in the order of sites."""
    spec, _ = load_spec(foreign(name))
    model = derive_legged_model(spec, effort_limit=EXPECTED[name][0])
    robot = describe_robot(spec, model)
    cfg = velocity_env_cfg(robot, ground)
    cfg.scene.num_envs, cfg.seed = 3, 5
    env = ManagerBasedRlEnv(cfg)
    env.reset()
    actions = torch.zeros(3, env.action_manager.total_action_dim)
    assert actions.shape[1] == len(model.drives)
    for _ in range(25):
        obs, reward, *_ = env.step(actions)
    assert all(torch.isfinite(group).all() for group in obs.values() if torch.is_tensor(group))
    assert torch.isfinite(reward).all()
    contact = env.scene.sensors["feet_ground_contact"].data
    assert contact.found is not None and contact.found.shape == (3, len(model.feet))
    if name == "ant":
        assert (contact.found > 0).all()
        heights = env.scene.sensors["foot_height_scan"].data.heights
        assert heights.abs().max() < 0.05
    rl_cfg, expected = velocity_rl_cfg(name, robot), velocity_rl_cfg(name, robot)
    cpu_preset(robot)(velocity_env_cfg(robot, ground), rl_cfg)
    preset = use_cpu_preset if len(model.feet) == 4 else use_biped_cpu_preset
    preset(velocity_env_cfg(robot, ground), expected)
    if name in ("suite", "cmu"):  # whose hips or wrists differ
        expected.actor.class_name = "MLPModel"
    assert rl_cfg == expected


@pytest.mark.parametrize(
    ("make", "own", "effort"),
    [
        (quadruped.get_spec, quadruped.get_quadruped_cfg, 23.7),
        (humanoid.get_spec, humanoid.get_humanoid_cfg, 80.0),
    ],
)
def test_our_own_robots(make, own, effort):
    """Find feet and joints of the robots of this package, whose configs were written by hand."""
    found = derive_legged_model(make(), effort_limit=effort)
    entity = own().build()
    assert set(found.drives) == set(entity.joint_names)
    assert found.root == entity.body_names[0]
    assert found.height == pytest.approx(own().init_state.pos[2], rel=0.3)


def edited(change) -> mujoco.MjSpec:
    """Return the ant after a change of its spec."""
    spec = mujoco.MjSpec.from_file(str(foreign("ant")))
    change(spec)
    return spec


def drop_range(spec: mujoco.MjSpec) -> None:
    """Let the first motor have no bounds."""
    spec.actuators[0].ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE


def fold_leg(spec: mujoco.MjSpec) -> None:
    """Let one foot be far above the ground."""
    body = next(j.parent for j in spec.joints if j.name == "ankle_1")
    for geom in body.geoms:
        geom.fromto = [0.0, 0.0, 0.0, 0.3, 0.3, 0.6]


def add_tip(spec: mujoco.MjSpec) -> None:
    """Let one leg end in a body that cannot touch the ground."""
    tip = next(j.parent for j in spec.joints if j.name == "ankle_1").add_body(name="tip")
    tip.add_joint(range=[-1.0, 1.0])
    tip.mass, tip.inertia, tip.explicitinertial = 0.1, [1e-4, 1e-4, 1e-4], True


def hang_up(spec: mujoco.MjSpec) -> None:
    """Let the trunk only turn."""
    spec.delete(spec.body("torso").joints[0])
    spec.body("torso").add_joint(name="hook", range=[-1.0, 1.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            drop_range,
            "no largest torque of hip_4: .*new-task NAME --robot FILE --effort-limit VALUE",
        ),
        (fold_leg, "the ground in its default pose are 3 .*--feet.* --fixed-base"),
        (lambda spec: spec.worldbody.add_body(name="ball"), r"has 2 \(torso, ball\)"),
        (hang_up, "one free joint, at its root, but the model has 0: add <freejoint/>"),
    ],
)
def test_what_is_missing_is_asked_for(change, message):
    """Say what the model lacks, and how to give it."""
    with pytest.raises(ValueError, match=message):
        derive_legged_model(edited(change))


def test_an_arm_has_no_legs():
    """Refuse a robot whose fingers would be its feet, above its root."""
    with pytest.raises(
        ValueError, match="reach the ground in its default pose are 0 .none.*--fixed-base"
    ):
        derive_legged_model(arm.get_spec(), effort_limit=27.0)


def test_what_is_missing_can_be_given():
    """Take feet and torques from the caller."""
    feet = ("ankle_1_body", "ankle_2_body", "ankle_3_body", "ankle_4_body")
    found = derive_legged_model(edited(fold_leg), feet=feet)
    assert found.feet == feet
    found = derive_legged_model(edited(drop_range), effort_limit=7.0)
    assert {drive.effort_limit for drive in found.drives.values()} == {7.0}
    found = derive_legged_model(edited(drop_range), effort_limit={"hip.*4": 7.0, "hip.*": 9.0})
    torques = {name: drive.effort_limit for name, drive in found.drives.items()}
    assert torques.pop("hip_4") == 7.0
    assert all(torque == (9.0 if "hip" in name else 150.0) for name, torque in torques.items())
    with pytest.raises(ValueError, match="'knee.*' matches none of"):
        derive_legged_model(edited(drop_range), effort_limit={"knee.*": 7.0})
    with pytest.raises(ValueError, match=r"no body \['hand'\]: choose feet from"):
        derive_legged_model(edited(lambda spec: None), feet=("hand",))
    with pytest.raises(ValueError, match=r"feet \['tip'\] have no geom that collides"):
        derive_legged_model(edited(add_tip), feet=("tip", *feet[1:]))


def test_a_root_that_is_not_upright():
    """Turn the root's frame of a robot whose y-axis is up, and leave its bodies where they are."""
    spec, _ = load_spec(foreign("cmu"))
    before, after = spec.copy().compile(), name_elements(spec.copy()).compile()
    root, turned, data = before.body("root").id, mujoco.MjData(after), mujoco.MjData(before)
    for model, state in ((before, data), (after, turned)):
        state.qpos[7:] = np.random.default_rng(0).uniform(-0.5, 0.5, model.nq - 7)
        mujoco.mj_kinematics(model, state)
        mujoco.mj_comPos(model, state)
        mujoco.mj_makeM(model, state)
    for field in ("xipos", "xanchor", "xaxis", "cinert"):
        assert getattr(turned, field) == pytest.approx(getattr(data, field), abs=1e-9), field
    floor = before.ngeom - after.ngeom
    assert turned.geom_xpos == pytest.approx(data.geom_xpos[floor:], abs=1e-9)
    assert data.xmat[root].reshape(3, 3)[2, 2] == pytest.approx(0.0, abs=1e-9)
    axes = turned.xmat[root].reshape(3, 3)
    assert axes[:, 2] == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)
    mujoco.mj_resetData(after, turned)
    mujoco.mj_kinematics(after, turned)
    for side, sign in (("l", 1.0), ("r", -1.0)):
        foot, toes = turned.body(f"{side}foot").xpos, turned.body(f"{side}toes").xpos
        assert (toes - foot) @ axes[:, 0] > 0.05
        assert sign * (foot - turned.xpos[root]) @ axes[:, 1] > 0.05
    again = name_elements(name_elements(spec.copy())).compile()
    assert np.array_equal(again.body_quat, after.body_quat)


@pytest.mark.parametrize("name", ["humanoid", "suite"])
def test_a_robot_that_lies(name):
    """Find no feet of a robot that lies on its side, and no frame in which it stands."""
    spec, _ = load_spec(foreign(name))
    spec.body("torso").quat = [0.5**0.5, 0.5**0.5, 0.0, 0.0]
    with pytest.raises(ValueError, match="z-axis of the root 'torso' is not up"):
        derive_legged_model(spec)


def test_a_robot_that_lies_on_its_back():
    """Take no arms for feet of a robot whose limbs all reach the ground."""
    spec, _ = load_spec(model_file("gymnasium", "envs/mujoco/assets/humanoidstandup.xml"))
    with pytest.raises(ValueError, match=r"in its default pose are 0 \(none\): name the last"):
        derive_legged_model(spec)


def test_toes():
    """Take toes for feet where the foot before them is in the air, as that of a dog is."""
    spec, _ = load_spec(foreign("dog"))
    found = derive_legged_model(spec, effort_limit=20.0)
    assert found.feet == ("toe_L", "toe_R", "finger_L", "finger_R")


def test_servos_keep_their_gains():
    """Take stiffness, damping and largest torque of the model's own position servos."""

    def servo(spec: mujoco.MjSpec) -> None:
        for actuator in spec.actuators:
            actuator.set_to_position(kp=80.0, kv=4.0)
            actuator.gear[0], actuator.forcerange = 2.0, [-30.0, 30.0]
            actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE

    drives = derive_legged_model(edited(servo)).drives.values()
    assert {(d.effort_limit, d.stiffness, d.damping) for d in drives} == {(60.0, 320.0, 16.0)}


def test_the_standing_keyframe_is_the_default_pose():
    """Take positions of the keyframe called home."""

    def stand(spec: mujoco.MjSpec) -> None:
        qpos = [0, 0, 0.55, 1, 0, 0, 0, 0.1, 0.9, 0.1, -0.9, 0.1, -0.9, 0.1, 0.9]
        spec.add_key(name="other", qpos=np.zeros(15))
        spec.add_key(name="home", qpos=qpos)

    found = derive_legged_model(edited(stand))
    assert [drive.pos for drive in found.drives.values()] == [
        0.1,
        0.9,
        0.1,
        -0.9,
        0.1,
        -0.9,
        0.1,
        0.9,
    ]


def test_legs_that_cannot_be_straight_stand():
    """Bend the knees halfway without a keyframe, and let each foot be below its hip."""
    spec, _ = load_spec(foreign("unitree_go1"))
    robot = derive_legged_model(spec, effort_limit=23.7)
    own = quadruped.get_quadruped_cfg()  # whose pose was chosen by hand, for the same dimensions
    assert robot.height == pytest.approx(own.init_state.pos[2], rel=0.02)
    model = name_elements(spec.copy()).compile()
    data = default_pose(model, robot)
    for foot, knee in zip(robot.feet, robot.knees, strict=True):
        low, high = model.joint(knee).range
        assert robot.drives[knee].pos == pytest.approx((low + high) / 2, rel=1e-3)
        (sole,) = (g for g in foot_geoms(spec, robot) if g.startswith(foot[:2]))
        hip = data.joint(knee.replace("calf", "thigh")).xanchor
        assert data.geom(sole).xpos[0] == pytest.approx(hip[0], abs=2e-3)
        assert data.geom(sole).xpos[2] < hip[2] - 0.2
    straight, _ = load_spec(foreign("unitree_g1"))  # whose knees can be straight
    drives = derive_legged_model(straight, effort_limit=60.0).drives
    assert drives["left_hip_pitch_joint"].pos == 0.0 < drives["left_knee_joint"].pos < 0.07


@pytest.mark.parametrize(
    ("name", "effort"), [("unitree_go1", 23.7), ("unitree_g1", 60.0), ("ant", None)]
)
def test_gains_hold_the_weight(name, effort):
    """Keep the height of the default pose for half a second."""
    spec, _ = load_spec(foreign(name))
    model = derive_legged_model(spec, effort_limit=effort)
    assert settled_height(describe_robot(spec, model)) > 0.9 * model.height


def test_joints_without_actuators():
    """Build the task of dm_control's dog, whose spine and toes hang on tendons."""
    spec, _ = load_spec(model_file("dm_control", "locomotion/walkers/assets/dog_v2/dog.xml"))
    model = derive_legged_model(spec)
    robot = describe_robot(spec, model)
    cfg = velocity_env_cfg(robot)
    cfg.scene.num_envs = 1
    env = ManagerBasedRlEnv(cfg)
    obs, *_ = env.step(torch.zeros(1, len(model.drives)))
    assert env.scene["robot"].num_joints > len(model.drives) == 30
    assert list(env.reward_manager.get_term_cfg("pose").params["asset_cfg"].joint_names) == [
        name for name in env.scene["robot"].joint_names if name in model.drives
    ]
    assert torch.isfinite(obs["actor"]).all()


def test_weak_motors_get_stiffer_legs():
    """Let the joints of legs yield 0.1 rad under the robot's weight at most, as the levers say."""
    spec, _ = load_spec(foreign("unitree_go1"))
    robot = derive_legged_model(spec, effort_limit=10.0)
    mass = name_elements(spec.copy()).compile().body_mass.sum()
    (stiffness,) = {drive.stiffness for drive in robot.drives.values()}
    lever = 0.213 * math.sin(robot.drives["FR_thigh_joint"].pos)  # of the knee, on the ground
    assert stiffness == pytest.approx(9.81 * mass / 4 * lever / 0.1, rel=0.05)
    strong = derive_legged_model(spec, effort_limit=200.0)
    assert {drive.stiffness for drive in strong.drives.values()} == {200.0}
    too_weak = derive_legged_model(spec, effort_limit=1.0)  # which can only hold 1 N m
    assert {drive.stiffness for drive in too_weak.drives.values()} == {10.0}


def test_a_fixed_root_is_freed(tmp_path):
    """Free a robot that its file fixes to the world, as URDF files do."""

    def fix(spec: mujoco.MjSpec) -> None:
        spec.delete(spec.body("torso").joints[0])

    path = tmp_path / "fixed.xml"
    path.write_text(edited(fix).to_xml())
    free, fixed = derive_robot(foreign("ant")), derive_robot(path)
    assert dataclasses.replace(fixed, feet=free.feet) == free
    assert isinstance(fixed, LeggedModel) and len(fixed.feet) == 4


def test_feet_that_are_wheels():
    """Warn of feet that turn without limits about their middle, not of knees without limits."""

    def free_knees(spec: mujoco.MjSpec) -> None:
        for joint in spec.joints:
            joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE

    feet = derive_legged_model(edited(lambda spec: None)).feet
    model = derive_legged_model(edited(free_knees), feet, effort_limit=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        legged_entity(edited(free_knees), model).spec_fn()
    rolling = name_elements(edited(lambda spec: None))
    for foot in feet:
        leg = rolling.body(foot)
        wheel = leg.add_body(name=f"{foot}_wheel", pos=leg.geoms[0].fromto[3:])
        joint = wheel.add_joint(name=f"{foot}_wheel", axis=[0, 1, 0])
        joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
        wheel.add_geom(size=[0.08, 0.02, 0], type=mujoco.mjtGeom.mjGEOM_CYLINDER)
    names = [f"{foot}_wheel" for foot in feet]
    model = derive_legged_model(rolling, names, effort_limit=20.0)
    with pytest.warns(UserWarning, match=rf"feet \['{names[0]}', .*are probably wheels"):
        legged_entity(rolling, model).spec_fn()
