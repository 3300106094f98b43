"""Reward, termination and metric terms against MuJoCo C's quantities and by hand."""

import math

import mujoco
import pytest
import torch

from manyworlds.actuator import TransmissionType, XmlActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import mdp
from manyworlds.managers import RewardTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from tests.envs.mdp.robot import make_env, shake


@pytest.fixture
def env(engine):
    """Four worlds in different motion."""
    env = make_env()
    shake(env)
    return env


def named(env, **names) -> SceneEntityCfg:
    """Name parts of the robot."""
    cfg = SceneEntityCfg("robot", **names)
    cfg.resolve(env.scene)
    return cfg


def rows(env, field: str, *names: str) -> torch.Tensor:
    """Pick elements of a field of MuJoCo's by name, as doubles."""
    model = env.sim.mj_model
    if field == "actuator_force":
        ids = [model.actuator(f"robot/{name}").id for name in names]
    else:
        ids = [model.joint(f"robot/{name}").dofadr[0] for name in names]
    return getattr(env.sim.data, field)[:, ids].double()


@pytest.mark.parametrize(
    ("term", "field", "kind"),
    [
        (mdp.joint_torques_l2, "actuator_force", "actuator"),
        (mdp.joint_vel_l2, "qvel", "joint"),
        (mdp.joint_acc_l2, "qacc", "joint"),
    ],
)
def test_sums_of_squares(env, term, field, kind):
    """Square and sum the elements named, and no others."""
    cfg = named(env, **{f"{kind}_names": ("shoulder", "finger")})
    expected = rows(env, field, "shoulder", "finger").square().sum(dim=1)
    assert (expected > 0).all() and term(env, cfg).shape == (4,)
    torch.testing.assert_close(term(env, cfg).double(), expected, rtol=1e-6, atol=0)


def test_action_differences(env):
    """Take first and second differences of the last three actions."""
    a, b, c = torch.rand(3, 4, 2)
    for action in (a, b, c):
        env.action_manager.process_action(action)
    second = c - 2 * b + a
    torch.testing.assert_close(mdp.action_rate_l2(env), (c - b).square().sum(1))
    torch.testing.assert_close(mdp.action_acc_l2(env), second.square().sum(1))
    torch.testing.assert_close(mdp.mean_action_acc(env), second.abs().mean(1))


def test_joint_limits_count_only_beyond_soft_ones():
    """Add up how far joints are beyond half their range; joints without limits never are."""
    env = make_env(num_envs=2)
    robot = env.scene["robot"]
    robot.write_joint_position_to_sim(torch.tensor([[0.6, -1.0, 9.0, 9.0], [0.5, 0.7, -9.0, 0.0]]))
    shoulder, elbow = math.radians(30), math.radians(45)
    expected = torch.tensor([0.6 - shoulder + 1.0 - elbow, 0.0])
    torch.testing.assert_close(mdp.joint_pos_limits(env), expected)
    only = named(env, joint_names="elbow")
    torch.testing.assert_close(
        mdp.joint_pos_limits(env, only), torch.tensor([1.0 - elbow, 0.0]), atol=1e-6, rtol=0
    )


def tilted(angles: list[float]):
    """Make worlds whose robots are tilted by angles [rad], at heights 0, 1, 2 ..."""
    env = make_env(num_envs=len(angles))
    half = 0.5 * torch.tensor(angles)
    zero = torch.zeros_like(half)
    height = torch.arange(len(angles), dtype=torch.float32)
    pose = torch.stack([zero, zero, height, half.cos(), half.sin(), zero, zero], dim=1)
    env.scene["robot"].write_root_link_pose_to_sim(pose)
    env.sim.forward()
    return env


def test_orientation_and_height():
    """Tell tilted and low roots: at 100 degrees, too, where the sine falls again."""
    angles = [0.0, 0.3, 0.5, 1.75, -0.45]
    env = tilted(angles)
    sine = torch.tensor(angles).sin().square()
    torch.testing.assert_close(mdp.flat_orientation_l2(env), sine, atol=1e-6, rtol=0)
    assert mdp.bad_orientation(env, 0.4).tolist() == [False, False, True, True, True]
    assert mdp.bad_orientation(env, 1.7).tolist() == [False, False, False, True, False]
    low = mdp.root_height_below_minimum(env, 1.5)
    assert low.tolist() == [True, True, False, False, False]


def test_posture_takes_the_first_pattern_that_matches(env):
    """Weigh each joint's distance to its default by its own deviation."""
    cfg = named(env, joint_names=("shoulder", "elbow", "finger"))
    std = {"shoulder": 0.1, "(shoulder|elbow)": 0.5, ".*": 2.0}
    params = {"std": std, "asset_cfg": cfg}
    term = mdp.posture(RewardTermCfg(func=mdp.posture, weight=1.0, params=params), env)
    error = mdp.joint_pos_rel(env, asset_cfg=cfg).double()
    expected = (-(error / torch.tensor([0.1, 0.5, 2.0])).square().mean(dim=1)).exp()
    torch.testing.assert_close(term(env, **params).double(), expected, rtol=1e-4, atol=1e-6)
    two = SceneEntityCfg("robot", joint_ids=slice(1, 3))  # elbow and finger
    expected = (-(error[:, 1:] / torch.tensor([0.5, 2.0])).square().mean(dim=1)).exp()
    torch.testing.assert_close(
        term(env, {"elbow": 0.5, ".*": 2.0}, two).double(), expected, rtol=1e-4, atol=1e-6
    )
    expected = (-(error / 0.7).square().mean(dim=1)).exp()
    torch.testing.assert_close(term(env, 0.7, cfg).double(), expected, rtol=1e-4, atol=1e-6)


