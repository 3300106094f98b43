"""Parameters that differ between worlds: right for every kind, and read from where they count."""

from __future__ import annotations

import pytest
import torch

from manyworlds.actuator import (
    ActuatorCfg,
    BuiltinDcMotorActuatorCfg,
    BuiltinMotorActuatorCfg,
    BuiltinPdActuatorCfg,
    BuiltinPositionActuatorCfg,
    BuiltinVelocityActuatorCfg,
    DcMotorActuatorCfg,
    DcMotorInputMode,
    DcMotorPhysicalParams,
    IdealPdActuatorCfg,
    XmlActuatorCfg,
)
from tests.actuator.robots import JOINTS, efforts, make, shake

ALL = (".*_(hip|knee)",)
XML = "".join(
    f'<position joint="{joint}" kp="20" kv="1" forcerange="-8 8" gear="2"/>' for joint in JOINTS
)
# Kinds with all three parameters, and what these are at first.
FULL: dict[str, ActuatorCfg] = {
    "position": BuiltinPositionActuatorCfg(
        target_names_expr=ALL, stiffness=20.0, damping=1.0, effort_limit=8.0
    ),
    "pd": BuiltinPdActuatorCfg(
        target_names_expr=ALL, stiffness=20.0, damping=1.0, effort_limit=8.0
    ),
    "ideal": IdealPdActuatorCfg(
        target_names_expr=ALL, stiffness=20.0, damping=1.0, effort_limit=8.0
    ),
    "dc": DcMotorActuatorCfg(
        target_names_expr=ALL,
        stiffness=20.0,
        damping=1.0,
        effort_limit=8.0,
        saturation_effort=1e3,
        velocity_limit=1e6,
    ),
    "dcmotor": BuiltinDcMotorActuatorCfg(
        target_names_expr=ALL,
        motor_params=DcMotorPhysicalParams(kt=1.0, ke=1.0, resistance=1.0),
        stiffness=20.0,
        damping=1.0,
        voltage_limit=1e4,
        effort_limit=8.0,
    ),
    "xml": XmlActuatorCfg(target_names_expr=ALL),
}
# Effort at the joint per force of the actuator.
GEAR = {"xml": 2.0}


def _build(kind: str, num_envs: int = 3):
    return make(FULL[kind], num_envs=num_envs, xml=XML if kind == "xml" else "")


