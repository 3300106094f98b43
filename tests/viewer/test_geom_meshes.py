"""Meshes of geoms in the browser: smooth where the geom is, with MuJoCo's textures."""

import io
import json

import mujoco
import numpy as np
import pytest

from manyworlds.viewer.browser import geom_meshes, surfaces, textures

trimesh = pytest.importorskip("trimesh", reason="needs the extra 'lab'")
KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
SIZE = (0.1, 0.2, 0.3)


def geom(kind: str, material: str = "", asset: str = "", attributes: str = "") -> mujoco.MjModel:
    """Compile a model of one geom, which may have a material 'm'."""
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset>{asset}{material}</asset><worldbody><geom type="{kind}"
        size="{" ".join(map(str, SIZE))}" {'material="m"' if material else ""} {attributes}/>
        </worldbody></mujoco>"""
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_surface_fills_its_geom(kind):
    """Reach as far as MuJoCo's bounding box, closed, with all faces outwards."""
    model = geom(kind)
    mesh = geom_meshes.merge_geoms(model, [0])
    assert mesh.bounds == pytest.approx(model.geom_aabb[0, 3:] * [[-1], [1]], rel=1e-6)
    mesh.merge_vertices()
    assert mesh.is_watertight
    volume = {"sphere": 4.19e-3, "box": 0.048, "cylinder": 0.01257}
    assert mesh.volume == pytest.approx(volume.get(kind, mesh.volume), rel=0.02) and mesh.volume > 0


@pytest.mark.parametrize("kind", KINDS)
def test_normals_point_as_those_of_the_geom(kind):
    """Send round sides with smooth normals, and edges with one normal for each side."""
    mesh = geom_meshes.merge_geoms(geom(kind), [0])
    normals = surfaces.vertex_normals(mesh.vertices, mesh.faces)
    x, y, z = mesh.vertices.T
    if kind == "box":
        exact = np.abs(normals).max(axis=1)
        assert exact == pytest.approx(np.ones(24)) and len(mesh.vertices) == 24
        return
    if kind == "cylinder":
        side = np.abs(normals[:, 2]) < 0.5
        exact = np.where(side[:, None], np.column_stack([x, y, 0 * z]), [0.0, 0.0, 1.0])
        exact[~side] *= np.sign(z[~side])[:, None]
    elif kind == "capsule":
        exact = np.column_stack([x, y, z - np.clip(z, -SIZE[1], SIZE[1])])
    else:
        half = np.array(SIZE if kind == "ellipsoid" else [SIZE[0]] * 3)
        exact = mesh.vertices / half**2
    exact = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    assert np.abs(normals - exact).max() < 0.1


@pytest.mark.parametrize("kind", ["sphere", "capsule", "ellipsoid", "cylinder"])
@pytest.mark.parametrize("half", [0.05, 0.2, 1.0])
def test_round_geoms_have_no_stripes(kind, half):
    """Turn the normals of each ring of vertices to one direction: there they are equal."""
    model = geom(kind)
    model.geom_size[0] = (0.1, 0.1, half) if kind == "ellipsoid" else (0.1, half, 0.0)
    mesh = geom_meshes.merge_geoms(model, [0])
    normals = surfaces.vertex_normals(mesh.vertices, mesh.faces)
    x, y, z = mesh.vertices.T
    around = np.hypot(x, y) > 1e-9
    angle = -np.arctan2(y, x)
    turned = np.column_stack(
        [
            normals[:, 0] * np.cos(angle) - normals[:, 1] * np.sin(angle),
            normals[:, 0] * np.sin(angle) + normals[:, 1] * np.cos(angle),
            normals[:, 2],
        ]
    )
    flat = (kind == "cylinder") * (np.abs(normals[:, 2]) > 0.5)
    _, ring = np.unique(np.column_stack([z.round(6), flat]), axis=0, return_inverse=True)
    for number in np.unique(ring.ravel()[around]):
        own = turned[around & (ring.ravel() == number)]
        assert len(own) >= surfaces.SECTIONS and np.ptp(own, axis=0).max() < 1e-6


