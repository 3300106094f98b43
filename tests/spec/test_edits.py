from __future__ import annotations

import mujoco
import pytest

from manyworlds.spec.edits import (
    add_ground_plane,
    add_position_actuators,
    copy_material_data,
    copy_mesh_data,
    copy_texture_data,
    create_position_actuator,
)

MODEL = """<mujoco>
<default>
  <geom contype="0" conaffinity="0"/>
  <general gear="3" dyntype="filter" ctrlrange="0 1"/>
</default>
<worldbody>
  <body pos="0 0 1"><freejoint/><geom size=".1"/>
    <body><joint name="hinge"/><geom size=".1"/></body>
    <body><joint type="slide"/><geom size=".1"/></body>
    <body><joint name="ball" type="ball"/><geom size=".1"/></body>
    <body><joint name="driven"/><geom size=".1"/></body>
  </body>
</worldbody>
<actuator><motor name="hinge" joint="driven"/></actuator>
</mujoco>"""


@pytest.fixture
def spec() -> mujoco.MjSpec:
    """Return a spec with every kind of joint and misleading defaults."""
    return mujoco.MjSpec.from_string(MODEL)


class TestPositionActuator:
    def test_gains(self, spec):
        """Pull with stiffness and damping whatever the file's default class says."""
        actuator = create_position_actuator(
            spec,
            "hinge",
            stiffness=40.0,
            damping=2.0,
            effort_limit=5.0,
            armature=0.01,
            frictionloss=0.1,
            viscous_damping=0.3,
            actuator_name="pull",
        )
        model = spec.compile()
        i = actuator.id
        assert model.actuator(i).name == "pull"
        assert model.actuator_gainprm[i, 0] == 40
        assert model.actuator_biasprm[i, :3].tolist() == [0, -40, -2]
        assert model.actuator_gear[i, 0] == 1
        assert model.actuator_dyntype[i] == mujoco.mjtDyn.mjDYN_NONE
        assert not model.actuator_ctrllimited[i]
        assert model.actuator_forcerange[i].tolist() == [-5, 5]
        dof = model.joint("hinge").dofadr[0]
        assert model.dof_armature[dof] == 0.01
        assert model.dof_frictionloss[dof] == 0.1
        assert model.dof_damping[dof] == 0.3

    def test_unlimited(self, spec):
        """Leave force and joint alone unless asked."""
        i = create_position_actuator(
            spec, "hinge", stiffness=1.0, damping=0.0, actuator_name="a"
        ).id
        model = spec.compile()
        assert not model.actuator_forcelimited[i]
        assert model.dof_damping[model.joint("hinge").dofadr[0]] == 0

    @pytest.mark.parametrize(
        "wrong, message",
        [
            ({"joint_name": "hunge"}, "no joint 'hunge'"),
            ({"stiffness": -1.0}, "stiffness"),
            ({"damping": -1.0}, "damping"),
            ({"effort_limit": 0.0}, "effort_limit"),
        ],
    )
    def test_refused(self, spec, wrong, message):
        """Refuse what makes no actuator."""
        args = {"joint_name": "hinge", "stiffness": 1.0, "damping": 0.0} | wrong
        with pytest.raises(ValueError, match=message):
            create_position_actuator(spec, **args)


class TestPositionActuators:
    def test_targets(self, spec):
        """Drive undriven hinge and slide joints, nameless ones too, and no other."""
        names = add_position_actuators(spec, 40.0)
        assert names[0] == "hinge"
        assert len(names) == 2
        model = spec.compile()
        driven = [model.joint(i).name for i in model.actuator_trnid[:, 0]]
        assert sorted(driven) == sorted(["driven", *names])
        assert model.actuator_gainprm[1:, 0].tolist() == [40, 40]

    @pytest.mark.parametrize("kp", [0.0, -1.0, float("nan")])
    def test_refused(self, spec, kp):
        """Refuse a stiffness that is not positive."""
        with pytest.raises(ValueError, match="kp"):
            add_position_actuators(spec, kp)


class TestGroundPlane:
    def test_contact(self, spec):
        """Collide whatever the file's default class says."""
        geom = add_ground_plane(spec)
        model = spec.compile()
        assert model.geom_type[geom.id] == mujoco.mjtGeom.mjGEOM_PLANE
        assert model.geom_contype[geom.id] == model.geom_conaffinity[geom.id] == 1

    def test_twice(self, spec):
        """Refuse a second plane."""
        add_ground_plane(spec)
        with pytest.raises(ValueError, match="already has a ground plane"):
            add_ground_plane(spec)


class TestCopies:
    def test_mesh(self):
        """Copy a mesh to another spec, vertices, scale and all."""
        source, target = mujoco.MjSpec(), mujoco.MjSpec()
        mesh = source.add_mesh(name="ball", scale=[2.0, 1.0, 1.0], maxhullvert=9)
        mesh.make_sphere(subdivision=2)
        copy = target.add_mesh(name="copy")
        copy_mesh_data(mesh, copy)
        models = []
        for spec, name in ((source, "ball"), (target, "copy")):
            body = spec.worldbody.add_body()
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name)
            models.append(spec.compile())
        expected, model = models
        assert model.mesh(0).name == "copy"
        for field in ("mesh_vert", "mesh_face", "mesh_graph", "mesh_scale", "body_inertia"):
            assert getattr(model, field).tolist() == getattr(expected, field).tolist(), field

    def test_texture_and_material(self):
        """Copy pixels, and a material with its textures."""
        source, target = mujoco.MjSpec(), mujoco.MjSpec()
        kind = mujoco.mjtTexture.mjTEXTURE_2D
        texture = source.add_texture(name="t", type=kind, width=2, height=2, nchannel=3)
        texture.data = bytes(range(12))
        material = source.add_material(name="m", rgba=[0.1, 0.2, 0.3, 1.0], shininess=0.9)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "t"
        copy_texture_data(texture, target.add_texture(name="t"))
        copy_material_data(material, target.add_material(name="copy"))
        for spec in (source, target):
            spec.worldbody.add_geom(size=[1.0, 1.0, 1.0], material=spec.materials[0].name)
        expected, model = source.compile(), target.compile()
        assert model.mat(0).name == "copy"
        for field in ("tex_data", "tex_width", "mat_texid", "mat_rgba", "mat_shininess"):
            assert getattr(model, field).tolist() == getattr(expected, field).tolist(), field
