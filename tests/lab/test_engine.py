"""The engine: its order, its one door, its faults."""

from __future__ import annotations

import threading
import time

import mujoco
import numpy as np
import pytest

from manyworlds.lab import FaultError, LabCfg, LiveLab, Puppet, world_from_file
from tests.robots import robot_file


def reference(world, num_steps: int) -> mujoco.MjData:
    """What a plain loop of `mj_step` gives."""
    data = mujoco.MjData(world.model)
    for _ in range(num_steps):
        mujoco.mj_step(world.model, data)
    return data


@pytest.mark.parametrize("threaded", [False, True])
def test_steps_are_those_of_a_plain_loop(world, threaded):
    """Ask for steps in portions, over a pause, and get MuJoCo's own, bit for bit."""
    lab = LiveLab(world, LabCfg(mode="direct"))
    if threaded:
        lab.start()
    lab.step(120)
    lab.pause()
    lab.step(1)
    lab.play()
    snapshot = lab.step(179)
    lab.stop()
    data = reference(world, 300)
    assert snapshot.step == 300 and snapshot.time == data.time
    for name in ("qpos", "qvel", "sensordata", "xpos"):
        assert np.array_equal(getattr(snapshot, name), getattr(data, name)), name


def test_a_robot_steps_as_in_mujoco():
    """Step the third-party G1 and compare with a plain loop, bit for bit."""
    world = world_from_file(robot_file("unitree_g1/g1.xml"))
    lab = LiveLab(world)
    assert np.array_equal(lab.step(100).qpos, reference(world, 100).qpos)
    lab.stop()


def test_an_iteration_has_its_order(lab):
    """Commands come before callbacks, these before controls and the step."""
    seen = []
    lab.engine.on_pre_step(lambda model, data, moved: seen.append(("pre", data.time, moved)))
    lab.engine.on_post_step(lambda model, data, moved: seen.append(("post", data.time, moved)))
    lab["arm"].write("panel", {"elbow": 3.0})
    lab.post(lambda model, data: seen.append(("command", data.time, data.ctrl[1])))
    lab.engine.pump()
    assert [what for what, *_ in seen] == ["command", "pre", "post"]
    assert seen[0][1:] == (0.0, 0.0) and seen[1][1:] == (0.0, False)
    assert seen[2][1:] == (lab.snapshot.time, True) and lab.snapshot.time > 0.0
    assert lab.snapshot.ctrl[1] == 3.0


def test_pause_stops_time_and_nothing_else(lab):
    """Pause: callbacks run, controls show, time stands; a callback knows that nothing moved."""
    lab.pause()
    moved = []
    lab.engine.on_post_step(lambda model, data, moved_on: moved.append(moved_on))
    lab["arm"].write("panel", {"shoulder": 2.0})
    for _ in range(3):
        lab.engine.pump()
    assert moved == [False] * 3 and lab.snapshot.paused
    assert lab.snapshot.time == 0.0 and lab.snapshot.ctrl[0] == 2.0


def test_a_callback_that_fails_stops_nobody(lab):
    """Register three callbacks, of which one raises; remove one in the middle of a run."""
    calls = []
    first = lab.engine.on_pre_step(lambda *_: calls.append("first"))
    lab.engine.on_pre_step(lambda *_: 1 / 0)
    lab.engine.on_pre_step(lambda *_: calls.append("last"))
    lab.engine.pump()
    first.remove()
    first.remove()
    lab.engine.pump()
    assert calls == ["first", "last", "last"]
    assert "ZeroDivisionError" in lab.engine.callback_errors[-1]
    assert lab.engine.num_steps == 2


def test_reset_returns_to_the_start(lab):
    """Reset: the pose, the time and all commands are the first, and listeners hear once."""
    start = lab.snapshot.qpos.copy()
    heard = []
    lab.on_reset(lambda: heard.append(lab.engine.data.time))
    lab["arm"].write("panel", {"elbow": 5.0})
    lab.step(50)
    lab.reset()
    lab.engine.pump()
    assert heard == [0.0]
    assert np.array_equal(lab["arm"].command.targets, [0.0, 0.0])
    lab.reset()
    assert np.array_equal(lab.snapshot.qpos, start) and lab.snapshot.time == 0.0


def test_nan_is_a_fault_that_a_reset_mends(lab):
    """Put NaN into the state: the world stops, keeps its last good picture, and can be mended."""
    lab.step(5)
    good = lab.snapshot
    lab.post(lambda model, data: data.qvel.__setitem__(0, np.nan))
    with pytest.raises(FaultError, match=r"velocities went bad at 0\.010 s"):
        lab.step()
    assert lab.engine.state == "faulted" and "reset" in lab.engine.fault
    assert np.array_equal(lab.snapshot.qpos, good.qpos) and lab.snapshot.time == good.time
    lab.reset()
    assert lab.engine.state == "ready" and lab.step(3).time == pytest.approx(0.006)


