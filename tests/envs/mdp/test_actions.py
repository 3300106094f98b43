"""Actions: their targets by formula, and what they follow."""

import copy
import warnings
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.actuator import (
    ActuatorCfg,
    BuiltinDcMotorActuatorCfg,
    DcMotorPhysicalParams,
    IdealPdActuatorCfg,
    XmlActuatorCfg,
    XmlMotorActuatorCfg,
    XmlPositionActuatorCfg,
)
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.scene import SceneCfg
from manyworlds.spec.transmissions import TransmissionType
from tests.envs.mdp.robot import make_env, shake

JOINTS = ("shoulder", "elbow")


@pytest.fixture
def env(engine):
    """Four worlds in different motion."""
    env = make_env()
    shake(env)
    return env


def run(env, cfg: mdp.BaseActionCfg, action: torch.Tensor) -> mdp.BaseAction:
    """Build a term, and give it an action."""
    before = copy.deepcopy(cfg)
    term = cfg.build(env)
    term.process_actions(action)
    term.apply_actions()
    assert cfg == before
    return term


@pytest.mark.parametrize(
    ("cfg", "names", "target"),
    [
        (mdp.JointPositionActionCfg, JOINTS, "joint_pos_target"),
        (mdp.JointVelocityActionCfg, ("finger",), "joint_vel_target"),
        (mdp.JointEffortActionCfg, JOINTS, "joint_effort_target"),
        (mdp.TendonLengthActionCfg, ("sum",), "tendon_len_target"),
        (mdp.TendonVelocityActionCfg, ("sum",), "tendon_vel_target"),
        (mdp.TendonEffortActionCfg, ("sum",), "tendon_effort_target"),
        (mdp.SiteEffortActionCfg, ("tip",), "site_effort_target"),
    ],
)
def test_each_kind_sets_its_own_target(env, cfg, names, target):
    """Write `clip(scale * action + offset)` to the targets named, and nothing else."""
    robot = env.scene["robot"]
    robot.reset()
    options: dict[str, Any] = {"scale": 2.0, "offset": 0.5, "clip": {names[0]: (-1.0, 1.0)}}
    if hasattr(cfg, "use_default_offset"):
        options["use_default_offset"] = False
    kinds = ("joint_pos_target", "joint_vel_target", "joint_effort_target", target)
    before = {kind: getattr(robot.data, kind).clone() for kind in kinds}
    action = torch.linspace(-1.2, 0.9, 4 * len(names)).reshape(4, -1)
    term = run(env, cfg(entity_name="robot", actuator_names=names, **options), action)
    expected = 2.0 * action + 0.5
    expected[:, 0].clamp_(-1.0, 1.0)
    assert (expected[:, 0].abs() == 1.0).any() and (expected[:, 0].abs() < 1.0).any()
    kind = term.transmission_type.value
    columns = [robot.names(kind).index(name) for name in names]
    written = getattr(robot.data, target)
    assert term.target_names == list(names) and term.target_ids.tolist() == columns
    torch.testing.assert_close(written[:, columns], expected)
    assert torch.equal(term.raw_action, action) and term.action_dim == len(names)
    torch.testing.assert_close(term._processed_actions, expected)
    before[target][:, columns] = written[:, columns]
    assert all(torch.equal(getattr(robot.data, kind), before[kind]) for kind in kinds)
    term.reset([1])
    assert not term.raw_action[1].any() and torch.equal(term.raw_action[2], action[2])


def test_a_term_may_keep_its_last_targets():
    """Make new tensors, so that kept targets of the last step stay as they were, resets included.

    A rollout in inference mode may be followed by a reset outside of it.
    """
    env = make_env()
    term = env.action_manager.get_term("position")
    action = torch.randn(4, 2)
    with torch.inference_mode():
        env.step(action)
    first = term._processed_actions
    kept = first.clone()
    env.step(-action)
    second = term._processed_actions
    env.reset(env_ids=[1])
    assert torch.equal(first, kept) and not torch.equal(second, kept)
    assert second[1].all() and not term._processed_actions[1].any()
    assert torch.equal(term._processed_actions[2:], second[2:])


