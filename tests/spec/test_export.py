from __future__ import annotations

import zipfile
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.spec.edits import export_spec
from tests.robots import robot_file
from tests.spec.parity import assert_same, find_model

ROBOTS = ("unitree_g1/g1.xml", "unitree_go1/go1.xml", "i2rt_yam/yam.xml")
MESH = """<mujoco><compiler meshdir="parts"/><asset><mesh name="part" file="part.obj"/></asset>
<worldbody><body><geom type="mesh" mesh="part"/></body></worldbody></mujoco>"""


def wavefront(size: float) -> bytes:
    """Return a tetrahedron as an OBJ file."""
    corners = "".join(
        f"v {x} {y} {z}\n" for x, y, z in np.vstack([np.zeros(3), size * np.eye(3)]).tolist()
    )
    return (corners + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n").encode()


def load(path: Path) -> mujoco.MjModel:
    """Compile an exported scene."""
    return mujoco.MjModel.from_xml_path(str(path / "scene.xml"))


@pytest.mark.parametrize(("zip", "wanted"), [(False, "out'"), (True, "out.zip'")])
def test_a_place_that_cannot_be_written(zip, wanted, tmp_path):
    """Name the folder or the archive that was asked for."""
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=f"Cannot write '{tmp_path}/file/{wanted}"):
        export_spec(mujoco.MjSpec(), tmp_path / "file" / "out", zip=zip)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ROBOTS)
def test_robot(robot, tmp_path):
    """Export a robot with its meshes, and load it again as it was."""
    spec = mujoco.MjSpec.from_file(str(robot_file(robot)))
    path = export_spec(spec, tmp_path / "out")
    assert path == tmp_path / "out"
    assert_same(load(path), spec.compile())
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_scene(tmp_path):
    """Export robots from different folders together."""
    scene = mujoco.MjSpec()
    for i, robot in enumerate(ROBOTS[1:]):
        spec = mujoco.MjSpec.from_file(str(robot_file(robot)))
        scene.attach(spec, prefix=f"{i}/", frame=scene.worldbody.add_frame(pos=[i, 0, 0]))
    path = export_spec(scene, tmp_path / "out")
    assert_same(load(path), scene.compile())


def test_same_file_name(tmp_path):
    """Keep files apart that have the same name in different folders."""
    scene = mujoco.MjSpec()
    for i in range(2):
        (tmp_path / str(i) / "parts").mkdir(parents=True)
        (tmp_path / str(i) / "model.xml").write_text(MESH)
        (tmp_path / str(i) / "parts" / "part.obj").write_bytes(wavefront(i + 1.0))
        spec = mujoco.MjSpec.from_file(str(tmp_path / str(i) / "model.xml"))
        scene.attach(spec, prefix=f"{i}/", frame=scene.worldbody.add_frame())
    path = export_spec(scene, tmp_path / "out")
    assert len(list((path / "assets").iterdir())) == 2
    assert_same(load(path), scene.compile())


def skin() -> bytes:
    """Return a triangle that hangs on the body 'bone', as a SKN file."""
    bone = b"bone".ljust(40, b"\0") + np.array([0, 0, 0, 1, 0, 0, 0], np.float32).tobytes()
    return (
        np.array([3, 0, 1, 1], np.int32).tobytes()
        + np.eye(3, dtype=np.float32).tobytes()
        + np.array([0, 1, 2], np.int32).tobytes()
        + bone
        + np.array([3, 0, 1, 2], np.int32).tobytes()
        + np.ones(3, np.float32).tobytes()
    )


def test_folders(tmp_path):
    """Find textures, faces of cubes, height fields and skins in folders beside the model's."""
    image = pytest.importorskip("PIL.Image", reason="needs Pillow, of the extra 'train'")
    for folder in ("model", "shapes", "pictures/faces"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "shapes" / "part.obj").write_bytes(wavefront(1.0))
    (tmp_path / "shapes" / "part.skn").write_bytes(skin())
    for i, name in enumerate(("shapes/part.png", "pictures/part.png", "pictures/faces/part.png")):
        image.new("RGB", (6, 6), (40 * i, 99, 7 * i)).save(tmp_path / name)
    (tmp_path / "model" / "model.xml").write_text(
        """<mujoco><compiler meshdir="../shapes/" texturedir="../pictures"/><asset>
        <mesh name="part" file="part.obj"/>
        <hfield name="hills" file="part.png" size="1 1 1 1"/>
        <texture name="paint" type="2d" file="part.png"/>
        <texture name="box" type="cube" fileright="part.png" fileup="faces/part.png"/>
        </asset><worldbody><geom type="hfield" hfield="hills"/>
        <body name="bone"><geom type="mesh" mesh="part"/></body></worldbody>
        <deformable><skin name="hide" file="part.skn"/></deformable></mujoco>"""
    )
    spec = mujoco.MjSpec.from_file(str(tmp_path / "model" / "model.xml"))
    path = export_spec(spec, tmp_path / "out")
    assert len(list((path / "assets").iterdir())) == 5
    assert_same(load(path), spec.compile())