def test_a_file_for_the_browser_has_normals_and_is_not_metal():
    """Send normals, without which three.js draws flat faces, and a dull material."""
    blob = geom_meshes.to_glb(geom_meshes.merge_geoms(geom("sphere"), [0]))
    length = int.from_bytes(blob[12:16], "little")
    tree = json.load(io.BytesIO(blob[20 : 20 + length]))
    (primitive,) = tree["meshes"][0]["primitives"]
    assert {"NORMAL", "COLOR_0"} <= set(primitive["attributes"])
    assert tree["materials"][primitive["material"]]["pbrMetallicRoughness"]["metallicFactor"] == 0


@pytest.mark.parametrize("kind", ["sphere", "capsule", "ellipsoid", "cylinder"])
@pytest.mark.parametrize("texture", ["2d", "cube"])
def test_seams_of_textures_are_smooth(kind, texture):
    """Compute normals as browsers do: on both sides of a seam they are those of the geom."""
    asset = f'<texture name="t" type="{texture}" builtin="flat" width="30" height="30"/>'
    model = geom(kind, '<material name="m" texture="t"/>', asset)
    mesh = geom_meshes.merge_geoms(model, [0])
    sent = trimesh.load(io.BytesIO(geom_meshes.to_glb(mesh)), "glb", force="mesh", process=False)
    assert sent.bounds == pytest.approx(mesh.bounds, abs=1e-6), "nothing is seen beyond the geom"
    assert (sent.faces[: len(mesh.faces)] == mesh.faces).all()
    count = len(mesh.vertices)
    normals = surfaces.vertex_normals(sent.vertices, sent.faces)[:count]
    _, point = np.unique(sent.vertices[:count].round(6), axis=0, return_inverse=True)
    points = range(point.max() + 1)
    spread = [np.ptp(normals[point.ravel() == number], axis=0).max() for number in points]
    sharp = 0.5 if kind == "cylinder" else np.inf
    assert max(each for each in spread if each < sharp) < 0.03


