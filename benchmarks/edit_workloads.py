"""Workload of the scene's editor: pauses of the physics while props are added."""

from __future__ import annotations

from time import perf_counter, process_time, sleep

import numpy as np

from benchmarks.measuring import Figures

_COUNTS = (1, 10, 100)
_SETTLE_S = 0.5


def edit_pauses(seconds: float) -> Figures | None:
    """Add 1, 10 and 100 boxes to a running humanoid: longest time without a step, CPU time."""
    from manyworlds.asset_zoo.humanoid import get_humanoid_cfg
    from manyworlds.entity import PropCfg
    from manyworlds.lab import LiveLab, world_from_scene
    from manyworlds.lab.scene import ItemRequest
    from manyworlds.scene import SceneCfg
    from manyworlds.terrains import TerrainEntityCfg

    scene = SceneCfg(terrain=TerrainEntityCfg(), entities={"robot": get_humanoid_cfg()})
    cfg = PropCfg.primitive("box", (0.05, 0.05, 0.05))
    figures: dict[str, float] = {}
    with LiveLab(world_from_scene(scene)) as lab:
        ends: list[float] = []
        lab.loop.on_post_step(lambda model, data, moved: ends.append(perf_counter()))
        sleep(_SETTLE_S)
        for count in _COUNTS:
            items = [
                ItemRequest(id=f"box{count}_{i}", source=cfg, pos=(1.0 + i % 10, i // 10, 0.1))
                for i in range(count)
            ]
            ends.clear()
            since, busy = perf_counter(), process_time()
            lab.scene.apply(items)
            figures[f"edit_{count}_cpu_ms"] = 1e3 * (process_time() - busy)
            figures[f"edit_{count}_ms"] = 1e3 * (perf_counter() - since)
            sleep(_SETTLE_S)
            figures[f"pause_{count}_ms"] = 1e3 * float(np.diff(ends).max())
            lab.scene.undo()
    return {**figures, "ratio": 300.0 / figures["pause_100_ms"]}
