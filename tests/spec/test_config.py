from __future__ import annotations

import warnings

import mujoco
import pytest

from manyworlds.spec.config import (
    CameraCfg,
    CollisionCfg,
    GeomCfg,
    LightCfg,
    MaterialCfg,
    MeshCfg,
    SpecCfg,
    TextureCfg,
    warn_overlapping_geom_edits,
)
from tests.robots import robot_file

MODEL = """<mujoco>
<default>
  <geom contype="4" conaffinity="8" condim="4" priority="7" friction=".5 .05 .005" group="2"/>
  <light castshadow="false" cutoff="7"/>
  <camera fovy="7"/>
</default>
<asset>
  <mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1 1 1 1"/>
  <mesh name="spike" vertex="0 0 0 1 0 0 0 1 0 0 0 1 1 1 1"/>
</asset>
<worldbody>
  <body name="base"><freejoint/>
    <geom name="left_foot" size=".1"/>
    <geom name="right_foot" size=".1" rgba="1 0 0 1"/>
    <geom name="trunk" size=".1"/>
    <geom size=".1"/>
    <geom name="hull" type="mesh" mesh="wedge"/>
  </body>
</worldbody>
</mujoco>"""


@pytest.fixture
def spec() -> mujoco.MjSpec:
    """Return a spec whose default class differs from all of MuJoCo's defaults."""
    return mujoco.MjSpec.from_string(MODEL)


def edited(spec: mujoco.MjSpec, *cfgs: SpecCfg) -> mujoco.MjModel:
    """Apply configs and compile."""
    for cfg in cfgs:
        cfg.edit_spec(spec)
    return spec.compile()


class TestCollision:
    def test_defaults(self, spec):
        """Let the selected geoms collide in full, and no other, named or not."""
        model = edited(spec, CollisionCfg(geom_names_expr=(".*_foot",)))
        assert model.geom_contype.tolist() == [1, 1, 0, 0, 0]
        assert model.geom_conaffinity.tolist() == [1, 1, 0, 0, 0]
        assert model.geom_condim.tolist() == [3, 3, 4, 4, 4]
        assert model.geom_priority.tolist() == [0, 0, 7, 7, 7]
        assert model.geom_friction.tolist() == 5 * [[0.5, 0.05, 0.005]]

    def test_others_kept(self, spec):
        """Leave the other geoms alone if asked to."""
        cfg = CollisionCfg(geom_names_expr=("trunk",), disable_other_geoms=False)
        assert edited(spec, cfg).geom_contype.tolist() == [4, 4, 1, 4, 4]

    def test_dict(self, spec):
        """Let the first pattern win, and give the rest the default or the model's value."""
        cfg = CollisionCfg(
            geom_names_expr=(".*",),
            condim={"left_.*": 6, ".*_foot": 1},
            friction={"left_foot": (0.9, 0.1)},
            contype=None,
        )
        model = edited(spec, cfg)
        assert model.geom_condim.tolist() == [6, 1, 3, 3, 3]
        assert model.geom_friction[:2].tolist() == [[0.9, 0.1, 0.005], [0.5, 0.05, 0.005]]
        assert model.geom_contype.tolist() == 5 * [4]

    def test_untouched_config(self, spec):
        """Leave a shared config as it was."""
        cfg = CollisionCfg(geom_names_expr=(".*_foot",), condim={"left_foot": 6})
        edited(spec, cfg)
        assert cfg == CollisionCfg(geom_names_expr=(".*_foot",), condim={"left_foot": 6})

    def test_quadruped_feet(self):
        """Leave a real robot with contacts at its feet only."""
        spec = mujoco.MjSpec.from_file(str(robot_file("unitree_go1/go1.xml")))
        feet = ".*_foot_collision"
        cfg = CollisionCfg(geom_names_expr=(feet,), condim=6, priority=1, friction=(0.8, 0.02))
        model = edited(spec, cfg)
        on = [model.geom(i).name for i in range(model.ngeom) if model.geom_contype[i]]
        assert sorted(on) == [f"{leg}_foot_collision" for leg in ("FL", "FR", "RL", "RR")]
        for name in on:
            assert model.geom(name).condim == 6
            assert model.geom(name).priority == 1
            assert model.geom(name).friction.tolist() == [0.8, 0.02, 0.0001]


