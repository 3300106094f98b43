from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from manyworlds.spec.edits import (
    apply_target_overrides,
    create_dcmotor_actuator,
    create_motor_actuator,
    create_muscle_actuator,
    create_position_actuator,
    create_velocity_actuator,
    is_joint_limited,
)
from manyworlds.spec.transmissions import TransmissionType

WORLD = """<worldbody>
  <site name="anchor"/>
  <body name="arm"><joint name="hinge" range="-90 90"/><geom size=".1" pos=".2 0 0"/>
    <site name="tip" pos=".3 0 0"/>
    <body pos=".4 0 0"><joint name="slide" type="slide" range="-1 3"/><geom size=".1"/></body>
    <body><joint name="free_turn"/><geom size=".1" pos=".1 0 0"/></body>
    <body><joint name="ball" type="ball" range="0 40"/><geom size=".1" pos=".1 0 0"/></body>
  </body>
</worldbody>
<tendon>
  <spatial name="cord" range="0.1 0.5"><site site="anchor"/><site site="tip"/></spatial>
</tendon>"""
DEFAULTS = """<default>
  <general gear="3 1" dyntype="filter" dynprm="9" gainprm="7 7 7" biastype="affine" biasprm="1 2 3"
    ctrlrange="0 1" forcerange="-1 1" actrange="-2 2" armature="5" damping="4" group="2"
    actearly="true" delay="1" nsample="3"/>
</default>"""
MAKERS = {
    "motor": lambda spec, **kw: create_motor_actuator(spec, "hinge", effort_limit=5.0, **kw),
    "position": lambda spec, **kw: create_position_actuator(
        spec, "hinge", stiffness=40.0, damping=2.0, effort_limit=5.0, **kw
    ),
    "velocity": lambda spec, **kw: create_velocity_actuator(spec, "hinge", damping=2.0, **kw),
    "muscle": lambda spec, **kw: create_muscle_actuator(
        spec, "cord", length_range=(0.1, 0.5), **kw
    ),
    "dcmotor": lambda spec, **kw: create_dcmotor_actuator(
        spec, "hinge", motorconst=(0.1, 0.1), resistance=2.0, effort_limit=5.0, **kw
    ),
}


def make_spec(defaults: str = "") -> mujoco.MjSpec:
    """Return an arm with a tendon, and a default class for actuators if given."""
    return mujoco.MjSpec.from_string(f"<mujoco>{defaults}{WORLD}</mujoco>")


@pytest.fixture
def spec() -> mujoco.MjSpec:
    """Return an arm with a tendon."""
    return make_spec()


def actuator_fields(model: mujoco.MjModel) -> dict[str, list]:
    """Return all that a model knows of its actuators."""
    names = [name for name in dir(model) if name.startswith("actuator_")]
    return {name: getattr(model, name).tolist() for name in names}


@pytest.mark.parametrize("kind", MAKERS)
def test_default_class(kind):
    """Make the same actuator whatever the spec's default class says, also after a round trip."""
    plain, misleading = make_spec(), make_spec(DEFAULTS)
    for spec in (plain, misleading):
        MAKERS[kind](spec)
    expected = actuator_fields(plain.compile())
    assert actuator_fields(misleading.compile()) == expected
    again = mujoco.MjModel.from_xml_string(misleading.to_xml())
    for name, values in actuator_fields(again).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5)  # XML has 6 digits


REFERENCES = {
    "motor": '<motor name="hinge" joint="hinge" ctrlrange="-5 5" forcerange="-5 5"/>',
    "position": '<position name="hinge" joint="hinge" kp="40" kv="2" forcerange="-5 5" '
    f'ctrllimited="false" ctrlrange="{-math.pi / 2 - 0.125!r} {math.pi / 2 + 0.125!r}"/>',
    "velocity": '<velocity name="hinge" joint="hinge" kv="2"/>',
    "muscle": '<muscle name="cord" tendon="cord" ctrlrange="0 1" lengthrange=".1 .5"/>',
    "dcmotor": '<dcmotor name="hinge" joint="hinge" motorconst="0.1 0.1" resistance="2" '
    'saturation="5 0 0"/>',
}


@pytest.mark.parametrize("kind", MAKERS)
def test_reference(spec, kind):
    """Make what MuJoCo's own element makes, in every field."""
    MAKERS[kind](spec)
    xml = f"<mujoco>{WORLD}<actuator>{REFERENCES[kind]}</actuator></mujoco>"
    assert actuator_fields(spec.compile()) == actuator_fields(mujoco.MjModel.from_xml_string(xml))


