from __future__ import annotations

import hashlib
import os
import struct
import zlib
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LiveLab, world_from_file
from manyworlds.spec import mesh_files, model_files
from manyworlds.spec.export import export_spec
from manyworlds.spec.load import ModelFileError, compile_spec, load_spec
from tests.memory import refusal_and_peak
from tests.robots import robot_file
from tests.spec.parity import assert_same, find_model
from tests.spec.test_export import wavefront

REAL = (
    "dm_control:suite/humanoid.xml",  # includes, attachments of materials
    "dm_control:locomotion/walkers/assets/rodent.xml",  # a skin, two <compiler>
    "gymnasium:envs/mujoco/assets/ant.xml",
    "mujoco:testdata/model.urdf",
    "robots:unitree_go1/go1.xml",
)


def trimesh():
    """Import trimesh, or skip the test."""
    return pytest.importorskip("trimesh", reason="needs trimesh, of the extra 'meshes'")


def urdf(*files: str, joint: str = "", compiler: str = "") -> str:
    """Return a URDF whose links have meshes."""
    links = "".join(
        f"""<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
        ixz="0" iyz="0"/></inertial><collision><geometry><mesh filename="{file}"/></geometry>
        </collision></link>"""
        for i, file in enumerate(files)
    )
    joints = "".join(
        f"""<joint name="j{i}" type="revolute"><parent link="l{i - 1}"/><child link="l{i}"/>
        <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="3" velocity="1"/>{joint * (i > 1)}
        </joint>"""
        for i in range(1, len(files))
    )
    return f'<robot name="r">{compiler}{links}{joints}</robot>'


def mjcf(*files: str, attributes: str = "", body: str = "") -> str:
    """Return an MJCF model whose geoms have meshes."""
    meshes = "".join(f'<mesh name="m{i}" file="{file}"/>' for i, file in enumerate(files))
    geoms = "".join(
        f'<geom name="g{i}" type="mesh" mesh="m{i}"{attributes}/>' for i in range(len(files))
    )
    return (
        f"<mujoco><asset>{meshes}</asset><worldbody><body>{geoms}{body}</body></worldbody></mujoco>"
    )


def hashes(folder: Path) -> dict[str, str]:
    """Hash all files of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("name", REAL)
def test_models_are_mujocos(name):
    """Compile models to plain MuJoCo's, bit for bit, and leave their files as they are."""
    path = find_model(name)
    before = hashes(path.parent)
    spec, warnings = load_spec(path)
    assert_same(spec.compile(), mujoco.MjModel.from_xml_path(str(path)))
    assert hashes(path.parent) == before and not warnings


class TestUrdf:
    @pytest.mark.parametrize(
        "file", ["package://{0}/meshes/part.obj", "file://{1}/meshes/part.obj"]
    )
    def test_addresses(self, file, tmp_path, monkeypatch):
        """Find the meshes of ROS packages, by the name of a folder above the model."""
        (tmp_path / "arm" / "meshes").mkdir(parents=True)
        (tmp_path / "arm" / "urdf").mkdir()
        (tmp_path / "arm" / "meshes" / "part.obj").write_bytes(wavefront(2.0))
        path = tmp_path / "arm" / "urdf" / "arm.urdf"
        path.write_text(urdf(file.format("arm", tmp_path / "arm"), "../meshes/part.obj"))
        model = load_spec(path)[0].compile()
        assert model.geom_rbound[0] == model.geom_rbound[1] > 0
        text = path.read_text()
        (tmp_path / "elsewhere").mkdir()
        moved = tmp_path / "elsewhere" / "arm.urdf"
        moved.write_text(text.replace("../meshes", "../arm/meshes"))
        monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
        assert load_spec(moved)[0].compile().nmesh == model.nmesh

    def test_mimic(self, tmp_path):
        """Keep mimic joints as equality constraints."""
        (tmp_path / "part.obj").write_bytes(wavefront(1.0))
        mimic = '<mimic joint="j1" multiplier="2" offset="0.1"/>'
        (tmp_path / "r.urdf").write_text(urdf(*["part.obj"] * 3, joint=mimic))
        model = load_spec(tmp_path / "r.urdf")[0].compile()
        np.testing.assert_allclose(model.eq_data[0][:2], [0.1, 2.0])

    def test_equal_stems(self, tmp_path):
        """Keep meshes apart that have the same name in different folders or formats."""
        part = trimesh().creation.box((1.0, 1.0, 1.0))
        sizes = {"a/link.obj": 1.0, "b/link.obj": 2.0, "a/link.ply": 3.0, "a/link.glb": 4.0}
        for file, size in sizes.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            part.copy().apply_scale(size).export(tmp_path / file)
        (tmp_path / "r.urdf").write_text(urdf(*sizes))
        (tmp_path / "r.xml").write_text(mjcf(*sizes))
        for path in (tmp_path / "r.urdf", tmp_path / "r.xml"):
            spec = load_spec(path)[0]
            model = spec.compile()
            expected = np.sqrt(3) / 2 * np.array([*sizes.values()])
            np.testing.assert_allclose(model.geom_rbound, expected, rtol=1e-5)
            folder = export_spec(spec, tmp_path / f"out{path.suffix}")
            assert_same(mujoco.MjModel.from_xml_path(str(folder / "scene.xml")), model)


