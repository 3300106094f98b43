"""XML of a world, and the files that it refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.spec.export import spec_files

if TYPE_CHECKING:
    from manyworlds.lab.world.world import World


def scene_mjcf(world: World) -> tuple[str, dict[str, bytes]]:
    """Return the world's XML, and the files that it refers to, by name.

    Numbers have the six digits of MuJoCo's XML; textures that were defined by pixels are omitted.
    """
    files = {name.rpartition("/")[2]: content for name, content in spec_files(world.spec)}
    xml = files.pop("scene.xml").decode().replace('meshdir="assets"', "")
    return xml.replace('texturedir="assets"', ""), files
