"""A small robot with joints, a tendon and sites, and how to simulate it."""

from __future__ import annotations

from typing import Any, Literal

import mujoco
import torch

from manyworlds.actuator import Actuator, ActuatorCfg
from manyworlds.entity import Entity, EntityArticulationInfoCfg, EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation, SimulationCfg

Engine = Literal["native", "warp"]

LEGS = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="base" pos="0 0 2">
      <freejoint/>
      <geom size=".2" mass="5"/>
      <site name="thruster" pos="0 0 .2"/>
      <body name="a" pos=".3 0 0">
        <joint name="a_hip" axis="1 0 0" range="-2 2" armature=".01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
        <body name="a_low" pos="0 0 -.3">
          <joint name="a_knee" axis="0 1 0" armature=".01"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02"/>
          <site name="foot_a" pos="0 0 -.3"/>
        </body>
      </body>
      <body name="b" pos="-.3 0 0">
        <joint name="b_hip" axis="1 0 0" range="-2 2" armature=".01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
        <body name="b_low" pos="0 0 -.3">
          <joint name="b_knee" axis="0 1 0" armature=".01"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02"/>
          <site name="foot_b" pos="0 0 -.3"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="both_knees"><joint joint="a_knee" coef="1"/><joint joint="b_knee" coef="-.5"/>
    </fixed>
  </tendon>
  {actuators}
</mujoco>
"""
JOINTS = ("a_hip", "a_knee", "b_hip", "b_knee")


def legs_cfg(*actuators: ActuatorCfg, xml: str = "", **kwargs: Any) -> EntityCfg:
    """Configure the robot; `xml` goes into the MJCF's actuator section."""
    text = LEGS.replace("{actuators}", f"<actuator>{xml}</actuator>" if xml else "")
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(text),
        articulation=EntityArticulationInfoCfg(actuators=actuators),
        **kwargs,
    )


def simulate(
    cfg: EntityCfg, num_envs: int = 3, engine: Engine = "native"
) -> tuple[Entity, Simulation]:
    """Build worlds that each hold one entity."""
    scene = Scene(SceneCfg(num_envs=num_envs, entities={"legs": cfg}), "cpu")
    sim = Simulation(num_envs, SimulationCfg(engine=engine), spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return scene["legs"], sim


def make(
    *actuators: ActuatorCfg, num_envs: int = 3, engine: Engine = "native", **kwargs: Any
) -> tuple[Entity, Simulation]:
    """Build worlds with one robot, driven by some actuators."""
    return simulate(legs_cfg(*actuators, **kwargs), num_envs, engine)


def shake(entity: Entity, sim: Simulation, seed: int = 0) -> None:
    """Give every world another state, and targets of all kinds."""
    generator = torch.Generator().manual_seed(seed)

    def draw(like: torch.Tensor) -> torch.Tensor:
        return torch.rand(like.shape, generator=generator) * 2.0 - 1.0

    data = entity.data
    entity.write_joint_state_to_sim(draw(data.joint_pos), draw(data.joint_vel))
    for name in (
        *("joint_pos_target", "joint_vel_target", "joint_effort_target"),
        *("tendon_len_target", "tendon_vel_target", "tendon_effort_target", "site_effort_target"),
    ):
        target = getattr(data, name)
        target.copy_(draw(target))
    sim.forward()


def efforts(entity: Entity, sim: Simulation, actuator: Actuator[Any]) -> torch.Tensor:
    """Write controls; return the forces of an actuator before its gear, by MuJoCo itself."""
    entity.write_data_to_sim()
    sim.forward()
    return sim.data.actuator_force[:, actuator.global_actuator_ids]
