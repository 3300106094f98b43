"""Meshes of geoms and sites, with colors and textures as MuJoCo renders them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import mujoco
import numpy as np

from manyworlds.utils.extras import require_extra
from manyworlds.viewer.browser import surfaces, textures
from manyworlds.viewer.browser.surfaces import Surface
from manyworlds.viewer.browser.tones import surface_color

if TYPE_CHECKING:
    import trimesh
    from trimesh.visual import ColorVisuals

_Geom = mujoco.mjtGeom
_ROUND: dict[int, Callable[[int], Surface]] = {
    int(_Geom.mjGEOM_SPHERE): surfaces.unit_sphere,
    int(_Geom.mjGEOM_CAPSULE): surfaces.unit_capsule,
    int(_Geom.mjGEOM_ELLIPSOID): surfaces.unit_sphere,
    int(_Geom.mjGEOM_CYLINDER): surfaces.unit_cylinder,
}
_FLAT: dict[int, Callable[[], Surface]] = {
    int(_Geom.mjGEOM_PLANE): surfaces.unit_plane,
    int(_Geom.mjGEOM_BOX): surfaces.unit_box,
}
_ENDLESS = 20.0
"""Half the size of infinite planes that are not the ground, by the size of the model."""
_SECTIONS = (surfaces.SECTIONS, 20, 12)
"""Numbers of faces around round geoms, finest first; with fewer, edges of spheres look sharp."""
_ROUND_FACES = 150_000
"""Triangles of all round geoms of a world from which on they are drawn with fewer: computers
without a graphics card take about 3 us for one."""
DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)
"""Color of geoms that have none of their own; then that of their material counts."""
Look = tuple[int, tuple[float, ...]]
"""Texture, or -1, and the color that a whole mesh has in common: with a texture the color it is
multiplied by, otherwise only whether it is transparent."""


def drawn_size(kind: int, size: np.ndarray) -> np.ndarray:
    """Return sizes of a model's geoms or sites as an `MjvGeom` has them, shape (n, 3)."""
    if kind == _Geom.mjGEOM_SPHERE:
        return np.repeat(size[:, :1], 3, axis=1)
    if kind in (_Geom.mjGEOM_CAPSULE, _Geom.mjGEOM_CYLINDER):
        return size[:, [0, 0, 1]]
    return size


def material_color(model: mujoco.MjModel, material: int, rgba: np.ndarray) -> np.ndarray:
    """Return the color of an element: its own, or that of its material, shape (4,)."""
    if material >= 0 and np.allclose(rgba, DEFAULT_RGBA):
        rgba = model.mat_rgba[material]
    return np.asarray(rgba, np.float64)


def look_of(model: mujoco.MjModel, geom: int) -> Look:
    """Return the look of a geom; geoms of one body that look alike can share a mesh."""
    material = int(model.geom_matid[geom])
    texture = textures.texture_of(model, material)
    rgba = material_color(model, material, model.geom_rgba[geom])
    if texture >= 0:
        return texture, tuple(rgba.tolist())
    return texture, (float(rgba[3] < 1),)


def round_sections(model: mujoco.MjModel, geoms: Sequence[int]) -> int:
    """Return the number of faces around each round geom of a world, fewer if it has many."""
    for sections in _SECTIONS:
        faces = 0
        for kind, unit in _ROUND.items():
            faces += int((model.geom_type[geoms] == kind).sum()) * len(unit(sections).faces)
        if faces <= _ROUND_FACES:
            return sections
    return _SECTIONS[-1]


def merge_geoms(
    model: mujoco.MjModel, geoms: Sequence[int], sections: int = surfaces.SECTIONS
) -> trimesh.Trimesh:
    """Return one mesh, in the frame of their body, of geoms that look alike.

    Args:
        model: the model.
        geoms: their ids.
        sections: number of faces around those that are round.
    """
    parts = []
    for geom in geoms:
        surface = geom_surface(model, geom, sections)
        surface.vertices = _placed(surface.vertices, model.geom_pos[geom], model.geom_quat[geom])
        parts.append(surface)
    material = int(model.geom_matid[geoms[0]])
    texture = textures.texture_of(model, material)
    colors = [
        material_color(model, int(model.geom_matid[geom]), model.geom_rgba[geom]) for geom in geoms
    ]
    if texture >= 0:
        return textured_mesh(model, texture, surfaces.join(parts), colors[0])
    return _colored(parts, colors)


