"""Moves of items: values of the running model, which timeline, undo and robots outlive."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

from manyworlds.entity import PropCfg
from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, world_from_file, world_from_spec
from manyworlds.lab.moments import history
from manyworlds.lab.scene import ItemRequest
from manyworlds.lab.world.model_facts import STATE
from manyworlds.lab.world.model_values import STATISTICS, differences
from tests.lab.scene.test_editor import FRAMES
from tests.robots import robot_file

ROOM = """
<mujoco>
  <option timestep="0.002"><flag sleep="disable"/></option>
  <worldbody>
    <geom name="floor" type="plane" size="4 4 .1"/>
    <body name="table" pos="0 0 .5"><geom type="box" size=".3 .3 .05"/>
      <geom type="box" size=".05 .05 .05" pos=".2 .2 .1"/><site name="corner" pos=".3 .3 0"/></body>
    <body name="arm" pos="1 0 0"><geom size=".1"/>
      <body pos="0 0 .3"><joint name="hinge" axis="0 1 0" damping=".1"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
        <site name="tip" pos=".4 0 0"/></body>
    </body>
    <body name="ball" pos="0 0 .65"><freejoint/><geom size=".05"/></body>
    <body name="post" mocap="true" pos="-1 0 .2"><geom size=".1"/></body>
    <light name="lamp" pos="0 0 3"/>
  </worldbody>
  <tendon><spatial name="rope" range="0 2">
    <site site="corner"/><site site="tip"/></spatial></tendon>
  <actuator><position name="hinge" joint="hinge" kp="5"/></actuator>