def test_scale_and_offset_by_pattern(env):
    """Look up factors and offsets by name; the others are 1 and 0."""
    cfg = mdp.JointPositionActionCfg(
        entity_name="robot",
        actuator_names=("shoulder", "elbow"),
        scale={"elb.*": 3.0},
        offset={"shoulder": 0.1},
        use_default_offset=False,
    )
    action = torch.randn(4, 2)
    term = run(env, cfg, action)
    assert term.scale.tolist() == [[1.0, 3.0]] * env.num_envs
    expected = action * torch.tensor([1.0, 3.0]) + torch.tensor([0.1, 0.0])
    torch.testing.assert_close(env.scene["robot"].data.joint_pos_target[:, :2], expected)


def test_order_is_that_of_the_model_or_of_the_patterns(env):
    """Follow the model unless told to follow the patterns."""
    names = ("finger", "elbow", "shoulder")
    for preserve, expected in ((False, names[::-1]), (True, names)):
        cfg = mdp.JointEffortActionCfg(
            entity_name="robot", actuator_names=names, preserve_order=preserve
        )
        action = torch.randn(4, 3)
        term = run(env, cfg, action)
        assert tuple(term.target_names) == expected
        joints = [env.scene["robot"].joint_names.index(name) for name in expected]
        assert torch.equal(env.scene["robot"].data.joint_effort_target[:, joints], action)


def test_position_follows_present_defaults_and_encoders():
    """Add defaults as they are now, and take out what encoders add."""
    env = make_env()
    robot = env.scene["robot"]
    term = env.action_manager.get_term("position")
    env.sim.expand_model_fields(("qpos0",))
    adr = env.sim.mj_model.joint("robot/elbow").qposadr[0]
    env.sim.model.qpos0[2, adr] += 0.4
    robot.data.encoder_bias[1, 0] = 0.03
    action = torch.randn(4, 2)
    term.process_actions(action)
    term.apply_actions()
    defaults = torch.tensor([0.3, -0.2]).repeat(4, 1)
    defaults[2, 1] += 0.4
    torch.testing.assert_close(term.offset, defaults)
    expected = 0.5 * action + defaults
    expected[1, 0] -= 0.03
    torch.testing.assert_close(robot.data.joint_pos_target[:, :2], expected)


def test_velocity_is_relative_to_default_velocities(env):
    """Add default joint velocities."""
    cfg = mdp.JointVelocityActionCfg(entity_name="robot", actuator_names=("finger",))
    action = torch.randn(4, 1)
    run(env, cfg, action)
    target = env.scene["robot"].data.joint_vel_target[:, 2:3]
    torch.testing.assert_close(target, action + 0.05)


def test_relative_positions_follow_the_joints_in_each_physics_step():
    """Add the present positions at each physics step."""
    cfg = mdp.RelativeJointPositionActionCfg(
        entity_name="robot", actuator_names=JOINTS, scale={"elbow": 0.1}
    )
    env = make_env(actions={"relative": cfg}, decimation=3)
    robot, targets = env.scene["robot"], []
    write = robot.write_data_to_sim

    def recorded():
        targets.append((robot.data.joint_pos_target[:, :2] - robot.data.joint_pos[:, :2]).clone())
        write()

    robot.write_data_to_sim = recorded
    action = torch.randn(4, 2)
    env.step(action)
    assert len(targets) == 3
    for target in targets:
        torch.testing.assert_close(target, action * torch.tensor([1.0, 0.1]), atol=1e-6, rtol=0)


def test_relative_positions_have_no_offset():
    """Refuse an offset, with which a zero action would move."""
    with pytest.raises(ValueError, match="offset"):
        mdp.RelativeJointPositionActionCfg(
            entity_name="robot", actuator_names=JOINTS, offset={"elbow": 0.1}
        )


