"""Share folders without the programs of others, and what is in them."""

import gzip
import json
from pathlib import Path
from typing import Any

import mujoco

from tests.share.plain_driver import GraphDriver


def world_model(folder: Path, index: int, scratch: Path) -> mujoco.MjModel:
    """Compile a world of a folder as the page does: its files unpacked, by the names in JSON."""
    about = read_json(folder)["worlds"][index]
    scene = Path(about["model"])
    for name in [scene.name, *about["files"]]:
        content = (folder / scene.parent / name).read_bytes()
        target = scratch / name.removesuffix(".gz")
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return mujoco.MjModel.from_xml_path(str(scratch / scene.name))


def driver_of(folder: Path, model: mujoco.MjModel, policy: int) -> GraphDriver:
    """Return a program that runs a policy of a folder."""
    about = read_json(folder)["policies"][policy]
    return GraphDriver(model, str(folder / about["file"]), about)


def read_json(folder: Path) -> Any:
    """Read `world.json`."""
    return json.loads((folder / "world.json").read_text(encoding="utf-8"))
