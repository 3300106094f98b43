"""Actions: their targets by formula, and what they follow."""

import copy
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.actuator import XmlActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import mdp
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
    assert written.count_nonzero() == expected.count_nonzero()
    others = {"joint_pos_target", "joint_vel_target", "joint_effort_target"} - {target}
    assert not any(getattr(robot.data, other).any() for other in others)
    term.reset([1])
    assert not term.raw_action[1].any() and torch.equal(term.raw_action[2], action[2])


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
        (mdp.JointEffortActionCfg, {"actuator_names": ("sum",)}, "acts on a joint"),
        (
            mdp.JointEffortActionCfg,
            {"actuator_names": JOINTS, "transmission_type": TransmissionType.SITE},
            "drives joints, but its transmission_type is 'site'",
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


def test_actions_are_part_of_the_state(env):
    """Save and restore raw and processed actions."""
    env.step(torch.ones(4, 2))
    state = env.action_manager.state_dict()
    env.step(torch.zeros(4, 2))
    env.action_manager.load_state_dict(state)
    term = env.action_manager.get_term("position")
    assert (term.raw_action == 1).all()
    torch.testing.assert_close(term._processed_actions, 0.5 + term.offset)


def test_actuators_of_the_model_go_by_their_own_names():
    """Find the joint of a differently named actuator; refuse one that nothing would drive."""
    xml = """
    <mujoco>
      <worldbody><body name="cart">
        <joint name="rail" type="slide"/><joint name="wheel"/><geom size=".1"/>
      </body></worldbody>
      <actuator><motor name="a" joint="wheel"/><motor name="b" joint="rail"/></actuator>
    </mujoco>
    """
    follow = EntityArticulationInfoCfg(actuators=(XmlActuatorCfg(target_names_expr=("wheel",)),))
    cart = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(xml), articulation=follow)
    env = make_env(scene=SceneCfg(num_envs=2, entities={"cart": cart}), actions={})
    term = mdp.JointEffortActionCfg(entity_name="cart", actuator_names=("a",)).build(env)
    assert term.target_names == ["wheel"] and term.target_ids.tolist() == [1]
    with pytest.raises(ValueError, match=r"follows the targets of joints \['rail'\]"):
        mdp.JointEffortActionCfg(entity_name="cart", actuator_names=(".*",)).build(env)