</mujoco>
"""
PLACE = {"pos": (0.4, -0.5, 0.7), "quat": (0.8, 0.0, 0.6, 0.0)}


@pytest.fixture
def lab():
    """Lab of a table with a ball on it, an arm, a rope and a post, which waits for steps."""
    lab = open_room()
    yield lab
    lab.stop()


def open_room(text: str = ROOM) -> LiveLab:
    """Lab of a room that waits for steps, and writes no files."""
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))
    return LiveLab(world_from_spec(mujoco.MjSpec.from_string(text)), cfg)


def check_equal(model: mujoco.MjModel, other: mujoco.MjModel) -> None:
    """Check that two models are equal, bit for bit."""
    assert not differences(model, other)
    for name in STATISTICS:
        assert np.array_equal(getattr(model.stat, name), getattr(other.stat, name)), name


@pytest.mark.parametrize("item", ["table", "arm", "ball", "post", "lamp", "floor"])
def test_a_moved_item_is_the_compiled_one(lab, item):
    """Move each kind of item: the model of the moved spec, bit for bit, and its next steps."""
    model = lab.model
    lab.step(100)
    lab.scene.move(item, **PLACE)
    compiled = lab.world.spec.copy().compile()
    assert lab.model is model, "it was not built again"
    check_equal(model, compiled)
    data = mujoco.MjData(compiled)
    with lab.lock():
        row = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, lab.loop.data, row, STATE)
    mujoco.mj_setState(compiled, data, row, STATE)
    for _ in range(100):
        mujoco.mj_step(compiled, data)
    assert np.array_equal(lab.step(100).qpos, data.qpos)


def test_a_moved_item_is_that_of_a_file_with_its_place(lab):
    """Move the table: the model of a file that has it there, bit for bit."""
    lab.scene.move("table", pos=(0.25, -0.5, 0.75))
    moved = ROOM.replace('"table" pos="0 0 .5"', '"table" pos=".25 -.5 .75"')
    check_equal(lab.model, mujoco.MjSpec.from_string(moved).compile())


def test_items_in_frames_and_robots_of_meshes_are_the_compiled_ones(cup):
    """Move items in frames, a camera, a light, a cup, and a robot: the compiled models again."""
    lab = open_room(FRAMES)
    for name in ("b", "a", "rail", "lamp", "eye", "plate"):
        lab.scene.move(name, **PLACE)
        check_equal(lab.model, lab.world.spec.copy().compile())
    lab.scene.add(cup, pos=(1.0, 0.0, 0.0))
    model = lab.model
    lab.scene.move("cup", **PLACE)
    assert lab.model is model
    check_equal(model, lab.world.spec.copy().compile())
    lab.stop()
    with LiveLab(world_from_file(robot_file("unitree_go1/go1.xml"))) as lab:
        model = lab.model
        lab.pause()
        lab.scene.move("trunk", **PLACE)
        assert lab.model is model
        check_equal(model, lab.world.spec.copy().compile())


def test_the_timeline_goes_on_over_moves(lab):
    """Move the table and the ball, scrub over it: each moment has the places of then."""
    before = copy.copy(lab.model)
    lab.step(500)
    fell = lab.snapshot.qpos.copy()
    lab.scene.move("table", pos=(2.0, 0.0, 0.5))
    lab.scene.move("ball", pos=(0.0, 0.0, 1.5))
    after = copy.copy(lab.model)
    lab.step(100)
    now = lab.snapshot.qpos.copy()
    table = lab.model.body("table").id
    assert lab.timeline.duration > 1.19 and lab.timeline.num_frames >= 600
    marks = [mark for _, mark in lab.timeline.marks_ago() if mark.kind == "edit"]
    assert [mark.label for mark in marks] == ["move ball"], "both were moved between two steps"
    lab.timeline.seek(0.5)
    assert lab.snapshot.xpos[table].tolist() == [0.0, 0.0, 0.5]
    check_equal(lab.model, before)
    lab.timeline.seek(0.2 - 0.002)
    assert lab.snapshot.xpos[table].tolist() == [2.0, 0.0, 0.5]
    check_equal(lab.model, after)
    lab.timeline.step_frames(-2)
    assert np.array_equal(lab.snapshot.qpos, fell)
    lab.timeline.leave()
    assert np.array_equal(lab.snapshot.qpos, now)


def test_the_past_before_a_move_continues_without_it(lab):
    """Branch to before a move, and back: model, spec, items and history are those of then."""
    lab.step(100)
    items = lab.scene.items
    before = copy.copy(lab.model)
    lab.scene.move("table", **PLACE)
    moved = lab.scene.items
    lab.step(100)
    end = lab.snapshot.qpos.copy()
    lab.timeline.seek(0.3)
    assert lab.timeline.branch() == ()
    assert lab.scene.items == items and not lab.history.done
    check_equal(lab.model, before)
    check_equal(lab.model, lab.world.spec.copy().compile())
    lab.step(10)
    lab.timeline.swap()
    assert np.array_equal(lab.snapshot.qpos, end)
    assert lab.scene.items == moved and lab.history.done == ("move table",)
    check_equal(lab.model, lab.world.spec.copy().compile())
    assert lab.scene.undo() == "move table" and lab.scene.items == items
    check_equal(lab.model, before)
    # The undo is on the timeline, too.
    lab.step(5)
    lab.timeline.step_frames(-7)
    assert lab.model.body("table").pos.tolist() == list(PLACE["pos"])
    lab.timeline.branch()
    assert lab.scene.items == moved and lab.history.done == ("move table",)


def test_a_move_is_undone_in_one_step_and_comes_back(lab, monkeypatch):
    """Drag the ball in three moves, undo, redo: one edit, with the state that it had."""
    monkeypatch.setattr(history, "_TOGETHER_S", 1000.0)
    lab.step(50)
    before = copy.copy(lab.model)
    qpos, time = lab.snapshot.qpos.copy(), lab.snapshot.time
    for x in (0.1, 0.2, 0.3):
        lab.scene.move("ball", pos=(x, 0.0, 1.0))
    placed = lab.snapshot.qpos.copy()
    after = copy.copy(lab.model)
    assert lab.history.done == ("move ball",)
    assert lab.scene.undo() == "move ball" and not lab.history.done
    assert np.array_equal(lab.snapshot.qpos, qpos) and lab.snapshot.time == time
    check_equal(lab.model, before)
    assert lab.scene.redo() == "move ball"
    assert np.array_equal(lab.snapshot.qpos, placed)
    check_equal(lab.model, after)
    assert lab.timeline.duration > 0.0


def test_moves_and_rebuilds_are_undone_in_their_order(lab, cup):
    """Add, move, add, then undo and redo all of it: each place is that of its time."""
    scene = lab.scene
    places = [scene["table"].pos]
    scene.move("table", pos=(1.0, 1.0, 0.5))
    places.append(scene["table"].pos)
    scene.add(cup)
    scene.move("cup", pos=(0.0, 2.0, 0.0))
    scene.add(cup)
    labels = []
    while lab.history.done:
        labels.append(scene.undo())
    assert labels == ["add cup_1", "move cup", "add cup", "move table"]
    assert scene["table"].pos == places[0] and "cup" not in scene.items
    scene.redo()
    assert scene["table"].pos == places[1]
    scene.redo()
    assert scene["cup"].pos == (0.0, 0.0, 0.0)
    scene.redo()
    assert scene["cup"].pos == (0.0, 2.0, 0.0)
    check_equal(lab.model, lab.world.spec.copy().compile())


def test_values_that_were_set_stay_over_a_move(lab):
    """Set fields by edits and by a program, then move: they stay, and what follows is new."""
    length = lab.model.tendon_length0[0]
    lab.set_model("body:ball", "mass", 2.0)
    lab.post(lambda model, data: model.geom_friction.__setitem__((0, 0), 0.31))
    lab.step()
    lab.scene.move("arm", pos=(2.0, 0.0, 0.0))
    model = lab.model
    assert model.body("ball").mass[0] == 2.0 and model.geom_friction[0, 0] == 0.31
    assert model.tendon_length0[0] == pytest.approx(length + 1.0, abs=0.1)
    lab.scene.move("table", pos=(0.0, 0.2, 0.5))
    lab.set_model("body:ball", "mass", 3.0)
    assert lab.world.spec.copy().compile().body("ball").mass[0] == 3.0 == model.body("ball").mass[0]
    assert [lab.scene.undo() for _ in range(3)] == [
        "set mass of body:ball",
        "move table",
        "move arm",
    ]
    assert model.body("ball").mass[0] == 2.0 and model.geom_friction[0, 0] == 0.31


def test_robots_states_views_and_replays_over_a_move(lab):
    """Move the arm: its target, saved states and views go on; a replay ends with a word."""
    robot = next(iter(lab.controls))
    robot.write("panel", [0.4])
    lab.step(50)
    lab.states.save("here")
    view = lab.view("body", "ball")
    lab.recorder.start()
    lab.step(20)
    lab.recorder.stop()
    lab.replay.start()
    session = lab.replay.active_session
    lab.scene.move("arm", pos=(2.0, 0.0, 0.0))
    assert lab.scene.notes == (f"the replay of '{session}' ended",)
    assert not lab.replay.is_active and robot.command.targets.tolist() == [0.4]
    assert lab.states["here"].converted == "" and view.name
    lab.step(5)
    lab.states.restore("here")
    assert lab.snapshot.time == pytest.approx(0.1)
    assert lab.model.body("arm").pos.tolist() == [2.0, 0.0, 0.0]


def test_requested_moves_are_moves(lab):
    """Request items twice, the second time elsewhere: only values of the running model change."""
    box = PropCfg.primitive("box", (0.1, 0.1, 0.1))
    lab.scene.apply([ItemRequest(id="a", source=box, pos=(1.0, 1.0, 0.5))])
    model = lab.model
    lab.step(50)
    told = lab.scene.apply([ItemRequest(id="a", source=box, pos=(1.0, 2.0, 0.5))])
    assert told == ["moved 'a'"] and lab.model is model and lab.timeline.num_frames >= 50
    assert lab.scene.apply([ItemRequest(id="a", source=box, name="b", pos=(1.0, 3.0, 0.5))])
    assert lab.model is not model, "a new name needs another model"


def test_a_reset_returns_to_the_new_place(lab):
    """Move the ball, step and reset: it is where it was put."""
    lab.scene.move("ball", pos=(1.0, 1.0, 1.0))
    lab.step(100)
    lab.reset()
    assert lab.snapshot.qpos[-7:-4].tolist() == [1.0, 1.0, 1.0]


def test_what_slept_on_a_moved_item_wakes():
    """Let a ball sleep on a table, and take the table away: the ball falls."""
    lab = open_room(ROOM.replace('sleep="disable"', 'sleep="enable"'))
    ball = lab.model.body("ball").id
    lab.step(3000)
    with lab.lock():
        assert lab.loop.data.body_awake[ball] == 0
    height = lab.snapshot.xpos[ball, 2]
    lab.scene.move("table", pos=(3.0, 0.0, 0.5))
    assert lab.step(200).xpos[ball, 2] < height - 0.1
    lab.stop()
