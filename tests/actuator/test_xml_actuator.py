"""Actuators of the MJCF file: found by their targets, told apart by their types."""

from __future__ import annotations

import mujoco
import pytest
import torch

from manyworlds.actuator import (
    ActuatorCfg,
    TransmissionType,
    XmlActuatorCfg,
    XmlMotorActuator,
    XmlMotorActuatorCfg,
    XmlPositionActuator,
    XmlPositionActuatorCfg,
    XmlVelocityActuator,
    XmlVelocityActuatorCfg,
)
from manyworlds.entity import Entity
from tests.actuator.robots import legs_cfg, make, shake, simulate

ALL = (".*_(hip|knee)",)
GENERAL = '<general joint="a_hip" gainprm="3" biastype="affine" biasprm="0 -1 0"/>'


@pytest.mark.parametrize(
    ("element", "field", "target"),
    [
        ("motor", "effort", "joint_effort_target"),
        ("position", "position", "joint_pos_target"),
        ("velocity", "velocity", "joint_vel_target"),
        ("intvelocity", "velocity", "joint_vel_target"),
        ("general", "effort", "joint_effort_target"),
    ],
)
def test_command_is_found_out(element: str, field: str, target: str):
    """Send unnamed actuators of each type the targets that they take."""
    extra = ' actrange="-1 1"' if element == "intvelocity" else ""
    xml = f'<{element} joint="b_knee"{extra}/><{element} name="x" joint="a_hip"{extra}/>'
    entity, sim = make(XmlActuatorCfg(target_names_expr=ALL), xml=xml)
    (actuator,) = entity.actuators
    assert actuator.command_field == field
    assert actuator.target_names == ["a_hip", "b_knee"]
    shake(entity, sim)
    entity.write_data_to_sim()
    expected = getattr(entity.data, target)[:, [3, 0]]
    assert torch.equal(sim.data.ctrl, expected)


def test_targets_without_actuators_keep_out():
    """Wrap what there is, also when actuators are sorted by joint."""
    entity, sim = make(
        XmlActuatorCfg(target_names_expr=ALL), xml='<motor joint="a_knee"/>', sort_actuators=True
    )
    (actuator,) = entity.actuators
    assert actuator.target_names == ["a_knee"] and actuator.target_ids.tolist() == [1]
    entity.data.joint_effort_target[:] = torch.arange(4.0)
    entity.write_data_to_sim()
    assert sim.data.ctrl.tolist() == [[1.0]] * 3


@pytest.mark.parametrize(
    ("transmission", "xml", "name"),
    [
        (TransmissionType.TENDON, '<motor tendon="both_knees"/>', "both_knees"),
        (TransmissionType.SITE, '<motor site="foot_b" gear="0 0 1 0 0 0"/>', "foot_b"),
        (TransmissionType.JOINT, '<motor jointinparent="b_knee"/>', "b_knee"),
    ],
)
def test_every_transmission_is_wrapped(transmission: TransmissionType, xml: str, name: str):
    """Drive tendons, sites, and joints whose axis is the parent's."""
    cfg = XmlActuatorCfg(target_names_expr=(name,), transmission_type=transmission)
    entity, sim = make(cfg, xml=xml)
    shake(entity, sim)
    entity.write_data_to_sim()
    kind = transmission.value
    column = getattr(entity, f"{kind}_names").index(name)
    target = getattr(entity.data, f"{kind}_effort_target")[:, column]
    assert torch.equal(sim.data.ctrl[:, 0], target)


def test_pairs_on_one_joint_are_told_apart():
    """Let each configuration take the one of a joint's two actuators that is of its kind."""
    xml = "".join(
        f'<position joint="{joint}" kp="5"/><velocity joint="{joint}" kv="2"/>'
        for joint in ("a_hip", "b_hip")
    )
    cfgs: tuple[ActuatorCfg, ...] = (
        XmlPositionActuatorCfg(target_names_expr=ALL),
        XmlVelocityActuatorCfg(target_names_expr=ALL),
    )
    entity, sim = make(*cfgs, xml=xml)
    position, velocity = entity.actuators
    assert isinstance(position, XmlPositionActuator) and isinstance(velocity, XmlVelocityActuator)
    assert position.global_ctrl_ids.tolist() == [0, 2]
    shake(entity, sim)
    entity.write_data_to_sim()
    data = entity.data
    assert torch.equal(sim.data.ctrl[:, ::2], data.joint_pos_target[:, ::2])
    assert torch.equal(sim.data.ctrl[:, 1::2], data.joint_vel_target[:, ::2])
    assert (position.stiffness == 5.0).all() and (velocity.damping == 2.0).all()


def test_motor_cfg_takes_general_actuators():
    """Trust what the configuration says of an actuator of unknown type."""
    entity, _ = make(XmlMotorActuatorCfg(target_names_expr=ALL), xml=GENERAL)
    (actuator,) = entity.actuators
    assert isinstance(actuator, XmlMotorActuator) and actuator.command_field == "effort"