@pytest.mark.parametrize(
    ("cfg", "options", "message"),
    [
        (mdp.JointEffortActionCfg, {"actuator_names": ("hip",)}, "matches none of"),
        (mdp.TendonEffortActionCfg, {"actuator_names": ()}, "action on tendons is empty"),
        (mdp.JointEffortActionCfg, {"actuator_names": ("sum",)}, "none of the joints .*'finger'"),
        (
            mdp.JointEffortActionCfg,
            {"actuator_names": JOINTS, "transmission_type": TransmissionType.SITE},
            "drives joints, but its transmission_type is 'site'",
        ),
        (
            mdp.SiteEffortActionCfg,
            {"actuator_names": ("tip",), "transmission_type": TransmissionType.TENDON},
            "drives sites, but its transmission_type is 'tendon'",
        ),
        (
            mdp.JointPositionActionCfg,
            {"actuator_names": JOINTS, "offset": 0.1},
            "use_default_offset=False",
        ),
        (
            mdp.JointEffortActionCfg,
            {"actuator_names": JOINTS, "scale": {"knee": 1.0}},
            "'knee' matches none",
        ),
    ],
)
def test_contradictions_are_refused(env, cfg, options, message):
    """Say at build time what cannot be."""
    with pytest.raises(ValueError, match=message):
        cfg(entity_name="robot", **options).build(env)


@pytest.mark.parametrize(
    ("cfg", "kind"),
    [
        (mdp.JointEffortActionCfg, TransmissionType.JOINT),
        (mdp.TendonEffortActionCfg, TransmissionType.TENDON),
        (mdp.SiteEffortActionCfg, TransmissionType.SITE),
    ],
)
def test_the_kind_of_targets_is_that_of_the_action(cfg, kind):
    """Set the kind whether it is left out or given."""
    for given in ({}, {"transmission_type": kind}):
        made = cfg(entity_name="robot", actuator_names=(".*",), **given)
        assert made.transmission_type == kind


def test_actions_are_part_of_the_state(env):
    """Save and restore raw and processed actions."""
    env.step(torch.ones(4, 2))
    state = env.action_manager.state_dict()
    env.step(torch.zeros(4, 2))
    env.action_manager.load_state_dict(state)
    term = env.action_manager.get_term("position")
    assert (term.raw_action == 1).all()
    torch.testing.assert_close(term._processed_actions, 0.5 + term.offset)


def make_device(xml: str, *actuators: XmlActuatorCfg) -> ManagerBasedRlEnv:
    """Build two worlds of a device whose file has actuators; nothing acts yet."""
    device = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        articulation=EntityArticulationInfoCfg(actuators),
    )
    return make_env(scene=SceneCfg(num_envs=2, entities={"device": device}), actions={})


CART = """
<mujoco>
  <worldbody><body name="cart">
    <joint name="slider" type="slide"/><geom size=".1"/>
    <body name="pole"><joint name="hinge_1"/><geom size=".1"/></body>
  </body></worldbody>
  <actuator><motor name="slide" joint="slider"/><motor name="b" joint="hinge_1"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize("name", ["slider", "slide", "slid.*", ".*[ed].*r"])
def test_actuators_of_the_file_go_by_joint_names_or_their_own(name: str):
    """Drive the joint, with values by either name."""
    env = make_device(CART, XmlMotorActuatorCfg(target_names_expr=("slider", "hinge_1")))
    cfg = mdp.JointEffortActionCfg(
        entity_name="device",
        actuator_names=(name,),
        scale={"slide": 3.0},
        offset={"slider": 0.5},
        clip={".*lide.*": (-2.0, 2.0)},
    )
    term = run(env, cfg, torch.tensor([[0.25], [1.0]]))
    assert term.target_names == ["slider"] and term.target_ids.tolist() == [0]
    env.scene["device"].write_data_to_sim()
    assert env.sim.data.ctrl.tolist() == [[1.25, 0.0], [2.0, 0.0]]


def test_targets_that_no_configuration_follows():
    """Leave them out of a pattern with a warning; refuse a pattern that matches nothing else."""
    env = make_device(CART, XmlActuatorCfg(target_names_expr=("slider",)))
    lost = r"follows the targets of joints \['hinge_1'\]"
    for names in (("b",), ("hinge_1",), ("slider", "hinge.*")):
        with pytest.raises(ValueError, match=lost):
            mdp.JointEffortActionCfg(entity_name="device", actuator_names=names).build(env)
    with pytest.warns(UserWarning, match=lost):
        term = mdp.JointEffortActionCfg(entity_name="device", actuator_names=(".*",)).build(env)
    assert term.target_names == ["slider"]


SERVO_AND_MOTOR = """
<mujoco>
  <worldbody><body name="arm">
    <joint name="j1"/><geom size=".1"/>
    <body name="hand"><joint name="j2"/><geom size=".1"/></body>
  </body></worldbody>
  <actuator>
    <position name="j1_servo" joint="j1" kp="10"/><motor name="j1_motor" joint="j1"/>
    <position name="j2_servo" joint="j2" kp="10"/>
  </actuator>
