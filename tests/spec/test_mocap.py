from __future__ import annotations

import functools
import warnings

import mujoco
import numpy as np
import pytest

from manyworlds.spec.edits import auto_wrap_fixed_base_mocap, export_spec
from tests.robots import robot_file

ARM = """<mujoco model="arm"><compiler angle="degree"/>
<option timestep="0.003" integrator="implicitfast" gravity="0 1 -5"/><size nuserdata="3"/>
<visual><headlight ambient=".1 .2 .3"/></visual><statistic extent="7"/>
<default><joint damping=".5"/><geom rgba="1 0 0 1"/><default class="q"><geom condim="4"/></default>
</default>
<worldbody>
  <light name="lamp" pos="0 0 3"/><camera name="eye" pos="1 1 1"/><site name="hook" pos="0 0 1"/>
  <geom name="stand" size=".1" pos="0 0 -1"/>
  <body name="base" pos="1 2 3" euler="0 0 30"><geom name="foot" size=".1"/>
    <body name="arm" pos="0 0 .3"><joint name="swing" axis="0 1 0"/>
      <geom name="link" class="q" size=".1" pos=".3 0 0"/><site name="tip" pos=".4 0 0"/>
      <body name="hand" pos=".6 0 0"><joint name="wrist" axis="0 0 1"/><geom size=".1"/></body>
    </body>
  </body>
  <body name="cart" pos="3 0 0"><joint name="rail" type="slide"/><geom size=".1"/></body>
  <body name="hung" pos="5 0 1"><joint type="ball"/><geom size=".1" pos="0 0 -.3"/></body>
</worldbody>
<contact><exclude body1="world" body2="arm"/><exclude body1="base" body2="arm"/></contact>
<equality>
  <connect name="pin" body1="hung" anchor="0 0 -.3"/>
  <weld name="glue" body1="world" body2="hung" active="false"/>
</equality>
<tendon><spatial name="cord" stiffness="3"><site site="hook"/><site site="tip"/></spatial></tendon>
<actuator><position name="drive" joint="swing" kp="3"/><motor tendon="cord"/></actuator>
<sensor><framepos objtype="body" objname="arm"/><touch site="tip"/><jointpos joint="rail"/></sensor>
<keyframe><key name="home" qpos=".4 .1 .2 1 0 0 0" ctrl=".2 .3"/></keyframe>
</mujoco>"""
# What a wrapped model has as it was; elements of bodies and mocap parts come in addition.
SAME = ("nq", "nv", "nu", "na", "ngeom", "nsite", "nlight", "ncam", "njnt", "ntendon", "nsensor",
        "neq", "nexclude", "nkey", "nmat", "nmesh", "ntex", "nuserdata")  # fmt: skip


def arm() -> mujoco.MjSpec:
    """Return a fixed-base spec with a bit of everything."""
    return mujoco.MjSpec.from_string(ARM)


def yam() -> mujoco.MjSpec:
    """Return a fixed-base robot."""
    return mujoco.MjSpec.from_file(str(robot_file("i2rt_yam/yam.xml")))