def test_posture_follows_a_change_of_its_deviations_in_place(env):
    """Compute with the deviations that a curriculum wrote into the params."""
    asset_cfg = SceneEntityCfg("robot")
    deviations = {".*": 0.5}
    params = {"std": deviations, "asset_cfg": asset_cfg}
    term = mdp.posture(RewardTermCfg(func=mdp.posture, weight=1.0, params=params), env)
    error = env.scene["robot"].data.joint_pos - env.scene["robot"].data.default_joint_pos
    deviations[".*"] = 0.1
    expected = torch.exp(-(error / 0.1).square().mean(dim=1))
    torch.testing.assert_close(term(env, **params), expected)


def test_posture_needs_a_deviation_for_each_joint(env):
    """Name the joint that no pattern matches."""
    params = {"std": {"shoulder": 0.1}, "asset_cfg": named(env)}
    with pytest.raises(ValueError, match="positive std for joint 'elbow'"):
        mdp.posture(RewardTermCfg(func=mdp.posture, weight=1.0, params=params), env)


def test_electrical_power_counts_actuated_joints_that_are_driven(env):
    """Add up positive power only, and not that of the joint without an actuator."""
    shake(env)
    cfg = named(env, joint_names=("shoulder", "finger", "loose"))
    params = {"asset_cfg": cfg}
    term = mdp.electrical_power_cost(
        RewardTermCfg(func=mdp.electrical_power_cost, weight=1.0, params=params), env
    )
    power = rows(env, "qfrc_actuator", "shoulder", "finger") * rows(
        env, "qvel", "shoulder", "finger"
    )
    assert (power < 0).any() and (power > 0).any()
    env.sim.data.qfrc_actuator[:, -1] = 100.0  # of "loose", which has none
    expected = power.clamp_min(0).sum(dim=1)
    torch.testing.assert_close(term(env, cfg).double(), expected, rtol=1e-5, atol=1e-7)


MOTORS = """
<mujoco>
  <worldbody>
    <body name="a"><joint name="a"/><geom size=".1"/></body>
    <body name="b"><joint name="b"/><geom size=".1"/></body>
    <body name="c"><joint name="c" actuatorfrcrange="-5 5"/><geom size=".1"/></body>
  </worldbody>
  <tendon>
    <fixed name="pull"><joint joint="b" coef="1"/></fixed>
    <fixed name="twist"><joint joint="a" coef="1"/><joint joint="b" coef="-2"/></fixed>
  </tendon>
  <actuator>
    <motor name="a" joint="a" gear="2"/><motor name="pull" tendon="pull" gear="-3"/>
    <motor name="twist" tendon="twist"/><motor name="c1" joint="c"/><motor name="c2" joint="c"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize(
    ("ctrl", "joints", "power"),
    [
        ([5, 0, 0, 0, 0], ".*", 5 * 2 * 3.0),  # 30 W
        ([5, -5, 0, 0, 0], ".*", 30.0 + 5 * 3 * 2.0),  # and as much of the tendon
        ([5, -5, 0, 0, 0], "a", 30.0),
        ([0, -5, 0, 0, 0], "b", 30.0),
        ([0, 5, 0, 0, 0], ".*", 0.0),  # it brakes
        ([0, 0, 1, 0, 0], ".*", 0.0),  # 3 W to a, 4 W from b: the motor brakes
        ([0, 0, -1, 0, 0], "a", 1.0),
        ([4, 0, -1, 0, 0], "a", 4 * 2 * 3.0 + 1.0),  # one joint, two motors
        ([0, 0, 0, 7, -3], "c", 4.0 * 1.5),  # two actuators of one joint
        ([0, 0, 0, 7, 3], "c", 5.0 * 1.5),  # within the limit of the joint
    ],
)
def test_electrical_power_counts_motors_of_tendons(ctrl, joints, power):
    """Count 60 W of a motor on a joint and one on a tendon, each by its own effort and velocity."""
    kinds = {
        TransmissionType.JOINT: ("a", "c"),
        TransmissionType.TENDON: ("pull", "twist"),
    }
    robot = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(MOTORS),
        articulation=EntityArticulationInfoCfg(
            tuple(
                XmlActuatorCfg(target_names_expr=names, transmission_type=kind)
                for kind, names in kinds.items()
            )
        ),
    )
    env = make_env(scene=SceneCfg(num_envs=2, entities={"robot": robot}), actions={})
    env.sim.data.qvel[:] = torch.tensor([3.0, 2.0, 1.5])
    env.sim.data.ctrl[:] = torch.tensor(ctrl, dtype=torch.float32)
    env.sim.forward()
    cfg = named(env, joint_names=joints)
    params = {"asset_cfg": cfg}
    term = mdp.electrical_power_cost(
        RewardTermCfg(func=mdp.electrical_power_cost, weight=1.0, params=params), env
    )
    torch.testing.assert_close(term(env, cfg), torch.full((2,), power))


def test_alive_and_terminated_are_opposites(env):
    """Count failures, not time-outs."""
    env.termination_manager._terminated[1] = True
    env.termination_manager._time_outs[2] = True
    assert mdp.is_terminated(env).tolist() == [0, 1, 0, 0]
    assert mdp.is_alive(env).tolist() == [1, 0, 1, 1]