class TestMissing:
    def test_all_are_named(self, tmp_path):
        """Name all missing files in one sentence, with their places."""
        (tmp_path / "m.xml").write_text(
            mjcf("a.obj", "b.stl", "c.glb").replace("<asset>", "\n<asset>")
        )
        with pytest.raises(
            ModelFileError, match="3 files are missing: a.obj.*b.stl.*c.glb.*line 2"
        ):
            load_spec(tmp_path / "m.xml")

    def test_collision_only(self, tmp_path):
        """Leave out what is missing or broken, with warnings; what names it still compiles."""
        text = mjcf("a.obj", "b.stl", "c.glb", body='<joint/><geom size=".1"/>').replace(
            "</asset>",
            """<texture name="t" type="2d" file="t.png"/><material name="paint" texture="t"/>
            <hfield name="h" file="h.png" size="1 1 1 1"/></asset>""",
        )
        text = text.replace("</worldbody>", '<geom type="hfield" hfield="h"/></worldbody>').replace(
            "</mujoco>",
            """<contact><pair geom1="g0" geom2="g1"/></contact><deformable>
            <skin name="hide" file="s.skn" material="paint"/></deformable></mujoco>""",
        )
        (tmp_path / "m.xml").write_text(text)
        (tmp_path / "b.stl").write_bytes(b"solid nothing of use")
        spec, warnings = load_spec(tmp_path / "m.xml", missing_meshes="skip")
        model = spec.compile()
        assert model.nmesh == model.nhfield == model.ntex == model.nskin == 0
        assert (model.geom_contype != 0).sum() == 1 and model.ngeom == 5
        assert model.mat_texid.max() == -1
        text = "\n".join(warnings)
        assert all(name in text for name in ("'m0'", "'m1'", "'m2'", "'t'", "'h'", "'hide'"))
        world = world_from_file(tmp_path / "m.xml", missing_meshes="skip")
        assert world.warnings == warnings

    @pytest.mark.parametrize("content", ["v nan 0 0", "", "v 0 0 0\nf 1 2 3"])
    def test_broken(self, content, tmp_path):
        """Leave out meshes that MuJoCo refuses, and tell its reason."""
        (tmp_path / "a.obj").write_text(content)
        (tmp_path / "m.xml").write_text(mjcf("a.obj"))
        spec, warnings = load_spec(tmp_path / "m.xml", missing_meshes="skip")
        assert spec.compile().nmesh == 0 and len(warnings) == 1 and "Error" in warnings[0]

    @pytest.mark.parametrize(
        "robot", ["unitree_g1/g1.xml", "unitree_go1/go1.xml", "i2rt_yam/yam.xml"]
    )
    def test_robots_without_their_meshes(self, robot, tmp_path):
        """Keep what collides and what weighs of real robots whose meshes are missing."""
        source = robot_file(robot)
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes())
        spec, warnings = load_spec(path, missing_meshes="skip")
        model, whole = spec.compile(), load_spec(source)[0].compile()
        assert len(warnings) == whole.nmesh and model.nmesh == 0
        np.testing.assert_array_equal(model.body_mass, whole.body_mass)
        assert (model.geom_contype > 0).sum() == (whole.geom_contype > 0).sum()

    def test_packages(self, tmp_path):
        """Leave out meshes of packages that are not there."""
        (tmp_path / "r.urdf").write_text(urdf("package://none/a.stl", "package://none/b.dae"))
        spec, warnings = load_spec(tmp_path / "r.urdf", missing_meshes="skip")
        assert spec.compile().nbody == 2 and len(warnings) == 2