def merge_sites(model: mujoco.MjModel, sites: Sequence[int]) -> trimesh.Trimesh:
    """Return one mesh, in the frame of their body, of some sites."""
    parts = []
    colors = []
    for site in sites:
        kind = int(model.site_type[site])
        size = drawn_size(kind, model.site_size[site][None])[0]
        surface = _scaled(kind, _unit_surface(kind, surfaces.SECTIONS), size)
        surface.vertices = _placed(surface.vertices, model.site_pos[site], model.site_quat[site])
        parts.append(surface)
        colors.append(material_color(model, int(model.site_matid[site]), model.site_rgba[site]))
    return _colored(parts, colors)


def geom_surface(model: mujoco.MjModel, geom: int, sections: int = surfaces.SECTIONS) -> Surface:
    """Return the surface of a geom in its own frame, with coordinates of its texture."""
    kind = int(model.geom_type[geom])
    material = int(model.geom_matid[geom])
    size = drawn_size(kind, model.geom_size[geom][None])[0]
    texture = textures.texture_of(model, material)
    if kind == _Geom.mjGEOM_PLANE:
        size = np.where(size > 0.0, size, _ENDLESS * model.stat.extent)
    if kind in (_Geom.mjGEOM_MESH, _Geom.mjGEOM_SDF):
        surface = mesh_surface(model, int(model.geom_dataid[geom]))
    elif kind == _Geom.mjGEOM_HFIELD:
        surface = _hfield_surface(model, int(model.geom_dataid[geom]))
    else:
        surface = _unit_surface(kind, sections)
    if texture >= 0:
        surface = textures.place_texture(model, material, surface, size)
    return _scaled(kind, surface, size)


def textured_mesh(
    model: mujoco.MjModel, texture: int, surface: Surface, rgba: np.ndarray
) -> trimesh.Trimesh:
    """Return a mesh of a surface with a texture that is multiplied by a color."""
    module = require_extra("trimesh", "lab")
    old, faces = surfaces.split_sharp_edges(surface.vertices, surface.faces, surface.uv)
    factor = np.append(surface_color(rgba[:3]), rgba[3])
    alpha_mode = None
    if rgba[3] < 1:
        alpha_mode = "BLEND"
    material = module.visual.material.PBRMaterial(
        baseColorFactor=(255 * factor).round().astype(np.uint8),
        baseColorTexture=textures.image_of(model, texture),
        metallicFactor=0.0,
        roughnessFactor=1.0,
        alphaMode=alpha_mode,
    )
    visual = module.visual.TextureVisuals(uv=surface.uv[old], material=material)
    return module.Trimesh(surface.vertices[old], faces, visual=visual, process=False)


def to_glb(mesh: trimesh.Trimesh) -> bytes:
    """Return a mesh as a file for the browser, with smooth normals, and not made of metal.

    A mesh without normals would be drawn with flat faces, and one without a material as metal.
    """

    def dull(tree: dict[str, Any]) -> None:
        if "materials" in tree:
            return
        material: dict[str, Any] = {
            "pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 1.0}
        }
        if (_vertex_colors(mesh)[:, 3] < 255).any():
            material["alphaMode"] = "BLEND"
        tree["materials"] = [material]
        for one in tree["meshes"]:
            for primitive in one["primitives"]:
                primitive["material"] = 0

    mesh = _with_hidden_faces(mesh)
    # Without scipy, trimesh computes normals slowly; browsers compute them again, in this way.
    mesh.vertex_normals = surfaces.vertex_normals(mesh.vertices, mesh.faces)
    exported = mesh.export(file_type="glb", include_normals=True, tree_postprocessor=dull)
    assert isinstance(exported, bytes)
    return exported


