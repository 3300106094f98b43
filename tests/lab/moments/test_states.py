"""Saved states: what they hold, and that nothing is torn."""

from __future__ import annotations

import dataclasses
import threading

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, Pose, world_from_spec
from tests.lab.conftest import ARM

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
POSES = (
    Pose(targets={"shoulder": 2.0}, blend=0.1, hold=0.05),
    Pose(targets={"elbow": 1.0}, blend=0.1, hold=0.05),
)


def steps_of(lab: LiveLab, num_steps: int = 60) -> list[bytes]:
    """Controls and positions after each of some steps."""
    snapshots = [lab.step() for _ in range(num_steps)]
    return [s.ctrl.tobytes() + s.qpos.tobytes() for s in snapshots]


def test_sequences_go_on_where_they_were(lab, tmp_path):
    """Save on the way to a pose, while it is held, and before it begins: the same steps again."""
    sequence = lab.run_sequence(POSES, delay=0.02)
    for steps in (3, 40, 25, 60):
        lab.step(steps)
        lab.states.save("here")
        path = lab.states.write("here", tmp_path)
        expected = steps_of(lab)
        sequence.go_to(0)
        lab.step()
        lab.states.restore("here")
        assert steps_of(lab) == expected
        other = LiveLab(lab.world)
        other.run_sequence(POSES, delay=0.02)
        other.states.read(path)
        other.states.restore("here")
        assert steps_of(other) == expected
        other.stop()


def test_another_law_begins_anew(lab):
    """Restore a state that was saved under another law: the present one forgets what was."""
    lab.states.save("before")
    sequence = lab.run_sequence(POSES, delay=0.0)
    first = steps_of(lab)
    assert sequence.pose == 0
    lab.step(100)
    lab.states.restore("before")
    assert sequence.pose == 0 and steps_of(lab) == first


def test_states_come_back_while_the_world_stands(lab):
    """Restore in a paused world: what derives from the state is known at once, sensors too."""
    lab.step(30)
    saved = lab.states.save("there")
    data, sensors = mujoco.MjData(lab.world.model), lab.snapshot.sensordata.copy()
    mujoco.mj_setState(lab.world.model, data, saved.state, STATE)
    mujoco.mj_forward(lab.world.model, data)
    lab.step(30)
    lab.pause()
    lab.loop.iterate_once()
    lab.states.restore("there")
    lab.loop.iterate_once()
    assert lab.paused and lab.snapshot.time == saved.time
    assert np.array_equal(lab.snapshot.xpos, data.xpos)
    assert np.array_equal(lab.snapshot.sensordata, sensors)


def test_many_states_are_kept(lab):
    """Save with and without names, in a row, and return to any of them."""
    times = {}
    for name in ("a", "", "b", "", "a"):
        lab.step(3)
        saved = lab.states.save(name)
        times[saved.name] = saved.time
    assert list(times) == lab.states.names == list(lab.states) == ["a", "1", "b", "2"]
    assert "a" in lab.states and "c" not in lab.states
    for name, time in times.items():
        lab.states.restore(name)
        assert lab.snapshot.time == time


def test_states_are_never_torn():
    """Save from several threads while a world runs as fast as it can: each is of one moment."""
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(speed=float("inf")))
    # Each step's positions are all the same number, the next step's all another.
    counter = iter(range(10**9))

    def mark(model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        data.qvel[:] = 0.0
        data.qpos[:] = float(next(counter))

    model = lab.world.model
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    lab.loop.on_post_step(mark)
    saved = []

    def save(thread: int) -> None:
        saved.extend(lab.states.save(f"{thread} {i}") for i in range(100))

    with lab:
        lab.loop.do(lambda model, data: None)
        threads = [threading.Thread(target=save, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    data = mujoco.MjData(model)
    seen = []
    for state in saved:
        mujoco.mj_setState(model, data, state.state, STATE)
        assert len(set(data.qpos.tolist())) == 1
        seen.append(data.qpos[0])
    assert len(saved) == 300 and len(set(seen)) > 10


def test_the_last_of_two_wins(lab):
    """Restore two states in a row, without a step between them: the second is there, whole."""
    lab.step(10)
    lab.states.save("first")
    lab.step(10)
    second = lab.states.save("second")
    lab.step(10)
    lab.states.restore("first")
    lab.states.restore("second")
    state = np.empty_like(second.state)
    mujoco.mj_getState(lab.world.model, lab.loop.data, state, STATE)
    assert state.tobytes() == second.state.tobytes()


@pytest.mark.parametrize("name", ["../up", "", "a/b"])
def test_names_of_files_stay_in_their_folder(lab, tmp_path, name):
    """Write and read states by wrong names."""
    with pytest.raises((KeyError, ValueError)):
        lab.states.write(name, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda saved: {"name": "../evil"}, r"is no saved state: its name is '\.\./evil'"),
        (lambda saved: {"state": saved.state[:-1]}, "its arrays are of other sizes"),
        (lambda saved: {"sensordata": np.zeros(7)}, "its arrays are of other sizes"),
        (lambda saved: {"targets": {"arm": np.zeros(1)}}, "its arrays are of other sizes"),
        (lambda saved: {"targets": {"dog": np.zeros(2)}}, "its arrays are of other sizes"),
        (lambda saved: {"memory": {}}, "its arrays are of other sizes"),
    ],
)
def test_files_that_lie_are_refused(lab, change, message):
    """Take in a file of the right model whose contents were changed: nothing of it is kept."""
    saved = lab.states.save("good")
    lab.states._states["good"] = dataclasses.replace(saved, **change(saved))
    content = lab.states.pack("good")
    lab.states._states.clear()
    with pytest.raises(ValueError, match=message):
        lab.states.unpack(content, "file.npz")
    assert lab.states.names == []
