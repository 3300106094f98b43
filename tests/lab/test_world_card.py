"""Card of a world of a batch: variant, terrain cell, and what was randomized."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LiveLab
from manyworlds.tasks import load_env_cfg


@pytest.mark.parametrize(
    "task", ["Velocity-Flat-Quadruped", "Push-Variants", "Velocity-Rough-Quadruped"]
)
def test_cards_of_registered_tasks(task):
    """Compare the card of each world with the batch: variant, cell, rows, and ranges of draws."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs = 4
    if cfg.scene.terrain is not None and cfg.scene.terrain.terrain_generator is not None:
        cfg.scene.terrain.terrain_generator.num_rows = 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    for world in (1, 3):
        lab = LiveLab.from_env(env, world)
        card = lab.call("describe_world")["batch"]
        assert (card["env_id"], card["num_envs"]) == (world, 4)
        for entity, variants in env.sim.world_to_variant.items():
            names = [*env.cfg.scene.entities[entity].variants]
            assert card["variants"][entity] == names[int(variants[world])]
        if card["terrain"]:
            terrain = env.scene.terrain
            assert card["terrain"]["level"] == int(terrain.terrain_levels[world])
            assert card["terrain"]["column"] == int(terrain.terrain_types[world])
            assert card["terrain"]["type"] in terrain.cfg.terrain_generator.sub_terrains
        for row in card["randomized"]:
            for value, low, high in zip(row["value"], row["low"], row["high"], strict=True):
                assert low is None or low - 1e-5 <= value <= high + 1e-5, row
        slides = [r for r in card["randomized"] if r["event"] == "foot_friction_slide"]
        for row in slides:
            geom = lab.model.geom(row["element"])
            np.testing.assert_allclose(row["value"], geom.friction)
            np.testing.assert_allclose([row["low"][0], row["high"][0]], [0.3, 1.5], rtol=1e-6)
            np.testing.assert_allclose(
                row["nominal"], env.sim.mj_model.geom(geom.id).friction, 1e-6
            )
        lab.stop()
    known = {"variants": "Variants" in task, "terrain": "Rough" in task}
    assert {name: bool(card[name]) for name in known} == known
    assert bool(slides) == ("Quadruped" in task)
    env.close()
