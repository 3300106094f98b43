"""Actuators that MuJoCo simulates, against its formulas and its own elements."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import (
    BuiltinDcMotorActuatorCfg,
    BuiltinMotorActuatorCfg,
    BuiltinMuscleActuatorCfg,
    BuiltinPdActuatorCfg,
    BuiltinPositionActuatorCfg,
    BuiltinVelocityActuatorCfg,
    DcMotorDatasheetParams,
    DcMotorInputMode,
    DcMotorPhysicalParams,
    TransmissionType,
)
from tests.actuator.robots import JOINTS, efforts, make, shake

ALL = (".*_(hip|knee)",)
MOTOR = DcMotorPhysicalParams(kt=0.5, ke=0.5, resistance=2.0)
CONFIGS = {
    "motor": BuiltinMotorActuatorCfg(target_names_expr=ALL, effort_limit=0.6, gear=4.0),
    "position": BuiltinPositionActuatorCfg(
        target_names_expr=ALL, stiffness=8.0, damping=0.5, effort_limit=5.0
    ),
    "velocity": BuiltinVelocityActuatorCfg(target_names_expr=ALL, damping=3.0, effort_limit=2.0),
    "dc_voltage": BuiltinDcMotorActuatorCfg(
        target_names_expr=ALL, motor_params=MOTOR, mode=DcMotorInputMode.VOLTAGE
    ),
    "dc_position": BuiltinDcMotorActuatorCfg(
        target_names_expr=ALL, motor_params=MOTOR, stiffness=7.0, damping=0.3, voltage_limit=1e3
    ),
    "dc_velocity": BuiltinDcMotorActuatorCfg(
        target_names_expr=ALL,
        motor_params=MOTOR,
        mode=DcMotorInputMode.VELOCITY,
        damping=0.3,
        voltage_limit=1e3,
        effort_limit=0.2,
    ),
}
# Efforts by hand, from targets and state.
FORMULAS = {
    "motor": lambda q, v, p, w, e: e.clip(-0.6, 0.6),
    "position": lambda q, v, p, w, e: (8.0 * (p - q) - 0.5 * v).clip(-5.0, 5.0),
    "velocity": lambda q, v, p, w, e: (3.0 * (w - v)).clip(-2.0, 2.0),
    "dc_voltage": lambda q, v, p, w, e: 0.25 * (e - 0.5 * v),
    "dc_position": lambda q, v, p, w, e: 7.0 * (p - q) - 0.3 * v,
    "dc_velocity": lambda q, v, p, w, e: (0.3 * (w - v)).clip(-0.2, 0.2),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_effort_is_that_of_the_formula(kind: str):
    """Give each joint of each world the effort that its kind of actuator stands for."""
    entity, sim = make(CONFIGS[kind])
    shake(entity, sim)
    data = entity.data
    expected = FORMULAS[kind](
        data.joint_pos.double(),
        data.joint_vel.double(),
        data.joint_pos_target.double(),
        data.joint_vel_target.double(),
        data.joint_effort_target.double(),
    )
    (actuator,) = entity.actuators
    torch.testing.assert_close(
        efforts(entity, sim, actuator).double(), expected, rtol=1e-5, atol=1e-6
    )
    assert not entity.needs_substeps


def test_pd_pair_follows_both_targets_and_bounds_their_sum():
    """Sum the two parts at the joint, and clamp the sum rather than the parts."""
    cfg = BuiltinPdActuatorCfg(
        target_names_expr=ALL, stiffness=30.0, damping=2.0, effort_limit=10.0
    )
    entity, sim = make(cfg)
    shake(entity, sim)
    (actuator,) = entity.actuators
    assert actuator.num_targets == 4
    names = [f"{joint}_pd_{part}" for part in ("pos", "vel") for joint in JOINTS]
    assert list(entity.actuator_names) == names
    data = entity.data
    spring = 30.0 * (data.joint_pos_target - data.joint_pos)
    damper = 2.0 * (data.joint_vel_target - data.joint_vel)
    parts = efforts(entity, sim, actuator)
    torch.testing.assert_close(parts, torch.cat([spring, damper], 1), rtol=1e-5, atol=1e-5)
    total = (spring + damper).clip(-10.0, 10.0)
    assert (spring + damper).abs().max() > 10.0
    torch.testing.assert_close(data.qfrc_actuator, total, rtol=1e-5, atol=1e-5)


def test_pd_pair_keeps_its_layout_when_actuators_are_sorted_by_joint():
    """Create pairs joint by joint, and still send each target to its own control."""
    pd = BuiltinPdActuatorCfg(target_names_expr=("a_.*",), stiffness=30.0, damping=2.0)
    motor = BuiltinMotorActuatorCfg(target_names_expr=("b_.*",), effort_limit=9.0)
    entity, sim = make(motor, pd, sort_actuators=True)
    shake(entity, sim)
    entity.write_data_to_sim()
    ctrl = dict(zip(entity.actuator_names, sim.data.ctrl.T, strict=True))
    assert list(ctrl)[:2] == ["a_hip_pd_pos", "a_hip_pd_vel"]
    assert torch.equal(ctrl["a_knee_pd_pos"], entity.data.joint_pos_target[:, 1])
    assert torch.equal(ctrl["a_knee_pd_vel"], entity.data.joint_vel_target[:, 1])
    assert torch.equal(ctrl["b_knee"], entity.data.joint_effort_target[:, 3])


def test_pd_pair_on_a_tendon_is_bounded_by_the_tendon():
    """Bound the sum on the tendon, and read that bound back."""
    cfg = BuiltinPdActuatorCfg(
        target_names_expr=("both_knees",),
        transmission_type=TransmissionType.TENDON,
        stiffness=50.0,
        damping=1.0,
        effort_limit=3.0,
    )
    entity, sim = make(cfg)
    (actuator,) = entity.actuators
    entity.data.tendon_len_target[:] = 10.0
    actuator.set_effort_limit(torch.tensor([1]), torch.tensor([[4.0]]))
    entity.write_data_to_sim()
    sim.forward()
    knee = entity.data.qfrc_actuator[:, 1]
    torch.testing.assert_close(knee, torch.tensor([3.0, 4.0, 3.0]))
    assert actuator.force_limit.tolist() == [[3.0], [4.0], [3.0]]


def test_datasheet_and_circuit_describe_one_motor():
    """Derive constant and resistance from voltage, stall torque and no-load speed."""
    cfg = BuiltinDcMotorActuatorCfg(
        target_names_expr=ALL,
        motor_params=DcMotorDatasheetParams(
            nominal_voltage=12.0, stall_torque=3.0, no_load_speed=24.0
        ),
        mode=DcMotorInputMode.VOLTAGE,
    )
    entity, sim = make(cfg)
    shake(entity, sim)
    (actuator,) = entity.actuators
    # k = V / w0 = 0.5 and R = k V / stall = 2.
    expected = 0.25 * (entity.data.joint_effort_target - 0.5 * entity.data.joint_vel)
    torch.testing.assert_close(efforts(entity, sim, actuator), expected, rtol=1e-5, atol=1e-6)


def test_muscle_is_mujocos_own():
    """Step muscles bit for bit as MuJoCo does those of an XML file."""
    cfg = BuiltinMuscleActuatorCfg(
        target_names_expr=("both_knees",),
        transmission_type=TransmissionType.TENDON,
        length_range=(-1.0, 1.0),
        force=20.0,
    )
    entity, sim = make(cfg, num_envs=1)
    xml = '<muscle name="legs/m" tendon="both_knees" lengthrange="-1 1" force="20"/>'
    other, plain = make(xml=xml, num_envs=1)
    entity.data.tendon_effort_target[:] = 0.7
    plain.data.ctrl[:] = 0.7
    for _ in range(50):
        entity.write_data_to_sim()
        sim.step()
        plain.step()
    assert torch.equal(sim.data.qpos, plain.data.qpos)
    assert torch.equal(sim.data.act, plain.data.act)
    assert sim.data.act[0, 0] > 0.5
    assert other.num_actuators == 1


@pytest.mark.parametrize("transmission", [TransmissionType.TENDON, TransmissionType.SITE])
def test_motors_drive_tendons_and_sites(transmission: TransmissionType):
    """Send a tendon's or a site's effort target to its motor."""
    name = "both_knees" if transmission == TransmissionType.TENDON else "thruster"
    cfg = BuiltinMotorActuatorCfg(
        target_names_expr=(name,), transmission_type=transmission, effort_limit=2.0, gear=2.0
    )
    entity, sim = make(cfg)
    index = entity.site_names.index(name) if transmission == TransmissionType.SITE else 0
    targets = getattr(entity.data, f"{transmission.value}_effort_target")
    targets[:, index] = torch.tensor([0.5, -1.0, 7.0])
    (actuator,) = entity.actuators
    assert efforts(entity, sim, actuator)[:, 0].tolist() == [0.5, -1.0, 2.0]


def test_passive_properties_are_overridden_only_where_given():
    """Keep the file's armature for None, and clear it for 0."""
    cfgs = [
        BuiltinMotorActuatorCfg(target_names_expr=("a_.*",), effort_limit=1.0, frictionloss=0.2),
        BuiltinMotorActuatorCfg(
            target_names_expr=("b_.*",), effort_limit=1.0, armature=0.0, viscous_damping=0.7
        ),
    ]
    model = make(*cfgs)[1].mj_model
    np.testing.assert_allclose(model.dof_armature[6:], [0.01, 0.01, 0.0, 0.0])
    np.testing.assert_allclose(model.dof_frictionloss[6:], [0.2, 0.2, 0.0, 0.0])
    np.testing.assert_allclose(model.dof_damping[6:], [0.0, 0.0, 0.7, 0.7])


