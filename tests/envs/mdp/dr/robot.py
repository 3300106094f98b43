"""A robot with something of every kind that can be randomized, on a floor."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.managers import EventTermCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.terrains import TerrainEntityCfg

XML = """
<mujoco>
  <asset>
    <texture name="checker" type="2d" builtin="checker" width="8" height="8"/>
    <texture name="plain" type="2d" builtin="flat" width="8" height="8"/>
    <material name="paint" texture="checker" rgba=".5 .6 .7 1" emission=".1"/>
    <material name="metal" specular=".9" shininess=".4"/>
  </asset>
  <worldbody><body name="base">
    <freejoint/>
    <geom name="base" type="box" size=".3 .1 .05" pos=".05 .02 0" euler="10 0 30" material="paint"/>
    <camera name="eye" pos=".3 0 .1" euler="0 -80 0" focal=".01 .01" resolution="64 48"
            sensorsize=".01 .0075" principal="0 0"/>
    <light name="lamp" pos="0 0 .5" dir=".1 .2 -1"/>
    <site name="mast" pos="0 .1 .3"/>
    <body name="upper" pos=".3 0 0" euler="0 20 0">
      <joint name="shoulder" axis="0 1 0" range="-25 60" damping=".1" armature=".02"
             stiffness="3" springref="10" frictionloss=".05" margin=".01"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .2 .05 0" size=".03"/>
      <body name="lower" pos=".2 0 0">
        <joint name="elbow" axis="0 .6 .8" range="-10 90" damping=".1" armature=".01"/>
        <geom name="lower" type="ellipsoid" size=".1 .03 .02" pos=".1 0 .01"/>
        <site name="hook" pos=".1 0 .03"/>
        <body name="tip" pos=".2 0 0">
          <joint name="finger" type="slide" axis="1 0 0" range="-.02 .05" damping=".5"/>
          <geom name="tip" size=".05" pos="0 .01 0" euler="0 30 0"/>
        </body>
      </body>
    </body>
    <body name="tail" pos="-.24 0 0">
      <joint name="loose" axis="0 1 0" range="-30 30"/>
      <geom name="tail" type="cylinder" size=".03 .1"/>
    </body>
  </body></worldbody>
  <tendon>
    <spatial name="cable" range=".1 .45" margin=".01" damping=".2" stiffness="20" armature=".02"
             frictionloss=".1" springlength=".2 .3">
      <site site="mast"/><site site="hook"/>
    </spatial>
  </tendon>
  <contact><pair name="clap" geom1="base" geom2="tail" friction="1 1 .1 .01 .01"/></contact>
  <actuator>
    <general name="shoulder" joint="shoulder" dyntype="filterexact" dynprm=".05" gainprm="5"
             gear="2" ctrlrange="-1 1" actrange="-.8 .8"/>
    <general name="elbow" joint="elbow" dyntype="filterexact" dynprm=".1" gainprm="3"
             ctrlrange="-.9 .9" actrange="-1 1"/>
  </actuator>
</mujoco>
"""


def env_cfg(
    num_envs: int = 4, engine: str = "native", **events: EventTermCfg
) -> ManagerBasedRlEnvCfg:
    """Configure an environment of the robot and its events, with a step of 4 ms."""
    robot = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(XML))
    scene = SceneCfg(num_envs=num_envs, entities={"robot": robot}, terrain=TerrainEntityCfg())
    sim = SimulationCfg(engine=engine, mujoco=MujocoCfg(timestep=0.004))  # type: ignore[arg-type]
    return ManagerBasedRlEnvCfg(decimation=1, scene=scene, sim=sim, seed=3, events=dict(events))


def make_env(
    num_envs: int = 4, engine: str = "native", device: str = "cpu", **events: EventTermCfg
) -> ManagerBasedRlEnv:
    """Build that environment."""
    return ManagerBasedRlEnv(env_cfg(num_envs, engine, **events), device=device)


def disturb(env: ManagerBasedRlEnv) -> None:
    """Put the robot on the floor, and into motion that meets its limits."""
    env.sim.data.qpos[:, 2] = 0.05
    env.sim.data.qvel[:] = torch.linspace(-2.0, 2.0, env.sim.mj_model.nv)
    env.sim.data.ctrl[:] = torch.tensor([2.0, -2.0])


def plain_steps(
    model: mujoco.MjModel, state: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return `qpos` and `qvel` after steps of plain MuJoCo C from a row of its state."""
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return data.qpos, data.qvel