def _position_coded(side: int) -> bytes:
    """Encode a picture whose pixels tell their column, their row, and a number."""
    from PIL import Image

    file = io.BytesIO()
    column, row = np.meshgrid(np.arange(200), np.arange(200))
    picture = np.stack([column + 20, row + 20, np.full_like(row, 40 * side + 10)], axis=-1)
    Image.fromarray(picture.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


SIDES = ("right", "left", "up", "down", "front", "back")
PICTURES = {f"{name}.png": _position_coded(i) for i, name in enumerate(SIDES)}
TEXTURES = {
    "2d": '<texture name="t" type="2d" file="right.png"/>',
    "cube": f'<texture name="t" type="cube" {" ".join(f"""file{s}="{s}.png" """ for s in SIDES)}/>',
}
SHAPES = [
    *(f'type="{kind}" size=".5 .8 .3"' for kind in ("box", "ellipsoid", "plane")),
    *(f'type="{kind}" size=".4 .3"' for kind in ("capsule", "cylinder")),
    'type="mesh" mesh="gem"',
    'type="mesh" mesh="printed"',
    'type="hfield" hfield="hills"',
]
SCENE = """
<mujoco>
  <visual>
    <headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/>
    <global offwidth="800" offheight="800" orthographic="true" fovy="8"/>
    <quality shadowsize="0" offsamples="0"/>
    <map znear=".001"/>
  </visual>
  <statistic center="0 0 0" extent="8"/>
  <asset>
    {texture}
    <material name="m" texture="t" specular="0" {material}/>
    <mesh name="gem" vertex=".5 0 0 -.5 0 0 0 .8 0 0 -.8 0 0 0 .3 0 0 -.3"/>
    <mesh name="printed" inertia="shell" vertex="-.5 -.8 0 .5 -.8 0 -.5 .8 0 .5 .8 0 0 0 .3"
      texcoord="0 1 1 1 0 0 1 0 .5 .5" face="0 2 1 1 2 3 0 1 4 1 3 4 3 2 4 2 0 4"/>
    <hfield name="hills" nrow="5" ncol="7" size=".5 .8 .3 .1"
      elevation="0 1 2 3 2 1 0 1 2 3 4 3 2 1 2 3 4 5 4 3 2 1 2 3 4 3 2 1 0 1 2 3 2 1 0"/>
  </asset>
  <worldbody>{geoms}</worldbody>
</mujoco>
"""


@pytest.mark.parametrize("kind", TEXTURES)
@pytest.mark.parametrize("material", ["", 'texrepeat="1 2" texuniform="true"'])
def test_textures_are_where_mujoco_renders_them(gl, kind, material):
    """Compare the middle of each triangle that is seen with MuJoCo's picture of the geoms."""
    # Flat things have no sides for a texture that surrounds them.
    shapes = [s for s in SHAPES if kind == "2d" or not ("plane" in s or "printed" in s)]
    places = [f"{2.2 * (i % 3 - 1)} {2.2 * (i // 3 - 1)} 0" for i in range(len(shapes))]
    geoms = [f'<geom {s} pos="{p}" material="m"/>' for s, p in zip(shapes, places, strict=True)]
    xml = SCENE.format(texture=TEXTURES[kind], material=material, geoms="".join(geoms))
    model = mujoco.MjModel.from_xml_string(xml, PICTURES)
    image = np.flipud(textures.pixels(model, 0))
    picture, forward, up = _rendered(model)
    for geom, shape in enumerate(shapes):
        mesh = geom_meshes.merge_geoms(model, [geom])
        seen = np.flatnonzero(mesh.face_normals @ forward < -0.3)
        middle = mesh.triangles[seen].mean(axis=1)
        place = np.column_stack([-middle @ up, middle @ np.cross(forward, up)]) * 100 + 399.5
        rendered = picture[tuple(place.round().astype(int).T)]
        u, v = (mesh.visual.uv[mesh.faces[seen]].mean(axis=1) % 1.0).T
        at = (((1 - v) * len(image)).astype(int) % len(image), (200 * u).astype(int))
        right = np.abs(image[at].astype(int) - rendered).max(axis=1) < 16
        # At its border, an image is mixed with its other side.
        inside = np.minimum(np.minimum(u, 1 - u), np.minimum(v, 1 - v)) > 0.04
        assert inside.sum() > 1 and right[inside].mean() > 0.85, (shape, right[inside].mean())


def _rendered(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return MuJoCo's picture, and the camera's directions forwards and upwards."""
    renderer = mujoco.Renderer(model, 800, 800)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.distance, camera.orthographic = 10.0, 1
    camera.azimuth, camera.elevation = 160.0, -35.0
    renderer.update_scene(data, camera)
    picture = renderer.render().astype(int)
    view = renderer.scene.camera[0]
    renderer.close()
    return picture, np.array(view.forward), np.array(view.up)


@pytest.mark.parametrize(("count", "sections"), [(20, 32), (300, 20), (3000, 12)])
def test_worlds_of_many_round_geoms_are_drawn_with_fewer_faces(count, sections):
    """Draw spheres of a large world with fewer faces, smooth as those of a small one."""
    spec = mujoco.MjSpec()
    for _ in range(count):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.1, 0, 0])
    model = spec.compile()
    assert geom_meshes.round_sections(model, range(count)) == sections
    mesh = geom_meshes.merge_geoms(model, [0], sections)
    plain = surfaces.unit_sphere(sections)
    assert len(mesh.vertices) == len(np.unique(plain.vertices.round(6), axis=0))  # no sharp edge
    assert len(mesh.faces) <= sections**2


def test_height_fields_have_sides_and_a_bottom():
    """Close the surface of a height field: it is solid, down to the depth of its base."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><asset><hfield name="h" nrow="2" ncol="3" size="1 .5 .4 .1"
        elevation="1 1 1 1 1 0"/></asset><worldbody><geom type="hfield" hfield="h"/></worldbody>
        </mujoco>"""
    )
    surface = geom_meshes.geom_surface(model, 0)
    solid = trimesh.Trimesh(surface.vertices, surface.faces)
    assert solid.is_watertight and solid.bounds[0].tolist() == [-1.0, -0.5, -0.1]
    # A cell of the grid lacks a corner, whose triangle is half of the cell.
    assert solid.volume == pytest.approx(2.0 * 0.5 - 0.5 * 0.4 / 3.0)