def test_only_referenced(tmp_path):
    """Write the files that the scene uses, and no other."""
    assets = {"parts/part.obj": wavefront(1.0), "parts/unused.obj": wavefront(2.0)}
    export_spec(mujoco.MjSpec.from_string(MESH, assets=assets), tmp_path / "out")
    files = {p.name for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert files == {"scene.xml", "part.obj"}


@pytest.mark.parametrize("name", ["../../evil.obj", "/evil.obj", "a/../../../evil.obj"])
@pytest.mark.parametrize("zip", [False, True])
def test_outside(name, zip, tmp_path):
    """Stay within the folder whatever an asset is called."""
    spec = mujoco.MjSpec()
    spec.assets = {name: wavefront(1.0)}
    spec.add_mesh(name="evil", file=name)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="evil")
    out = tmp_path / "a" / "b" / "out"
    path = export_spec(spec, out, zip=zip)
    assert {p.name for p in out.parent.iterdir()} == {path.name}
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    if zip:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(out)
            assert all(not n.startswith("/") and ".." not in n for n in archive.namelist())
    assert_same(load(out), spec.compile())


def test_zip(tmp_path):
    """Write an archive instead of a folder."""
    spec = mujoco.MjSpec.from_string(MESH, assets={"parts/part.obj": wavefront(1.0)})
    path = export_spec(spec, tmp_path / "v1.0", zip=True)
    assert [p.name for p in tmp_path.iterdir()] == ["v1.0.zip"] == [path.name]
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["assets/part.obj", "scene.xml"]