class TestMotor:
    def test_effort(self, spec):
        """Bound the effort before the gear, which may turn it around."""
        create_motor_actuator(spec, "hinge", effort_limit=6.0, gear=-2.0)
        model = spec.compile()
        data = mujoco.MjData(model)
        data.ctrl[:] = 100.0
        mujoco.mj_forward(model, data)
        assert data.qfrc_actuator[0] == -12.0

    def test_no_limit(self, spec):
        """Leave the effort unbounded where the limit is infinite."""
        create_motor_actuator(spec, "hinge", effort_limit=math.inf)
        model = spec.compile()
        assert not model.actuator_ctrllimited[0]
        assert not model.actuator_forcelimited[0]

    @pytest.mark.parametrize("kind, name", [("tendon", "cord"), ("site", "tip")])
    def test_transmission(self, spec, kind, name):
        """Act on tendons and sites."""
        transmission = TransmissionType(kind)
        create_motor_actuator(spec, name, effort_limit=1.0, transmission_type=transmission)
        model = spec.compile()
        assert model.actuator_trntype[0] == getattr(mujoco.mjtTrn, f"mjTRN_{kind.upper()}")
        assert model.actuator_trnid[0, 0] == getattr(model, kind)(name).id


class TestPosition:
    @pytest.mark.parametrize(
        "target, effort_limit, expected",
        [
            ("hinge", None, (-math.pi / 2, math.pi / 2)),
            ("slide", 20.0, (-1.5, 3.5)),
            ("slide", math.inf, (-1.0, 3.0)),
            ("free_turn", 20.0, (0.0, 0.0)),
        ],
    )
    def test_range(self, spec, target, effort_limit, expected):
        """Tell the useful range without imposing it."""
        create_position_actuator(
            spec, target, stiffness=40.0, damping=0.0, effort_limit=effort_limit
        )
        model = spec.compile()
        assert model.actuator_ctrlrange[0] == pytest.approx(expected)
        assert not model.actuator_ctrllimited[0]

    def test_radians(self):
        """Take the range as it is where the spec is in radians."""
        spec = mujoco.MjSpec.from_string(
            '<mujoco><compiler angle="radian"/><worldbody><body><joint name="hinge" range="-1 2"/>'
            '<geom size=".1"/></body></worldbody></mujoco>'
        )
        create_position_actuator(spec, "hinge", stiffness=1.0, damping=0.0)
        assert spec.compile().actuator_ctrlrange[0].tolist() == [-1, 2]

    def test_tendon(self, spec):
        """Pull a tendon to a length."""
        create_position_actuator(
            spec,
            "cord",
            stiffness=10.0,
            damping=1.0,
            effort_limit=1.0,
            transmission_type=TransmissionType.TENDON,
        )
        model = spec.compile()
        assert model.actuator_trntype[0] == mujoco.mjtTrn.mjTRN_TENDON
        assert model.actuator_ctrlrange[0] == pytest.approx([0.0, 0.6])

    def test_attached(self, spec):
        """Find a joint that came with an attached spec, with its units."""
        parent = mujoco.MjSpec()
        parent.compiler.degree = False
        parent.attach(spec, prefix="a/", frame=parent.worldbody.add_frame())
        create_position_actuator(parent, "a/hinge", stiffness=1.0, damping=0.0)
        model = parent.compile()
        assert model.actuator_ctrlrange[0] == pytest.approx(model.joint("a/hinge").range)

    def test_site(self, spec):
        """Refuse sites."""
        with pytest.raises(ValueError, match="cannot drive site 'tip'"):
            create_position_actuator(
                spec, "tip", stiffness=1.0, damping=0.0, transmission_type=TransmissionType.SITE
            )