def half_sizes(model: mujoco.MjModel) -> dict[str, float]:
    """Return the largest coordinate of each mesh, by name."""
    found = {}
    for i in range(model.nmesh):
        start = model.mesh_vertadr[i]
        vertices = model.mesh_vert[start : start + model.mesh_vertnum[i]]
        found[model.mesh(i).name] = float(vertices.max())
    return found


@pytest.mark.parametrize("suffix", ["glb", "ply", "off", "stl", "obj"])
@pytest.mark.parametrize("name", ["", 'name="m"'])
def test_equally_written_files_of_attached_models(suffix, name, tmp_path):
    """Attach models that refer to equally written mesh files: each has its own mesh."""
    sizes = {"x_": 1.0, "y_": 2.0, "y_z_": 3.0, "": 4.0}
    folders = dict(zip(sizes, ("a", "b", "b/c", "."), strict=True))
    for prefix, size in sizes.items():
        folder = tmp_path / folders[prefix] / "meshes"
        folder.mkdir(parents=True)
        box = trimesh().creation.box((size, size, size))
        box.export(
            folder / f"part.{suffix}", **({"file_type": "stl_ascii"} if suffix == "stl" else {})
        )
    mesh = f"""<compiler meshdir="meshes"/><asset><mesh {name} file="part.{suffix}"/>{{0}}</asset>
    <worldbody><body><geom type="mesh" mesh="{"m" if name else "part"}"/>{{1}}</body></worldbody>"""
    models = '<model name="a" file="a/m.xml"/><model name="b" file="b/m.xml"/>'
    attached = '<attach model="b" prefix="y_"/><attach model="a" prefix="x_"/>'
    inner = ('<model name="c" file="c/m.xml"/>', '<attach model="c" prefix="z_"/>')
    for folder, parts in (
        (".", (models, attached)),
        ("a", ("", "")),
        ("b", inner),
        ("b/c", ("",) * 2),
    ):
        (tmp_path / folder / "m.xml").write_text(f"<mujoco>{mesh.format(*parts)}</mujoco>")
    model = load_spec(tmp_path / "m.xml")[0].compile()
    found = half_sizes(model)
    ending = "m" if name else "part"
    assert found == {f"{prefix}{ending}": size / 2 for prefix, size in sizes.items()}
    world = world_from_file(tmp_path / "m.xml")
    assert_same(world.model, model)
    lab = LiveLab(world)
    lab.scene.add(tmp_path / "b" / "m.xml", "item")
    assert half_sizes(lab.model)[f"item/z_{ending}"] == 1.5
    lab.stop()


