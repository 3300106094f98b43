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
    <body name="post" mocap="true"/>
    <body name="b/base" pos="2 0 1"><joint name="b/hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body>
  </worldbody>
  <actuator>
    <general name="b/servo" joint="b/hinge" gainprm="5" dyntype="filterexact" dynprm=".1"/>
  </actuator>
  <keyframe>
    <key name="a/bent" qpos="0 0 3 1 0 0 0 .7 .1" qvel="1 0 0 0 0 0 .2 .3"/>
    <key name="up" qpos="0 0 5 1 0 0 0 0 .9" ctrl=".9"/>
    <key name="b/up" qpos="0 0 1 1 0 0 0 0 .5" ctrl=".5" act=".25" time="3"/>
    <key name="b/flat" qpos="0 0 1 1 0 0 0 0 .2"/>
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
    lab.keyframes.reset("a", "bent", root="placed")
    assert lab.snapshot.qpos[:8].tolist() == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.7]
    assert lab.snapshot.qvel[:7].tolist() == [0.0] * 6 + [0.2]
    lab.keyframes.reset("b", "up")
    assert lab.snapshot.qpos[8] == 0.5 and lab["b"].command.targets.tolist() == [0.5]


def test_the_first_keyframe_is_the_default(lab):
    """Reset without a name: a robot's own come first, and those of others are none of its."""
    lab.keyframes.reset("a")
    assert lab.snapshot.qpos[7] == 0.7
    lab.keyframes.reset("b")
    assert lab.snapshot.qpos[8] == 0.5
    assert lab.keyframes.names("b") == ["up", "flat"] and lab.keyframes.names("a") == ["bent", "up"]
    lab.keyframes.reset("a", "up")
    assert lab.snapshot.qpos[7] == 0.0


def test_keyframes_of_the_model_are_mujocos(lab):
    """Read the fields of a keyframe in the compiled model, bodies and joints before it."""
    model = lab.world.model
    key = model.key("b/up")
    assert (key.time, key.qpos[8], key.ctrl) == (3.0, 0.5, 0.5)
    assert (key.qvel.shape, key.act.shape, key.mpos.size, key.mquat.size) == ((8,), (1,), 3, 4)
    assert model.key("a/bent").qvel[7] == 0.3


def test_activations_are_put_as_well(lab):
    """Reset a robot whose actuator has an activation: it is that of the keyframe."""
    lab["b"].write("panel", {"servo": 2.0})
    lab.step(50)
    assert lab.loop.data.act[0] > 0.1
    lab.keyframes.reset("b", "up")
    assert lab.loop.data.act[0] == 0.25


def test_held_robots_stay(lab):
    """Hold a robot that gravity pulls at, for five seconds: its joint stays; let go, it falls."""
    lab.keyframes.hold("a", "bent")
    lab.step(2500)
    assert lab.keyframes.is_holding("a") and abs(lab.snapshot.qpos[7] - 0.7) < 1e-2
    assert lab.snapshot.qpos[2] < 0.0, "its root is free"
    lab.keyframes.stop_hold("a")
    assert not lab.keyframes.is_holding("a")
    before = lab["b"].owner
    lab.keyframes.hold("b", "up")
    assert lab["b"].owner == "hold"
    assert lab.step().ctrl.tolist() == [0.5]
    lab.reset()
    assert lab.step().ctrl.tolist() == [0.5] and not lab["b"].write("panel", [0.1])
    lab.keyframes.stop_hold("b")
    assert lab["b"].owner == before and not lab.keyframes.is_holding("b")
    assert lab.step().ctrl.tolist() == [0.0]


def test_held_robots_can_be_taken(lab):
    """Pin a robot, take it, and let it go again: it moves, and its law is back."""
    robot = lab["b"]
    law = robot.controller
    lab.keyframes.hold("b", "flat")
    lab.step(200)
    assert lab.snapshot.qpos[8] == pytest.approx(0.2, abs=1e-3)
    robot.take("script")
    assert not lab.keyframes.is_holding("b") and robot.write("script", [1.0])
    lab.step(200)
    assert lab.snapshot.qpos[8] > 0.3 and lab.snapshot.ctrl.tolist() == [1.0]
    lab.keyframes.stop_hold("b")
    assert robot.controller is law and robot.owner == "script"


def test_what_is_not_there_is_said(lab):
    """Ask for robots and keyframes that are not there."""
    with pytest.raises(KeyError, match="no keyframe 'steep' of 'b'; available: up, flat"):
        lab.keyframes.reset("b", "steep")
    with pytest.raises(KeyError, match="no robot 'c'; available: a, b"):
        lab.keyframes.hold("c")


@pytest.mark.parametrize("verb", ["apply_keyframe", "hold_keyframe"])
@pytest.mark.parametrize("threaded", [False, True])
def test_a_keyframe_ends_a_replay(lab, verb, threaded):
    """Apply or hold a keyframe during a replay: it is not overwritten, and the reply says so."""
    lab.recorder.cfg.to_file = False
    lab.recorder.start()
    lab.step(50)
    lab.recorder.stop()
    if threaded:
        lab.loop.mode = "direct"
        lab.start()
    lab.replay.start()
    assert lab.step().stepper == "replay"
    reply = lab.call(verb, robot="b", keyframe_name="flat")
    assert reply["ended_replay"] == "Live" and not lab.replay.is_active
    after = lab.step()
    assert after.stepper == "physics" and after.qpos[8] == pytest.approx(0.2, abs=1e-3)
    assert lab.call(verb, robot="b", keyframe_name="up")["ended_replay"] == ""