def _with_hidden_faces(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """Return a mesh whose normals are smooth over the seams of its texture, if that is opaque."""
    module = require_extra("trimesh", "lab")
    visual: Any = mesh.visual
    if not isinstance(visual, module.visual.TextureVisuals) or visual.material.alphaMode:
        return mesh
    hidden = surfaces.hidden_faces(mesh.vertices, mesh.faces)
    uv = np.concatenate([visual.uv, visual.uv[hidden.sources]])
    return module.Trimesh(
        np.concatenate([mesh.vertices, hidden.vertices]),
        np.concatenate([mesh.faces, hidden.faces]),
        visual=module.visual.TextureVisuals(uv=uv, material=visual.material),
        process=False,
    )


def sharpened(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """Return a mesh with colors of vertices whose sharp edges are drawn sharp."""
    module = require_extra("trimesh", "lab")
    colors = _vertex_colors(mesh)
    old, faces = surfaces.split_sharp_edges(mesh.vertices, mesh.faces, colors)
    return module.Trimesh(mesh.vertices[old], faces, vertex_colors=colors[old], process=False)


def _vertex_colors(mesh: trimesh.Trimesh) -> np.ndarray:
    return np.asarray(cast("ColorVisuals", mesh.visual).vertex_colors)


def _colored(parts: list[Surface], colors: list[np.ndarray]) -> trimesh.Trimesh:
    """Return a mesh of surfaces that each have one color."""
    module = require_extra("trimesh", "lab")
    vertices = []
    rgba = []
    faces = []
    count = 0
    for surface, color in zip(parts, colors, strict=True):
        old, own = surfaces.split_sharp_edges(surface.vertices, surface.faces)
        vertices.append(surface.vertices[old])
        faces.append(own + count)
        count += len(old)
        shade = np.append(surface_color(color[:3]), np.clip(color[3], 0.0, 1.0))
        rgba.append(np.tile((255 * shade).round().astype(np.uint8), (len(old), 1)))
    return module.Trimesh(
        np.concatenate(vertices),
        np.concatenate(faces),
        vertex_colors=np.concatenate(rgba),
        process=False,
    )


def _unit_surface(kind: int, sections: int) -> Surface:
    if kind in _ROUND:
        return _ROUND[kind](sections)
    return _FLAT[kind]()


def _scaled(kind: int, surface: Surface, size: np.ndarray) -> Surface:
    """Stretch a unit shape to the size of a geom; meshes and height fields have theirs."""
    at = surface.vertices
    if kind == _Geom.mjGEOM_PLANE:
        at = at * (size[0], size[1], 0.0)
    elif kind == _Geom.mjGEOM_CAPSULE:
        beyond = np.sign(at[:, 2]) * np.maximum(np.abs(at[:, 2]) - 1.0, 0.0)
        along = (at[:, 2] - beyond) * size[2] + beyond * size[0]
        at = np.column_stack([at[:, :2] * size[0], along])
    elif kind in _ROUND or kind in _FLAT:
        at = at * size
    return Surface(at, surface.faces, surface.uv)


def _placed(vertices: np.ndarray, position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return vertices @ matrix.reshape(3, 3).T + position


def mesh_surface(model: mujoco.MjModel, mesh: int) -> Surface:
    """Return a mesh, with its texture coordinates or NaN."""
    first = int(model.mesh_vertadr[mesh])
    count = int(model.mesh_vertnum[mesh])
    begin = int(model.mesh_faceadr[mesh])
    number = int(model.mesh_facenum[mesh])
    vertices = model.mesh_vert[first : first + count]
    faces = model.mesh_face[begin : begin + number]
    if not model.mesh_texcoordnum[mesh]:
        return Surface(vertices, faces, np.full((count, 2), np.nan))
    start = int(model.mesh_texcoordadr[mesh])
    uv = model.mesh_texcoord[start : start + int(model.mesh_texcoordnum[mesh])]
    # A vertex may have other texture coordinates in each face.
    own = model.mesh_facetexcoord[begin : begin + number]
    corners = np.column_stack([faces.ravel(), own.ravel()])
    corners, index = np.unique(corners, axis=0, return_inverse=True)
    return Surface(vertices[corners[:, 0]], index.reshape(-1, 3), uv[corners[:, 1]])


def _hfield_surface(model: mujoco.MjModel, hfield: int) -> Surface:
    """Return the surface of a height field, with the sides and the bottom of its base."""
    rows = int(model.hfield_nrow[hfield])
    columns = int(model.hfield_ncol[hfield])
    start = int(model.hfield_adr[hfield])
    half_x, half_y, top, base = model.hfield_size[hfield]
    y, x = np.meshgrid(
        np.linspace(-half_y, half_y, rows), np.linspace(-half_x, half_x, columns), indexing="ij"
    )
    z = top * model.hfield_data[start : start + rows * columns]
    vertices = np.column_stack([x.ravel(), y.ravel(), z])
    grid = np.arange(rows * columns).reshape(rows, columns)
    edge = np.concatenate([grid[0, :-1], grid[:-1, -1], grid[-1, :0:-1], grid[:0:-1, 0]])
    below = vertices[edge] * (1.0, 1.0, 0.0) - (0.0, 0.0, base)
    following = np.roll(edge, -1)
    foot = len(vertices) + np.arange(len(edge))
    next_foot = np.roll(foot, -1)
    middle = np.full(len(edge), len(vertices) + len(edge))
    faces = [
        surfaces.grid_faces(rows, columns),
        np.column_stack([edge, foot, next_foot]),
        np.column_stack([edge, next_foot, following]),
        np.column_stack([middle, next_foot, foot]),
    ]
    vertices = np.concatenate([vertices, below, [[0.0, 0.0, -base]]])
    return Surface(vertices, np.concatenate(faces), np.full((len(vertices), 2), np.nan))