</mujoco>
"""


def test_two_actuators_of_one_joint():
    """Give each its own kind of target, selected by the joint's name or by its own."""
    follow = (
        XmlPositionActuatorCfg(target_names_expr=("j.*",)),
        XmlMotorActuatorCfg(target_names_expr=("j1",)),
    )
    env = make_device(SERVO_AND_MOTOR, *follow)
    for names in (("j.*",), ("j1", "j2"), ("j[12]_servo",), ("j1_.*", "j2")):
        cfg = mdp.JointPositionActionCfg(entity_name="device", actuator_names=names)
        term = run(env, cfg, torch.tensor([[0.1, 0.2], [0.3, 0.4]]))
        assert term.target_names == ["j1", "j2"]
    effort = mdp.JointEffortActionCfg(entity_name="device", actuator_names=("j1_motor",))
    run(env, effort, torch.tensor([[5.0], [6.0]]))
    env.scene["device"].write_data_to_sim()
    expected = torch.tensor([[0.1, 5.0, 0.2], [0.3, 6.0, 0.4]])
    torch.testing.assert_close(env.sim.data.ctrl, expected)


GRIPPER = """
<mujoco>
  <worldbody><body name="palm">
    <joint name="lift" type="slide"/><geom size=".1"/>
    <body name="l"><joint name="left" type="slide"/><geom size=".1"/></body>
    <body name="r"><joint name="right" type="slide"/><geom size=".1"/></body>
  </body></worldbody>
  <tendon>
    <fixed name="split"><joint joint="left" coef=".5"/><joint joint="right" coef=".5"/></fixed>
  </tendon>
  <actuator>
    <position name="fingers" tendon="split" kp="10"/><position name="z" joint="lift" kp="10"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize("name", ["split", "fingers", ".*"])
def test_a_gripper_with_a_tendon(name: str):
    """Drive the tendon by its name or by its actuator's; the joint action drives the joint."""
    follow = (
        XmlActuatorCfg(target_names_expr=("split",), transmission_type=TransmissionType.TENDON),
        XmlActuatorCfg(target_names_expr=("lift",)),
    )
    env = make_device(GRIPPER, *follow)
    cfg = mdp.TendonLengthActionCfg(
        entity_name="device", actuator_names=(name,), scale={"fingers": 0.04}
    )
    run(env, cfg, torch.tensor([[0.5], [1.0]]))
    run(
        env,
        mdp.JointPositionActionCfg(entity_name="device", actuator_names=(".*",)),
        torch.tensor([[0.1], [0.2]]),
    )
    env.scene["device"].write_data_to_sim()
    torch.testing.assert_close(env.sim.data.ctrl, torch.tensor([[0.02, 0.1], [0.04, 0.2]]))


