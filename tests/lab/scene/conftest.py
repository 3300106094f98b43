"""Worlds for tests of the scene's editor."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.lab import LiveLab, world_from_spec
from tests.lab.conftest import ARM

CUP = """
<mujoco model="cup">
  <default><geom friction=".4"/><default class="lid"><joint damping=".1"/></default></default>
  <asset><material name="clay" rgba=".8 .5 .3 1"/></asset>
  <worldbody>
    <body name="cup" pos="0 0 .05"><freejoint name="base"/>
      <geom name="wall" type="cylinder" size=".04 .05" material="clay"/>
      <site name="rim" pos="0 0 .05"/>
      <body pos="0 0 .06"><joint name="hinge" class="lid" axis="0 1 0"/>
        <geom name="lid" type="box" size=".04 .04 .005"/><site name="knob"/></body>
    </body>
  </worldbody>
  <tendon><spatial name="string"><site site="rim"/><site site="knob"/></spatial></tendon>
  <actuator>
    <position name="hinge" joint="hinge" kp="1"/><motor name="pull" tendon="string"/>
  </actuator>
  <sensor><jointpos name="angle" joint="hinge"/><framepos objtype="site" objname="rim"/></sensor>
  <keyframe><key name="ajar" qpos="0 0 .05 1 0 0 0 .5" ctrl=".5 0"/></keyframe>
</mujoco>
"""


@pytest.fixture
def cup(tmp_path):
    """Path of a cup with a lid, a tendon, a keyframe, default classes and a material."""
    path = tmp_path / "cup.xml"
    path.write_text(CUP)
    return path


@pytest.fixture
def scene():
    """Editor of a lab of the arm that was not started."""
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)))
    yield lab.scene
    lab.stop()
