"""Keyframes of single robots."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LiveLab, World

TWO = """
<mujoco>
  <worldbody>
    <body name="a/base" pos="0 0 1"><freejoint name="a/root"/><geom size=".1"/>
      <body pos=".2 0 0"><joint name="a/hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body></body>
    <body name="b/base" pos="2 0 1"><joint name="b/hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body>
  </worldbody>
  <actuator><position name="b/servo" joint="b/hinge" kp="5"/></actuator>
  <keyframe>
    <key name="a/bent" qpos="0 0 3 1 0 0 0 .7 .1" qvel="1 0 0 0 0 0 .2 .3"/>
    <key name="b/up" qpos="0 0 1 1 0 0 0 0 .5" ctrl=".5"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture
def lab():
    """Two robots in one model: one floats and has no actuators, one has a servo."""
    spec = mujoco.MjSpec.from_string(TWO)
    world = World(spec=spec, model=spec.compile(), robots={"a": "a/", "b": "b/"})
    lab = LiveLab(world)
    yield lab
    lab.stop()


def test_a_reset_is_of_one_robot(lab):
    """Reset one robot after a while: the other stays as it is, bit for bit, and so does a root."""
    lab.step(20)
    before = lab.snapshot.qpos.copy()
    lab.keyframes.reset("a", "bent")
    after = lab.snapshot.qpos
    assert np.array_equal(np.delete(after, 7), np.delete(before, 7)) and after[7] == 0.7
    assert lab.snapshot.qvel[6] == 0.2
    lab.keyframes.reset("a", "a/bent", root="authored")
    assert lab.snapshot.qpos[2] == 3.0 and lab.snapshot.qvel[0] == 1.0
    assert lab.snapshot.qpos[8] == before[8]
    lab.keyframes.reset("b", "up")
    assert lab.snapshot.qpos[8] == 0.5 and lab["b"].command.targets.tolist() == [0.5]


def test_the_first_keyframe_is_the_default(lab):
    """Reset without a name."""
    lab.keyframes.reset("a")
    assert lab.snapshot.qpos[7] == 0.7
    assert lab.keyframes.names("b") == ["a/bent", "up"]


def test_held_robots_stay(lab):
    """Hold a robot that gravity pulls at, for a second: its joint stays; let go, it falls."""
    lab.keyframes.hold("a", "bent")
    lab.step(500)
    assert lab.keyframes.is_holding("a") and abs(lab.snapshot.qpos[7] - 0.7) < 1e-2
    lab.keyframes.stop_hold("a")
    before = lab["b"].owner
    lab.keyframes.hold("b", "up")
    assert lab["b"].owner == "hold"
    assert lab.step().ctrl.tolist() == [0.5]
    lab.keyframes.stop_hold("b")
    assert lab["b"].owner == before and not lab.keyframes.is_holding("b")


def test_what_is_not_there_is_said(lab):
    """Ask for robots and keyframes that are not there."""
    with pytest.raises(KeyError, match="no keyframe 'flat' of 'b'; available: a/bent, up"):
        lab.keyframes.reset("b", "flat")
    with pytest.raises(KeyError, match="no robot 'c'; available: a, b"):
        lab.keyframes.hold("c")
