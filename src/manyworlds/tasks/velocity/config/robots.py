"""Velocity tasks of robots by name: this package's own, and those of MuJoCo Menagerie."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.utils.extras import MissingExtraError, require_extra
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from manyworlds.tasks.velocity.config.derived import Ground

_NAMED = {
    "quadruped": "Quadruped",
    "humanoid": "Humanoid",
    "go1": "Go1",
    "unitree_go1": "Go1",
    "g1": "G1",
    "unitree_g1": "G1",
}
_LEGGED = ("quadruped", "biped", "humanoid")
"""Categories of MuJoCo Menagerie."""
_MODELS = (".xml", ".mjcf", ".urdf", ".mjb", ".usd")


def flat_task(robot: str) -> str:
    """Register the task of a robot on a plane; see `robot_task`."""
    return robot_task(robot, "flat")


def rough_task(robot: str) -> str:
    """Register the task of a robot on rough terrain; see `robot_task`."""
    return robot_task(robot, "rough")


def robot_task(robot: str, ground: Ground) -> str:
    """Register the velocity task of a robot, unless it is there, and return its name.

    Raises:
        KeyError: the robot is not known.
        ValueError: its model does not say all that the task needs.
        OSError: its model cannot be downloaded.
    """
    from manyworlds.tasks import registry

    task = f"Velocity-{ground.capitalize()}-{_NAMED.get(robot, robot)}"
    if robot in _NAMED or task in registry.list_tasks():
        return task
    file = menagerie_file(robot)
    from manyworlds.tasks.velocity.config import derived

    model = derived.derive_robot(file)
    described = derived.legged_robot(file, model)
    registry.register_task(
        task,
        derived.velocity_env_cfg(described, ground),
        derived.velocity_env_cfg(described, ground, play=True),
        derived.velocity_rl_cfg(f"{robot}_velocity", described),
        cpu_preset=derived.cpu_preset(described),
    )
    return task


def known_robots() -> list[str]:
    """Return the names of legged robots; those of MuJoCo Menagerie need its package."""
    legged = []
    with contextlib.suppress(ModuleNotFoundError):
        import mujoco_menagerie as menagerie

        legged = [r.name for r in menagerie.robots() if r.category in _LEGGED]
    return [*_NAMED, *(name for name in legged if name not in _NAMED)]


def menagerie_file(robot: str) -> Path:
    """Return the model of a legged robot of MuJoCo Menagerie, which is downloaded once.

    Raises:
        KeyError: the robot is not known, or has no legs.
        MissingExtraError: the extra 'robots' is not installed.
        OSError: the model cannot be downloaded.
    """
    if Path(robot).suffix in _MODELS or "/" in robot or "\\" in robot:
        raise KeyError(
            f"--robot takes a name, not the file '{robot}': write a task for that model with "
            f"manyworlds new-task NAME --robot {robot}."
        )
    try:
        menagerie: Any = require_extra("mujoco_menagerie", "robots")
    except MissingExtraError as error:
        near = near_matches(robot, _NAMED)
        raise MissingExtraError(
            f"The robot '{robot}' is none of {', '.join(_NAMED)}.{near} It may be one of MuJoCo "
            f"Menagerie. {error}"
        ) from error
    known = known_robots()
    if robot not in known:
        raise KeyError(
            f"There is no legged robot '{robot}'.{near_matches(robot, known)} Available: "
            f"{', '.join(known)}. For a model file: manyworlds new-task NAME --robot FILE."
        )
    entry = menagerie.get(robot)
    try:
        return Path(entry.xml(entry.default_model))
    except Exception as error:  # the package's own errors of downloads
        raise OSError(
            f"MuJoCo Menagerie cannot give '{robot}': {' '.join(str(error).split())}. It downloads "
            "a model once: connect to the internet, or set MENAGERIE_ROOT to a copy of its "
            "repository."
        ) from error