def test_position_actuators_hold_in_plain_mujoco():
    """Compile to a `<position>` whose control is free, and whose range informs."""
    entity, sim = make(CONFIGS["position"])
    model = sim.mj_model
    assert not model.actuator_ctrllimited.any()
    np.testing.assert_allclose(model.actuator_ctrlrange[0], [-2.0 - 5 / 8, 2.0 + 5 / 8])
    assert model.actuator_biastype[0] == mujoco.mjtBias.mjBIAS_AFFINE
    assert entity.is_actuated


@pytest.mark.parametrize(
    ("kind", "kwargs", "message"),
    [
        (BuiltinPositionActuatorCfg, {"stiffness": -1.0, "damping": 0.0}, "stiffness"),
        (BuiltinPositionActuatorCfg, {"stiffness": 1.0, "damping": -1.0}, "damping"),
        (BuiltinVelocityActuatorCfg, {"damping": 1.0, "effort_limit": 0.0}, "effort_limit"),
        (BuiltinMotorActuatorCfg, {"effort_limit": 1.0, "gear": 0.0}, "gear"),
        (BuiltinMotorActuatorCfg, {"effort_limit": 1.0, "delay_min_lag": -1}, "min_lag must be"),
        (
            BuiltinMotorActuatorCfg,
            {"effort_limit": 1.0, "delay_min_lag": 3, "delay_max_lag": 2},
            r"delay_max_lag \(2\) must be >= min_lag",
        ),
        (BuiltinMotorActuatorCfg, {"effort_limit": 1.0, "delay_target": "torque"}, "delay_target"),
    ],
)
def test_impossible_numbers_are_refused(kind, kwargs: dict, message: str):
    """Name the field of a number that cannot be."""
    with pytest.raises(ValueError, match=message):
        kind(target_names_expr=ALL, **kwargs)


