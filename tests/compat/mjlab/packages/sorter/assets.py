"""Entities: the rover, two blocks and a fixed bin."""

from __future__ import annotations

import mujoco
from mjlab.actuator import (
    BuiltinMotorActuatorCfg,
    BuiltinPositionActuatorCfg,
    BuiltinVelocityActuatorCfg,
)
from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
from mjlab.utils.spec import create_velocity_actuator
from mjlab.utils.spec_config import CollisionCfg, LightCfg, MaterialCfg, TextureCfg

ROVER = """
<mujoco model="rover">
  <compiler angle="degree"/>
  <worldbody>
    <body name="chassis" pos="0 0 0.12">
      <freejoint/>
      <camera name="front" pos="0.2 0 0.1" xyaxes="0 -1 0 0.3 0 1" fovy="70"/>
      <site name="eye" pos="0.16 0 0.03"/>
      <geom name="chassis_col" type="box" size="0.15 0.1 0.04" mass="3"/>
      <body name="wheel_L" pos="0 0.13 -0.04">
        <joint name="wheel_L" axis="0 1 0" damping="0.05"/>
        <geom name="wheel_L_col" type="cylinder" size="0.07 0.02" euler="90 0 0" mass="0.3"/>
      </body>
      <body name="wheel_R" pos="0 -0.13 -0.04">
        <joint name="wheel_R" axis="0 1 0" damping="0.05"/>
        <geom name="wheel_R_col" type="cylinder" size="0.07 0.02" euler="90 0 0" mass="0.3"/>
      </body>
      <body name="caster" pos="-0.12 0 -0.08">
        <geom name="caster_col" type="sphere" size="0.03" mass="0.1" condim="1"/>
      </body>
      <body name="lift" pos="0.17 0 -0.02">
        <joint name="lift" type="slide" axis="0 0 1" range="-0.03 0.1"/>
        <geom name="lift_col" type="box" size="0.01 0.08 0.01" mass="0.2"/>
        <body name="finger_L" pos="0.05 0.06 0">
          <joint name="finger_L" type="slide" axis="0 -1 0" range="0 0.06"/>
          <geom name="finger_L_col" type="box" size="0.05 0.005 0.02" mass="0.1"/>
        </body>
        <body name="finger_R" pos="0.05 -0.06 0">
          <joint name="finger_R" type="slide" axis="0 1 0" range="0 0.06"/>
          <geom name="finger_R_col" type="box" size="0.05 0.005 0.02" mass="0.1"/>
        </body>
        <site name="grip" pos="0.06 0 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def get_rover_spec() -> mujoco.MjSpec:
    """Build the rover; a velocity actuator of the left finger is of the file."""
    spec = mujoco.MjSpec.from_string(ROVER)
    create_velocity_actuator(spec, "finger_L", damping=20.0, effort_limit=20.0)
    return spec


def get_rover_cfg() -> EntityCfg:
    """Return a fresh config."""
    from mjlab.actuator import XmlVelocityActuatorCfg

    return EntityCfg(
        spec_fn=get_rover_spec,
        init_state=EntityCfg.InitialStateCfg(
            pos=(0.0, 0.0, 0.12), joint_pos={"lift": 0.0}, joint_vel={".*": 0.0}
        ),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinVelocityActuatorCfg(
                    target_names_expr=("wheel_.*",), damping=2.0, effort_limit=10.0
                ),
                BuiltinPositionActuatorCfg(
                    target_names_expr=("lift",), stiffness=400.0, damping=20.0, effort_limit=60.0
                ),
                XmlVelocityActuatorCfg(target_names_expr=("finger_L",)),
                BuiltinMotorActuatorCfg(target_names_expr=("finger_R",), effort_limit=20.0),
            )
        ),
        collisions=(
            CollisionCfg(
                geom_names_expr=(".*_col",),
                friction={"wheel_.*": (1.2,), "finger_.*": (1.5,), "caster": (0.01,)},
                condim={"caster": 1, ".*_col": 4},
            ),
        ),
        lights=(LightCfg(name="lamp", body="chassis", mode="trackcom", pos=(0, 0, 3)),),
    )


def block_spec(size: float, rgba: tuple[float, float, float, float]) -> mujoco.MjSpec:
    """Build a block."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="block")
    body.add_freejoint()
    body.add_geom(
        name="block", type=mujoco.mjtGeom.mjGEOM_BOX, size=[size] * 3, mass=0.1, rgba=rgba
    )
    body.add_site(name="top", pos=(0, 0, size))
    return spec


def bin_spec() -> mujoco.MjSpec:
    """Build a bin, which has no joint."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="bin")
    for i, (x, y) in enumerate(((0.15, 0), (-0.15, 0), (0, 0.15), (0, -0.15))):
        size = (0.01, 0.15, 0.03) if x else (0.15, 0.01, 0.03)
        body.add_geom(name=f"wall_{i}", type=mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=(x, y, 0.03))
    return spec


def get_entities() -> dict[str, EntityCfg]:
    """Return all of them, by name."""
    return {
        "robot": get_rover_cfg(),
        "red": EntityCfg(
            spec_fn=lambda: block_spec(0.025, (0.9, 0.2, 0.2, 1)),
            init_state=EntityCfg.InitialStateCfg(pos=(0.4, 0.1, 0.03)),
        ),
        "blue": EntityCfg(
            spec_fn=lambda: block_spec(0.03, (0.2, 0.2, 0.9, 1)),
            init_state=EntityCfg.InitialStateCfg(pos=(0.4, -0.1, 0.035), rot=(1, 0, 0, 0)),
        ),
        "bin": EntityCfg(
            spec_fn=bin_spec,
            init_state=EntityCfg.InitialStateCfg(pos=(-0.6, 0.0, 0.0)),
            textures=(
                TextureCfg(
                    name="checks",
                    type="2d",
                    builtin="checker",
                    rgb1=(0.2, 0.3, 0.4),
                    rgb2=(0.1, 0.2, 0.3),
                    width=32,
                    height=32,
                ),
            ),
            materials=(
                MaterialCfg(
                    name="wood",
                    texuniform=True,
                    texrepeat=(4, 4),
                    reflectance=0.1,
                    texture="checks",
                    geom_names_expr=("wall_.*",),
                ),
            ),
        ),
    }
