from __future__ import annotations

import math

import mujoco
import pytest

from manyworlds.spec.transmissions import (
    ElectricActuator,
    reflect_rotary_to_linear,
    reflected_inertia,
    reflected_inertia_from_two_stage_planetary,
    rpm_to_rad,
)


def test_rpm():
    """Turn once a second at 60 rpm."""
    assert rpm_to_rad(60.0) == pytest.approx(2.0 * math.pi)


def test_reflected_inertia():
    """Accelerate like a rotor that MuJoCo gears by a constraint."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option gravity="0 0 0" timestep="0.001"/><worldbody>
        <body><joint name="rotor"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 2e-3"/></body>
        <body><joint name="output"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 .01"/></body>
        </worldbody><equality><joint joint1="rotor" joint2="output" polycoef="0 6 0 0 0"
        solref="0.002 1" solimp="0.9999 0.9999 1"/></equality></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qfrc_applied[1] = 1.0
    for _ in range(50):
        mujoco.mj_step(model, data)
    expected = 1.0 / (0.01 + reflected_inertia(2e-3, 6.0))
    assert data.qacc[1] == pytest.approx(expected, rel=1e-2)


def test_planetary():
    """Add the kinetic energies of the three parts of a two-stage gear."""
    inertia = reflected_inertia_from_two_stage_planetary((1e-5, 2e-5, 3e-5), (1.0, 5.0, 4.0))
    speed = 0.7
    energy = 1e-5 * (20.0 * speed) ** 2 + 2e-5 * (4.0 * speed) ** 2 + 3e-5 * speed**2
    assert inertia * speed**2 == pytest.approx(energy)
    with pytest.raises(ValueError, match="first gear ratio"):
        reflected_inertia_from_two_stage_planetary((1.0, 1.0, 1.0), (2.0, 5.0, 4.0))


def test_linear():
    """Keep power and kinetic energy between a rotary actuator and its slide joint."""
    rotary = ElectricActuator(reflected_inertia=0.02, velocity_limit=10.0, effort_limit=3.0)
    linear = reflect_rotary_to_linear(0.02, 10.0, 3.0, 0.05)
    assert linear.velocity_limit == pytest.approx(0.5)
    power = rotary.velocity_limit * rotary.effort_limit
    assert linear.velocity_limit * linear.effort_limit == pytest.approx(power)
    energy = rotary.reflected_inertia * rotary.velocity_limit**2
    assert linear.armature * linear.velocity_limit**2 == pytest.approx(energy)
    with pytest.raises(ValueError, match="transmission_ratio"):
        reflect_rotary_to_linear(0.02, 10.0, 3.0, 0.0)
