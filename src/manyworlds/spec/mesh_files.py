"""Mesh files: their sizes without loading them, and formats that MuJoCo does not read."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    import trimesh

    from manyworlds.utils.config import Plain

MAX_TRIANGLES = 2_000_000
"""Largest number of triangles of a mesh file."""
MAX_MESH_BYTES = 2**30
"""Largest size of a mesh file [bytes]."""
MESH_SUFFIXES = (".stl", ".obj", ".msh", ".ply", ".dae", ".glb", ".gltf", ".off", ".3mf")
"""Endings of the names of mesh files that can be imported."""
UpAxis = Literal["auto", "y", "z"]
"""Axis of a mesh that points up: y for glTF and z for other formats, or a given one."""
_STL_FACES = 200_000  # MuJoCo reads no larger STL files
_CHUNK = 2**22
_JSON_CHUNK = 0x4E4F534A
_PACKAGES = {".dae": "pycollada", ".3mf": "lxml and networkx"}
"""Python packages without which trimesh does not read a format."""
_UNITS_3MF = {
    "micron": 1e-6,
    "millimeter": 1e-3,
    "centimeter": 1e-2,
    "inch": 0.0254,
    "foot": 0.3048,
    "meter": 1.0,
}
"""Lengths of the units of 3MF files [m]."""
_HEAD = 2**16


@dataclass(frozen=True, eq=False)
class MeshPart:
    """Part of a mesh file that has one material."""

    vertices: np.ndarray
    """Positions [m], shape [num_vertices, 3]."""
    faces: np.ndarray
    """Vertices of each triangle, int32, shape [num_faces, 3]."""
    uv: np.ndarray | None = None
    """Texture coordinates from the lower left, shape [num_vertices, 2]; None for none."""
    image: bytes | None = None
    """Texture as a PNG file; None for none."""
    rgba: tuple[float, ...] | None = None
    """Color, or factor of the texture; None if the file gives none."""
    name: str = ""

    def to_msh(self) -> bytes:
        """Return the part as a file of MuJoCo's binary format."""
        uv = np.empty((0, 2), np.float32)
        if self.uv is not None:
            uv = self.uv * (1, -1) + (0, 1)
        counts = (len(self.vertices), 0, len(uv), len(self.faces))
        return b"".join(
            [
                np.array(counts, np.int32).tobytes(),
                self.vertices.astype(np.float32).tobytes(),
                uv.astype(np.float32).tobytes(),
                self.faces.astype(np.int32).tobytes(),
            ]
        )


def is_native(path: Path) -> bool:
    """Return True if MuJoCo reads a mesh file itself."""
    suffix = path.suffix.lower()
    if suffix == ".stl":
        return not _is_text_stl(path) and triangle_count(path) <= _STL_FACES
    return suffix not in MESH_SUFFIXES or suffix in (".obj", ".msh")