def test_again(tmp_path):
    """Replace an earlier export, with nothing of it left."""
    spec = mujoco.MjSpec.from_string(MESH, assets={"parts/part.obj": wavefront(1.0)})
    export_spec(spec, tmp_path)
    spec = mujoco.MjSpec.from_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    export_spec(spec, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["scene.xml"]


@pytest.mark.parametrize("files", [["robot.xml"], ["assets"], ["scene.xml", "notes"]])
def test_other_folder(files, tmp_path):
    """Leave a folder alone that is no export."""
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match="is not an earlier export"):
        export_spec(mujoco.MjSpec(), tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize("zip", [False, True])
def test_failure(zip, tmp_path):
    """Leave the earlier export, and nothing else, when one fails."""
    out = tmp_path / "out"
    before = export_spec(mujoco.MjSpec(), out, zip=zip)
    spec = mujoco.MjSpec()
    spec.worldbody.add_body().add_joint()
    with pytest.raises(ValueError, match="cannot write this spec.*[Mm]ass"):
        export_spec(spec, out, zip=zip)
    assert [p for p in tmp_path.iterdir()] == [before]
    if not zip:
        load(out)


@pytest.mark.parametrize(
    "kind, width, height, channels",
    [("2D", 5, 3, 3), ("2D", 4, 4, 1), ("2D", 4, 4, 4), ("CUBE", 4, 24, 3), ("SKYBOX", 4, 4, 3)],
)
def test_pixels(kind, width, height, channels, tmp_path):
    """Write textures that are defined by pixels to files, and leave the spec as it was."""
    spec = mujoco.MjSpec()
    texture = spec.add_texture(
        name="pixels",
        type=getattr(mujoco.mjtTexture, f"mjTEXTURE_{kind}"),
        width=width,
        height=height,
        nchannel=channels,
        colorspace=mujoco.mjtColorSpace.mjCOLORSPACE_SRGB,
    )
    texture.data = bytes(np.random.default_rng(0).integers(0, 255, width * height * channels, "u1"))
    export_spec(spec, tmp_path)
    assert spec.texture("pixels").file == "" and len(spec.texture("pixels").data)
    assert_same(load(tmp_path), spec.compile())


def test_only_edits(tmp_path):
    """Change one value: the exported files differ in this value, and in nothing else."""
    lines = []
    for friction in (None, 0.123456789012345678):
        spec = mujoco.MjSpec.from_file(str(robot_file(ROBOTS[2])))
        if friction is not None:
            spec.geoms[3].friction[0] = friction
        path = export_spec(spec, tmp_path / str(friction))
        lines.append((path / "scene.xml").read_text().splitlines())
    changed = [(a, b) for a, b in zip(*lines, strict=True) if a != b]
    assert len(changed) == 1
    assert "0.12345678901234568" in changed[0][1] and "class=" in changed[0][1]


def test_notation(tmp_path):
    """Keep classes, frames, angles and `fromto` as they are written, and names of files."""
    (tmp_path / "my part.obj").write_bytes(wavefront(1.0))
    (tmp_path / "model.xml").write_text(
        """<mujoco><compiler angle="degree" eulerseq="zyx"/>
        <default><default class="arm"><geom group="3" rgba=".1 .2 .3 1"/></default></default>
        <asset><mesh file="my part.obj"/></asset>
        <worldbody><body name="a" euler="10 20 30" childclass="arm"><joint range="-40 40"/>
        <geom type="capsule" size=".1" fromto="0 0 0 .1 .2 .3"/>
        <frame axisangle="0 0 1 90"><geom type="mesh" mesh="my part"/></frame></body></worldbody>
        <actuator><position joint="hinge" kp="3"/></actuator></mujoco>""".replace(
            "<joint range", '<joint name="hinge" range'
        )
    )
    spec = mujoco.MjSpec.from_file(str(tmp_path / "model.xml"))
    path = export_spec(spec, tmp_path / "out")
    text = (path / "scene.xml").read_text()
    for written in ('fromto="0 0 0 0.1 0.2 0.3"', 'euler="10 20 30"', "<position", 'rgba="0.1 0.2'):
        assert written in text
    assert "<frame" in text and text.count('group="3"') == 1
    assert_same(load(path), spec.compile())


PROP = """<mujoco><worldbody><body name="prop"><freejoint/><geom name="shape" size=".1"/>
<site name="grip"/><site name="end" pos="0 0 .1"/></body></worldbody>
<tendon><spatial name="cord"><site site="grip"/><site site="end"/></spatial></tendon></mujoco>"""


@pytest.mark.parametrize(
    "model",
    [
        "gymnasium:envs/mujoco/assets/hopper.xml",
        "dm_control:suite/cheetah.xml",
        "dm_control:suite/humanoid.xml",
        "dm_control:suite/stacker.xml",
        "dm_control:suite/lqr.xml",
    ],
)
def test_without_material(model, tmp_path):
    """Keep elements without a material that are in a class with one."""
    spec = mujoco.MjSpec.from_file(str(find_model(model)))
    spec.attach(mujoco.MjSpec.from_string(PROP), prefix="a/", frame=spec.worldbody.add_frame())
    body = spec.worldbody.add_body(name="bare")
    body.add_geom(spec.geoms[-1].classname, size=[0.1, 0.1, 0.1]).material = ""
    for geom in spec.geoms[:3]:  # without a material in a class that has one
        body.add_geom(geom.classname, size=[0.1] * 3, type=2, rgba=[0.5] * 3 + [1]).material = ""
    expected = spec.compile()
    assert {-1} < set(expected.geom_matid.tolist())
    model = load(export_spec(spec, tmp_path / "out"))
    assert_same(model, expected)
    again = mujoco.MjSpec.from_file(str(tmp_path / "out" / "scene.xml"))
    assert_same(load(export_spec(again, tmp_path / "again")), model)


def test_no_material_is_not_written(tmp_path):
    """Write no empty materials where no class has one."""
    spec = mujoco.MjSpec.from_string(MESH, assets={"parts/part.obj": wavefront(1.0)})
    spec.add_material(name="paint")
    spec.worldbody.add_geom(size=[0.1, 0, 0], material="paint")
    path = export_spec(spec, tmp_path / "out")
    assert (path / "scene.xml").read_text().count("material=") == 1


@pytest.mark.parametrize(
    "whole, parts",
    [
        ("gymnasium:envs/mujoco/assets/ant.xml", ["dm_control:suite/cheetah.xml"]),
        ("gymnasium:envs/mujoco/assets/swimmer.xml", ["dm_control:suite/quadruped.xml"]),
        (
            "dm_control:suite/humanoid.xml",
            [
                "gymnasium:envs/mujoco/assets/humanoid.xml",
                "gymnasium:envs/mujoco/assets/pusher.xml",
            ],
        ),
    ],
)
@pytest.mark.filterwarnings("error:.*six digits")
def test_parts_with_settings_of_their_own(whole, parts, tmp_path):
    """Express parts exactly whose compiler settings differ: inertias, limits, free joints."""
    spec = mujoco.MjSpec.from_file(str(find_model(whole)))
    for i, path in enumerate(parts):
        part = mujoco.MjSpec.from_file(str(find_model(path)))
        spec.attach(part, prefix=f"{i}/", frame=spec.worldbody.add_frame(pos=[0, 3 * i + 3, 0]))
    assert_same(load(export_spec(spec, tmp_path / "out")), spec.compile())


@pytest.mark.parametrize("setting", ["inertiafromgeom", "boundmass", "alignfree"])
def test_settings_that_change_inertias(setting, tmp_path):
    """Keep the inertia that each part has by its own setting, at a free joint, too."""
    scene = mujoco.MjSpec()
    for i, value in enumerate(("true", "false")):
        value = str(2.0 * (value == "true")) if setting == "boundmass" else value
        part = mujoco.MjSpec.from_string(
            f"""<mujoco><compiler {setting}="{value}"/><worldbody><body name="b"><freejoint/>
            <inertial mass="1.1" pos=".1 0 .03" diaginertia=".1 .2 .27"/>
            <geom size=".1" mass="1" pos="0 .1 0"/></body></worldbody></mujoco>"""
        )
        scene.attach(part, prefix=f"{i}/", frame=scene.worldbody.add_frame(pos=[i, 0, 1]))
    before = scene.copy().compile()
    assert_same(load(export_spec(scene, tmp_path / "out")), before)
    assert_same(scene.compile(), before)


def test_settings_that_no_file_expresses(tmp_path):
    """Warn where a free joint with a damping is aligned by the settings of its part alone."""
    scene = mujoco.MjSpec()
    for i, value in enumerate(("true", "false")):
        part = mujoco.MjSpec.from_string(
            f"""<mujoco><compiler alignfree="{value}"/><worldbody><body name="b">
            <joint type="free" damping=".1"/><geom size=".1" mass="3" pos="0 .1 0"/></body>
            </worldbody></mujoco>"""
        )
        scene.attach(part, prefix=f"{i}/", frame=scene.worldbody.add_frame(pos=[i, 0, 1]))
    with pytest.warns(UserWarning, match="six digits.*alignment"):
        path = export_spec(scene, tmp_path)
    np.testing.assert_allclose(load(path).body_mass, scene.compile().body_mass)


def test_classes_of_one_name(tmp_path):
    """Export a model that attaches another without a prefix, whose classes have equal names."""
    (tmp_path / "part.xml").write_text(
        """<mujoco><default><default class="arm"><geom margin=".1"/>
        <default class="visual"><geom contype="0" group="3"/></default>
        <default class="red"><geom rgba="1 0 0 1"/></default></default></default>
        <worldbody><body name="part" childclass="arm"><joint/><geom size=".1" class="visual"/>
        <geom size=".2" class="red"/><body childclass="visual"><joint/><geom size=".3"/>
        <frame childclass="red"><geom size=".4"/></frame></body></body></worldbody></mujoco>"""
    )
    (tmp_path / "model.xml").write_text(
        """<mujoco><default><default class="arm"><geom friction=".3"/>
        <default class="blue"><geom rgba="0 0 1 1"/></default></default>
        <default class="visual"><geom group="2"/></default></default>
        <asset><model name="part" file="part.xml"/></asset>
        <worldbody><geom size=".5" class="visual"/><body childclass="arm"><geom size=".6"/>
        <geom size=".7" class="blue"/></body>
        <attach model="part" prefix=""/></worldbody></mujoco>"""
    )
    spec = mujoco.MjSpec.from_file(str(tmp_path / "model.xml"))
    path = export_spec(spec, tmp_path / "out")
    assert_same(load(path), spec.compile())
    again = export_spec(mujoco.MjSpec.from_file(str(path / "scene.xml")), tmp_path / "again")
    assert_same(load(again), spec.compile())


@pytest.mark.parametrize("old", ['njmax="10"', 'nconmax="20"', 'nuserdata="3"'])
def test_sizes_of_included_files(old, tmp_path):
    """Include files that give the memory and the older sizes: the export loads, and has both."""
    (tmp_path / "one.xml").write_text('<mujoco><size memory="20M"/></mujoco>')
    (tmp_path / "two.xml").write_text(f"<mujoco><size {old}/></mujoco>")
    path = tmp_path / "scene.xml"
    path.write_text(
        '<mujoco><include file="one.xml"/><include file="two.xml"/><worldbody><geom size="1"/>'
        "</worldbody></mujoco>"
    )
    model = load(export_spec(mujoco.MjSpec.from_file(str(path)), tmp_path / "out"))
    expected = mujoco.MjModel.from_xml_path(str(path))
    assert_same(model, expected)
    assert model.narena == 20 * 2**20
