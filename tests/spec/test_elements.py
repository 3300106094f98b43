from __future__ import annotations

import mujoco
import pytest

from manyworlds.spec.elements import (
    detect_command_field,
    dof_width,
    is_motor_actuator,
    is_muscle_actuator,
    is_position_actuator,
    is_velocity_actuator,
    qpos_width,
)

KINDS = {
    '<motor joint="j" gear="3"/>': "effort",
    '<general joint="j"/>': "effort",
    '<muscle joint="j" lengthrange="-1 1"/>': "effort",
    '<position joint="j" kp="3" dampratio="1"/>': "position",
    '<position joint="j" kp="3" timeconst=".1"/>': "position",
    '<general joint="j" gainprm="2" biastype="affine" biasprm="0 -2 -1"/>': "position",
    '<general joint="j" input="pos" biastype="affine" gainprm="5" biasprm="0 -5"/>': "position",
    '<dcmotor joint="j" motorconst=".1 .1" resistance="1" input="pos"/>': "position",
    '<velocity joint="j" kv="2"/>': "velocity",
    '<intvelocity joint="j" kp="2" actrange="-1 1"/>': "velocity",
    '<general joint="j" gainprm="2" biastype="affine" biasprm="0 0 -2"/>': "velocity",
    '<general joint="j" dyntype="integrator" gainprm="2" biastype="affine" biasprm="0 -2" '
    'actrange="-1 1"/>': "velocity",
}
UNCLEAR = [
    '<general joint="j" gainprm="2" biastype="affine" biasprm="0 -3"/>',
    '<general joint="j" gainprm="2" biastype="affine" biasprm="1 -2"/>',
    '<general joint="j" gainprm="0" biastype="affine" biasprm="0 0 0"/>',
    '<general joint="j" dyntype="filter" dynprm="1"/>',
    '<damper joint="j" kv="2" ctrlrange="0 1"/>',
    '<dcmotor joint="j" motorconst=".1 .1" resistance="1"/>',
]


def actuator(xml: str) -> tuple[mujoco.MjSpec, mujoco.MjsActuator]:
    """Return a spec with one actuator, and the actuator."""
    spec = mujoco.MjSpec.from_string(
        "<mujoco><worldbody><body><joint name='j'/><geom size='1'/></body></worldbody>"
        f"<actuator>{xml}</actuator></mujoco>"
    )
    return spec, spec.actuators[0]


@pytest.mark.parametrize("xml", KINDS)
def test_command_field(xml):
    """Tell what the control of each of MuJoCo's actuators is, compiled and saved, too."""
    spec, element = actuator(xml)
    assert detect_command_field(element) == KINDS[xml]
    spec.compile()
    saved = mujoco.MjSpec.from_string(spec.to_xml())
    assert detect_command_field(saved.actuators[0]) == KINDS[xml]
    kinds = (is_position_actuator, is_velocity_actuator, is_motor_actuator, is_muscle_actuator)
    assert sum(bool(kind(element)) for kind in kinds) == 1


@pytest.mark.parametrize("xml", UNCLEAR)
def test_unclear(xml):
    """Refuse to guess."""
    with pytest.raises(ValueError, match="Cannot determine command field"):
        detect_command_field(actuator(xml)[1])


@pytest.mark.parametrize("kind", ["free", "ball", "slide", "hinge"])
def test_widths(kind):
    """Agree with MuJoCo on the numbers that a joint has."""
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><body><joint type='{kind}'/><geom size='1'/></body></worldbody>"
        "</mujoco>"
    )
    assert qpos_width(model.jnt_type[0]) == model.nq
    assert dof_width(int(model.jnt_type[0])) == model.nv
