"""The command `export-scene`: write the scene of a task, or a robot, as MJCF."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import tyro

from manyworlds.compat.mjlab.command_line import TYRO_FLAGS
from manyworlds.scene import Scene, SceneCfg
from manyworlds.tasks import list_tasks, load_env_cfg
from manyworlds.validation.names import near_matches

ENTITY_ALIASES: dict[str, str] = {
    robot: f"mjlab.asset_zoo.robots:get_{robot}_robot_cfg" for robot in ("g1", "go1", "yam")
}
"""Functions that return the configs of robots, as `module:name`, by short names."""


@dataclass
class ExportSceneCfg:
    """Settings of the export."""

    target: tyro.conf.Positional[str]
    """Name of a task or of a robot in `ENTITY_ALIASES`, or a function `module:name` that returns
    the config of an entity."""
    output_dir: str = "export"
    """Folder for `scene.xml` and its assets."""
    zip: bool = False
    """Write one archive instead of a folder."""


def export_scene(cfg: ExportSceneCfg) -> None:
    """Write the scene of a task, or one with an entity alone, and print the path.

    Raises:
        ValueError: the target is neither a task nor an entity.
    """
    path = Scene(_scene_cfg(cfg.target), device="cpu").write(Path(cfg.output_dir), zip=cfg.zip)
    print(f"scene: {path}")


def _scene_cfg(target: str) -> SceneCfg:
    if target in list_tasks():
        return load_env_cfg(target).scene
    module, colon, name = ENTITY_ALIASES.get(target, target).partition(":")
    if not colon:
        known = [*list_tasks(), *ENTITY_ALIASES]
        raise ValueError(
            f"There is no task or robot '{target}'{near_matches(target, known)} Or give a function "
            "that returns the config of an entity, as module:name."
        )
    return SceneCfg(entities={"robot": getattr(import_module(module), name)()})


def main() -> None:
    """Run the command with the arguments of the process."""
    export_scene(tyro.cli(ExportSceneCfg, config=TYRO_FLAGS))
