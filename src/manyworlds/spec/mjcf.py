"""Corrections that make a spec's XML loadable by MuJoCo."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from manyworlds.validation.names import free_name

_WITH_MATERIAL = ("geom", "site", "tendon")
"""Kinds of elements to which a class can give a material."""


def strip_buffer_textures(spec: mujoco.MjSpec) -> None:
    """Remove textures that are defined by pixels, which XML cannot contain, and all references.

    Materials and lights are kept, without the texture.
    """
    stripped = [texture for texture in spec.textures if len(texture.data)]
    names = {texture.name for texture in stripped}
    for material in spec.materials:
        for role, texture in enumerate(material.textures):
            if texture in names:
                material.textures[role] = ""
    for light in spec.lights:
        if light.texture in names:
            light.texture = ""
    for texture in stripped:
        spec.delete(texture)


def write_buffer_textures(spec: mujoco.MjSpec, folder: Path) -> None:
    """Write textures that are defined by pixels to PNG files, and refer to these."""
    for i, texture in enumerate(texture for texture in spec.textures if len(texture.data)):
        rows = np.frombuffer(bytes(texture.data), np.uint8)
        path = folder / f"pixels_{i}.png"
        path.write_bytes(_png(rows.reshape(texture.height, texture.width, texture.nchannel)))
        if texture.type != mujoco.mjtTexture.mjTEXTURE_2D and texture.height == 6 * texture.width:
            texture.gridsize = (6, 1)
            texture.gridlayout = "RLUDFB"
        texture.file = str(path)
        texture.data = b""


def _png(pixels: np.ndarray) -> bytes:
    """Return an image as a PNG file, from uint8, shape (height, width, channels)."""
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, width * channels)
    data = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()  # 0: rows are not filtered
    header = struct.pack(">2I5B", width, height, 8, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )


def mark_bare(spec: mujoco.MjSpec) -> str:
    """Give a material to geoms, sites and tendons that have none; return its name, a new one.

    MuJoCo does not write empty attributes, so that such an element would get the material of its
    class. `fix_spec_xml` replaces the name, and removes the material.
    """
    marker = free_name("none", {material.name for material in spec.materials})
    spec.add_material(name=marker, rgba=[0.5, 0.5, 0.5, 1])  # does not replace colors of geoms
    for kind in _WITH_MATERIAL:
        for element in getattr(spec, f"{kind}s"):
            if kind == "tendon":
                default = element.default()  # what is an attribute elsewhere
            else:
                default = element.classname
            for owner in (element, getattr(default, kind)):
                owner.material = owner.material or marker
    return marker


def _fix_materials(root: ElementTree.Element, bare: str) -> None:
    """Replace the material named `bare`: by none, or by nothing where no class has another."""
    for kind in _WITH_MATERIAL:
        tags = {kind}
        if kind == "tendon":
            tags.add("spatial")
        classes = {e.get("material", bare) for e in root.iterfind(f".//default/{kind}")}
        for element in root.iter():
            if element.tag in tags and element.get("material") == bare:
                element.set("material", "")
                if classes <= {bare}:
                    del element.attrib["material"]
    for assets in root.iterfind("asset"):
        for material in assets.findall("material"):
            if bare and material.get("name") == bare:
                assets.remove(material)


def fix_spec_xml(xml: str, meshdir: str | None = None, bare: str = "") -> str:
    """Clean up the XML of a spec.

    Unused empty default classes are removed: attaching leaves one per spec. Classes of one name get
    names of their own: attaching without a prefix repeats them. User sensors of nothing lose the
    names of objects that `<replicate>` and `<attach>` give them.

    Args:
        xml: result of `spec.to_xml()`.
        meshdir: folder of meshes, height fields and textures, relative to the file; None keeps
            that of the XML.
        bare: result of `mark_bare`, if it was called before.
    """
    root = ElementTree.fromstring(xml)
    used = {
        value
        for element in root.iter()
        for name, value in element.attrib.items()
        if name == "childclass" or (name == "class" and element.tag != "default")
    }
    _fix_materials(root, bare)
    _rename_repeated_classes(root)
    _prune_defaults(root, used)
    _split_sizes(root)
    for sensor in root.iterfind("sensor/user"):
        if "objtype" not in sensor.attrib:
            sensor.attrib.pop("objname", None)
    if meshdir is not None:
        compiler = root.find("compiler")
        if compiler is None:
            compiler = ElementTree.Element("compiler")
            root.insert(0, compiler)
        compiler.attrib.pop("assetdir", None)
        compiler.set("meshdir", meshdir)
        compiler.set("texturedir", meshdir)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _split_sizes(root: ElementTree.Element) -> None:
    """Write the memory of the arena into an element of its own.

    Included files may give it and, elsewhere, the older sizes, which MuJoCo's schema forbids in one
    element.
    """
    for size in root.findall("size"):
        memory = size.attrib.pop("memory", None)
        if memory is not None:
            root.insert(list(root).index(size), ElementTree.Element("size", {"memory": memory}))
        if not size.attrib:
            root.remove(size)


def _rename_repeated_classes(root: ElementTree.Element) -> None:
    """Rename all default classes of one name but the last, relative to which elements are written.

    MuJoCo finds the last one by the name; the others only matter to the classes in them.
    """
    last = {default.get("class"): default for default in root.iter("default")}
    taken = {name for name in last if name is not None}
    for default in root.iter("default"):
        name = default.get("class")
        if name is not None and last[name] is not default:
            default.set("class", free_name(name, taken))
            taken.add(default.get("class", ""))


def _prune_defaults(parent: ElementTree.Element, used: set[str]) -> None:
    for default in parent.findall("default"):
        _prune_defaults(default, used)
        if len(default) == 0 and default.get("class") not in used:
            parent.remove(default)
