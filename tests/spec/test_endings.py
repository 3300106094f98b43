"""Names of model files may end in whatever MuJoCo opens."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.cli.validate import validate_file
from manyworlds.lab import LiveLab, world_from_file, world_from_spec
from manyworlds.lab.scene.sources import load_source
from manyworlds.spec.export import export_spec
from manyworlds.spec.load import ModelFileError, load_spec
from manyworlds.spec.uploads import read_upload
from manyworlds.terrains.height_sources import sample_heights
from tests.spec.parity import assert_same
from tests.spec.test_export import wavefront

_URDF = """<robot name="r"><link name="a"><collision><geometry><mesh filename="parts/part.obj"/>
</geometry></collision></link></robot>"""
_MJCF = """<?xml version="1.0"?>
<!-- a comment --><mujoco model="arm"><compiler meshdir="parts"/><include file="parts/asset.xml"/>
<asset><model name="hand" file="hand.xml"/></asset><worldbody><attach model="hand" prefix="h_"/>
<body name="arm"><joint/><geom type="mesh" mesh="part"/></body></worldbody></mujoco>"""
_BYTE_ORDER_MARK = "\ufeff \n"
_NAMES = ["arm.mjcf", "arm.MJCF", "arm.XML", "arm", "arm.txt", "arm.model.v2", "arm.xml"]


def write(folder: Path, name: str, text: str = _MJCF) -> Path:
    """Write a model, and the files that it includes, attaches and refers to."""
    (folder / "parts").mkdir()
    (folder / "parts" / "part.obj").write_bytes(wavefront(1.0))
    (folder / "parts" / "asset.xml").write_text(
        '<mujoco><asset><mesh name="part" file="part.obj"/></asset></mujoco>'
    )
    (folder / "hand.xml").write_text(
        '<mujoco><worldbody><body name="hand"><joint/><geom size=".1"/></body></worldbody></mujoco>'
    )
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", _NAMES)
def test_each_way_in(name, tmp_path):
    """Open a model by any name, as plain MuJoCo does, and export it."""
    path = write(tmp_path, name)
    expected = mujoco.MjModel.from_xml_path(str(path))
    spec, warnings = load_spec(path)
    assert not warnings
    assert_same(spec.compile(), expected)
    assert_same(world_from_file(path).model, expected)
    assert validate_file(path).error is None
    assert load_source(path)[0].spec.modelname == "arm"
    lab = LiveLab(world_from_spec(mujoco.MjSpec()))
    lab.scene.add(path, "item")
    assert lab.model.body("item/h_hand").id > 0
    lab.stop()
    assert_same(
        mujoco.MjModel.from_xml_path(str(export_spec(spec, tmp_path / "out") / "scene.xml")),
        expected,
    )


def test_a_byte_order_mark(tmp_path):
    """Open a model that begins as some editors write files."""
    path = write(tmp_path, "arm", _BYTE_ORDER_MARK + _MJCF.partition("?>")[2])
    assert_same(load_spec(path)[0].compile(), mujoco.MjModel.from_xml_path(str(path)))


@pytest.mark.parametrize("name", ["r.urdf", "r.URDF", "r", "r.xml", "r.xacro"])
def test_urdf(name, tmp_path):
    """Open a URDF by any name."""
    path = write(tmp_path, name, _URDF)
    assert_same(load_spec(path)[0].compile(), mujoco.MjModel.from_xml_path(str(path)))


@pytest.mark.parametrize("name", ["arm", "arm.mjcf", "arm.XML", "arm.txt"])
def test_uploads(name, tmp_path):
    """Keep an upload of a model by any name."""
    path = read_upload(name, b'<mujoco><worldbody><geom size="1"/></worldbody></mujoco>', tmp_path)
    assert path.name == name and load_spec(path)[0].compile().ngeom == 1


def test_heights_of_a_model(tmp_path):
    """Sample the heights of a model whose name ends in .mjcf."""
    path = tmp_path / "hill.MJCF"
    path.write_text('<mujoco><worldbody><geom type="box" size="9 9 1"/></worldbody></mujoco>')
    heights = sample_heights(path, np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert np.allclose(heights, 1.0)


@pytest.mark.parametrize("name", ["arm", "arm.txt", "arm.mjcf"])
def test_what_is_no_model(name, tmp_path):
    """Refuse a file that is no XML, in one sentence."""
    path = tmp_path / name
    path.write_text("joint,position\n")
    with pytest.raises(ModelFileError, match="this is no model file"):
        load_spec(path)


def test_attached_models(tmp_path):
    """Name the attached file whose ending MuJoCo does not take, not the one that attaches it."""
    path = write(tmp_path, "arm.mjcf", _MJCF.replace("hand.xml", "hand.mjcf"))
    (tmp_path / "hand.xml").rename(tmp_path / "hand.mjcf")
    with pytest.raises(ModelFileError, match=r"attach 'hand.mjcf' by its ending.*rename it to end"):
        load_spec(path)