def check_mesh_file(path: Path) -> None:
    """Check that a mesh file exists, has a known format, and is not too large to be read.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: its format is unknown, or it is too large.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no mesh file '{path}'.")
    if path.suffix.lower() not in MESH_SUFFIXES:
        raise ValueError(
            f"The mesh file '{path}' has an unknown format: use {', '.join(MESH_SUFFIXES)}."
        )
    check_mesh_size(path)


def check_mesh_size(path: Path) -> None:
    """Check the size of a mesh file from its header, without loading it.

    Raises:
        ValueError: it is larger than the limits.
    """
    size = path.stat().st_size
    if size > MAX_MESH_BYTES:
        raise ValueError(
            f"{path.name} has {size / 2**20:.0f} MiB, and a file may have "
            f"{MAX_MESH_BYTES // 2**20}: reduce the mesh."
        )
    count = triangle_count(path)
    if count > MAX_TRIANGLES:
        raise ValueError(
            f"{path.name} has {count} triangles, and a mesh may have {MAX_TRIANGLES}: reduce it, "
            "for instance with Blender's Decimate modifier."
        )


def triangle_count(path: Path) -> int:
    """Return the number of triangles that a file announces; 0 where it cannot be told."""
    suffix = path.suffix.lower()
    size = path.stat().st_size
    with path.open("rb") as file:
        if suffix == ".stl" and _is_text_stl(path):
            return _occurrences(file, rb"endfacet")
        if suffix == ".stl":
            return max(size - 84, 0) // 50
        if suffix == ".obj":
            return _occurrences(file, rb"(?m)^f\s")
        head = file.read(_CHUNK)
    if suffix == ".msh" and len(head) >= 16:
        return max(struct.unpack("<4i", head[:16])[3], 0)
    if suffix == ".ply":
        found = re.search(rb"element face (\d{1,18})\b", head)
        if not found:
            return 0
        return int(found[1])
    if suffix in (".glb", ".gltf"):
        return _gltf_triangles(_gltf_tree(path))
    return 0


def _occurrences(file: io.BufferedReader, pattern: bytes) -> int:
    count = 0
    tail = b"\n"
    while chunk := file.read(_CHUNK):
        block = tail + chunk
        end = block.rfind(b"\n") + 1 or len(block)
        count += len(re.findall(pattern, block[:end]))
        tail = b"\n"
        if end < len(block):
            tail = block[end - 1 :]
    return count + len(re.findall(pattern, tail[1:]))


def _is_text_stl(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(84)
    size = path.stat().st_size
    binary = len(head) == 84 and 84 + 50 * struct.unpack("<I", head[80:])[0] == size
    return head.lstrip().startswith(b"solid") and not binary


def _gltf_tree(path: Path) -> dict[str, Plain]:
    """Return the JSON part of a glTF file; empty if it has none."""
    with path.open("rb") as file:
        if path.suffix.lower() == ".glb":
            head = file.read(20)
            if len(head) < 20 or struct.unpack("<I", head[16:])[0] != _JSON_CHUNK:
                return {}
            text = file.read(struct.unpack("<I", head[12:16])[0])
        else:
            text = file.read()
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(tree, dict):
        return {}
    return tree


def _gltf_triangles(tree: dict[str, Plain]) -> int:
    """Return the number of triangles that primitives announce, or that any array could hold."""
    counts: list[int] = []
    for accessor in _dicts(tree, "accessors"):
        count = accessor.get("count")
        counts.append(count if isinstance(count, int) else 0)
    total = 0
    for mesh in _dicts(tree, "meshes"):
        for primitive in _dicts(mesh, "primitives"):
            attributes = primitive.get("attributes")
            position = None
            if isinstance(attributes, dict):
                position = attributes.get("POSITION")
            index = primitive.get("indices", position)
            if isinstance(index, int) and 0 <= index < len(counts):
                total += counts[index] // 3
    return max([total, *(count // 3 for count in counts)])


def _dicts(tree: dict[str, Plain], key: str) -> list[dict[str, Plain]]:
    """Return the objects of a list in a file, which may hold anything."""
    items = tree.get(key)
    if not isinstance(items, list):
        return []
    return [item for item in items if isinstance(item, dict)]


def read_mesh(path: Path, up_axis: UpAxis = "auto") -> list[MeshPart]:
    """Read a mesh file, with its texture coordinates, materials and textures.

    Args:
        path: a file of one of the formats of `MESH_SUFFIXES`; trimesh reads all but `.msh`.
        up_axis: axis of the file that becomes the z axis; "auto" takes y for glTF, else z.

    Returns:
        The parts, in meters: the units of DAE and 3MF files count.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it cannot be read, is empty, or has vertices that are not finite.
        MissingExtraError: trimesh is not installed.
    """
    check_mesh_file(path)
    suffix = path.suffix.lower()
    if suffix == ".msh":
        return [_read_msh(path)]
    module = require_extra("trimesh", "meshes")
    _check_links(path)
    try:
        scene = module.load_scene(path, process=False)
    except Exception as error:  # trimesh and its readers raise errors of many types
        reason = " ".join(str(error).split()) or type(error).__name__
        more = ""
        if suffix in _PACKAGES:
            more = (
                f" Reading {suffix} needs the Python packages {_PACKAGES[suffix]}; or convert it "
                "to .obj or .glb."
            )
        raise ValueError(f"{path.name} cannot be read as a mesh: {reason}.{more}") from error
    upright = up_axis == "y" or (up_axis == "auto" and suffix in (".glb", ".gltf"))
    parts = list(_parts(scene, path, upright, unit_length(path)))
    if not parts:
        raise ValueError(f"{path.name} has no triangles.")
    return parts


def unit_length(path: Path) -> float:
    """Return the length of the unit of a mesh file [m]; 1 for formats that have no units.

    Raises:
        ValueError: the file gives a unit that is unknown, or no positive number.
    """
    suffix = path.suffix.lower()
    if suffix == ".dae":
        with path.open("rb") as file:
            unit = _attribute(file.read(_HEAD), b"unit", b"meter")
        length = 1.0
        if unit is not None:
            length = _number(unit)
    elif suffix == ".3mf":
        with zipfile.ZipFile(path) as archive:
            model = next(n for n in archive.namelist() if "3d/3dmodel.model" in n.lower())
            with archive.open(model) as file:
                unit = _attribute(file.read(_HEAD), b"model", b"unit")
        length = _UNITS_3MF.get(unit or "millimeter", math.nan)
    else:
        return 1.0
    if not 0.0 < length < math.inf:
        raise ValueError(f"{path.name} has the unit '{unit}', which is no length: correct it.")
    return length


def _attribute(head: bytes, tag: bytes, name: bytes) -> str | None:
    """Return an attribute of the first element with a tag, or None."""
    found = re.search(rb"<(?:\w+:)?%b\s[^>]*?\b%b\s*=\s*[\"']([^\"']*)" % (tag, name), head)
    if found is None:
        return None
    return found[1].decode(errors="replace").strip()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _read_msh(path: Path) -> MeshPart:
    """Read MuJoCo's format: four counts, then vertices, normals, texture coordinates, triangles."""
    content = path.read_bytes()
    counts = (-1, -1, -1, -1)
    if len(content) >= 16:
        counts = struct.unpack("<4i", content[:16])
    numbers = 3 * counts[0] + 3 * counts[1] + 2 * counts[2]
    if min(counts) < 0 or len(content) != 16 + 4 * (numbers + 3 * counts[3]):
        raise ValueError(f"{path.name} cannot be read as a mesh: its size does not fit its counts.")
    values = np.frombuffer(content, "<f4", numbers, 16).astype(float)
    vertices = values[: 3 * counts[0]].reshape(-1, 3)
    faces = np.frombuffer(content, "<i4", 3 * counts[3], 16 + 4 * numbers).reshape(-1, 3)
    uv: np.ndarray | None = None
    if counts[2]:
        uv = values[3 * (counts[0] + counts[1]) :].reshape(-1, 2) * (1, -1) + (0, 1)
    return MeshPart(vertices, faces.astype(np.int32), uv)


