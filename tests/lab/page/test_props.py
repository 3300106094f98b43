import threading
from types import SimpleNamespace

import numpy as np
import pytest

from manyworlds.viewer.browser.wireframes import wireframe_points
from tests.lab.page.conftest import give, press
from tests.lab.page.test_page import iterate_once

trimesh = pytest.importorskip("trimesh", reason="needs the extra 'meshes'")


@pytest.fixture
def parts(page, tmp_path, monkeypatch):
    """The page's parts, beside a running world and with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page.lab.start()
    return page


def show(page, done):
    """Update the page until something is done."""
    pause = threading.Event()
    for _ in range(600):
        page.update()
        if done():
            return
        pause.wait(0.05)
    raise AssertionError("The page did not show it in time.")


def test_a_shape_is_added(parts):
    """Add a sphere by the page: it is in the world, and the page says so."""
    part = parts.parts["PropPart"]
    give(part.shape, "sphere")
    give(part.mass, 2.0)
    press(part.add_shape)
    show(parts, lambda: "sphere" in parts.lab.scene.items)
    assert parts.lab.model.body("sphere/prop").mass == pytest.approx(2.0)
    assert "&#x27;sphere&#x27; is in the world" in part.outcome.content


@pytest.mark.slow
def test_a_mesh_is_uploaded_and_converted(parts):
    """Upload a ring: a bar shows its progress, then it is in the world with its pieces."""
    part = parts.parts["PropPart"]
    ring = trimesh.creation.annulus(0.1, 0.2, 0.05, sections=6)
    file = SimpleNamespace(name="ring.stl", content=ring.export(file_type="stl"))
    part.upload._impl.value = file
    assert "being converted" in part._add_upload({}) and part.cancel.visible
    with pytest.raises(RuntimeError, match="A mesh is being converted"):
        part._add_upload({})
    show(parts, lambda: "ring" in parts.lab.scene.items and not part.progress.visible)
    assert "convex pieces" in part.outcome.content and not part.cancel.visible
    assert parts.lab.model.geom("ring/hull_3").group == 3


def test_a_conversion_is_cancelled(parts):
    """Cancel the conversion of a large mesh: the world stays as it is."""
    part = parts.parts["PropPart"]
    ball = trimesh.creation.torus(0.2, 0.05, major_sections=100, minor_sections=60)
    file = SimpleNamespace(name="ball.stl", content=ball.export(file_type="stl"))
    part.upload._impl.value = file
    part._add_upload({})
    press(part.cancel)
    assert "was cancelled" in part.outcome.content and not part.progress.visible
    assert "ball/" not in [item.prefix for item in parts.lab.scene.items.values()]


def test_errors_are_shown(parts):
    """Name a file that is not there: the page shows one sentence."""
    part = parts.parts["PropPart"]
    give(part.path, "gone.obj")
    press(part.add_file)
    assert "There is no mesh file 'gone.obj'" in parts.context.message


def test_a_region_is_previewed_and_added(parts):
    """Show the samples of a region as a grid, with a red cross if there are more of them."""
    part = parts.parts["HeightFieldPart"]
    give(part.resolution, (5.0, 9.0))
    press(part.preview)
    assert [handle.name for handle in part._grid] == ["/height_field/grid"]
    lines = np.asarray(part._grid[0].points)
    assert lines.shape == (4 * 9 + 5 * 8, 2, 3) and np.ptp(lines[..., 0]) == pytest.approx(10.0)
    give(part.resolution, (200.0, 9.0))
    press(part.preview)
    assert [handle.name for handle in part._grid] == ["/height_field/grid", "/height_field/cross"]
    give(part.resolution, (16.0, 8.0))
    press(part.add)
    show(parts, lambda: "terrain" in parts.lab.scene.items)
    assert (parts.lab.model.hfield_ncol[0], parts.lab.model.hfield_nrow[0]) == (16, 8)


@pytest.mark.slow
def test_hulls_are_drawn_as_wires(parts, tmp_path):
    """Draw the edges of each piece's hull, as many as MuJoCo's graph of the hull has."""
    ring = trimesh.creation.annulus(0.1, 0.2, 0.05, sections=6)
    ring.export(tmp_path / "ring.stl")
    parts.lab.call("add_mesh_prop_from_file", path=tmp_path / "ring.stl")
    model = parts.lab.model
    hulls = [i for i in range(model.ngeom) if "hull_" in model.geom(i).name]
    assert len(hulls) > 3
    for geom in hulls:
        start = model.mesh_graphadr[model.geom_dataid[geom]]
        vertices, faces = model.mesh_graph[start : start + 2]
        assert len(wireframe_points(model, geom)) == vertices + faces - 2
    show(parts, lambda: parts.context.lab.model.ngeom == model.ngeom)
    overlays = parts.parts["OverlayPart"]
    overlays.boxes["collision"].value = True
    show(parts, lambda: {*hulls} <= {*overlays.overlays.wireframes.handles})


def test_props_land_in_free_places(page):
    """Add two boxes without a position: they are beside each other, above nothing else."""
    part = page.parts["PropPart"]
    for _ in range(2):
        press(part.add_shape)
        iterate_once(page)
    first, second = (page.lab.scene[name].pos for name in ("box", "box_1"))
    assert abs(first[0] - second[0]) >= 0.2, "they do not meet"
    assert first[2] == second[2]