def test_equally_written_addresses_of_attached_urdfs(tmp_path):
    """Attach URDFs of two packages of one name, or with equally written paths: each has its own."""
    for folder, size in (("a", 1.0), ("b", 2.0)):
        package = tmp_path / folder / "robot"
        package.mkdir(parents=True)
        for suffix in ("glb", "obj"):
            trimesh().creation.box((size, size, size)).export(package / f"{suffix}part.{suffix}")
        files = ("package://robot/glbpart.glb", "package://robot/objpart.obj", "glbpart.glb")
        (package / "r.urdf").write_text(urdf(*files))
    (tmp_path / "m.xml").write_text(
        """<mujoco><asset><model name="a" file="a/robot/r.urdf"/><model name="b"
        file="b/robot/r.urdf"/></asset><worldbody><attach model="b" prefix="b_"/>
        <attach model="a" prefix="a_"/></worldbody></mujoco>"""
    )
    model = load_spec(tmp_path / "m.xml")[0].compile()
    found = half_sizes(model)
    assert len(found) == 6
    assert all(half == {"a": 0.5, "b": 1.0}[name[0]] for name, half in found.items())


def test_models_that_multiply(tmp_path):
    """Refuse a model that attaches others twice each, at each of 30 levels."""
    for i in range(30):
        attach = "".join(f'<attach model="m" prefix="{k}"/>' for k in "ab")
        (tmp_path / f"m{i}.xml").write_text(
            f'<mujoco><asset><model name="m" file="m{i + 1}.xml"/></asset><worldbody><body>{attach}'
            "</body></worldbody></mujoco>"
        )
    (tmp_path / "m30.xml").write_text(mjcf())
    with pytest.raises(ModelFileError, match=r"makes more than 1000000 elements: attach it less"):
        load_spec(tmp_path / "m0.xml")


def textured(path: Path, color: tuple[int, int, int] = (200, 30, 60)) -> None:
    """Write a box with a texture of one color, whose height is its y axis."""
    module, image = trimesh(), pytest.importorskip("PIL.Image", reason="needs Pillow")
    box = module.creation.box((1.0, 3.0, 2.0))
    material = module.visual.material.PBRMaterial(
        baseColorTexture=image.new("RGB", (4, 4), color), baseColorFactor=(255, 255, 255, 255)
    )
    uv = np.asarray(box.vertices[:, :2] + 0.5, np.float32)
    box.visual = module.visual.TextureVisuals(uv=uv, material=material)
    box.export(path)


class TestMeshes:
    def test_glb(self, tmp_path):
        """Show a GLB with its texture, its y axis upright, and lengths in meters."""
        textured(tmp_path / "crate.glb")
        model = load_spec(tmp_path / "crate.glb")[0].compile()
        assert model.body(1).name == "crate" and model.nv == 0
        vertices = model.mesh_vert @ mesh_axes(model)
        np.testing.assert_allclose(np.ptp(vertices, axis=0), [1.0, 2.0, 3.0], rtol=1e-5)
        kept = load_spec(tmp_path / "crate.glb", up_axis="z")[0].compile()
        vertices = kept.mesh_vert @ mesh_axes(kept)
        np.testing.assert_allclose(np.ptp(vertices, axis=0), [1.0, 3.0, 2.0], rtol=1e-5)
        assert model.ntex == 1 and model.mesh_texcoordnum[0] > 0
        pixels = model.tex_data.reshape(-1, 3)
        assert (np.abs(pixels.astype(int) - (200, 30, 60)) < 2).all()
        np.testing.assert_allclose(
            model.mesh_texcoord[:, 1].min(), kept.mesh_texcoord[:, 1].min(), atol=1e-6
        )

    def test_a_glb_in_a_model(self, tmp_path):
        """Give geoms without a material that of their mesh; axes are those of the file."""
        textured(tmp_path / "crate.glb")
        (tmp_path / "m.xml").write_text(mjcf("crate.glb"))
        model = load_spec(tmp_path / "m.xml")[0].compile()
        assert model.geom_matid[0] >= 0 and model.ntex == 1
        vertices = model.mesh_vert @ mesh_axes(model)
        np.testing.assert_allclose(np.ptp(vertices, axis=0), [1.0, 3.0, 2.0], rtol=1e-5)
        (tmp_path / "m.xml").write_text(mjcf("crate.glb", attributes=' rgba="1 0 0 1"'))
        assert load_spec(tmp_path / "m.xml")[0].compile().geom_matid[0] < 0

    def test_an_obj_with_materials(self, tmp_path):
        """Make a geom for each material of an OBJ file."""
        trimesh()
        faces = ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
        shape = wavefront(1.0).decode().split("f ")[0]
        shifted = shape.replace("v ", "v 1")
        (tmp_path / "two.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n")
        second = [" ".join(["f", *(str(int(i) + 4) for i in face[2:].split())]) for face in faces]
        (tmp_path / "two.obj").write_text(
            "\n".join(
                ["mtllib two.mtl", shape + shifted, "usemtl red", *faces, "usemtl blue", *second]
            )
        )
        model = load_spec(tmp_path / "two.obj")[0].compile()
        assert model.ngeom == 2 and model.nmat == 2
        assert sorted(model.mat_rgba[:, 0].tolist()) == [0.0, 1.0]

    @pytest.mark.parametrize("suffix", ["stl", "ply", "off", "obj", "glb"])
    def test_formats(self, suffix, tmp_path):
        """Read the formats of meshes, also text STL, as models and in models."""
        module = trimesh()
        path = tmp_path / f"ball.{suffix}"
        kind = "stl_ascii" if suffix == "stl" else suffix
        module.creation.icosphere(subdivisions=1).export(path, file_type=kind)
        assert load_spec(path)[0].compile().mesh_facenum[0] == 80
        (tmp_path / "m.xml").write_text(mjcf(path.name))
        assert load_spec(tmp_path / "m.xml")[0].compile().mesh_facenum[0] == 80

    def test_robot_meshes(self):
        """Open meshes of a real robot as models."""
        for path in sorted(robot_file("unitree_g1/g1.xml").parent.glob("assets/*head*")):
            model = load_spec(path)[0].compile()
            assert model.ngeom == 1 and 0.05 < model.geom_rbound[0] < 0.5

    def test_millimeters(self, tmp_path):
        """Warn of meshes whose lengths are probably no meters."""
        (tmp_path / "part.obj").write_bytes(wavefront(350.0))
        trimesh()
        assert "350 m large" in load_spec(tmp_path / "part.obj")[1][0]