class TestGeom:
    def test_keeps(self, spec):
        """Change what is given, and nothing else."""
        before = mujoco.MjSpec.from_string(MODEL).compile()
        cfg = GeomCfg(
            geom_names_expr=("left_foot", "trunk"),
            group={"trunk": 5},
            solref=(0.01, 2.0),
            solimp=(0.8, 0.9),
            margin=0.02,
            gap=0.01,
            solmix=3.0,
        )
        model = edited(spec, cfg)
        assert model.geom_group.tolist() == [2, 2, 5, 2, 2]
        assert model.geom_solref[[0, 2]].tolist() == 2 * [[0.01, 2.0]]
        assert model.geom_solimp[0].tolist() == [0.8, 0.9, *before.geom_solimp[0, 2:]]
        assert model.geom_margin.tolist() == [0.02, 0, 0.02, 0, 0]
        assert model.geom_gap.tolist() == [0.01, 0, 0.01, 0, 0]
        assert model.geom_solmix.tolist() == [3, 1, 3, 1, 1]
        for field in ("contype", "conaffinity", "condim", "priority", "friction"):
            name = f"geom_{field}"
            assert (getattr(model, name) == getattr(before, name)).all()

    @pytest.mark.parametrize("make", [GeomCfg, CollisionCfg])
    @pytest.mark.parametrize(
        "wrong",
        [
            {"condim": 2},
            {"condim": {".*": 5}},
            {"friction": ()},
            {"friction": (1.0, 1.0, 1.0, 1.0)},
            {"friction": (-1.0,)},
            {"friction": 1.0},
            {"solref": (0.1,)},
            {"solimp": (0.1,) * 6},
            {"contype": -1},
            {"conaffinity": 1.5},
            {"margin": float("nan")},
        ],
    )
    def test_refused(self, spec, make, wrong):
        """Name the field that holds a value that cannot be, and change nothing."""
        (field,) = wrong
        with pytest.raises(ValueError, match=f"{make.__name__}.*{field} must be"):
            make(geom_names_expr=(".*",), **wrong).edit_spec(spec)
        assert spec.geoms[0].contype == 4

    @pytest.mark.parametrize(
        "wrong",
        [
            {"geom_names_expr": ("left_food",)},
            {"geom_names_expr": ("foot",)},
            {"geom_names_expr": (".*",), "condim": {"left_food": 3}},
        ],
    )
    def test_no_match(self, spec, wrong):
        """Refuse patterns that match no whole name, and suggest one."""
        with pytest.raises(ValueError, match=r"matches none of.*left_foot"):
            CollisionCfg(**wrong).edit_spec(spec)


