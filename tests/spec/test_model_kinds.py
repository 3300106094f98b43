"""Kinds of elements of MuJoCo that come in from files and go out again."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.entity import Entity, EntityCfg
from manyworlds.lab import world_from_file, world_from_spec
from manyworlds.spec.export import export_spec
from manyworlds.spec.load import load_spec
from tests.robots import robot_file
from tests.spec.parity import assert_same, find_model


@pytest.fixture(scope="module")
def kinds():
    """A spec with all kinds of elements, and its model."""
    spec, warnings = load_spec(find_model("here:all_kinds.xml"))
    assert not warnings
    return spec, spec.compile()


def test_shapes_and_materials(kinds):
    """Read capsules, meshes given by vertices, and materials of several layers."""
    _, model = kinds
    assert model.geom("upper").type == mujoco.mjtGeom.mjGEOM_CAPSULE
    assert model.mesh("inline").vertnum == 4 and model.mesh("made").vertnum > 4
    roles = mujoco.mjtTextureRole
    layers = model.mat("layers").texid
    assert layers[roles.mjTEXROLE_RGB] != layers[roles.mjTEXROLE_ROUGHNESS] != -1


def test_fromto(kinds):
    """Place shapes between two points as MuJoCo says: middle, z axis along them, half-length."""
    _, model = kinds
    geom, matrix = model.geom("upper"), np.empty(9)
    mujoco.mju_quat2Mat(matrix, geom.quat)
    ends = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(geom.pos, ends / 2)
    np.testing.assert_allclose(geom.size[:2], [0.04, np.linalg.norm(ends) / 2])
    np.testing.assert_allclose(np.abs(matrix.reshape(3, 3)[:, 2] @ ends), np.linalg.norm(ends))


@pytest.mark.parametrize(
    "written",
    [
        'euler="90 0 0"',
        'axisangle="1 0 0 90"',
        'quat="1 1 0 0"',
        'xyaxes="1 0 0 0 0 1"',
        'zaxis="0 -1 0"',
    ],
)
def test_orientations(written, tmp_path):
    """Read all forms of orientations, and write them as they are."""
    (tmp_path / "m.xml").write_text(
        f"""<mujoco><compiler angle="degree"/><worldbody><body {written}><geom size=".1"/></body>
        </worldbody></mujoco>"""
    )
    spec, _ = load_spec(tmp_path / "m.xml")
    np.testing.assert_allclose(spec.compile().body_quat[1], np.sqrt([0.5, 0.5, 0, 0]), atol=1e-15)
    path = export_spec(spec, tmp_path / "out")
    assert written in (path / "scene.xml").read_text()


@pytest.mark.parametrize("angle, order", [("radian", "zyx"), ("degree", "XYZ")])
def test_units_and_order_of_angles(angle, order, tmp_path):
    """Follow `angle` and `eulerseq` of the file, and keep them when the model is exported."""
    turns, unit = np.array([0.3, -0.5, 0.7]), 1.0 if angle == "radian" else np.pi / 180.0
    written = " ".join(str(turn / unit) for turn in turns)
    (tmp_path / "m.xml").write_text(
        f"""<mujoco><compiler angle="{angle}" eulerseq="{order}"/><worldbody>
        <body euler="{written}"><geom size=".1"/></body></worldbody></mujoco>"""
    )
    wanted = np.array([1.0, 0.0, 0.0, 0.0])
    for axis, turn in zip(order.lower(), turns, strict=True):
        one = np.zeros(4)
        mujoco.mju_axisAngle2Quat(one, np.eye(3)["xyz".index(axis)], turn)
        # Small letters turn about the axes of the body, capitals about those that stand still.
        factors = (one, wanted) if order.isupper() else (wanted, one)
        mujoco.mju_mulQuat(product := np.zeros(4), *factors)
        wanted = product
    spec, _ = load_spec(tmp_path / "m.xml")
    np.testing.assert_allclose(spec.compile().body_quat[1], wanted, atol=1e-12)
    path = export_spec(spec, tmp_path / "out")
    loaded = mujoco.MjModel.from_xml_path(str(path / "scene.xml"))
    np.testing.assert_allclose(loaded.body_quat[1], wanted, atol=1e-12)


def test_limits_follow_ranges(tmp_path):
    """Take limits from ranges unless `autolimits` is off."""
    for value, limited in (("true", 1), ("false", 0)):
        joint = f"""<joint range="-10 10"{' limited="false"' * (not limited)}/>"""
        (tmp_path / "m.xml").write_text(
            f"""<mujoco><compiler autolimits="{value}"/><worldbody><body><geom size=".1"/>
            {joint}</body></worldbody></mujoco>"""
        )
        assert load_spec(tmp_path / "m.xml")[0].compile().jnt_limited[0] == limited


def test_actuators(kinds, tmp_path):
    """Keep the kinds of actuators as they are written, which compiled models no longer have."""
    spec, model = kinds
    assert model.nactuator == 10
    text = (export_spec(spec, tmp_path / "out") / "scene.xml").read_text()
    shortcuts = "motor position velocity intvelocity damper cylinder muscle adhesion dcmotor"
    for kind in shortcuts.split():
        assert f"<{kind} " in text, kind


def test_sensors(kinds):
    """Read sensors of all stages, those of contacts and distances as well."""
    _, model = kinds
    types = {mujoco.mjtSensor(kind).name.removeprefix("mjSENS_") for kind in model.sensor_type}
    wanted = "ACCELEROMETER TOUCH RANGEFINDER GEOMDIST GEOMFROMTO CONTACT INSIDESITE USER"
    assert set(wanted.split()) <= types


def test_includes_and_defaults(tmp_path):
    """Follow includes and chains of defaults, whose meshes have their scale."""
    (tmp_path / "arm.xml").write_text(
        """<mujocoinclude><default><mesh scale="2 2 2"/><default class="a"><geom rgba="1 0 0 1"/>
        <default class="b"><geom type="mesh"/></default></default></default></mujocoinclude>"""
    )
    (tmp_path / "m.xml").write_text(
        """<mujoco><include file="arm.xml"/><asset>
        <mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
        <worldbody><body><geom class="b" mesh="m"/></body></worldbody></mujoco>"""
    )
    spec, _ = load_spec(tmp_path / "m.xml")
    model = spec.compile()
    assert model.geom_type[0] == mujoco.mjtGeom.mjGEOM_MESH and model.geom_rgba[0, 1] == 0.0
    np.testing.assert_allclose(model.body_mass[1], 1000 * 8 / 6, rtol=1e-6)
    path = export_spec(spec, tmp_path / "out")
    assert_same(mujoco.MjModel.from_xml_path(str(path / "scene.xml")), model)
    assert 'class="b"' in (path / "scene.xml").read_text()


def test_plugins():
    """Read shapes that plugins define."""
    spec, _ = load_spec(find_model("mujoco_warp:test_data/collision_sdf/nutbolt.xml"))
    assert spec.compile().nplugin > 0


def test_constraints(kinds):
    """Read constraints of flexes, limits of tendons, and their wrapping around geoms."""
    _, model = kinds
    assert mujoco.mjtEq.mjEQ_FLEX in model.eq_type and model.nflex == 1
    assert model.tendon_limited.all()
    assert mujoco.mjtWrap.mjWRAP_SPHERE in model.wrap_type


@pytest.mark.parametrize("robot", ["unitree_g1/g1.xml", "unitree_go1/go1.xml", "i2rt_yam/yam.xml"])
def test_files_and_specs_are_the_same(robot):
    """Make the same world and the same entity of a file and of a spec: plain MuJoCo's model."""
    path = robot_file(robot)
    world = world_from_file(path)
    spec = mujoco.MjSpec.from_file(str(path))
    assert_same(world.model, world_from_spec(spec).model)
    assert_same(world.model, mujoco.MjModel.from_xml_path(str(path)))
    one, other = (
        Entity(EntityCfg(spec_fn=make))
        for make in (lambda: load_spec(path)[0], lambda: spec.copy())
    )
    assert one.body_names == other.body_names and one.joint_names == other.joint_names
    assert_same(one.spec.compile(), other.spec.compile())


def test_a_new_entity():
    """Build an entity from nothing: a body with a shape suffices."""
    spec = mujoco.MjSpec()
    spec.worldbody.add_body(name="box").add_geom(size=(0.1, 0, 0))
    assert "box" in Entity(EntityCfg(spec_fn=lambda: spec)).body_names
    assert world_from_spec(spec).model.nbody == 2


def test_a_moved_body_pushes_and_is_not_pushed():
    """Push a body with a mocap body, whose pose stays as it is set."""
    spec = mujoco.MjSpec.from_string(
        """<mujoco><option gravity="0 0 0"/><worldbody>
        <body name="hand" mocap="true"><geom size=".1"/></body>
        <body name="ball" pos=".25 0 0"><freejoint/><geom size=".1"/></body>
        </worldbody></mujoco>"""
    )
    model = world_from_spec(spec).model
    data = mujoco.MjData(model)
    for step in range(200):
        data.mocap_pos[0] = (0.001 * step, 0.0, 0.0)
        mujoco.mj_step(model, data)
        assert data.xpos[1, 0] == 0.001 * step
    assert data.qpos[0] > 0.35