def excited(model: mujoco.MjModel) -> mujoco.MjData:
    """Return a state with positions, velocities and controls that are not zero."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    data.qvel[:] = 0.3 * rng.standard_normal(model.nv)
    data.ctrl[:] = 0.2 * rng.standard_normal(model.nu)
    return data


@pytest.mark.parametrize("spec_fn", [arm, yam])
def test_same_motion(spec_fn):
    """Move like the unwrapped spec, step by step."""
    plain, wrapped = spec_fn().compile(), auto_wrap_fixed_base_mocap(spec_fn)().compile()
    assert wrapped.body("mocap_base").mocapid == 0
    assert wrapped.nbody == plain.nbody + 1
    for name in SAME:
        assert getattr(wrapped, name) == getattr(plain, name), name
    expected, data = excited(plain), excited(wrapped)
    for _ in range(300):
        mujoco.mj_step(plain, expected)
        mujoco.mj_step(wrapped, data)
        np.testing.assert_allclose(data.qpos, expected.qpos, rtol=0, atol=1e-12)
    assert np.abs(data.qpos - plain.qpos0).max() > 1e-3
    np.testing.assert_allclose(data.sensordata, expected.sensordata, rtol=0, atol=1e-9)
    for field in ("geom_xpos", "geom_xmat", "site_xpos", "cam_xpos", "light_xpos"):
        np.testing.assert_allclose(getattr(data, field), getattr(expected, field), atol=1e-12)


@pytest.mark.parametrize("spec_fn", [arm, yam])
def test_moves_all(spec_fn):
    """Carry everything along, and swing on as before where the mocap body has moved."""
    model = auto_wrap_fixed_base_mocap(spec_fn)().compile()
    here, there = excited(model), excited(model)
    there.mocap_pos[0] = [10.0, -20.0, 0.5]
    for _ in range(100):
        mujoco.mj_step(model, here)
        mujoco.mj_step(model, there)
    for data in (here, there):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
    for field in ("xpos", "geom_xpos", "site_xpos", "cam_xpos", "light_xpos"):
        offset = getattr(there, field) - getattr(here, field)
        offset = offset[1:] if field == "xpos" else offset
        expected = np.broadcast_to([10.0, -20.0, 0.5], offset.shape)
        np.testing.assert_allclose(offset, expected, atol=1e-9, err_msg=field)


def test_keeps_settings():
    """Keep options, defaults, names, keyframes and the rest of the spec."""
    plain = arm().compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapped = auto_wrap_fixed_base_mocap(arm)().compile()
    assert wrapped.stat.extent == 7
    for struct in ("opt", "vis"):
        assert str(getattr(wrapped, struct)) == str(getattr(plain, struct))
    for kind in ("joint", "geom", "site", "actuator", "tendon", "sensor", "camera", "light"):
        number = {"joint": plain.njnt, "actuator": plain.nu, "camera": plain.ncam}
        for i in range(number.get(kind, getattr(plain, f"n{kind}", 0))):
            assert getattr(wrapped, kind)(i).name == getattr(plain, kind)(i).name
    for field in ("geom_condim", "geom_rgba", "dof_damping", "key_qpos", "key_ctrl", "jnt_range"):
        np.testing.assert_array_equal(getattr(wrapped, field), getattr(plain, field))
    assert wrapped.key_mpos.tolist() == [[0, 0, 0]]
    assert wrapped.key_mquat.tolist() == [[1, 0, 0, 0]]
    assert wrapped.names[: len("arm")] == b"arm"


def test_world_becomes_base():
    """Tie and exclude with the mocap body what was tied to the world."""
    spec = auto_wrap_fixed_base_mocap(arm)()
    model = spec.compile()
    base = model.body("mocap_base").id
    assert base in (model.eq("pin").obj2id, model.eq("pin").obj1id)
    assert model.eq("glue").obj1id == base
    pair = [spec.excludes[0].bodyname1, spec.excludes[0].bodyname2]
    assert pair == ["mocap_base", "arm"]


@pytest.mark.parametrize(
    "body",
    [
        '<body><freejoint/><geom size=".1"/></body>',
        '<body mocap="true"><geom size=".1"/></body>',
        '<body><geom size=".1"/></body><body mocap="true"/>',
        "<site/>",
    ],
)
def test_as_it_is(body):
    """Return what moves, what is on a mocap body already, and nothing, as it is."""
    spec = mujoco.MjSpec.from_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    assert auto_wrap_fixed_base_mocap(lambda: spec)() is spec


def test_twice():
    """Wrap once."""
    wrapped = auto_wrap_fixed_base_mocap(auto_wrap_fixed_base_mocap(arm))
    assert [body.name for body in wrapped().worldbody.bodies] == ["mocap_base"]
    assert wrapped.__name__ == "arm"


def test_world_geoms():
    """Wrap a spec that has geoms, but no body; take any callable."""
    xml = "<mujoco><worldbody><geom name='wall' size='1'/></worldbody></mujoco>"
    spec = auto_wrap_fixed_base_mocap(functools.partial(mujoco.MjSpec.from_string, xml))()
    assert spec.geom("wall").parent.name == "mocap_base"


def test_own_children():
    """Tell truly which contacts a mocap base loses: those of a static body with its children."""
    xml = """<mujoco><worldbody><body><geom size=".2"/><body>
    <joint/><geom size=".2"/></body></body></worldbody></mujoco>"""
    spec_fn = functools.partial(mujoco.MjSpec.from_string, xml)
    pairs = []
    for fn in (spec_fn, auto_wrap_fixed_base_mocap(spec_fn)):
        model = fn().compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        pairs.append({tuple(sorted(contact.geom.tolist())) for contact in data.contact})
    assert pairs == [{(0, 1)}, set()]


def test_quiet(capfd):
    """Write nothing to the terminal."""
    auto_wrap_fixed_base_mocap(arm)().compile()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("robot", ["unitree_g1/g1.xml", "unitree_go1/go1.xml"])
def test_floating_robot(robot):
    """Return a robot with a floating base as it is."""
    spec = mujoco.MjSpec.from_file(str(robot_file(robot)))
    assert auto_wrap_fixed_base_mocap(lambda: spec)() is spec


@pytest.mark.parametrize("spec_fn", [arm, yam])
def test_export(spec_fn, tmp_path):
    """Export a wrapped spec, and attach it to a scene, without loss."""
    spec = auto_wrap_fixed_base_mocap(spec_fn)()
    expected = spec.compile()
    loaded = mujoco.MjModel.from_xml_path(str(export_spec(spec, tmp_path / "out") / "scene.xml"))
    for field in ("body_mass", "body_pos", "body_inertia", "geom_size", "geom_rgba", "geom_pos",
                  "jnt_range", "dof_damping", "actuator_gainprm", "key_qpos"):  # fmt: skip
        np.testing.assert_allclose(
            getattr(loaded, field), getattr(expected, field), rtol=1e-4, atol=1e-6, err_msg=field
        )
    scene = mujoco.MjSpec()
    for name in ("option", "nuserdata"):
        setattr(scene, name, getattr(spec, name))
    scene.attach(spec, prefix="robot/", frame=scene.worldbody.add_frame())
    model = scene.compile()
    assert model.body("robot/mocap_base").mocapid == 0
    assert model.nbody == expected.nbody
