"""What MuJoCo does not take from a URDF file is told."""

from __future__ import annotations

from pathlib import Path

import mujoco
import pytest

from manyworlds.cli.validate import validate_file
from manyworlds.lab import LiveLab, world_from_file, world_from_spec
from manyworlds.spec.load import ModelFileError, load_spec

_SHAPE = '<geometry><sphere radius=".1"/></geometry>'
_KEEP = '<mujoco><compiler discardvisual="false"/></mujoco>'


def urdf(folder: Path, inside: str, name: str = "arm.urdf") -> Path:
    """Write a URDF file of one link."""
    path = folder / name
    path.write_text(f'<robot name="arm">{inside}</robot>')
    return path


def link(visuals: int) -> str:
    """Return a link with a collision shape and as many visual ones."""
    visual = f"<visual>{_SHAPE}</visual>" * visuals
    return f'<link name="a"><collision>{_SHAPE}</collision>{visual}</link>'


@pytest.mark.parametrize(("visuals", "said"), [(1, "1 visual shape"), (3, "3 visual shapes")])
def test_visual_shapes_that_are_left_out(visuals, said, tmp_path):
    """Say that shapes are left out: where the file is read, added to a lab, or attached."""
    path = urdf(tmp_path, link(visuals))
    spec, warnings = load_spec(path)
    sentence = (
        f"arm.urdf opens without its {said}, as MuJoCo does with URDF: to see them, add "
        '<mujoco><compiler discardvisual="false"/></mujoco> to its <robot>.'
    )
    assert warnings == [sentence] and spec.compile().ngeom == 1
    assert world_from_file(path).warnings == [sentence]
    assert sentence in validate_file(path).warnings
    lab = LiveLab(world_from_spec(mujoco.MjSpec()))
    lab.scene.add(path, "one")
    assert sentence in lab.scene.notes
    lab.scene.open(path)
    assert sentence in lab.scene.notes
    lab.stop()
    outer = tmp_path / "outer.xml"
    outer.write_text(
        '<mujoco><asset><model name="m" file="arm.urdf"/></asset><worldbody><body>'
        '<attach model="m" prefix="x_"/></body></worldbody></mujoco>'
    )
    spec, warnings = load_spec(outer)
    assert warnings == [sentence] and spec.compile().ngeom == 1


@pytest.mark.parametrize(
    "inside",
    [link(0), _KEEP + link(2), _KEEP.replace("/>", ' angle="radian"/>') + link(2)],
)
def test_nothing_to_say(inside, tmp_path):
    """Say nothing of a URDF without visual shapes, or that keeps them."""
    path = urdf(tmp_path, inside)
    spec, warnings = load_spec(path)
    assert not warnings
    assert spec.compile().ngeom == 1 + inside.count("<visual>")


@pytest.mark.parametrize(
    ("inside", "call"),
    [
        ('<xacro:include filename="a.xacro"/>', "<xacro:include>"),
        ('<xacro:macro name="leg"/><link name="a"/>', "<xacro:macro>"),
        (link(0) + '<xacro:leg side="left"/>', "<xacro:leg>"),
        ('<link name="${prefix}base"/>', "a macro in <link>"),
        (
            link(0).replace("sphere radius", 'mesh filename="$(find a)/b.stl" x'),
            "a macro in <mesh>",
        ),
    ],
)
@pytest.mark.parametrize("declared", ["", '<link name="first"/>'])
def test_xacro_that_nobody_expanded(inside, call, declared, tmp_path):
    """Refuse a URDF with calls of xacro, which MuJoCo leaves out."""
    path = urdf(tmp_path, declared + inside)
    with pytest.raises(ModelFileError) as raised:
        load_spec(path)
    assert raised.value.error == f"{call} (line 1) is a call of xacro that nobody expanded."
    assert raised.value.hints == ["expand it with xacro first: `xacro arm.urdf > expanded.urdf`."]
    assert validate_file(path).error == raised.value.error
    with pytest.raises(ValueError, match="expand it with xacro first"):
        world_from_file(path)


def test_expanded_files(tmp_path):
    """Open what xacro writes, which still names its namespace and may have macros of others."""
    other = "<gazebo><plugin><config>$(find a)/b.yaml</config></plugin></gazebo>"
    path = urdf(tmp_path, link(0) + other)
    path.write_text(path.read_text().replace("<robot", '<robot xmlns:xacro="http://ros.org/xacro"'))
    assert load_spec(path)[0].compile().ngeom == 1


_MESH = """<mujoco><compiler {compiler}/></mujoco><link name="a"><collision><geometry>
<mesh filename="{file}"/></geometry></collision></link>"""


@pytest.mark.parametrize("suffix", ["obj", "STL", "glb"])
@pytest.mark.parametrize(
    ("folder", "compiler", "file"),
    [
        (".", 'meshdir="meshes"', "meshes/part"),  # as Unitree's
        (".", 'meshdir="meshes/"', "./meshes/part"),
        (".", 'meshdir="meshes" strippath="true"', "elsewhere/part"),
        (".", 'meshdir="other"', "meshes/part"),
        ("urdf", 'meshdir="../meshes"', "meshes/part"),
        ("urdf", 'meshdir="../meshes"', "../meshes/part"),
        ("urdf", 'meshdir="../meshes" strippath="false"', "package://{package}/meshes/part"),
    ],
)
def test_paths_that_repeat_the_meshdir(folder, compiler, file, suffix, tmp_path):
    """Find a mesh whose path repeats the `meshdir`, in a format of MuJoCo or another one."""
    module = pytest.importorskip("trimesh", reason="needs trimesh, of the extra 'meshes'")
    (tmp_path / "meshes").mkdir()
    (tmp_path / folder).mkdir(exist_ok=True)
    module.creation.box((1, 1, 1)).export(tmp_path / "meshes" / f"part.{suffix}")
    file = file.format(package=tmp_path.name)
    inside = _MESH.format(compiler=compiler, file=f"{file}.{suffix}")
    path = urdf(tmp_path / folder, inside)
    model = load_spec(path)[0].compile()
    assert model.nmesh == 1 and model.mesh_vert.max() == 0.5
    assert validate_file(path).error is None


@pytest.mark.parametrize("variable", ["AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH"])
def test_packages_of_the_environment(variable, tmp_path, monkeypatch):
    """Find packages that ROS installed, in the first of several folders that has the file."""
    module = pytest.importorskip("trimesh", reason="needs trimesh, of the extra 'meshes'")
    share = "share" if variable == "AMENT_PREFIX_PATH" else "."
    for size, place in ((1, "first"), (2, "second")):
        meshes = tmp_path / place / share / "arm_description" / "meshes"
        meshes.mkdir(parents=True)
        module.creation.box((size, size, size)).export(meshes / f"part{size}.obj")
    monkeypatch.setenv(variable, f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    (tmp_path / "here" / "deep" / "er" / "still").mkdir(parents=True)
    for size in (1, 2):
        inside = _MESH.format(compiler="", file=f"package://arm_description/meshes/part{size}.obj")
        model = load_spec(urdf(tmp_path / "here/deep/er/still", inside))[0].compile()
        assert model.mesh_vert.max() == size / 2


def test_a_missing_file_is_still_missing(tmp_path):
    """Name the place where MuJoCo looks for a mesh that is nowhere."""
    path = urdf(tmp_path, _MESH.format(compiler='meshdir="meshes"', file="meshes/part.obj"))
    with pytest.raises(ModelFileError, match="Error opening file 'meshes/meshes/part.obj'"):
        load_spec(path)