def test_mujocos_own_errors_are_faults(lab):
    """Set an integrator that does not exist: MuJoCo's message is the fault, the process lives."""
    lab.post(lambda model, data: setattr(model.opt, "integrator", 77))
    with pytest.raises(FaultError, match="integrator"):
        lab.step()
    lab.post(lambda model, data: setattr(model.opt, "integrator", 0))
    lab.reset()
    assert lab.step().step == 1


def test_puppets_show_states_and_give_the_world_back(lab):
    """Stack two drivers: the upper one shows, physics waits, and each leaves on its own."""
    puppet, other = Puppet(), Puppet()
    drive = lab.engine.drive(puppet, "alice")
    upper = lab.engine.drive(other, "bob")
    lab.engine.release(drive)
    qpos = lab.snapshot.qpos.copy()
    qpos[0] = 0.7
    other.show(qpos=qpos, time=12.5)
    lab.engine.pump()
    assert lab.snapshot.driver == "puppet" and lab.snapshot.time == 12.5
    assert np.array_equal(lab.snapshot.qpos, qpos)
    lab.engine.pump()
    assert np.array_equal(lab.snapshot.qpos, qpos) and lab.snapshot.step == 1
    with pytest.raises(RuntimeError, match="already moves this world, for 'bob'"):
        lab.engine.drive(other, "carol")
    lab.engine.release(upper)
    assert lab.step().driver == "physics" and lab.snapshot.time > 12.5
    with pytest.raises(ValueError, match="no colour"):
        puppet.show(colour=1.0)


def test_a_wrong_puppet_is_a_fault(lab):
    """Show a state of the wrong size: the engine says so and goes on after a reset."""
    puppet = Puppet()
    lab.engine.drive(puppet, "alice")
    puppet.show(qpos=np.zeros(2))
    lab.engine.pump()
    assert lab.engine.state == "faulted" and "The puppet failed" in lab.engine.fault


def test_real_time_is_kept(world):
    """Run for a second: simulated time follows the clock; at 25 % it takes four times as long."""
    with LiveLab(world) as lab:
        time.sleep(0.3)
        for speed in (1.0, 0.25):
            lab.engine.speed = speed
            lab.engine.do(lambda model, data: None)
            start, since = lab.snapshot.time, time.perf_counter()
            time.sleep(1.0)
            factor = (lab.snapshot.time - start) / (time.perf_counter() - since)
            assert factor == pytest.approx(speed, rel=0.2)


def test_stop_is_prompt_and_final(world):
    """Start and stop twenty labs: no thread is left, and a stopped engine takes no commands."""
    before = threading.active_count()
    for _ in range(20):
        lab = LiveLab(world)
        lab.start()
        since = time.perf_counter()
        lab.stop()
        lab.stop()
        assert time.perf_counter() - since < 1.0
    assert threading.active_count() == before
    assert lab.status == ["compiled", "bound", "running", "stopped"]
    with pytest.raises(RuntimeError, match="was stopped"):
        lab.reset()
    with pytest.raises(RuntimeError, match="starts once"):
        lab.start()


def test_commands_of_many_threads_keep_their_order(world):
    """Post from eight threads: none is lost, and each thread's commands stay in order."""
    seen: list[tuple[int, int]] = []
    with LiveLab(world) as lab:

        def work(who: int) -> None:
            for i in range(200):
                lab.post(lambda model, data, entry=(who, i): seen.append(entry))

        threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lab.engine.do(lambda model, data: None)
    assert len(seen) == 1600
    for who in range(8):
        assert [i for w, i in seen if w == who] == list(range(200))


def test_snapshots_are_whole(world):
    """Read while physics runs at full speed: each picture is what the engine had at that step."""
    truth: dict[int, bytes] = {}
    lab = LiveLab(world, LabCfg(speed=float("inf")))

    def note(model, data, moved):
        truth[lab.engine.num_steps] = data.qpos.tobytes() + data.xpos.tobytes()

    lab.engine.on_post_step(note)
    seen = []
    with lab:
        while len(seen) < 200:
            seen.append(lab.snapshot)
            time.sleep(0.0005)
        lab.engine.do(lambda model, data: None)
    assert len({snapshot.frame_id for snapshot in seen}) > 20
    for snapshot in seen:
        if snapshot.step:
            assert snapshot.qpos.tobytes() + snapshot.xpos.tobytes() == truth[snapshot.step]
    with pytest.raises(ValueError, match="read-only"):
        seen[0].qpos[0] = 1.0


def test_the_lock_keeps_the_world_still(world):
    """Hold the lock, also twice: nothing moves until it is given back."""
    with LiveLab(world) as lab:
        with lab.lock(), lab.lock():
            before = lab.engine.data.time
            time.sleep(0.05)
            assert lab.engine.data.time == before
        time.sleep(0.1)
        assert lab.engine.data.time > before
