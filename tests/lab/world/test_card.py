"""Card of a world of a batch: variant, terrain cell, and what was randomized."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.managers import EventTermCfg, SceneEntityCfg, requires_model_fields
from manyworlds.scene import SceneCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.terrains import TerrainEntityCfg


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


XML = """
<mujoco><worldbody>
  <body name="a"><joint name="lift" type="slide" axis="0 0 1"/>
    <geom name="box" type="box" size=".1 .2 .3"/>
    <body name="b" pos=".3 0 0"><joint name="hinge" axis="0 1 0"/><geom name="ball" size=".1"/>
    </body></body>
  <body name="c" pos="1 0 0"><joint name="slide" type="slide"/><geom name="far" size=".1"/></body>
  </worldbody>
  <equality><connect name="tie" body1="b" body2="c" active="false" anchor=".1 0 0"/></equality>
</mujoco>
"""


@requires_model_fields("geom_friction")
class TerrainFriction:
    """Term of one's own, without a selection, that keeps state."""

    def __init__(self, cfg, env):
        self.ids = [env.sim.mj_model.geom("robot/box").id]

    def __call__(self, env, env_ids, friction_range):
        """Draw friction of some geoms."""
        drawn = torch.empty(len(env_ids)).uniform_(*friction_range)
        env.sim.model.geom_friction[env_ids[:, None], self.ids, 0] = drawn[:, None]


@requires_model_fields("geom_condim", "eq_data", "opt.gravity", "qpos0")
def strange(env, env_ids, table):
    """Change fields of which no entity has rows."""
    env.sim.model.geom_condim[env_ids, 1] = 6
    env.sim.model.eq_data[env_ids, 0, 1] = table[0]
    env.sim.model.opt.gravity[env_ids] = table
    env.sim.model.qpos0[env_ids, 1] = 0.1


@requires_model_fields("geom_friction", "dof_damping")
def with_bodies(env, env_ids, asset_cfg=SceneEntityCfg("robot", body_names=("a",))):  # noqa: B008
    """Change geoms of a body."""
    chosen = [asset_cfg]
    env.sim.model.geom_friction[env_ids, 0, 1] = 0.3 + len(chosen[0].body_names)


class Broken(dict):
    """Parameter of which no text can be made."""

    def __repr__(self):
        raise RuntimeError("no text")


@requires_model_fields("geom_friction")
def broken(env, env_ids, table):
    """Change nothing."""


EVENTS = {
    "size": (dr.geom_size, {"ranges": (0.8, 1.2), "asset_cfg": SceneEntityCfg("robot")}),
    "own": (TerrainFriction, {"friction_range": (0.3, 1.2)}),
    "strange": (strange, {"table": torch.tensor([1.0, 0.0, -9.0])}),
    "bodies": (with_bodies, {}),
    "broken": (broken, {"table": Broken()}),
}


def walk(*names: str) -> tuple[ManagerBasedRlEnv, LiveLab, dict]:
    """Walk into a world of a task with events, and read its card."""
    events = {
        name: EventTermCfg(func=func, mode="reset", params=params)
        for name, (func, params) in EVENTS.items()
        if name in names
    }
    robot = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(XML))
    scene = SceneCfg(num_envs=3, entities={"robot": robot}, terrain=TerrainEntityCfg())
    env = ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(decimation=1, scene=scene, seed=2, events=events), device="cpu"
    )
    env.reset()
    lab = LiveLab.walk_into(
        env, 1, None, LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))
    )
    return env, lab, lab.call("describe_world")["batch"]


def test_sizes_of_geoms():
    """Show sizes with their bounds, and nothing that follows from them."""
    env, lab, card = walk("size")
    rows = {row["element"]: row for row in card["randomized"]}
    assert {*rows} == {"robot/box", "robot/ball", "robot/far"}
    assert {row["field"] for row in card["randomized"]} == {"geom_size"}
    box = env.sim.mj_model.geom("robot/box").id
    np.testing.assert_allclose(rows["robot/box"]["value"], env.sim.model.geom_size[1, box])
    np.testing.assert_allclose(rows["robot/box"]["low"], [0.08, 0.16, 0.24], rtol=1e-6)
    lab.stop()


def test_terms_of_users_without_a_selection():
    """Show the rows in which the world differs from the compiled model."""
    env, lab, card = walk("own")
    (row,) = card["randomized"]
    assert (row["event"], row["element"]) == ("own", "robot/box")
    box = env.sim.mj_model.geom("robot/box").id
    np.testing.assert_allclose(row["value"], env.sim.model.geom_friction[1, box])
    assert row["nominal"] == pytest.approx([1.0, 0.005, 0.0001]) and row["low"] is None
    lab.stop()


def test_fields_of_no_entity():
    """Show fields that are not in the table, or belong to equalities, options and positions."""
    _, lab, card = walk("strange")
    rows = {row["field"]: row for row in card["randomized"]}
    assert rows["geom_condim"]["value"] == [6.0] and rows["geom_condim"]["nominal"] == [3.0]
    assert rows["eq_data"]["element"] == "robot/tie" and rows["eq_data"]["value"][1] == 1.0
    assert rows["opt.gravity"]["value"] == [1.0, 0.0, -9.0]
    assert rows["qpos0"]["element"] == "robot/hinge"
    lab.stop()


@pytest.mark.parametrize("names", [("bodies",), ("broken",), tuple(EVENTS)])
def test_nothing_stops_the_way_in(names):
    """Open the world of any task, and step it, whatever its events are."""
    _, lab, card = walk(*names)
    shown = {row["event"] for row in [*card["randomized"], *card["others"]]}
    assert shown == set(names)
    lab.step(3)
    lab.stop()
