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
    assert raised.value.hints == ["expand it with xacro first: `xacro arm.urdf > robot.urdf`."]
    assert validate_file(path).error == raised.value.error
    with pytest.raises(ValueError, match="expand it with xacro first"):
        world_from_file(path)


def test_expanded_files(tmp_path):
    """Open what xacro writes, which still names its namespace and may have macros of others."""
    other = "<gazebo><plugin><config>$(find a)/b.yaml</config></plugin></gazebo>"
    path = urdf(tmp_path, link(0) + other)
    path.write_text(path.read_text().replace("<robot", '<robot xmlns:xacro="http://ros.org/xacro"'))
    assert load_spec(path)[0].compile().ngeom == 1
