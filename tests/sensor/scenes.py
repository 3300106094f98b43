"""Scenes with sensors that several tests share."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import torch

from manyworlds.entity import EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sensor import SensorCfg
from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg

# Things in touch with the floor, with each other, and with themselves.
HEAP = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 .13">
      <freejoint/>
      <geom name="trunk" type="box" size=".2 .1 .05" condim="6"/>
      <site name="imu" pos=".1 0 0" euler="0 20 0"/>
      <body name="thigh" pos=".25 0 0">
        <joint name="hip" axis="0 1 0" damping="1"/>
        <geom name="thigh" type="capsule" fromto="0 0 0 .2 0 -.04" size=".04"/>
        <body name="foot" pos=".25 0 -.05">
          <joint name="ankle" axis="0 1 0" damping="1" range="-20 20"/>
          <geom name="foot" size=".05" condim="4"/>
          <geom name="toe" pos=".1 0 0" size=".05"/>
          <site name="toe" pos=".1 0 0"/>
        </body>
      </body>
    </body>
    {extra}
  </worldbody>
  <actuator><motor name="hip" joint="hip"/></actuator>
  <sensor>{sensors}</sensor>
</mujoco>
"""
BALL = """
<mujoco><worldbody>
  <body name="b"><freejoint/><geom name="g" size=".1"/></body>
</worldbody></mujoco>
"""


def entity(xml: str, pos: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> EntityCfg:
    """Configure an entity of a model, started at a place."""
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        init_state=EntityCfg.InitialStateCfg(pos=pos),
    )


def heap(sensors: str = "", extra: str = "") -> str:
    """The model of a robot that lies on the floor."""
    return HEAP.format(sensors=sensors, extra=extra)


def add_floor(spec: mujoco.MjSpec) -> None:
    """Put a floor at z = 0."""
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(5, 5, 0.1))


def build(
    entities: dict[str, EntityCfg],
    *sensors: SensorCfg,
    num_envs: int = 1,
    engine: str = "auto",
    device: str = "cpu",
    spec_fn: Callable[[mujoco.MjSpec], None] = add_floor,
    keep: int = 0,
) -> tuple[Scene, Simulation]:
    """Build a scene on a floor, and its simulation."""
    cfg = SceneCfg(num_envs=num_envs, entities=entities, sensors=sensors, spec_fn=spec_fn)
    scene = Scene(cfg, device)
    if keep:
        scene.keep_substeps(keep)
    options = SimulationCfg(engine=engine, mujoco=MujocoCfg(timestep=0.005))
    sim = Simulation(num_envs, options, spec=scene.spec, device=device)
    scene.initialize(sim.mj_model, sim.model, sim.data)
    if scene.sensor_context is not None:
        sim.set_sensor_context(scene.sensor_context)
    start = torch.from_numpy(sim.mj_model.key_qpos[0]).float()
    sim.data.qpos[:] = start.to(device)
    sim.forward()
    return scene, sim


def mj_data(sim: Simulation, env: int = 0) -> mujoco.MjData:
    """Plain MuJoCo C at the state of one world."""
    data = mujoco.MjData(sim.mj_model)
    for field in ("qpos", "qvel", "ctrl"):
        getattr(data, field)[:] = getattr(sim.data, field)[env].cpu().numpy()
    mujoco.mj_forward(sim.mj_model, data)
    return data