QUADROTOR = """
<mujoco>
  <worldbody><body name="frame" pos="0 0 1"><freejoint/><geom size=".1"/>
    <site name="rotor_a" pos=".1 .1 0"/><site name="rotor_b" pos="-.1 .1 0"/>
    <site name="rotor_c" pos="-.1 -.1 0"/><site name="rotor_d" pos=".1 -.1 0"/>
  </body></worldbody>
  <actuator>
    <motor name="thrust1" site="rotor_c" gear="0 0 1 0 0 -.02"/>
    <motor name="thrust2" site="rotor_a" gear="0 0 1 0 0 -.02"/>
    <motor name="thrust3" site="rotor_b" gear="0 0 1 0 0 .02"/>
    <motor name="thrust4" site="rotor_d" gear="0 0 1 0 0 .02"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize(
    ("names", "preserve", "order"),
    [
        (("rotor_.*",), False, "abcd"),
        (("thrust.*",), False, "abcd"),
        (("thrust1", "rotor_d", "thrust2"), True, "cda"),
    ],
)
def test_thrusters_of_a_quadrotor(names: tuple[str, ...], preserve: bool, order: str):
    """Drive sites by their names or those of their actuators, in either order."""
    follow = XmlActuatorCfg(
        target_names_expr=("rotor_.*",), transmission_type=TransmissionType.SITE
    )
    env = make_device(QUADROTOR, follow)
    cfg = mdp.SiteEffortActionCfg(
        entity_name="device",
        actuator_names=names,
        preserve_order=preserve,
        clip={"thrust1": (0.0, 1.5)},
    )
    action = torch.arange(1.0, 1.0 + 2 * len(order)).reshape(2, -1)
    term = run(env, cfg, action)
    assert term.target_names == [f"rotor_{letter}" for letter in order]
    env.scene["device"].write_data_to_sim()
    expected = torch.zeros(2, 4)
    for column, letter in enumerate(order):
        high = 1.5 if letter == "c" else torch.inf
        expected[:, "cabd".index(letter)] = action[:, column].clamp(max=high)
    torch.testing.assert_close(env.sim.data.ctrl, expected)


def test_patterns_with_two_meanings_are_refused():
    """List both readings of a pattern in an environment, for targets and for values."""
    crossed = CART.replace('name="slide"', 'name="hinge_1"').replace('name="b"', 'name="slider"')
    env = make_device(crossed, XmlActuatorCfg(target_names_expr=(".*",)))
    message = r"\['slider'\] by their own names, but \['hinge_1'\] by the names of their actuators"
    with pytest.raises(ValueError, match=message):
        mdp.JointEffortActionCfg(entity_name="device", actuator_names=("slider",)).build(env)
    cfg = mdp.JointEffortActionCfg(
        entity_name="device", actuator_names=(".*",), scale={"slider": 2.0}
    )
    with pytest.raises(ValueError, match=message):
        cfg.build(env)


GEARED = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="upper" gravcomp="1">
      <joint name="shoulder" axis="0 1 0" damping="1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
      <body name="lower" pos=".3 0 0" gravcomp="1">
        <joint name="elbow" axis="0 1 0" damping="1"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
        <site name="tip" pos=".3 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum"><joint joint="shoulder" coef="1"/><joint joint="elbow" coef="1"/></fixed>
  </tendon>
  <actuator>{}</actuator>
</mujoco>
"""
SERVOS = "".join(
    f'<position joint="{joint}" kp="20" kv="1" gear="{gear}"/>'
    for joint, gear in (("shoulder", 2.0), ("elbow", -0.5))
)
BY_NAME: dict[str, Any] = {"target_names_expr": (".*",)}
DC: dict[str, Any] = {
    "motor_params": DcMotorPhysicalParams(kt=0.5, ke=0.5, resistance=2.0),
    "voltage_limit": 1e3,
}


def _settle(actuators: str, cfg: ActuatorCfg, action: mdp.JointPositionActionCfg, u: float):
    """Return where the joints come to rest under a constant action."""
    robot = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(GEARED.format(actuators)),
        init_state=EntityCfg.InitialStateCfg(joint_pos={"shoulder": 0.8, "elbow": -0.3}),
        articulation=EntityArticulationInfoCfg((cfg,)),
    )
    scene = SceneCfg(num_envs=2, entities={"robot": robot})
    env = make_env(scene=scene, actions={"q": action}, decimation=10)
    for _ in range(100):
        env.step(torch.full((2, 2), u))
    return env.scene["robot"].data.joint_pos