class TestMuscle:
    def test_parameters(self, spec):
        """Pass every parameter on, like MuJoCo's element."""
        create_muscle_actuator(
            spec,
            "hinge",
            length_range=(-1.0, 2.0),
            gear=2.0,
            timeconst=(0.02, 0.05),
            tausmooth=0.1,
            range=(0.5, 1.1),
            force=30.0,
            scale=100.0,
            lmin=0.4,
            lmax=1.7,
            vmax=1.6,
            fpmax=1.4,
            fvmax=1.1,
            transmission_type=TransmissionType.JOINT,
        )
        xml = f"""<mujoco>{WORLD}<actuator><muscle name="hinge" joint="hinge" ctrlrange="0 1"
          lengthrange="-1 2" gear="2" timeconst=".02 .05" tausmooth=".1" range=".5 1.1" force="30"
          scale="100" lmin=".4" lmax="1.7" vmax="1.6" fpmax="1.4" fvmax="1.1"/></actuator>
          </mujoco>"""
        model, expected = spec.compile(), mujoco.MjModel.from_xml_string(xml)
        assert actuator_fields(model) == actuator_fields(expected)

    def test_refused(self, spec):
        """Refuse a site, and lengths that do not rise."""
        with pytest.raises(ValueError, match="cannot pull site"):
            create_muscle_actuator(spec, "tip", transmission_type=TransmissionType.SITE)
        with pytest.raises(ValueError, match="length_range"):
            create_muscle_actuator(spec, "cord", length_range=(1.0, 0.5))


class TestDcMotor:
    def test_nominal(self, spec):
        """Stall at the datasheet's torque and idle at its speed, behind the gear."""
        create_dcmotor_actuator(spec, "hinge", nominal=(24.0, 2.0, 100.0), gear=10.0)
        model = spec.compile()
        data = mujoco.MjData(model)
        data.ctrl[:] = 24.0
        mujoco.mj_forward(model, data)
        assert data.qfrc_actuator[0] == pytest.approx(20.0)
        data.qvel[0] = 10.0
        mujoco.mj_forward(model, data)
        assert data.qfrc_actuator[0] == pytest.approx(0.0, abs=1e-9)

    def test_refused(self, spec):
        """Refuse a site, and pass MuJoCo's own refusals on."""
        with pytest.raises(ValueError, match="cannot drive site"):
            create_dcmotor_actuator(spec, "tip", transmission_type=TransmissionType.SITE)
        with pytest.raises(ValueError, match="resistance"):
            create_dcmotor_actuator(spec, "hinge", motorconst=(0.1, 0.1))


class TestOverrides:
    @pytest.mark.parametrize("kind, name", [("joint", "hinge"), ("tendon", "cord")])
    def test_none_and_zero(self, spec, kind, name):
        """Keep what is None and override by an explicit 0."""
        target = getattr(spec, kind)(name)
        target.armature, target.frictionloss, target.damping[:] = 1.0, 2.0, [3.0, 4.0, 5.0]
        apply_target_overrides(
            spec,
            name,
            TransmissionType(kind),
            armature=None,
            frictionloss=0.0,
            viscous_damping=0.5,
        )
        model = spec.compile()
        fields = "dof" if kind == "joint" else "tendon"
        values = [getattr(model, f"{fields}_{x}")[0] for x in ("armature", "frictionloss")]
        assert [*values, getattr(model, f"{fields}_damping")[0]] == [1.0, 0.0, 0.5]
        assert target.damping.tolist() == [0.5, 0.0, 0.0]

    @pytest.mark.parametrize("field", ["armature", "frictionloss", "viscous_damping"])
    def test_site(self, spec, field):
        """Refuse properties that a site lacks, and accept a site without them."""
        nothing = {"armature": None, "frictionloss": None, "viscous_damping": None}
        apply_target_overrides(spec, "tip", TransmissionType.SITE, **nothing)
        with pytest.raises(ValueError, match=f"Site 'tip' cannot have {field}"):
            apply_target_overrides(spec, "tip", TransmissionType.SITE, **nothing | {field: 0.0})

    @pytest.mark.parametrize("kind", TransmissionType)
    def test_no_target(self, spec, kind):
        """Name the target that is not there."""
        with pytest.raises(ValueError, match=f"no {kind} 'hunge'"):
            create_motor_actuator(spec, "hunge", effort_limit=1.0, transmission_type=kind)

    @pytest.mark.parametrize("wrong", ["armature", "frictionloss", "viscous_damping"])
    def test_negative(self, spec, wrong):
        """Refuse negative properties and add no actuator."""
        with pytest.raises(ValueError, match=f"{wrong} of joint 'hinge'"):
            create_motor_actuator(spec, "hinge", effort_limit=1.0, **{wrong: -1.0})
        assert not list(spec.actuators)


def test_joint_limited(spec):
    """Agree with MuJoCo on which joints are limited."""
    spec.joint("slide").limited = mujoco.mjtLimited.mjLIMITED_FALSE
    model = spec.compile()
    limited = [is_joint_limited(joint) for joint in spec.joints]
    assert limited == np.asarray(model.jnt_limited, dtype=bool).tolist()
    assert limited == [True, False, False, True]