def mesh_axes(model: mujoco.MjModel) -> np.ndarray:
    """Return the rotation from the frame of the first mesh to its file's, transposed."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, model.mesh_quat[0])
    return matrix.reshape(3, 3).T


def deep(count: int) -> str:
    """Return bodies within bodies."""
    return f"<mujoco><worldbody>{'<body>' * count}{'</body>' * count}</worldbody></mujoco>"


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 30))
HOSTILE = {
    "entities": (f'<!DOCTYPE m [<!ENTITY l0 "ha">{LAUGHS}]><mujoco model="&l29;"/>', "entity 'l0'"),
    "itself": ('<mujoco><asset><model name="a" file="m.xml"/></asset></mujoco>', "attaches itself"),
    "includes": ('<mujoco><include file="m.xml"/></mujoco>', "already included"),
    "depth": (deep(100_000), "nesting is too deep"),
    "copies": (
        '<mujoco><worldbody><replicate count="99999"><replicate count="99999"><geom size="1"/>'
        "</replicate></replicate></worldbody></mujoco>",
        "more than 1000000 elements",
    ),
    "flex": (
        '<mujoco><worldbody><body><flexcomp type="grid" count="999 999 999"/></body></worldbody>'
        "</mujoco>",
        "more than 1000000 elements",
    ),
    "texture": (
        '<mujoco><asset><texture builtin="flat" width="99999" height="99999"/></asset></mujoco>',
        "lower width and height",
    ),
    "heights": (
        '<mujoco><asset><hfield nrow="99999" ncol="99999" size="1 1 1 1"/></asset></mujoco>',
        "lower nrow and ncol",
    ),
    "cut off": (deep(3)[:40], "broken at line 1"),
    "random": (np.random.default_rng(0).bytes(3000), "XML"),
    "zeros": (b"\0" * 100, "does not look like XML|the file is empty"),
    "archive": (b"PK\x05\x06" + b"\0" * 18, "this is an archive"),
}


@pytest.mark.parametrize("text, message", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_models(text, message, tmp_path):
    """Refuse models that would exhaust or crash the program, in one sentence."""
    path = tmp_path / "m.xml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ModelFileError, match=message) as raised:
        load_spec(path)
    assert "\n" not in str(raised.value)


def test_attached_models(tmp_path):
    """Refuse models that attach each other many times over."""
    for i in range(30):
        models = "".join(f'<model name="{k}" file="m{i + 1}.xml"/>' for k in range(2))
        (tmp_path / f"m{i}.xml").write_text(f"<mujoco><asset>{models}</asset></mujoco>")
    (tmp_path / "m30.xml").write_text(mjcf())
    with pytest.raises(ModelFileError, match="attaches more than 500 models"):
        load_spec(tmp_path / "m0.xml")


def test_similar_names(tmp_path):
    """Leave out the missing mesh, and not one whose name ends in the same way."""
    (tmp_path / "hard.obj").write_bytes(wavefront(1.0))
    (tmp_path / "m.xml").write_text(mjcf("hard.obj", "ard.obj"))
    model = load_spec(tmp_path / "m.xml", missing_meshes="skip")[0].compile()
    assert model.nmesh == 1 and model.mesh(0).name == "m0"


def big_stl(path: Path) -> None:
    """Write the header of an STL file of ten million triangles; the rest takes no space."""
    with path.open("wb") as file:
        file.write(b"\0" * 80 + struct.pack("<I", 10**7))
        file.truncate(84 + 50 * 10**7)


def test_ten_million_triangles(tmp_path, monkeypatch):
    """Refuse meshes by their headers, before they are loaded."""
    big_stl(tmp_path / "big.stl")
    (tmp_path / "big.ply").write_bytes(b"ply\nformat ascii 1.0\nelement face 10000000\n")
    (tmp_path / "big.msh").write_bytes(struct.pack("<4i", 4, 0, 0, 10**7))
    tree = b'{"accessors":[{"count":30000000}],"meshes":[{"primitives":[{"indices":0}]}]}'
    (tmp_path / "big.gltf").write_bytes(tree)
    head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(tree), len(tree), 0x4E4F534A)
    (tmp_path / "big.glb").write_bytes(head + tree)
    for name in ("big.stl", "big.ply", "big.msh", "big.gltf", "big.glb"):
        with pytest.raises(ModelFileError, match=f"{name}: has 10000000 triangles"):
            load_spec(tmp_path / name)
        (tmp_path / "m.xml").write_text(mjcf(name))
        with pytest.raises(ModelFileError, match=f"{name} has 10000000 triangles"):
            load_spec(tmp_path / "m.xml")
    monkeypatch.setattr(mesh_files, "MAX_TRIANGLES", 3)
    (tmp_path / "part.obj").write_bytes(wavefront(1.0))
    with pytest.raises(ModelFileError, match="part.obj: has 4 triangles"):
        load_spec(tmp_path / "part.obj")


def test_images(tmp_path, monkeypatch):
    """Refuse images by their headers."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 60000, 60000)
    (tmp_path / "t.png").write_bytes(head)
    texture = '<texture name="t" type="2d" file="t.png"/>'
    (tmp_path / "m.xml").write_text(f"<mujoco><asset>{texture}</asset></mujoco>")
    with pytest.raises(ModelFileError, match="60000 x 60000 pixels"):
        load_spec(tmp_path / "m.xml")