@pytest.mark.parametrize(
    ("xml", "cfg"),
    [
        (SERVOS, XmlActuatorCfg(**BY_NAME)),
        (SERVOS, XmlPositionActuatorCfg(**BY_NAME, delay_min_lag=3, delay_max_lag=3)),
        ("", BuiltinDcMotorActuatorCfg(**BY_NAME, **DC, stiffness=20.0, damping=1.0, gear=-3.0)),
    ],
    ids=["servo", "late servo", "dc motor"],
)
def test_joint_positions_are_those_of_the_joint_behind_a_gear(xml, cfg):
    """Rest in the default pose with zero actions, and as far from it as actions say."""
    names: dict[str, Any] = {"entity_name": "robot", "actuator_names": (".*",)}
    default = torch.tensor([[0.8, -0.3]]).expand(2, 2)
    for u in (0.0, 0.2):
        rest = _settle(xml, cfg, mdp.JointPositionActionCfg(**names), u)
        torch.testing.assert_close(rest, default + u, atol=1e-4, rtol=0.0)


def test_relative_positions_hold_the_joint_behind_a_gear():
    """Stay with zero actions relative to the present positions."""
    cfg = mdp.RelativeJointPositionActionCfg(entity_name="robot", actuator_names=(".*",))
    rest = _settle(SERVOS, XmlActuatorCfg(**BY_NAME), cfg, 0.0)
    torch.testing.assert_close(rest, torch.tensor([[0.8, -0.3]]).expand(2, 2), atol=1e-4, rtol=0.0)


def test_velocities_and_tendons_have_gears():
    """Send `gear` times velocities of joints, and lengths and velocities of tendons."""
    xml = """
        <velocity joint="shoulder" kv="1" gear="2"/><position tendon="sum" kp="5" gear="-3"/>
    """
    env = make_device(
        GEARED.format(xml),
        XmlActuatorCfg(target_names_expr=("shoulder",)),
        XmlActuatorCfg(target_names_expr=("sum",), transmission_type=TransmissionType.TENDON),
    )
    spin = mdp.JointVelocityActionCfg(entity_name="device", actuator_names=("shoulder",))
    pull = mdp.TendonLengthActionCfg(entity_name="device", actuator_names=("sum",))
    run(env, spin, torch.tensor([[0.5], [1.0]]))
    run(env, pull, torch.tensor([[0.1], [0.2]]))
    env.scene["device"].write_data_to_sim()
    expected = torch.tensor([[1.0, -0.3], [2.0, -0.6]])
    torch.testing.assert_close(env.sim.data.ctrl, expected)


def test_a_gear_of_one_world_scales_its_targets_alone(engine):
    """Keep the default pose in worlds whose gears differ, as `dr.actuator_gear` writes them."""
    env = make_device(GEARED.format(SERVOS), XmlActuatorCfg(**BY_NAME))
    cfg = mdp.JointPositionActionCfg(entity_name="device", actuator_names=(".*",))
    env.sim.model.actuator_gear[1, :, 0] *= 1.5
    run(env, cfg, torch.full((2, 2), 0.2))
    env.scene["device"].write_data_to_sim()
    expected = torch.tensor([[0.4, -0.1], [0.6, -0.15]])
    torch.testing.assert_close(env.sim.data.ctrl, expected)


DEAF = (
    (mdp.JointPositionActionCfg, "<motor {}/>", "effort targets, so position targets"),
    (mdp.RelativeJointPositionActionCfg, "<motor {}/>", "effort targets, so position targets"),
    (mdp.JointVelocityActionCfg, "<motor {}/>", "effort targets, so velocity targets"),
    (mdp.JointEffortActionCfg, '<position {} kp="5"/>', "position targets, so effort targets"),
    (mdp.JointVelocityActionCfg, '<position {} kp="5"/>', "position targets, so velocity targets"),
    (mdp.JointPositionActionCfg, '<velocity {} kv="5"/>', "velocity targets, so position targets"),
)