def test_joint_properties_may_be_changed():
    """Override armature and friction of the joints that have actuators."""
    cfg = XmlActuatorCfg(target_names_expr=ALL, armature=0.5, frictionloss=0.0)
    model = make(cfg, xml='<motor joint="a_knee"/>')[1].mj_model
    assert model.dof_armature[6:].tolist() == [0.01, 0.5, 0.01, 0.01]


def test_names_inside_attached_specs_are_kept():
    """Find targets whose names have the prefix of a spec that was attached."""
    arm = mujoco.MjSpec.from_string(
        '<mujoco><worldbody><body name="arm"><joint name="elbow"/><geom size=".1"/></body>'
        '</worldbody><actuator><motor name="elbow" joint="elbow"/></actuator></mujoco>'
    )

    def build() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="base")
        body.add_freejoint()
        body.add_geom(size=[0.1, 0.1, 0.1])
        for side in ("left", "right"):
            spec.attach(arm.copy(), prefix=f"{side}/", frame=body.add_frame())
        return spec

    cfg = legs_cfg(XmlActuatorCfg(target_names_expr=("right/elbow",)))
    cfg.spec_fn = build
    entity = Entity(cfg)
    assert entity.actuators[0].target_names == ["right/elbow"]
    assert entity.compile().nu == 2


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("", "No XML actuators found for any targets matching the patterns"),
        (GENERAL, "Cannot determine command field"),
        ('<motor joint="a_hip"/><position joint="b_hip"/>', "different commands"),
    ],
)
def test_what_cannot_be_wrapped_is_named(xml: str, message: str):
    """Say that nothing was found, or what is unclear."""
    with pytest.raises(ValueError, match=message):
        Entity(legs_cfg(XmlActuatorCfg(target_names_expr=ALL), xml=xml))


@pytest.mark.parametrize(
    ("xml", "gains"),
    [
        ('<position joint="a_hip" kp="5" kv="2"/>', {"stiffness": 5.0, "damping": 2.0}),
        ('<velocity joint="a_hip" kv="2"/>', {"damping": 2.0}),
        (
            '<intvelocity joint="a_hip" kp="5" kv="2" actrange="-1 1"/>',
            {"stiffness": 5.0, "damping": 2.0},
        ),
        ('<motor joint="a_hip"/>', {}),
        (GENERAL, {}),
    ],
)
def test_gains_are_those_of_the_file(xml: str, gains: dict[str, float]):
    """Report the gains that the file gives, and none where they mean something else."""
    cfg = XmlActuatorCfg(
        target_names_expr=ALL, command_field="position" if xml is GENERAL else None
    )
    entity, _ = make(cfg, xml=xml)
    (actuator,) = entity.actuators
    assert actuator.param_names == (*gains, "force_limit")
    assert {name: actuator.get_param(name)[0, 0].item() for name in gains} == gains


@pytest.mark.parametrize("inputs", ["mjINPUT_POS", "mjINPUT_VEL"])
def test_pid_controllers_are_wrapped(inputs: str):
    """Drive a PID controller by its one input, and change its gains in one world."""
    kind = getattr(mujoco.mjtCtrlInput, inputs).value
    entity, sim = _pid(kind)
    (actuator,) = entity.actuators
    actuator.set_gains([1], kp=0.0, kd=3.0)
    assert actuator.stiffness[:, 0].tolist() == [7.0, 0.0, 7.0]
    shake(entity, sim)
    data = entity.data
    entity.write_data_to_sim()
    sim.forward()
    velocities = inputs == "mjINPUT_VEL"
    # The input that is not there counts as zero.
    pos = 0.0 if velocities else data.joint_pos_target
    vel = data.joint_vel_target if velocities else 0.0
    error, rate = pos - data.joint_pos, vel - data.joint_vel
    expected = actuator.stiffness * error[:, :1] + actuator.damping * rate[:, :1]
    torch.testing.assert_close(data.actuator_force, expected, rtol=1e-5, atol=1e-5)


def test_several_controls_are_refused():
    """Refuse an actuator that takes more than one control."""
    with pytest.raises(ValueError, match="has 2 controls instead of one"):
        _pid(3)


def _pid(inputs: int):
    """Build robots with a PID controller on one joint."""
    # What both inputs together mean cannot be told.
    kind = XmlPositionActuatorCfg if inputs == 3 else XmlActuatorCfg
    cfg = legs_cfg(kind(target_names_expr=ALL))
    plain = cfg.spec_fn

    def build() -> mujoco.MjSpec:
        spec = plain()
        actuator = spec.add_actuator(name="pid", target="a_hip")
        actuator.trntype = mujoco.mjtTrn.mjTRN_JOINT
        actuator.set_to_pid(kp=7.0, kv=0.3, ctrlspec=inputs)
        return spec

    cfg.spec_fn = build
    return simulate(cfg)