def black(width: int, height: int) -> bytes:
    """Return a PNG file without any color, which is a thousandth of its pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    packer = zlib.compressobj()
    rows = [packer.compress(bytes(1 + 3 * width)) for _ in range(height)]
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = chunk(b"IHDR", head) + chunk(b"IDAT", b"".join(rows) + packer.flush())
    return b"\x89PNG\r\n\x1a\n" + content + chunk(b"IEND", b"")


@pytest.mark.parametrize(("side", "count"), [(9000, 1), (3000, 9)])
def test_small_images_of_many_pixels(side, count, tmp_path):
    """Refuse an image that grows, or many textures of one: neither is unpacked."""
    content = black(side, side)
    assert len(content) < 500_000
    (tmp_path / "t.png").write_bytes(content)
    textures = [f'<texture name="{i}" type="2d" file="t.png"/>' for i in range(count)]
    (tmp_path / "m.xml").write_text(f"<mujoco><asset>{''.join(textures)}</asset></mujoco>")
    text, growth = refusal_and_peak(
        "from manyworlds.spec.load import load_spec",
        "load_spec(sys.argv[1])[0].compile()",
        tmp_path / "m.xml",
    )
    assert "pixels beyond 8 per byte of their files" in text
    assert growth < 64 * 2**20


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.stl", b"", "the file is empty"),
        ("a.obj", b"# nothing\n", "has no triangles|cannot be read"),
        ("a.stl", os.urandom(500), "cannot be read|has no triangles"),
        ("a.glb", b"glTF" + os.urandom(200), "cannot be read"),
        ("a.ply", b"ply\nformat ascii 1.0\nend_header\n", "has no triangles|cannot be read"),
        ("a.obj", b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "vertex that is not finite: number 0"),
        ("a.obj", b"v inf 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "vertex that is not finite: number 0"),
        ("a.gltf", b'{"buffers":[{"uri":"../../secret.bin"}]}', "outside its folder"),
        ("a.dae", b"<COLLADA/>", "cannot be read as a mesh.*pycollada"),
        ("a.stl", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_broken_meshes(name, content, message, tmp_path, recwarn):
    """Refuse meshes without triangles or with wrong ones, in one sentence that names them once."""
    trimesh()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as raised:
        load_spec(tmp_path / name)
    assert "\n" not in str(raised.value) and str(raised.value).count(name) == 1
    assert not [warning for warning in recwarn if warning.category is RuntimeWarning]


def test_open_meshes(tmp_path):
    """Take meshes with holes or faces turned inside out as they are, by their convex hulls."""
    trimesh()
    lines = wavefront(1.0).decode().splitlines()
    (tmp_path / "open.obj").write_text("\n".join(lines[:-1]))
    (tmp_path / "turned.obj").write_text("\n".join([*lines[:-1], "f 2 4 3"]))
    for name in ("open.obj", "turned.obj"):
        spec = load_spec(tmp_path / name)[0]
        spec.body(name[:-4]).add_freejoint()
        np.testing.assert_allclose(spec.compile().body_mass[1], 1000 / 6, rtol=1e-5)


def test_large_models(tmp_path, monkeypatch):
    """Refuse model files that are too large to parse."""
    monkeypatch.setattr(model_files.read_elements.__globals__["expat"], "ParserCreate", None)
    monkeypatch.setitem(model_files.read_elements.__globals__, "MAX_MODEL_BYTES", 10)
    (tmp_path / "m.xml").write_text(mjcf())
    with pytest.raises(ModelFileError, match="a model file may have"):
        load_spec(tmp_path / "m.xml")


def test_textures_are_drawn(tmp_path):
    """Draw equal stems as the meshes they are, each with its own texture and coordinates."""
    geom_meshes = pytest.importorskip("manyworlds.viewer.browser.geom_meshes")
    for folder, color in (("a", (200, 0, 0)), ("b", (0, 0, 200))):
        (tmp_path / folder).mkdir()
        textured(tmp_path / folder / "crate.glb", color)
    (tmp_path / "m.xml").write_text(mjcf("a/crate.glb", "b/crate.glb"))
    model = load_spec(tmp_path / "m.xml")[0].compile()
    colors = []
    for geom in range(2):
        mesh = geom_meshes.merge_geoms(model, [geom])
        picture = np.asarray(mesh.visual.material.baseColorTexture)
        colors.append(picture.reshape(-1, 3)[0].argmax())
        assert np.ptp(mesh.visual.uv, axis=0).min() > 0.5
    assert colors == [0, 2]


@pytest.mark.slow
def test_textures_in_a_browser(tmp_path, browser):
    """Open a textured GLB file in the lab: the browser shows the colors of its texture."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab import LabCfg, LiveLab
    from manyworlds.lab.page import PageServer
    from tests.browser import free_port

    textured(tmp_path / "crate.glb", (0, 170, 60))
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    with LiveLab(world_from_file(tmp_path / "crate.glb"), LabCfg(start_paused=True)) as lab:
        page = PageServer(lab, port=free_port(), frame_rate=5.0)
        page.server.scene.configure_default_lights(enabled=True, cast_shadow=False)
        page.server.scene.configure_environment_map(None)
        page.start()
        browser.goto(page.url)
        browser.wait_for_selector("canvas")
        for _ in range(60):
            browser.wait_for_timeout(1000)
            shot = browser.locator("canvas").first.screenshot(path=str(tmp_path / "page.png"))
            with image.open(tmp_path / "page.png") as picture:
                r, g, b = np.moveaxis(np.asarray(picture.convert("RGB"), int), -1, 0)
            green = (g > 2 * r) & (g > 2 * b) & (g > 30)  # also in the shade
            if green.mean() > 0.01:
                break
        page.close()
    assert shot and green.mean() > 0.01


