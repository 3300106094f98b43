"""Common parts of workloads: models, and measurements of two programs in turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

Figures = dict[str, Any]

# Fields that the simulations here read in each world.
FIELDS = ("xpos", "xquat", "cvel", "sensordata")


def robots_folder() -> Path | None:
    """Return the folder of third-party robots that $MANYWORLDS_ROBOTS names, or None."""
    from manyworlds.asset_zoo import third_party

    folder = third_party.robots_folder()
    return folder if folder is not None and folder.is_dir() else None


def go1() -> Any:
    """Return Go1 on a plane with position actuators, compiled; None without its files."""
    robots = robots_folder()
    if robots is None:
        return None
    import mujoco

    from manyworlds.spec.edits import add_ground_plane, add_position_actuators

    spec = mujoco.MjSpec.from_file(str(robots / "unitree_go1" / "go1.xml"))
    add_ground_plane(spec)
    add_position_actuators(spec, 40.0)
    return spec.compile()


def cartpole() -> Any:
    """Return the cartpole of the tasks, compiled."""
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg("Cartpole-Swingup")
    cfg.scene.num_envs = 1
    return ManagerBasedRlEnv(cfg).sim.mj_model


def in_turns(
    first: Callable[[], None], second: Callable[[], None], seconds: float
) -> tuple[list[float], list[float]]:
    """Call two functions in turn for a while; return the times of each."""
    first()
    second()
    times: tuple[list[float], list[float]] = ([], [])
    end = perf_counter() + seconds
    while perf_counter() < end:
        for function, record in zip((first, second), times, strict=True):
            start = perf_counter()
            function()
            record.append(perf_counter() - start)
    return times
