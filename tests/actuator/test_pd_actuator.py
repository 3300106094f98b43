"""Laws that are computed here, against MuJoCo's actuators and by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyworlds.actuator import (
    BuiltinPositionActuatorCfg,
    DcMotorActuatorCfg,
    IdealPdActuator,
    IdealPdActuatorCfg,
    TransmissionType,
)
from manyworlds.actuator.dc_actuator import dc_motor_clip
from tests.actuator.robots import efforts, make, shake

ALL = (".*_(hip|knee)",)


def test_efforts_are_those_of_mujocos_position_actuator():
    """Compute at one state the efforts that `<position>` gives there."""
    gains = {"stiffness": 33.0, "damping": 1.7, "effort_limit": 30.0}
    ideal, sim = make(IdealPdActuatorCfg(target_names_expr=ALL, **gains))
    builtin, other = make(BuiltinPositionActuatorCfg(target_names_expr=ALL, **gains))
    shake(ideal, sim)
    shake(builtin, other)
    ideal.data.joint_vel_target.zero_()
    ideal.data.joint_effort_target.zero_()
    ours, theirs = efforts(ideal, sim, ideal.actuators[0]), builtin
    theirs = efforts(builtin, other, builtin.actuators[0])
    assert theirs.abs().max() == 30.0 and theirs.abs().min() < 30.0
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-5)
    assert ideal.needs_substeps and not builtin.needs_substeps


def test_velocity_and_effort_targets_count():
    """Add damping towards the velocity target, and the feed-forward effort."""
    entity, sim = make(IdealPdActuatorCfg(target_names_expr=ALL, stiffness=3.0, damping=2.0))
    shake(entity, sim)
    data = entity.data
    expected = (
        3.0 * (data.joint_pos_target - data.joint_pos)
        + 2.0 * (data.joint_vel_target - data.joint_vel)
        + data.joint_effort_target
    )
    torch.testing.assert_close(efforts(entity, sim, entity.actuators[0]), expected)


def test_tendons_follow_lengths_and_velocities():
    """Apply the law to a tendon's length, velocity and targets."""
    cfg = IdealPdActuatorCfg(
        target_names_expr=("both_knees",),
        transmission_type=TransmissionType.TENDON,
        stiffness=3.0,
        damping=2.0,
    )
    entity, sim = make(cfg)
    shake(entity, sim)
    data = entity.data
    length = data.joint_pos[:, 1] - 0.5 * data.joint_pos[:, 3]
    velocity = data.joint_vel[:, 1] - 0.5 * data.joint_vel[:, 3]
    expected = (
        3.0 * (data.tendon_len_target[:, 0] - length)
        + 2.0 * (data.tendon_vel_target[:, 0] - velocity)
        + data.tendon_effort_target[:, 0]
    )
    ours = efforts(entity, sim, entity.actuators[0])[:, 0]
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)


def _clip(effort: float, vel: float, saturation: float, limit: float, no_load: float) -> float:
    columns = [torch.tensor([[x]]) for x in (effort, saturation, no_load, limit, vel)]
    return dc_motor_clip(*columns).item()


def test_curve_of_a_dc_motor():
    """Give stall torque at rest, none without load, the limit between, and brake beyond."""
    motor = {"saturation": 30.0, "limit": 20.0, "no_load": 10.0}
    assert _clip(100.0, 0.0, **motor | {"limit": 50.0}) == 30.0
    assert _clip(100.0, 0.0, **motor) == 20.0
    assert _clip(100.0, 5.0, **motor) == 15.0
    assert _clip(-100.0, 5.0, **motor) == -20.0
    assert _clip(100.0, 10.0, **motor) == 0.0
    assert _clip(-100.0, -10.0, **motor) == 0.0
    assert _clip(100.0, 12.0, **motor) == pytest.approx(-6.0)
    assert _clip(100.0, 1000.0, **motor) == -20.0
    assert _clip(3.0, 5.0, **motor) == 3.0


@settings(max_examples=200)
@given(
    effort=st.floats(-200, 200, width=32),
    vel=st.floats(-60, 60, width=32),
    saturation=st.floats(0.5, 100, width=32),
    limit=st.floats(0.5, 100, width=32),
    no_load=st.floats(0.5, 50, width=32),
)
def test_curve_is_symmetric_and_bounded(effort, vel, saturation, limit, no_load):
    """Turn everything around and get the negative; never exceed the limit."""
    motor = {"saturation": saturation, "limit": limit, "no_load": no_load}
    there = _clip(effort, vel, **motor)
    assert abs(there) <= limit
    assert _clip(-effort, -vel, **motor) == pytest.approx(-there, rel=1e-5, abs=1e-5)
    slower = _clip(effort, vel - 1.0, **motor)
    assert slower >= there - 1e-4


def test_dc_motor_clips_in_the_simulation():
    """Fall short of the law by exactly what the curve says."""
    cfg = DcMotorActuatorCfg(
        target_names_expr=ALL,
        stiffness=100.0,
        damping=0.0,
        effort_limit=20.0,
        saturation_effort=30.0,
        velocity_limit=10.0,
    )
    entity, sim = make(cfg)
    joints = torch.zeros(3, 4)
    entity.write_joint_state_to_sim(joints, torch.full((3, 4), 5.0))
    entity.data.joint_pos_target[:] = 1.0
    sim.forward()
    (actuator,) = entity.actuators
    torch.testing.assert_close(efforts(entity, sim, actuator), torch.full((3, 4), 15.0))
    actuator.set_param("saturation_effort", 40.0, [1])
    actuator.set_param("velocity_limit_motor", 5.0, [2])
    torch.testing.assert_close(
        efforts(entity, sim, actuator)[:, 0], torch.tensor([15.0, 20.0, 0.0])
    )
    assert actuator.saturation_effort[:, 0].tolist() == [30.0, 40.0, 30.0]


@pytest.mark.parametrize("limit", [math.inf, 31.0])
def test_a_limit_beyond_stall_torque_is_warned_of(limit: float):
    """Warn that the motor cannot give what its limit allows."""
    with pytest.warns(UserWarning, match="saturation_effort=30"):
        DcMotorActuatorCfg(
            target_names_expr=ALL,
            stiffness=1.0,
            damping=0.0,
            effort_limit=limit,
            saturation_effort=30.0,
            velocity_limit=10.0,
        )


def test_subclasses_change_the_law_and_stay_fused():
    """Evaluate a user's law, with a parameter of its own, for several groups at once."""

    class Weak(IdealPdActuator):
        param_names = (*IdealPdActuator.param_names, "strength")

        @staticmethod
        def control_law(params, cmd):
            return params["strength"] * IdealPdActuator.control_law(params, cmd)

        def _initial_params(self):
            return super()._initial_params() | {"strength": 0.5}

    class WeakCfg(IdealPdActuatorCfg):
        def build(self, entity, target_ids, target_names):
            return Weak(self, entity, target_ids, target_names)

    cfgs = [
        WeakCfg(target_names_expr=(part,), stiffness=8.0, damping=0.0) for part in ("a_.*", "b_.*")
    ]
    entity, sim = make(*cfgs)
    entity.data.joint_pos_target[:] = 1.0
    entity.actuators[1].set_param("strength", 0.25, [2])
    entity.write_data_to_sim()
    torch.testing.assert_close(sim.data.ctrl[:, 3], torch.tensor([4.0, 4.0, 2.0]))
    assert len(entity._actuator_groups.fused_group._groups) == 1
