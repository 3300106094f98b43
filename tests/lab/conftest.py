"""Worlds for tests of the lab."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.lab import LiveLab, World, world_from_spec

ARM = """
<mujoco model="arm">
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <body name="upper" pos="0 0 .6">
      <joint name="shoulder" axis="0 1 0" range="-120 120" damping=".2"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body name="lower" pos=".3 0 0">
        <joint name="elbow" axis="0 1 0" range="-150 150" damping=".2"/>
        <geom name="forearm" type="capsule" fromto="0 0 0 .25 0 0" size=".025"/>
        <site name="tip" pos=".25 0 0"/>
      </body>
    </body>
    <body name="ball" pos=".5 0 .3"><freejoint/><geom size=".05"/></body>
    <body name="post" mocap="true" pos="-1 0 .2"><geom size=".1"/></body>
  </worldbody>
  <actuator>
    <motor name="shoulder" joint="shoulder" ctrlrange="-20 20" gear="1"/>
    <motor name="elbow" joint="elbow" ctrlrange="-20 20"/>
  </actuator>
  <sensor><jointpos name="angle" joint="elbow"/></sensor>
</mujoco>
"""


@pytest.fixture
def world() -> World:
    """An arm with two motors, a ball that falls, and a post that can be moved about."""
    return world_from_spec(mujoco.MjSpec.from_string(ARM))


@pytest.fixture
def lab(world):
    """A lab of that world which was not started: `loop.iterate_once` moves it on."""
    lab = LiveLab(world)
    yield lab
    lab.stop()
