"""Units of mesh files; how they are opened is tested with `load_spec`."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from manyworlds.spec.load import load_spec
from manyworlds.spec.mesh_files import read_mesh, unit_length

_TETRAHEDRON = "0 0 0 2 0 0 0 2 0 0 0 2"
_TRIANGLES = "0 2 1 0 1 3 0 3 2 1 2 3"


def dae(path: Path, unit: str = "") -> Path:
    """Write a Collada file of a tetrahedron of size 2."""
    path.write_text(
        f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"
        version="1.4.1"><asset><contributor/>{unit}<up_axis>Z_UP</up_axis></asset>
        <library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="12">
        {_TETRAHEDRON}</float_array><technique_common><accessor source="#a" count="4" stride="3">
        <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
        </accessor></technique_common></source><vertices id="v"><input semantic="POSITION"
        source="#p"/></vertices><triangles count="4"><input semantic="VERTEX" source="#v"
        offset="0"/><p>{_TRIANGLES}</p></triangles></mesh></geometry></library_geometries>
        <library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node>
        </visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene>
        </COLLADA>"""
    )
    return path


def three_mf(path: Path, unit: str = "") -> Path:
    """Write a 3MF file of a tetrahedron of size 2."""
    points = np.array(_TETRAHEDRON.split()).reshape(-1, 3)
    faces = np.array(_TRIANGLES.split()).reshape(-1, 3)
    vertices = "".join(f'<vertex x="{x}" y="{y}" z="{z}"/>' for x, y, z in points)
    triangles = "".join(f'<triangle v1="{a}" v2="{b}" v3="{c}"/>' for a, b, c in faces)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "3D/3dmodel.model",
            f"""<?xml version="1.0"?><model {unit} xml:lang="en-US"
            xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02"><resources>
            <object id="1" type="model"><mesh><vertices>{vertices}</vertices><triangles>{triangles}
            </triangles></mesh></object></resources><build><item objectid="1"/></build></model>""",
        )
    return path


_DAE_UNITS = {
    "": 1.0,
    "<unit/>": 1.0,
    '<unit name="millimeter" meter="0.001"/>': 0.001,
    "<unit meter='2.54e-2' name='inch'/>": 0.0254,
}
_3MF_UNITS = {"": 0.001, 'unit="micron"': 1e-6, 'unit="inch"': 0.0254, "unit='meter'": 1.0}


@pytest.mark.parametrize("unit", _DAE_UNITS)
def test_units_of_dae(unit, tmp_path):
    """Read how long the unit of a Collada file is."""
    assert unit_length(dae(tmp_path / "part.DAE", unit)) == _DAE_UNITS[unit]


@pytest.mark.parametrize("unit", _3MF_UNITS)
def test_units_of_3mf(unit, tmp_path):
    """Read how long the unit of a 3MF file is; without one, it is a millimeter."""
    assert unit_length(three_mf(tmp_path / "part.3mf", unit)) == _3MF_UNITS[unit]


def test_other_formats_have_no_units(tmp_path):
    """Take lengths of other formats for meters, whatever their text says."""
    path = tmp_path / "part.obj"
    path.write_text('# <unit meter="0.001"/>\n')
    assert unit_length(path) == 1.0


@pytest.mark.parametrize("unit", ["0", "-1", "nan", "inf", "a foot"])
def test_wrong_units(unit, tmp_path):
    """Refuse units that are no lengths."""
    with pytest.raises(ValueError, match=f"part.dae has the unit '{unit}', which is no length"):
        unit_length(dae(tmp_path / "part.dae", f'<unit meter="{unit}"/>'))
    with pytest.raises(ValueError, match=f"part.3mf has the unit '{unit}', which is no length"):
        unit_length(three_mf(tmp_path / "part.3mf", f'unit="{unit}"'))


@pytest.mark.parametrize("suffix", ["dae", "3mf"])
def test_sizes_are_in_meters(suffix, tmp_path):
    """Open a file in millimeters by itself, and in a URDF that scales it besides."""
    pytest.importorskip("trimesh", reason="needs trimesh, of the extra 'meshes'")
    pytest.importorskip({"dae": "collada", "3mf": "lxml"}[suffix], reason="reads this format")
    path = tmp_path / f"part.{suffix}"
    if suffix == "dae":
        dae(path, '<unit meter="0.001"/>')
    else:
        three_mf(path)
    [part] = read_mesh(path)
    assert np.allclose(np.ptp(part.vertices, axis=0), 0.002)
    (tmp_path / "arm.urdf").write_text(
        f"""<robot name="arm"><link name="base"><collision><geometry><mesh scale="5 5 5"
        filename="part.{suffix}"/></geometry></collision></link></robot>"""
    )
    model = load_spec(tmp_path / "arm.urdf")[0].compile()
    edges = np.linalg.norm(model.mesh_vert[:, None] - model.mesh_vert, axis=-1)
    assert np.isclose(edges.max(), 0.01 * np.sqrt(2.0))