def _check_links(path: Path) -> None:
    if path.suffix.lower() not in (".glb", ".gltf"):
        return
    tree = _gltf_tree(path)
    for one in [*_dicts(tree, "buffers"), *_dicts(tree, "images")]:
        uri = str(one.get("uri", "data:"))
        if not uri.startswith("data:") and (
            "://" in uri or Path(uri).is_absolute() or ".." in Path(uri).parts
        ):
            raise ValueError(f"{path.name} refers to '{uri}', which is outside its folder.")


def _parts(scene: trimesh.Scene, path: Path, upright: bool, length: float) -> Iterator[MeshPart]:
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        mesh = scene.geometry[name]
        faces = np.asarray(getattr(mesh, "faces", ()))
        if not len(faces):
            continue
        with np.errstate(invalid="ignore"):  # what is not finite is refused below
            vertices = np.asarray(mesh.vertices) @ transform[:3, :3].T + transform[:3, 3]
            vertices = vertices * length
        if np.linalg.det(transform[:3, :3]) < 0:  # a mirror turns faces inside out
            faces = faces[:, ::-1]
        if upright:
            vertices = vertices[:, [0, 2, 1]] * (1.0, -1.0, 1.0)
        if not np.isfinite(vertices).all():
            bad = int(np.argmin(np.isfinite(vertices).all(axis=1)))
            raise ValueError(f"{path.name} has a vertex that is not finite: number {bad}.")
        yield MeshPart(vertices, faces.astype(np.int32), *_look(mesh), name=str(name))


def _look(
    mesh: trimesh.Trimesh,
) -> tuple[np.ndarray | None, bytes | None, tuple[float, ...] | None]:
    """Return texture coordinates, texture and color of a mesh."""
    visual: Any = mesh.visual
    if getattr(visual, "kind", None) != "texture":
        if not getattr(visual, "defined", False):
            return None, None, None
        return None, None, _rgba(visual.main_color)
    material = visual.material
    uv = visual.uv
    picture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    factor = getattr(material, "baseColorFactor", None)
    if uv is None or len(uv) != len(mesh.vertices):
        uv = picture = None
    if picture is None and factor is None:
        factor = getattr(material, "diffuse", None)
    rgba: tuple[float, ...] | None = None
    if factor is not None:
        rgba = _rgba(factor)
    if picture is None:
        return uv, None, rgba
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, "PNG")
    return uv, buffer.getvalue(), rgba or (1.0, 1.0, 1.0, 1.0)


def _rgba(color: Any) -> tuple[float, ...]:
    """Return a color with opacity, from numbers up to 1 or, if they are whole, up to 255."""
    values = np.asarray(color).ravel()
    if values.dtype.kind in "ui":
        values = values / 255.0
    numbers = values.astype(float).tolist()
    return (*numbers[:3], *(numbers[3:4] or [1.0]))
