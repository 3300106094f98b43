"""Worlds for tests of the network."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.entity import EntityCfg
from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, World, world_from_scene
from manyworlds.lab.server import HubProcess, LabServerCfg
from manyworlds.plugins.urlab.roster import RosterCache
from manyworlds.scene import SceneCfg

GO = """
<mujoco model="go">
  <worldbody>
    <body name="base" pos="0 0 .5">
      <freejoint name="root"/>
      <geom name="trunk" type="box" size=".2 .1 .05"/>
      <site name="imu"/>
      <body name="leg" pos=".1 0 0">
        <joint name="hip" axis="0 1 0" range="-60 60" damping=".5"/>
        <geom name="thigh" type="capsule" fromto="0 0 0 0 0 -.2" size=".02"/>
        <body name="foot" pos="0 0 -.2">
          <joint name="knee" type="ball" damping=".5"/>
          <geom name="sole" size=".03"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="hip" joint="hip" ctrlrange="-5 5"/>
    <general name="lag" joint="hip" dyntype="filter" dynprm=".1"/>
  </actuator>
  <sensor><gyro name="gyro" site="imu"/><jointpos name="angle" joint="hip"/></sensor>
</mujoco>
"""
BOX = """
<mujoco model="box">
  <worldbody><body name="box" pos="1 0 .3"><freejoint name="free"/><geom name="box" type="box"
    size=".1 .1 .1" mass="2"/></body></worldbody>
</mujoco>
"""


def entity(xml: str, pos: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> EntityCfg:
    """Return the config of an entity that is read from XML."""
    cfg = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(xml))
    cfg.init_state.pos = pos
    return cfg


def add_floor(spec: mujoco.MjSpec) -> None:
    """Add a floor to a scene."""
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])


def two_robots() -> World:
    """Build `go`, `go2` and a free box on a floor."""
    cfg = SceneCfg(
        entities={
            "go": entity(GO, (0.0, 0.0, 0.5)),
            "go2": entity(GO, (0.0, 1.0, 0.5)),
            "box": entity(BOX, (1.0, 0.0, 0.1)),
        }
    )
    cfg.spec_fn = add_floor
    return world_from_scene(cfg)


@pytest.fixture
def lab(tmp_path):
    """A lab of two robots and a box, in direct mode; its robots belong to the network."""
    cfg = LabCfg(mode="direct", start_owner="net", recorder=RecorderCfg(folder=tmp_path))
    with LiveLab(two_robots(), cfg) as lab:
        yield lab


@pytest.fixture(scope="session")
def server_process():
    """A server in a process of its own, on any free ports, which serves one lab after another."""
    ports = {f"{use}_port": 0 for use in LabServerCfg().ports}
    with HubProcess(LabServerCfg(**ports)) as process:
        yield process


@pytest.fixture
def roster(lab):
    """The members of that world."""
    return RosterCache().get(lab)
