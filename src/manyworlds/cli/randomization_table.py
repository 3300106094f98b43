"""Table of the randomization of a task, and of its cost."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence

import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.mdp.dr.descriptions import (
    describe_draw,
    randomized_elements,
    randomized_fields,
)
from manyworlds.managers import EventTermCfg
from manyworlds.tasks import load_env_cfg, require_task
from manyworlds.utils.table import render_table

_WORLDS = 256
_REPEATS = 5
COLUMNS = ("event", "field", "elements", "draw", "mode", "us a world")


def randomization_table(task: str) -> str:
    """Render the randomization of a task as a table; each event is timed on all worlds.

    Args:
        task: name of a registered task.

    Raises:
        KeyError: there is no such task.
    """
    require_task(task)
    cfg = load_env_cfg(task)
    cfg.scene.num_envs = _WORLDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = ManagerBasedRlEnv(cfg, device="cpu")
        rows = randomization_rows(env)
    if not rows:
        return f"{task} randomizes nothing: all its worlds are alike."
    note = (
        f"us a world: drawing, and recomputing what follows, of {_WORLDS} worlds at once. Of mode\n"
        "startup they are spent once, of mode reset by each world that is reset."
    )
    return f"{render_table(task, COLUMNS, rows, width=140)}\n{note}"


def randomization_rows(env: ManagerBasedRlEnv) -> list[Sequence[object]]:
    """Return one row for each event that makes worlds differ; this draws for all worlds."""
    manager = env.event_manager
    terms = [
        (mode, name, manager.get_term_cfg(name))
        for mode, names in manager.active_terms.items()
        for name in names
    ]
    return [
        (
            name,
            ", ".join(randomized_fields(term)),
            randomized_elements(term),
            describe_draw(term),
            mode,
            _cost(env, name, term),
        )
        for mode, name, term in terms
        if hasattr(term.func, "model_fields")
    ]


def _cost(env: ManagerBasedRlEnv, name: str, term: EventTermCfg) -> float:
    """Measure the shortest time of a draw for all worlds [us per world]."""
    worlds = torch.arange(env.num_envs, device=env.device)
    level = env.sim.recompute_level(getattr(term.func, "model_fields", ()))
    shortest = math.inf
    for _ in range(_REPEATS):
        start = time.perf_counter()
        env.event_manager.call(name, worlds)
        env.sim.recompute_constants(level)
        shortest = min(shortest, time.perf_counter() - start)
    return round(shortest / env.num_envs * 1e6, 1)
