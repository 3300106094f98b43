"""Files of scenes: one MJCF with assets beside it, and names in `build.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from manyworlds.lab.scene.items import ItemFacts
from manyworlds.lab.world.world import World, world_from_file

_SCENE = "scene.xml"
_FACTS = "build.json"


def save_scene(world: World, folder: Path) -> Path:
    """Write a world to a folder; see `World.dump`."""
    return world.dump(folder)


def open_scene(path: Path) -> World:
    """Read a folder of `save_scene`, or a model file.

    Raises:
        FileNotFoundError: there is no such file.
        CompileError: it cannot be read, or does not compile.
        ValueError: its `build.json` is damaged.
    """
    file = path / _SCENE if path.is_dir() else path
    beside = file.parent / _FACTS
    if file.name != _SCENE or not beside.is_file():
        return world_from_file(file)
    try:
        build: Any = json.loads(beside.read_text(encoding="utf-8"))
        robots = {str(name): str(prefix) for name, prefix in build["robots"].items()}
        sources = {str(name): str(source) for name, source in build["sources"].items()}
        items = {str(n): _read_facts(facts) for n, facts in build.get("items", {}).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"'{beside}' is damaged: {error}.") from error
    world = world_from_file(file)
    world.robots = robots
    world.sources = sources
    world.items = items
    return world


def _read_facts(plain: Any) -> ItemFacts:
    """Return the facts of plain data."""
    origin = plain.get("origin")
    pose = None if origin is None else (tuple(origin[0]), tuple(origin[1]))
    return ItemFacts(
        id=str(plain["id"]),
        source=str(plain.get("source", "")),
        fingerprint=str(plain.get("fingerprint", "")),
        origin=pose,
    )
