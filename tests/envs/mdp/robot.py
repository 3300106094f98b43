"""A small robot with every kind of target, alone in an environment."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch

from manyworlds.actuator import (
    BuiltinMotorActuatorCfg,
    BuiltinPositionActuatorCfg,
    BuiltinVelocityActuatorCfg,
    TransmissionType,
)
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg

XML = """
<mujoco>
  <worldbody><body name="base">
    {free}
    <geom name="base" type="box" size=".3 .1 .05" pos=".05 .02 0" euler="10 0 30"/>
    <site name="imu" pos=".1 0 .05" euler="0 40 0"/>
    <body name="upper" pos=".3 0 0" euler="0 20 0">
      <joint name="shoulder" axis="0 1 0" range="-60 60" damping=".1"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .2 .05 0" size=".03"/>
      <body name="lower" pos=".2 0 0">
        <joint name="elbow" axis="0 .6 .8" range="-90 90" damping=".1"/>
        <geom name="lower" type="box" size=".1 .03 .02" pos=".1 0 .01"/>
        <body name="tip" pos=".2 0 0">
          <joint name="finger" type="slide" axis="1 0 0" damping=".5"/>
          <geom name="tip" size=".02" pos="0 .01 0" euler="0 30 0"/>
          <site name="tip" pos=".02 0 0" euler="0 0 70"/>
        </body>
      </body>
    </body>
    <body name="tail" pos="-.3 0 0">
      <joint name="loose" axis="0 1 0"/>
      <geom name="tail" type="capsule" fromto="0 0 0 -.2 0 0" size=".02"/>
    </body>
  </body></worldbody>
  <tendon>
    <fixed name="sum"><joint joint="shoulder" coef=".5"/><joint joint="finger" coef="2"/></fixed>
  </tendon>
  <sensor>
    <gyro name="gyro" site="imu"/>
    <framezaxis name="up" objtype="body" objname="world" reftype="site" refname="imu"/>
  </sensor>
</mujoco>
"""


def robot_cfg(floating: bool = True) -> EntityCfg:
    """Configure the robot: position, velocity and effort actuators, on joints, tendon and site."""
    xml = XML.format(free="<freejoint/>" if floating else "")
    tendon, site = TransmissionType.TENDON, TransmissionType.SITE
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        init_state=EntityCfg.InitialStateCfg(
            pos=(0.5, -0.25, 2.0),
            rot=(0.8, 0.0, 0.6, 0.0),
            lin_vel=(0.1, 0.0, 0.0) if floating else (0.0, 0.0, 0.0),
            joint_pos={"shoulder": 0.3, "elbow": -0.2, ".*": 0.0},
            joint_vel={"finger": 0.05},
        ),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinPositionActuatorCfg(
                    target_names_expr=("shoulder", "elbow"), stiffness=20.0, damping=1.0
                ),
                BuiltinVelocityActuatorCfg(target_names_expr=("finger",), damping=1.0),
                BuiltinMotorActuatorCfg(
                    target_names_expr=("sum",), transmission_type=tendon, effort_limit=5.0
                ),
                BuiltinMotorActuatorCfg(
                    target_names_expr=("tip",), transmission_type=site, effort_limit=5.0
                ),
            ),
            soft_joint_pos_limit_factor=0.5,
        ),
    )


def make_env(num_envs: int = 4, floating: bool = True, **fields: Any) -> ManagerBasedRlEnv:
    """Build an environment of the robot; its action are the positions of shoulder and elbow."""
    position = mdp.JointPositionActionCfg(
        entity_name="robot", actuator_names=("shoulder", "elbow"), scale=0.5
    )
    fields = {
        "decimation": 2,
        "episode_length_s": 10.0,
        "seed": 3,
        "scene": SceneCfg(num_envs=num_envs, entities={"robot": robot_cfg(floating)}),
        "sim": SimulationCfg(mujoco=MujocoCfg(timestep=0.005)),
        "actions": {"position": position},
        **fields,
    }
    return ManagerBasedRlEnv(ManagerBasedRlEnvCfg(**fields))


def shake(env: ManagerBasedRlEnv, steps: int = 5) -> None:
    """Bring all worlds into different motion."""
    generator = torch.Generator().manual_seed(1)
    qvel = env.sim.data.qvel
    qvel += torch.randn(qvel.shape, generator=generator)
    shape = (env.num_envs, env.action_manager.total_action_dim)
    for _ in range(steps):
        env.step(torch.randn(shape, generator=generator))


def mj_data(env: ManagerBasedRlEnv, world: int) -> mujoco.MjData:
    """Plain MuJoCo C at the state of a world."""
    data = mujoco.MjData(env.sim.mj_model)
    for field in ("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat"):
        getattr(data, field)[:] = getattr(env.sim.data, field)[world].numpy()
    mujoco.mj_forward(env.sim.mj_model, data)
    return data


def is_uniform(samples: torch.Tensor, low: float, high: float) -> bool:
    """Kolmogorov-Smirnov test: the largest gap to the uniform distribution, at the 0.1 % level.

    The bound is the asymptotic one: https://en.wikipedia.org/wiki/Kolmogorov-Smirnov_test
    """
    x = np.sort((samples.flatten().double().numpy() - low) / (high - low))
    count = len(x)
    steps = np.arange(count + 1) / count
    gap = max(np.abs(x - steps[1:]).max(), np.abs(x - steps[:-1]).max())
    return bool(gap < np.sqrt(-0.5 * np.log(0.001 / 2) / count))