def test_an_error_says_nothing_of_the_spec_in_memory(tmp_path):
    """Compile a URDF with an impossible inertia: one line, without what became of the spec."""
    path = tmp_path / "robot.urdf"
    path.write_text(urdf("no.stl", "no.stl").replace('ixy="0"', 'ixy="5"'))
    spec, _ = load_spec(path, missing_meshes="skip")
    with pytest.raises(ModelFileError, match="fullinertia") as error:
        compile_spec(spec, path)
    assert "remain so" not in str(error.value) and "\n" not in str(error.value)


def plate(*corners: tuple[float, float, float]):
    """Return a flat mesh with these corners."""
    faces = [[0, i, i + 1] for i in range(1, len(corners) - 1)]
    return trimesh().Trimesh(corners, faces, process=False)


FLAT_PARTS = {
    "triangle": ((0, 0, 2), (1, 0, 2), (1, 1, 2)),
    "square": ((0, 0, 2), (1, 0, 2), (1, 1, 2), (0, 1, 2)),
    "tilted": ((100, 0, 0), (101, 0, 0.3), (101, 1, 0.5), (100, 1, 0.2)),
    "line": ((0, 0, 2), (1, 0, 2), (2, 0, 2), (3, 0, 2)),
}


@pytest.mark.parametrize("kind", FLAT_PARTS)
def test_flat_parts_are_left_out(kind, tmp_path):
    """Open a mesh file of which one part is flat: the others are there, and a sentence says so."""
    scene = trimesh().Scene()
    scene.add_geometry(trimesh().creation.box((1, 1, 1)), geom_name="box")
    scene.add_geometry(plate(*FLAT_PARTS[kind]), geom_name="label")
    path = tmp_path / "parts.glb"
    scene.export(path)
    spec, warnings = load_spec(path)
    assert warnings == ["the part 'label' of the mesh is flat, and is left out."]
    model = compile_spec(spec, path)
    assert [model.mesh(i).name for i in range(model.nmesh)] == ["box"]
    world = world_from_file(path)
    assert world.warnings == warnings and world.model.nmesh == 1
    lab = LiveLab(world)
    lab.scene.add(path, "prop")
    assert lab.model.body("prop/prop").mass[0] > 0.0
    if kind in ("triangle", "line"):  # which MuJoCo does not even draw
        assert any("flat parts that MuJoCo refuses" in note for note in lab.scene.notes)
    lab.stop()


def test_a_flat_mesh_is_refused(tmp_path):
    """Refuse a mesh file without a part that is a solid."""
    path = tmp_path / "label.glb"
    trimesh().Scene([plate(*FLAT_PARTS["square"])]).export(path)
    with pytest.raises(ModelFileError, match="label.glb: the mesh is flat: give it a thickness"):
        load_spec(path)