@pytest.mark.parametrize(("cfg", "element", "message"), DEAF)
def test_actions_without_effect_are_named(cfg, element, message):
    """Warn of the joints whose actuators do not take targets of the kind."""
    joints = ('joint="shoulder"', 'joint="elbow"')
    kinds = {"position": '<position {} kp="5"/>', "velocity": '<velocity {} kv="5"/>'}
    other = kinds.get(cfg.term.command_field, "<motor {}/>")
    each = tuple(XmlActuatorCfg(target_names_expr=(name,)) for name in ("shoulder", "elbow"))
    action = cfg(entity_name="device", actuator_names=(".*",))
    for elements, deaf in (
        ((element, element), r"\['shoulder', 'elbow'\]"),
        ((element, other), r"\['shoulder'\]"),
    ):
        xml = "".join(e.format(joint) for e, joint in zip(elements, joints, strict=True))
        env = make_device(GEARED.format(xml), *each)
        with pytest.warns(UserWarning, match=f"joints {deaf} take {message} have no effect"):
            action.build(env)


def test_effort_actions_on_a_servo_of_a_tendon_are_named():
    """Warn of the tendon whose servo takes lengths."""
    env = make_device(
        GEARED.format('<position tendon="sum" kp="5"/>'),
        XmlActuatorCfg(target_names_expr=("sum",), transmission_type=TransmissionType.TENDON),
    )
    action = mdp.TendonEffortActionCfg(entity_name="device", actuator_names=(".*",))
    with pytest.warns(UserWarning, match=r"tendons \['sum'\] take position targets, so effort"):
        action.build(env)


IDEAL: dict[str, Any] = {**BY_NAME, "stiffness": 5.0, "damping": 0.1}


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        (
            mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",)),
            mdp.RelativeJointPositionActionCfg(entity_name="robot", actuator_names=("elbow",)),
            r"position targets of the joints \['elbow'\]",
        ),
        (
            mdp.DifferentialIKActionCfg(
                entity_name="robot", actuator_names=(".*",), frame_type="site", frame_name="tip"
            ),
            mdp.JointPositionActionCfg(entity_name="robot", actuator_names=("shoulder",)),
            r"position targets of the joints \['shoulder'\]",
        ),
        (
            mdp.JointEffortActionCfg(entity_name="robot", actuator_names=("shoulder",)),
            mdp.JointEffortActionCfg(entity_name="robot", actuator_names=(".*",), scale=2.0),
            r"effort targets of the joints \['shoulder'\]",
        ),
    ],
)
def test_two_terms_that_set_the_same_targets_are_named(first, second, what):
    """Name both terms; terms that set targets of different kinds go together."""
    robot = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(GEARED.format("")),
        articulation=EntityArticulationInfoCfg((IdealPdActuatorCfg(**IDEAL),)),
    )
    scene = SceneCfg(num_envs=2, entities={"robot": robot})
    with pytest.warns(UserWarning, match=f"'a' and 'b' both set the {what} of 'robot'"):
        make_env(scene=scene, actions={"a": first, "b": second})
    velocity = mdp.JointVelocityActionCfg(entity_name="robot", actuator_names=(".*",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_env(scene=scene, actions={"a": first, "b": velocity})


@pytest.mark.parametrize("clip", [{".*": (1.0, -1.0)}, {"elbow": (0.0, float("nan"))}, (1, -1)])
def test_bounds_with_nothing_between_them_are_refused(clip):
    """Name the target and its bounds."""
    env = make_device(GEARED.format(SERVOS), XmlActuatorCfg(**BY_NAME))
    action = mdp.JointPositionActionCfg(entity_name="device", actuator_names=("elbow",), clip=clip)
    with pytest.raises(ValueError, match=r"clip bounds 'elbow' by .*give the lower bound first"):
        action.build(env)


@pytest.mark.parametrize("options", [{"scale": {"elbow": 0.0}}, {"clip": {"elbow": (0.5, 0.5)}}])
def test_targets_that_actions_cannot_move_are_named(options):
    """Warn of a scale of 0, and of bounds that leave one value."""
    env = make_device(GEARED.format(SERVOS), XmlActuatorCfg(**BY_NAME))
    action = mdp.JointPositionActionCfg(entity_name="device", actuator_names=(".*",), **options)
    with pytest.warns(UserWarning, match=r"no effect on \['elbow'\], whose scale is 0 or"):
        action.build(env)
