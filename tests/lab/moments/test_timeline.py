"""The timeline: going back, continuing from there to the bit, and what is refused."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, TimelineCfg, world_from_file
from manyworlds.lab.world.model_facts import STATE
from tests.lab.scene.test_rebuild import suite_file
from tests.lab.task.test_env_stepper import open_task
from tests.robots import robot_file


def bits(lab: LiveLab) -> bytes:
    """All bits of the state, and the controls."""
    with lab.lock():
        row = np.empty(mujoco.mj_stateSize(lab.model, STATE))
        mujoco.mj_getState(lab.model, lab.loop.data, row, STATE)
        return row.tobytes() + lab.loop.data.sensordata.tobytes()


def still(world, **timeline) -> LiveLab:
    """Lab that waits for steps, and writes no files."""
    cfg = LabCfg(
        mode="direct", recorder=RecorderCfg(to_file=False), timeline=TimelineCfg(**timeline)
    )
    return LiveLab(world, cfg)


def act(lab: LiveLab, start: int, end: int) -> list[bytes]:
    """Advance by scripted controls, pushes, and edits of an option and of a field."""
    robot, states = next(iter(lab.controls), None), []
    body = lab.model.nbody - 1
    while lab.model.body_mocapid[body] >= 0:
        body -= 1
    for number in range(start, end):
        if robot is not None and number % 7 == 0:
            low, high = np.full(len(robot.neutral), -0.2), np.full(len(robot.neutral), 0.2)
            robot.write("panel", low + (high - low) * (number % 13) / 12)
        if number % 40 < 5:
            lab.call("push_body", body=body, force=[1.0, 0.5 * (number % 3), 0.0])
        if number == 330:
            lab.set_option("gravity", [0.0, 0.3, -9.0])
        if number == 410:
            lab.post(lambda model, data: model.geom_friction.__setitem__((0, 0), 0.31))
            lab.post(lambda model, data: model.dof_damping.__iadd__(0.01))
        lab.step()
        states.append(bits(lab))
    return states


@pytest.mark.parametrize("model", ["arm", "walker", "quadruped", "unitree_go1/go1.xml"])
def test_the_past_continues_to_the_bit(model, world):
    """Act, go back, act in the same way: the same bits; return to the future that was."""
    if model != "arm":
        path = robot_file(model) if "/" in model else suite_file(model)
        world = world_from_file(path)
    with still(world) as lab:
        first = act(lab, 0, 450)
        lab.timeline.seek(150 * lab.model.opt.timestep)
        friction, gravity = lab.model.geom_friction[0, 0], lab.model.opt.gravity[1]
        assert lab.timeline.is_active and lab.paused and (friction != 0.31) and gravity == 0.0
        assert lab.timeline.branch() == () and not lab.timeline.is_active
        assert bits(lab) == first[299]
        assert act(lab, 300, 450) == first[300:]
        assert lab.model.geom_friction[0, 0] == 0.31 and lab.model.opt.gravity[1] == 0.3
        lab.timeline.swap()
        assert bits(lab) == first[-1]


def test_edits_are_taken_back(world):
    """Go over edits in both directions: the model has the values of the moment that is shown."""
    with still(world) as lab:
        act(lab, 0, 450)
        friction = lambda: (lab.model.geom_friction[0, 0], lab.model.opt.gravity[1])  # noqa: E731
        version = lab.loop.model_version
        lab.timeline.step_frames(-100)
        assert friction() == (1.0, 0.3) and lab.loop.model_version > version
        lab.timeline.step_frames(-100)
        assert friction() == (1.0, 0.0)
        lab.timeline.step_frames(100)
        assert friction() == (1.0, 0.3)
        lab.timeline.leave()
        assert friction() == (0.31, 0.3)
        kinds = [mark.kind for _, mark in lab.timeline.marks_ago()]
        assert kinds.count("push") == 12 and kinds.count("edit") == 2
        # An edit in the past is one of the branch.
        lab.timeline.step_frames(-200)
        lab.post(lambda model, data: model.geom_friction.__setitem__((0, 0), 0.5))
        lab.timeline.branch()
        assert friction() == (0.5, 0.0)
        lab.step()
        lab.timeline.step_frames(-1)
        assert friction() == (1.0, 0.0)


def test_frames_are_the_states(world):
    """Step back and forward, paused: each moment is shown as it was, and time stands still."""
    with still(world) as lab:
        snapshots = [lab.snapshot, *(lab.step() for _ in range(20))]
        for number in (1, 2, 3):
            lab.timeline.step_frames(-1)
            assert np.array_equal(lab.snapshot.qpos, snapshots[20 - number].qpos)
            assert lab.snapshot.time == snapshots[20 - number].time == lab.timeline.world_time
        assert lab.timeline.ago == pytest.approx(0.006) and lab.snapshot.stepper == "timeline"
        # Steps play what was, up to the present, and then go on.
        steps = [lab.step().qpos for _ in range(5)]
        assert np.array_equal(steps[2], snapshots[20].qpos) and not lab.timeline.is_active
        assert lab.snapshot.time == pytest.approx(0.044) and lab.snapshot.stepper == "physics"
        assert lab.timeline.num_frames == 23


def test_a_reset_and_a_set_state_can_be_undone(world):
    """Go back behind a reset and a state that was set, and continue there."""
    with still(world) as lab:
        before = act(lab, 0, 50)[-1]
        lab.reset()
        act(lab, 0, 5)
        lab.post(lambda model, data: data.qpos.__setitem__(0, 1.0))
        lab.step(5)
        kinds = [mark.kind for _, mark in lab.timeline.marks_ago()]
        assert kinds.count("reset") == kinds.count("state") == 1
        lab.timeline.step_frames(-12)
        lab.timeline.branch()
        assert bits(lab) == before


def test_memory_is_bounded(world):
    """Run longer than is kept, in time and in bytes: the oldest goes, and cannot be reached."""
    with still(world, max_duration=1.0) as lab:
        lab.step(2000)
        assert 0.7 <= lab.timeline.duration <= 1.0 + 25 * 0.002
        with pytest.raises(ValueError, match="cannot go back 1.5 s: 0.* s are kept"):
            lab.timeline.seek(1.5)
        with pytest.raises(ValueError, match="cannot go back -1 s: 0 to 0.* s are kept"):
            lab.timeline.seek(-1.0)
        assert not lab.timeline.is_active and not lab.paused
        lab.timeline.seek(0.0)
        lab.timeline.seek(lab.timeline.duration)
        lab.timeline.branch()
        with pytest.raises(ValueError, match="first moment"):
            lab.timeline.step_frames(-1)
    with still(world, max_megabytes=0.5) as lab:
        lab.step(1000)
        row = lab.timeline._row(lab.timeline._first).nbytes
        assert 0.3e6 < row * lab.timeline.num_frames < 0.5e6
    with still(world, max_duration=0.0) as lab:
        lab.step(10)
        with pytest.raises(ValueError, match="no moment to go back to: TimelineCfg"):
            lab.timeline.seek(0.0)


def test_what_cannot_be_reached_is_refused(world, tmp_path):
    """Seek before a rebuild, branch in the present, step past it: a sentence, and no change."""
    with still(world) as lab:
        with pytest.raises(ValueError, match="the world was not stepped"):
            lab.timeline.step_frames(-1)
        lab.step(300)
        with pytest.raises(RuntimeError, match="The present is shown: go back"):
            lab.timeline.branch()
        with pytest.raises(RuntimeError, match="no other future"):
            lab.timeline.swap()
        with pytest.raises(ValueError, match="newest moment of the timeline: step the world"):
            lab.timeline.step_frames(1)
        assert lab.rebuild(world_from_file(suite_file("walker")))
        with pytest.raises(ValueError, match="no moment"):
            lab.timeline.seek(0.1)
        lab.step(40)
        now = bits(lab)
        with pytest.raises(ValueError, match="go back 0.5 s: .* because the world was rebuilt"):
            lab.timeline.seek(0.5)
        assert bits(lab) == now and not lab.paused
        parts = lab.timeline.recording().segments
        assert len(parts) == 2 and len(parts[0]) >= 300
        assert len(lab.timeline.recording(0.05)) in (20, 21, 22)


@pytest.mark.parametrize("task", ["Cartpole-Balance", "Lift-Cube-Arm"])
def test_a_task_continues_to_the_bit(task):
    """Go back in a world that a task drives, over ends of episodes, pulled: the same bits."""
    lab = open_task(task)
    body = lab.model.nbody - 1

    def go(start: int, end: int) -> list[bytes]:
        states = []
        for number in range(start, end):
            if number % 30 < 3:
                lab.call("push_body", body=body, force=[0.3, 0.0, 0.1])
            lab.step()
            states.append(bits(lab))
        return states

    try:
        first = go(0, 170)
        lab.timeline.step_frames(-75)
        lab.timeline.branch()
        assert bits(lab) == first[94]
        assert go(95, 170) == first[95:]
        lab.timeline.swap()
        assert bits(lab) == first[-1]
    finally:
        lab.stop()


def _field(lab: LiveLab, element: str, name: str) -> dict:
    return next(field for field in lab.edits.read(element) if field["name"] == name)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["arm", "walker", "quadruped"])
def test_edits_of_fields_follow_the_branch(model, world):
    """Edit, go back behind the edit, continue: spec, history and originals are those of then."""
    if model != "arm":
        world = world_from_file(suite_file(model))
    with still(world) as lab:
        body, joint = f"body:{lab.model.body(1).name}", f"joint:{lab.model.njnt - 1}"
        mass = _field(lab, body, "mass")["value"]
        lab.step(120)
        lab.set_model(body, "mass", 2.0 * mass)
        lab.step(120)
        lab.set_model(joint, "damping", 0.7)
        lab.set_model(body, "mass", 3.0 * mass)
        lab.step(50)
        end, after = bits(lab), lab.history.done
        assert len(after) == 3 and lab.world.spec.compile().body_mass[1] == 3.0 * mass
        lab.timeline.step_frames(-60)
        assert lab.model.body_mass[1] == 2.0 * mass
        lab.timeline.branch()
        assert lab.history.done == after[:1] and not lab.history.undone
        found = _field(lab, body, "mass")
        assert (found["value"], found["model_value"]) == (2.0 * mass, mass)
        compiled = lab.world.spec.compile()
        assert compiled.body_mass[1] == 2.0 * mass and compiled.dof_damping[-1] != 0.7
        lab.step(5)
        lab.timeline.swap()
        assert bits(lab) == end and lab.history.done == after
        assert lab.world.spec.compile().body_mass[1] == 3.0 * mass == lab.model.body_mass[1]
        assert lab.world.spec.compile().dof_damping[-1] == 0.7
        assert _field(lab, body, "mass")["model_value"] == mass
        lab.timeline.swap()
        assert lab.history.undo() == after[0]
        assert lab.model.body_mass[1] == mass == lab.world.spec.compile().body_mass[1]
        assert _field(lab, body, "mass")["model_value"] == mass
        # An undo is a turn of the history, which can be taken back, too.
        lab.step(5)
        lab.timeline.step_frames(-7)
        lab.timeline.branch()
        assert lab.history.done == after[:1] and lab.model.body_mass[1] == 2.0 * mass
        assert lab.world.spec.compile().body_mass[1] == 2.0 * mass


def test_an_edit_of_the_past_continues_from_there(world):
    """Edit a field while the past is shown: the world continues from there, and waits."""
    with still(world) as lab:
        lab.step(100)
        end, mass = bits(lab), lab.model.body("ball").mass[0]
        lab.set_model("body:ball", "mass", 2.0)
        lab.step(100)
        lab.timeline.step_frames(-150)
        lab.set_model("body:ball", "mass", 3.0)
        assert not lab.timeline.is_active and lab.paused and lab.timeline.has_other
        assert lab.snapshot.time == pytest.approx(50 * lab.model.opt.timestep)
        assert len(lab.history.done) == 1 and lab.model.body("ball").mass[0] == 3.0
        assert lab.world.spec.compile().body("ball").mass[0] == 3.0
        lab.timeline.swap()
        assert lab.model.body("ball").mass[0] == 2.0 and len(lab.history.done) == 1
        lab.timeline.step_frames(-100)
        lab.timeline.branch()
        assert bits(lab) == end and lab.history.done == ()
        assert (
            lab.world.spec.compile().body("ball").mass[0] == mass == lab.model.body("ball").mass[0]
        )


def test_a_rebuild_keeps_what_the_branch_has(world):
    """Branch to before an edit, then add an item: the new world has the old value."""
    with still(world) as lab:
        lab.step(50)
        mass = lab.model.body("ball").mass[0]
        lab.set_model("body:ball", "mass", 7.0)
        lab.step(50)
        lab.timeline.step_frames(-70)
        lab.scene.add("cartpole")
        assert lab.model.body("ball").mass[0] == mass and len(lab.history.done) == 1
        lab.history.undo()
        assert lab.model.body("ball").mass[0] == mass and lab.history.done == ()