@pytest.mark.parametrize("kind", FULL)
def test_gains_of_one_world_change_its_efforts_alone(kind: str):
    """Give one world other gains, and see only its efforts follow them."""
    entity, sim = _build(kind)
    (actuator,) = entity.actuators
    assert actuator.param_names[:3] == ("stiffness", "damping", "force_limit")
    assert torch.equal(actuator.stiffness, torch.full((3, 4), 20.0))
    assert torch.equal(actuator.damping, torch.ones(3, 4))
    assert torch.equal(actuator.force_limit, torch.full((3, 4), 8.0))
    shake(entity, sim)
    data, gear = entity.data, GEAR.get(kind, 1.0)
    data.joint_vel_target.zero_()
    kp, kd = torch.tensor([[3.0, 4.0, 5.0, 6.0]]), torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    actuator.set_gains(torch.tensor([1]), kp, kd)
    assert torch.equal(actuator.stiffness[1:2], kp) and (actuator.stiffness[::2] == 20.0).all()
    assert torch.equal(actuator.damping[1:2], kd) and (actuator.damping[::2] == 1.0).all()
    assert (actuator.default_stiffness == 20.0).all() and (actuator.default_damping == 1.0).all()
    error = gear * (data.joint_pos_target - data.joint_pos)
    if kind in ("ideal", "dc"):
        data.joint_effort_target.zero_()
    expected = actuator.stiffness * error - actuator.damping * gear * data.joint_vel
    expected = gear * expected.clip(-8.0, 8.0)
    efforts(entity, sim, actuator)
    torch.testing.assert_close(data.qfrc_actuator, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", FULL)
def test_effort_limit_of_one_world_counts_before_the_gear(kind: str):
    """Double a limit and get twice the effort: nothing else clamps it (defect D2)."""
    entity, sim = _build(kind)
    (actuator,) = entity.actuators
    entity.data.joint_pos_target[:] = 100.0
    actuator.set_effort_limit(torch.tensor([0, 2]), torch.full((2, 4), 16.0))
    assert actuator.force_limit[:, 0].tolist() == [16.0, 8.0, 16.0]
    assert (actuator.default_force_limit == 8.0).all()
    efforts(entity, sim, actuator)
    gear = GEAR.get(kind, 1.0)
    expected = torch.tensor([16.0, 8.0, 16.0])[:, None].expand(3, 4)
    torch.testing.assert_close(entity.data.qfrc_actuator, gear * expected)
    actuator.set_effort_limit(None, 2.0)
    efforts(entity, sim, actuator)
    torch.testing.assert_close(entity.data.qfrc_actuator, torch.full((3, 4), gear * 2.0))


@pytest.mark.parametrize("kind", FULL)
def test_one_target_changes_alone(kind: str):
    """Change the joint that was asked for and no other (defect D1)."""
    entity, sim = _build(kind)
    (actuator,) = entity.actuators
    local = entity.find("actuator", (".*",))[0]
    column = actuator.target_columns(torch.tensor([local[1]]))
    assert column.tolist() == [1]
    actuator.set_param("stiffness", torch.tensor([[7.0]]), torch.tensor([2]), column)
    expected = torch.full((3, 4), 20.0)
    expected[2, 1] = 7.0
    assert torch.equal(actuator.stiffness, expected)
    assert sim.data.qpos.isfinite().all()


def test_actuators_find_their_own_targets_among_those_of_others():
    """Map ids of an entity's actuators to columns of the actuator that has them (defect D1)."""
    entity, _ = make(
        BuiltinMotorActuatorCfg(target_names_expr=("a_hip",), effort_limit=1.0),
        BuiltinPdActuatorCfg(
            target_names_expr=("a_knee", "b_knee"), stiffness=5.0, damping=1.0, effort_limit=2.0
        ),
        BuiltinVelocityActuatorCfg(target_names_expr=("b_hip",), damping=1.0),
    )
    motor, pair, velocity = entity.actuators
    # Controls: a_hip, a_knee and b_knee positions, a_knee and b_knee velocities, b_hip.
    assert pair.ctrl_ids.tolist() == [1, 2, 3, 4]
    wanted = torch.tensor([2, 4, 5])
    assert motor.target_columns(wanted).tolist() == []
    assert pair.target_columns(wanted).tolist() == [1]
    assert velocity.target_columns(wanted).tolist() == [0]


@pytest.mark.parametrize("kind", ["position", "pd", "ideal", "xml"])
def test_model_fields_name_what_is_written(kind: str):
    """Declare every model field that a change of parameters gives rows to."""
    entity, sim = _build(kind)
    (actuator,) = entity.actuators
    before = set(sim.expanded_fields)
    actuator.set_gains(None, 1.0, 1.0)
    actuator.set_effort_limit(None, 3.0)
    written = set(sim.expanded_fields) - before
    assert written == set(actuator.model_fields)


@pytest.mark.parametrize(
    ("mode", "names", "fields"),
    [
        ("VOLTAGE", ("force_limit",), ("actuator_forcerange",)),
        ("VELOCITY", ("damping", "force_limit"), ("actuator_gainprm", "actuator_forcerange")),
    ],
)
def test_dc_motors_have_the_gains_of_their_mode(mode: str, names: tuple, fields: tuple):
    """Declare the gains that a mode uses, and none without a controller."""
    gains = {} if mode == "VOLTAGE" else {"damping": 1.0, "voltage_limit": 9.0}
    cfg = BuiltinDcMotorActuatorCfg(
        target_names_expr=ALL,
        motor_params=DcMotorPhysicalParams(kt=1.0, ke=1.0, resistance=1.0),
        mode=DcMotorInputMode[mode],
        effort_limit=3.0,
        **gains,
    )
    (actuator,) = make(cfg)[0].actuators
    assert actuator.param_names == names
    assert actuator.model_fields == fields
    assert {name: actuator.get_param(name)[0, 0].item() for name in names} == {
        name: {"damping": 1.0, "force_limit": 3.0}[name] for name in names
    }


def test_limits_are_read_from_the_model():
    """Tell of a limit that something else wrote into the model."""
    entity, sim = _build("position")
    (actuator,) = entity.actuators
    sim.model.actuator_forcerange[1] *= 3.0
    assert actuator.force_limit[:, 0].tolist() == [8.0, 24.0, 8.0]


def test_motors_have_limits_before_the_gear():
    """Read, write and obey a motor's own limit."""
    entity, sim = make(BuiltinMotorActuatorCfg(target_names_expr=ALL, effort_limit=8.0, gear=4.0))
    (actuator,) = entity.actuators
    assert (actuator.force_limit == 8.0).all()
    entity.data.joint_effort_target[:] = 50.0
    actuator.set_effort_limit([1], 20.0)
    assert efforts(entity, sim, actuator)[:, 0].tolist() == [8.0, 20.0, 8.0]
    assert entity.data.qfrc_actuator[:, 0].tolist() == [32.0, 80.0, 32.0]


def test_ideal_pd_without_limit_may_get_one():
    """Limit a law whose motor has no limit of its own."""
    entity, sim = make(IdealPdActuatorCfg(target_names_expr=ALL, stiffness=9.0, damping=0.0))
    (actuator,) = entity.actuators
    assert actuator.force_limit.isinf().all() and actuator.model_fields == ()
    entity.data.joint_pos_target[:] = 100.0
    actuator.set_effort_limit([0], 5.0)
    assert efforts(entity, sim, actuator)[:, 0].tolist() == [5.0, 900.0, 900.0]


def test_a_limit_that_was_not_compiled_is_refused():
    """Say what to configure where the model has no limit that could change."""
    entity, _ = make(BuiltinPositionActuatorCfg(target_names_expr=ALL, stiffness=1.0, damping=0.0))
    (actuator,) = entity.actuators
    assert actuator.force_limit.isinf().all()
    with pytest.raises(ValueError, match="Set effort_limit"):
        actuator.set_effort_limit(None, 5.0)


def test_parameters_that_a_kind_lacks_are_named():
    """Refuse to read or write a parameter that there is not."""
    entity, _ = make(BuiltinVelocityActuatorCfg(target_names_expr=ALL, damping=1.0))
    (actuator,) = entity.actuators
    assert not hasattr(actuator, "stiffness") and hasattr(actuator, "damping")
    with pytest.raises(AttributeError, match="no parameter 'stiffness'.*damping, force_limit"):
        actuator.set_gains(None, kp=1.0)


def test_asymmetric_ranges_keep_their_shape():
    """Scale both sides of a range that is not symmetric."""
    xml = '<motor joint="a_hip" forcerange="-1 4"/>'
    entity, sim = make(XmlActuatorCfg(target_names_expr=("a_hip",)), xml=xml)
    (actuator,) = entity.actuators
    assert actuator.force_limit.tolist() == [[4.0]] * 3
    actuator.set_effort_limit([2], 8.0)
    assert sim.model.actuator_forcerange[2, 0].tolist() == [-2.0, 8.0]
