"""Ground that carries what falls onto it, on both engines."""

from __future__ import annotations

import mujoco
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from manyworlds.terrains import TerrainEntityCfg, TerrainGeneratorCfg
from tests.terrains.cells import KINDS, Ground

RADIUS = 0.1
BALL = f"""
<mujoco><worldbody><body name="ball"><freejoint/>
  <geom size="{RADIUS}" condim="6" friction="1 .1 .1"/>
</body></worldbody></mujoco>
"""


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("kind", ["random_rough", "pyramid_stairs", "flat"])
def test_balls_come_to_lie_on_the_ground(kind: str, engine: str):
    """Drop balls beside the origins: each ends a radius above what a ray finds beneath it."""
    generator = TerrainGeneratorCfg(
        num_rows=2, num_cols=2, sub_terrains={"kind": KINDS[kind]()}, size=(8.0, 8.0), seed=4
    )
    terrain = TerrainEntityCfg(terrain_type="generator", terrain_generator=generator)
    ball = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(BALL))
    scene = Scene(SceneCfg(num_envs=4, entities={"ball": ball}, terrain=terrain), "cpu")
    sim = Simulation(4, SimulationCfg(mujoco=MujocoCfg(timestep=0.01)), spec=scene.spec)
    assert sim.engine == engine
    scene.initialize(sim.mj_model, sim.model, sim.data)
    beside = torch.tensor([[0.3, 0.2], [-0.4, 0.1], [0.2, -0.5], [-0.3, -0.3]])
    sim.data.qpos[:, :2] = scene.env_origins[:, :2] + beside
    sim.data.qpos[:, 2] = scene.env_origins[:, 2] + 0.5
    for _ in range(30):
        sim.step(5)
    assert not sim.status.any()
    assert (sim.data.qvel.norm(dim=1) < 0.1).all()
    ground = Ground(Scene(SceneCfg(terrain=terrain), "cpu").spec)
    for x, y, z in sim.data.qpos[:, :3].tolist():
        # On a slope, the point that touches is not the one beneath.
        above = z - RADIUS - ground.height(x, y)
        assert -0.01 < above < 0.02