@pytest.mark.parametrize(
    "make_cfg",
    [
        lambda **kw: BuiltinPositionActuatorCfg(stiffness=1.0, damping=1.0, **kw),
        lambda **kw: BuiltinPdActuatorCfg(stiffness=1.0, damping=1.0, **kw),
        lambda **kw: BuiltinVelocityActuatorCfg(damping=1.0, **kw),
        lambda **kw: BuiltinMuscleActuatorCfg(**kw),
        lambda **kw: BuiltinDcMotorActuatorCfg(
            motor_params=MOTOR, mode=DcMotorInputMode.VOLTAGE, **kw
        ),
    ],
)
def test_sites_are_refused_where_they_have_no_such_quantity(make_cfg):
    """Refuse sites for what needs a position, a velocity or a length."""
    with pytest.raises(ValueError, match="SITE"):
        make_cfg(target_names_expr=(".*",), transmission_type=TransmissionType.SITE)


@pytest.mark.parametrize("field", ["armature", "frictionloss", "viscous_damping"])
def test_sites_have_no_passive_properties(field: str):
    """Refuse an armature, friction or damping for sites."""
    with pytest.raises(ValueError, match=field):
        BuiltinMotorActuatorCfg(
            target_names_expr=("thruster",),
            transmission_type=TransmissionType.SITE,
            effort_limit=1.0,
            **{field: 0.1},
        )


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"voltage_limit": 10.0}, "stiffness"),
        ({"stiffness": 1.0}, "voltage_limit"),
        ({"mode": DcMotorInputMode.VELOCITY, "voltage_limit": 10.0}, "damping"),
        (
            {
                "mode": DcMotorInputMode.VELOCITY,
                "voltage_limit": 10.0,
                "damping": 1.0,
                "stiffness": 1.0,
            },
            "stiffness must be 0 in VELOCITY mode",
        ),
        ({"mode": DcMotorInputMode.VOLTAGE, "stiffness": 1.0}, "stiffness must be 0 in VOLTAGE"),
    ],
)
def test_dc_motor_modes_name_what_they_lack(kwargs: dict, message: str):
    """Name the field that a mode needs or has no use for."""
    with pytest.raises(ValueError, match=message):
        BuiltinDcMotorActuatorCfg(target_names_expr=ALL, motor_params=MOTOR, **kwargs)
