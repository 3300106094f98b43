"""Corrections that make a spec's XML loadable by MuJoCo."""

from __future__ import annotations

from xml.etree import ElementTree

import mujoco


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


def fix_spec_xml(xml: str, meshdir: str | None = None) -> str:
    """Clean up the XML of a spec.

    Unused empty default classes are removed: attaching leaves one per spec.

    Args:
        xml: result of `spec.to_xml()`.
        meshdir: folder of meshes, height fields and textures, relative to the file; None keeps
            that of the XML.
    """
    root = ElementTree.fromstring(xml)
    used = {
        value
        for element in root.iter()
        for name, value in element.attrib.items()
        if name == "childclass" or (name == "class" and element.tag != "default")
    }
    _prune_defaults(root, used)
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


def _prune_defaults(parent: ElementTree.Element, used: set[str]) -> None:
    for default in parent.findall("default"):
        _prune_defaults(default, used)
        if len(default) == 0 and default.get("class") not in used:
            parent.remove(default)