class TestOverlap:
    def test_overlap(self, spec):
        """Warn of fields that two configs set for one geom, and say which."""
        geom = GeomCfg(geom_names_expr=("left_foot",), condim=1, group=3)
        collision = CollisionCfg(geom_names_expr=(".*_foot",))
        with pytest.warns(UserWarning, match="overwrites condim that GeomCfg.* for left_foot"):
            warn_overlapping_geom_edits([geom], [collision], spec)

    def test_disabled_others(self, spec):
        """Warn where the second collision config switches off what the first switched on."""
        cfgs = [CollisionCfg(geom_names_expr=(name,)) for name in ("left_foot", "right_foot")]
        with pytest.warns(UserWarning, match="overwrites conaffinity, contype that .*left_foot"):
            warn_overlapping_geom_edits([], cfgs, spec)

    def test_apart(self, spec):
        """Stay quiet where fields or geoms differ."""
        cfgs = [
            GeomCfg(geom_names_expr=("left_foot",), group=1),
            GeomCfg(geom_names_expr=("left_foot",), margin=0.1),
            GeomCfg(geom_names_expr=("trunk",), group=1),
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_overlapping_geom_edits(cfgs, [CollisionCfg(geom_names_expr=(".*",))], spec)


class TestMesh:
    def test_hull(self, spec):
        """Bound the convex hulls of the meshes selected."""
        edited(spec, MeshCfg(mesh_names_expr=(".*",), maxhullvert={"wedge": 4}))
        assert [mesh.maxhullvert for mesh in spec.meshes] == [4, -1]

    def test_file_name(self):
        """Select a mesh without a name by its file."""
        spec = mujoco.MjSpec.from_file(str(robot_file("i2rt_yam/yam.xml")))
        MeshCfg(mesh_names_expr=("model2__1[0-9]",), maxhullvert=16).edit_spec(spec)
        changed = {mesh.file for mesh in spec.meshes if mesh.maxhullvert == 16}
        assert changed == {f"model2__1{i}.stl" for i in range(8)}

    @pytest.mark.parametrize("wrong", [3, 0, -2, {"wedge": 3}, 4.5])
    def test_refused(self, spec, wrong):
        """Refuse hulls that are no bodies."""
        with pytest.raises(ValueError, match="maxhullvert must be -1"):
            MeshCfg(mesh_names_expr=("wedge",), maxhullvert=wrong).edit_spec(spec)


class TestTexture:
    def test_builtin(self, spec):
        """Draw a pattern."""
        cfg = TextureCfg(
            name="checks",
            type="2d",
            builtin="checker",
            rgb1=(1.0, 0.0, 0.0),
            rgb2=(0.0, 1.0, 0.0),
            width=8,
            height=4,
        )
        model = edited(spec, cfg)
        assert (model.tex_width[0], model.tex_height[0]) == (8, 4)
        pixels = {tuple(pixel) for pixel in model.tex_data.reshape(-1, 3).tolist()}
        assert pixels == {(255, 0, 0), (0, 255, 0)}

    def test_grid(self, spec):
        """Pass a grid of faces on."""
        cfg = TextureCfg(
            name="sky", type="skybox", file="sky.png", gridsize=(3, 2), gridlayout=".URL.D"
        )
        cfg.edit_spec(spec)
        texture = spec.texture("sky")
        assert texture.file == "sky.png"
        assert texture.gridsize.tolist() == [3, 2]
        assert "".join(texture.gridlayout) == ".URL.D......"

    def test_cube(self, spec):
        """Pass six files on."""
        files = ("r.png", "l.png", "u.png", "d.png", "f.png", "")
        TextureCfg(name="cube", type="cube", cubefiles=files).edit_spec(spec)
        assert tuple(spec.texture("cube").cubefiles) == files

    @pytest.mark.parametrize(
        "wrong, message",
        [
            ({}, "exactly one of"),
            ({"builtin": "flat", "width": 4, "height": 4, "file": "a.png"}, "exactly one of"),
            ({"builtin": "flat", "width": 4}, "width and height"),
            ({"builtin": "flat", "width": 4, "height": 0}, "width and height"),
            ({"builtin": "stripes"}, "builtin must be one of"),
            ({"file": "a.png", "type": "3d"}, "type must be one of"),
            ({"file": "a.png", "mark": "dot"}, "mark must be one of"),
            ({"cubefiles": 6 * ("a.png",)}, "cubefiles needs"),
            ({"cubefiles": ("a.png",), "type": "cube"}, "cubefiles needs"),
            ({"file": "a.png", "gridsize": (3, 4)}, "a grid of faces needs"),
            ({"file": "a.png", "type": "cube", "gridlayout": "R"}, "a grid of faces needs"),
            (
                {"file": "a.png", "type": "cube", "gridsize": (1, 2), "gridlayout": "X."},
                "gridlayout must",
            ),
            ({"file": "a.png", "type": "cube", "gridsize": (4, 4)}, "gridlayout must"),
            ({"file": "a.png", "nchannel": 5}, "nchannel"),
        ],
    )
    def test_refused(self, spec, wrong, message):
        """Refuse what draws nothing."""
        with pytest.raises(ValueError, match=message):
            TextureCfg(**({"name": "t", "type": "2d"} | wrong)).edit_spec(spec)
        assert not list(spec.textures)


class TestMaterial:
    def test_geoms(self, spec):
        """Show on the geoms selected, also on those that had a colour."""
        model = edited(
            spec,
            TextureCfg(name="flat", type="2d", builtin="flat", width=2, height=2),
            MaterialCfg(
                name="skin",
                rgba=(0.0, 0.0, 1.0, 1.0),
                texuniform=True,
                texrepeat=(2.0, 3.0),
                reflectance=0.3,
                texture="flat",
                geom_names_expr=(".*_foot",),
            ),
        )
        assert model.geom_matid.tolist() == [0, 0, -1, -1, -1]
        # MuJoCo draws a material's colour where the geom's own is the default.
        assert model.geom_rgba[:2].tolist() == 2 * [[0.5, 0.5, 0.5, 1]]
        assert model.mat_rgba.tolist() == [[0, 0, 1, 1]]
        assert model.mat_texid[0, mujoco.mjtTextureRole.mjTEXROLE_RGB] == 0
        assert model.mat_texuniform[0]
        assert model.mat_texrepeat[0].tolist() == [2, 3]
        assert model.mat_reflectance[0] == pytest.approx(0.3)

    @pytest.mark.parametrize(
        "wrong, message",
        [
            ({"rgba": (1.0, 1.0, 1.0)}, "rgba"),
            ({"reflectance": 2.0}, "reflectance"),
            ({"texrepeat": (0.0, 1.0)}, "texrepeat"),
            ({"texture": "nothing"}, "no texture 'nothing'"),
            ({"geom_names_expr": ("nothing",)}, "matches none"),
        ],
    )
    def test_refused(self, spec, wrong, message):
        """Refuse what cannot be seen."""
        with pytest.raises(ValueError, match=message):
            MaterialCfg(**({"name": "m"} | wrong)).edit_spec(spec)
        assert not list(spec.materials)

    def test_twice(self, spec):
        """Refuse a name that is taken."""
        MaterialCfg(name="m").edit_spec(spec)
        with pytest.raises(ValueError, match="already has a material 'm'"):
            MaterialCfg(name="m").edit_spec(spec)


class TestLightAndCamera:
    def test_light(self, spec):
        """Add a light whatever the default class says."""
        model = edited(
            spec,
            LightCfg(
                name="lamp",
                mode="targetbody",
                target="base",
                type="directional",
                pos=(1.0, 2.0, 3.0),
                diffuse=(0.1, 0.2, 0.3),
                active=False,
            ),
            LightCfg(body="base", mode="track"),
        )
        assert model.light("lamp").bodyid == 0
        assert model.light("lamp").targetbodyid == 1
        assert model.light("lamp").pos.tolist() == [1, 2, 3]
        assert model.light_type.tolist() == [
            mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            mujoco.mjtLightType.mjLIGHT_SPOT,
        ]
        assert model.light_castshadow.tolist() == [True, True]
        assert model.light_active.tolist() == [False, True]
        assert model.light_cutoff.tolist() == [45, 45]
        assert model.light_bodyid.tolist() == [0, 1]
        assert model.light_diffuse[0].tolist() == pytest.approx([0.1, 0.2, 0.3])

    def test_camera(self, spec):
        """Mount a camera on a body."""
        model = edited(
            spec,
            CameraCfg(name="eye", body="base", pos=(0.0, 0.0, 1.0), quat=(0.0, 1.0, 0.0, 0.0)),
        )
        assert model.camera("eye").bodyid == 1
        assert model.camera("eye").fovy == 45
        assert model.camera("eye").quat.tolist() == [0, 1, 0, 0]

    @pytest.mark.parametrize("make", [LightCfg, CameraCfg])
    @pytest.mark.parametrize(
        "wrong, message",
        [
            ({"mode": "tracking"}, "mode must be one of"),
            ({"mode": "targetbody"}, "need a target"),
            ({"target": "base"}, "need a target"),
            ({"body": "bas"}, "no body 'bas'.*Did you mean 'base'"),
        ],
    )
    def test_refused(self, spec, make, wrong, message):
        """Refuse what nothing carries or looks at."""
        with pytest.raises(ValueError, match=message):
            make(name="x", **wrong).edit_spec(spec)
