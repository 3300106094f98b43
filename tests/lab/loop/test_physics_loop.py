"""The loop: its order, its one door, its faults."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import mujoco
import numpy as np
import pytest

from manyworlds.lab import (
    FaultError,
    LabCfg,
    LiveLab,
    Passthrough,
    PhysicsLoop,
    Puppet,
    world_from_file,
    world_from_spec,
)
from manyworlds.lab.recording.mcap_files import read_mcap
from tests.lab.conftest import ARM
from tests.robots import robot_file
from tests.waiting import PATIENCE_S, until


def reference(world, num_steps: int) -> mujoco.MjData:
    """States of a plain loop of `mj_step`."""
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
    lab.loop.on_pre_step(lambda model, data, moved: seen.append(("pre", data.time, moved)))
    lab.loop.on_post_step(lambda model, data, moved: seen.append(("post", data.time, moved)))
    lab["arm"].write("panel", {"elbow": 3.0})
    lab.post(lambda model, data: seen.append(("command", data.time, data.ctrl[1])))
    lab.loop.iterate_once()
    assert [what for what, *_ in seen] == ["command", "pre", "post"]
    assert seen[0][1:] == (0.0, 0.0) and seen[1][1:] == (0.0, False)
    assert seen[2][1:] == (lab.snapshot.time, True) and lab.snapshot.time > 0.0
    assert lab.snapshot.ctrl[1] == 3.0


def test_pause_stops_time_and_nothing_else(lab):
    """Pause: callbacks run, controls show, time stands; a callback knows that nothing moved."""
    lab.pause()
    moved = []
    lab.loop.on_post_step(lambda model, data, moved_on: moved.append(moved_on))
    lab["arm"].write("panel", {"shoulder": 2.0})
    for _ in range(3):
        lab.loop.iterate_once()
    assert moved == [False] * 3 and lab.snapshot.paused
    assert lab.snapshot.time == 0.0 and lab.snapshot.ctrl[0] == 2.0


def test_a_callback_that_fails_stops_nobody(lab):
    """Register three callbacks, of which one raises; remove one in the middle of a run."""
    calls = []
    first = lab.loop.on_pre_step(lambda *_: calls.append("first"))
    lab.loop.on_pre_step(lambda *_: 1 / 0)
    lab.loop.on_pre_step(lambda *_: calls.append("last"))
    lab.loop.iterate_once()
    first.remove()
    first.remove()
    lab.loop.iterate_once()
    assert calls == ["first", "last", "last"]
    assert "ZeroDivisionError" in lab.loop.callback_errors[-1]
    assert lab.loop.num_steps == 2


def test_reset_returns_to_the_start(lab):
    """Reset: the pose, the time and all commands are the first, and listeners hear once."""
    start = lab.snapshot.qpos.copy()
    heard = []
    lab.on_reset(lambda: heard.append(lab.loop.data.time))
    lab["arm"].write("panel", {"elbow": 5.0})
    lab.step(50)
    lab.reset()
    lab.loop.iterate_once()
    assert heard == [0.0]
    assert np.array_equal(lab["arm"].command.targets, [0.0, 0.0])
    lab.reset()
    assert np.array_equal(lab.snapshot.qpos, start) and lab.snapshot.time == 0.0


def test_nan_is_a_fault_that_a_reset_mends(lab):
    """Put NaN into the state: the world stops, keeps its last good picture, and can be mended."""
    lab.step(5)
    good = lab.snapshot
    lab.post(lambda model, data: data.qvel.__setitem__(0, np.nan))
    with pytest.raises(FaultError, match=r"velocities diverged at 0\.010 s"):
        lab.step()
    assert lab.loop.state == "faulted" and "reset" in lab.loop.fault
    assert np.array_equal(lab.snapshot.qpos, good.qpos) and lab.snapshot.time == good.time
    lab.reset()
    assert lab.loop.state == "ready" and lab.step(3).time == pytest.approx(0.006)


def test_mujocos_own_errors_are_faults(lab):
    """Set an integrator that does not exist: MuJoCo's message is the fault, the process lives."""
    lab.post(lambda model, data: setattr(model.opt, "integrator", 77))
    with pytest.raises(FaultError, match="integrator"):
        lab.step()
    lab.post(lambda model, data: setattr(model.opt, "integrator", 0))
    lab.reset()
    assert lab.step().step == 1


def test_control_laws_that_fail_are_faults(world):
    """Give a robot a law that raises: the world stops and says whose it was, the thread lives."""

    class Bad(Passthrough):
        name = "bad"

        def compute(self, model, data, target):
            raise ArithmeticError("no idea")

    with LiveLab(world) as lab:
        lab["arm"].controller = Bad()
        with pytest.raises(
            FaultError, match="controller 'bad' of 'arm' failed at .* s: ArithmeticError: no idea"
        ):
            lab.step()
        lab["arm"].controller = Passthrough()
        lab.reset()
        assert lab.step().step > 0 and lab.loop.state == "running"


def test_puppets_show_states_and_give_the_world_back(lab):
    """Stack two steppers: the upper one shows, physics waits, and each leaves on its own."""
    puppet, other = Puppet(), Puppet()
    drive = lab.loop.push_stepper(puppet, "alice")
    upper = lab.loop.push_stepper(other, "bob")
    lab.loop.remove_stepper(drive)
    qpos = lab.snapshot.qpos.copy()
    qpos[0] = 0.7
    other.show(qpos=qpos, time=12.5)
    lab.loop.iterate_once()
    assert lab.snapshot.stepper == "puppet" and lab.snapshot.time == 12.5
    assert np.array_equal(lab.snapshot.qpos, qpos)
    lab.loop.iterate_once()
    assert np.array_equal(lab.snapshot.qpos, qpos) and lab.snapshot.step == 1
    with pytest.raises(RuntimeError, match="already advances this world, for 'bob'"):
        lab.loop.push_stepper(other, "carol")
    lab.loop.remove_stepper(upper)
    assert lab.step().stepper == "physics" and lab.snapshot.time > 12.5
    with pytest.raises(ValueError, match="no colour"):
        puppet.show(colour=1.0)


def test_a_wrong_puppet_is_a_fault(lab):
    """Show a state of the wrong size: the loop says so and goes on after a reset."""
    puppet = Puppet()
    lab.loop.push_stepper(puppet, "alice")
    puppet.show(qpos=np.zeros(2))
    lab.loop.iterate_once()
    assert lab.loop.state == "faulted" and "The puppet failed" in lab.loop.fault


@pytest.mark.slow
def test_real_time_is_kept(world):
    """Run for a second: simulated time follows the clock; at 25 % it takes four times as long."""
    with LiveLab(world) as lab:
        time.sleep(0.3)
        for speed in (1.0, 0.25):
            lab.loop.speed = speed
            lab.loop.do(lambda model, data: None)
            factors = []
            while not factors or factors[-1] != pytest.approx(speed, rel=0.2):
                assert len(factors) < 100, factors  # other programs may take some of these seconds
                start, since = lab.snapshot.time, time.perf_counter()
                time.sleep(1.0)
                factors.append((lab.snapshot.time - start) / (time.perf_counter() - since))


def test_stop_is_final(world):
    """Start and stop twenty labs: no thread is left, and a stopped loop takes no commands."""
    before = set(threading.enumerate())
    for _ in range(20):
        lab = LiveLab(world)
        lab.start()
        lab.stop()
        lab.stop()
        assert set(threading.enumerate()) <= before
    assert lab.phases == ["compiled", "bound", "running", "stopped"]
    with pytest.raises(RuntimeError, match="was stopped"):
        lab.reset()
    with pytest.raises(RuntimeError, match="starts only once"):
        lab.start()


def test_commands_of_many_threads_keep_their_order(world):
    """Post from a hundred threads: none is lost, and each thread's commands stay in order."""
    seen: list[tuple[int, int]] = []
    with LiveLab(world) as lab:

        def work(who: int) -> None:
            for i in range(20):
                lab.post(lambda model, data, entry=(who, i): seen.append(entry))

        threads = [threading.Thread(target=work, args=(who,)) for who in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lab.loop.do(lambda model, data: None)
    assert len(seen) == 2000
    for who in range(100):
        assert [i for w, i in seen if w == who] == list(range(20))


def test_snapshots_are_whole(world):
    """Read while physics runs at full speed: each picture is what the loop had at that step."""
    truth: dict[int, bytes] = {}
    lab = LiveLab(world, LabCfg(speed=float("inf")))

    def note(model, data, moved):
        truth[lab.loop.num_steps] = data.qpos.tobytes() + data.xpos.tobytes()

    lab.loop.on_post_step(note)
    seen = []
    with lab:
        while len(seen) < 200:
            seen.append(lab.snapshot)
            time.sleep(0.0005)
        lab.loop.do(lambda model, data: None)
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
            before = lab.loop.data.time
            time.sleep(0.05)
            assert lab.loop.data.time == before
        until(lambda: lab.loop.data.time > before, "the world stands")


def test_the_engine_needs_nobody_else(world):
    """Run an loop alone, without the rest of the lab."""
    loop = PhysicsLoop(world.model)
    loop.start()
    assert loop.step(5).step >= 5 and loop.state == "running"
    loop.stop()
    assert loop.state == "stopped"


def test_commands_act_in_the_next_step(lab):
    """Tell a target, then step: the control is that of this very step."""
    for k in range(1, 6):
        lab["arm"].write("panel", {"elbow": float(k)})
        lab.loop.iterate_once()
        assert lab.snapshot.step == k and lab.snapshot.ctrl[1] == k


def test_controls_come_in_the_order_of_the_robots():
    """Let two robots compute: always the first of the scene first."""
    bots = ARM.split("<worldbody>")[1].split('<body name="ball"')[0].split("/>", 1)[1]
    two = "".join(
        bots.replace('name="', f'name="{robot}/').replace('pos="0 0 .6"', f'pos="0 {y} .6"')
        for robot, y in (("b", 0), ("a", 2))
    )
    motors = "".join(f'<motor name="{r}/m" joint="{r}/elbow"/>' for r in "ba")
    xml = f"<mujoco><worldbody>{two}</worldbody><actuator>{motors}</actuator></mujoco>"
    world = world_from_spec(mujoco.MjSpec.from_string(xml))
    world.robots = {"b": "b/", "a": "a/"}
    lab = LiveLab(world)
    order = []

    class Note(Passthrough):
        def __init__(self, name: str) -> None:
            self.name = name

        def compute(self, model, data, target):
            order.append(self.name)
            return target

    for robot in lab.controls:
        robot.controller = Note(robot.name)
        assert np.array_equal(robot.actuators.ids, np.sort(robot.actuators.ids))
    lab.step(3)
    assert order == ["b", "a"] * 3
    lab.stop()


def test_commands_keep_their_order_in_the_queue(lab):
    """Queue a reset and two states to return to: the last wins, and nothing is mixed."""
    lab["arm"].write("panel", {"elbow": 3.0})
    lab.step(20)
    first = lab.states.save("first")
    lab.step(20)
    second = lab.states.save("second")
    for order in ((first, second), (second, first)):
        for saved in order:
            lab.post(lambda model, data, saved=saved: saved.put_state(lab.loop, model, data))
        lab.loop.iterate_once()
        assert lab.snapshot.time == pytest.approx(order[-1].time + 0.002)
    lab.post(lambda model, data: second.put_state(lab.loop, model, data))
    lab.post(lab.loop._reset)
    lab.loop.iterate_once()
    assert lab.snapshot.time == 0.002 and lab.snapshot.ctrl[1] == 0.0
    lab.post(lab.loop._reset)
    lab.post(lambda model, data: first.put_state(lab.loop, model, data))
    lab.loop.iterate_once()
    assert lab.snapshot.time == pytest.approx(0.042) and lab.snapshot.ctrl[1] == 3.0


def test_options_are_changed_between_steps(world):
    """Change options of a running world from several threads: each step sees one of them."""
    seen = set()
    with LiveLab(world, LabCfg(speed=float("inf"))) as lab:
        lab.loop.on_pre_step(lambda model, data, moved: seen.add(tuple(model.opt.gravity)))

        def work(value: float) -> None:
            for _ in range(50):
                lab.set_option("gravity", (value, value, value))
                time.sleep(0.001)

        threads = [threading.Thread(target=work, args=(float(i),)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with pytest.raises(ValueError, match="no option 'wind_speed'"):
            lab.set_option("wind_speed", 1.0)
        with pytest.raises(TypeError):
            lab.set_option("timestep", "fast")
        with pytest.raises(ValueError, match=r"timestep must be above 0 s, got -1\.0"):
            lab.set_option("timestep", -1.0)
        lab.loop.do(lambda model, data: None)
        lab.step()
    assert all(x == y == z or (x, y) == (0.0, 0.0) for x, y, z in seen) and len(seen) >= 3


def test_a_paused_world_goes_on_slowly(world):
    """Pause: callbacks go on at an idle rate, and know that nothing moved."""
    calls = []
    with LiveLab(world, LabCfg(start_paused=True)) as lab:
        began = time.perf_counter()
        lab.loop.on_post_step(lambda model, data, moved: calls.append(moved))
        until(lambda: len(calls) >= 10, "no callback is called")
        assert len(calls) <= 30 * (time.perf_counter() - began) + 2
        assert lab.snapshot.paused and lab.snapshot.time == 0.0
    assert not any(calls)


def test_worlds_begin_as_they_are_told(world):
    """Begin paused only where it is asked for; the last to begin is the thread."""
    seen = []
    for paused in (False, True):
        lab = LiveLab(world, LabCfg(start_paused=paused))
        assert lab.snapshot.time == 0.0 and lab.snapshot.paused is paused
        lab.loop.on_pre_step(lambda *_, lab=lab: seen.append(list(lab.phases)))
        assert lab.loop.state == "ready" and lab.phases == ["compiled", "bound"]
        lab.start()
        lab.step()
        lab.stop()
        assert lab.snapshot.paused is paused and lab.snapshot.step >= 1
    assert all(status[:2] == ["compiled", "bound"] for status in seen)


def test_modes(lab):
    """Set modes by name; `auto` is live; each snapshot tells it; a locked mode stays."""
    lab.loop.mode = "direct"
    assert lab.step().mode == "direct" == lab.loop.mode
    lab.loop.mode = "auto"
    assert lab.step().mode == "live" == lab.loop.mode
    with pytest.raises(ValueError, match="'live', 'direct' or 'auto', got 'puppet'"):
        lab.loop.mode = "puppet"
    locked = LiveLab(lab.world, LabCfg(mode="direct", mode_lock=True))
    with pytest.raises(RuntimeError, match="locked to 'direct'"):
        locked.loop.mode = "auto"
    locked.loop.mode = "direct"
    assert locked.step().mode == "direct"
    locked.stop()


def test_waiting_costs_nothing(world):
    """Leave a world in direct mode alone: the process sleeps."""
    with LiveLab(world, LabCfg(mode="direct")) as lab:
        lab.step()

        def share() -> float:
            """Share of a core in a second, in which threads of other tests may end."""
            cpu, began = time.process_time(), time.perf_counter()
            time.sleep(1.0)
            return (time.process_time() - cpu) / (time.perf_counter() - began)

        until(lambda: share() < 0.02, "the process is busy")


@pytest.mark.slow
def test_many_steps_in_one_request(world):
    """Ask for ten thousand steps: they come, while others look, ask, and hold the world."""
    with LiveLab(world, LabCfg(mode="direct")) as lab:
        done = threading.Event()
        asked, held = [], []

        def others() -> None:
            while not done.is_set():
                asked.append(lab.loop.do(lambda model, data: data.time))
                with lab.lock():
                    held.append(lab.loop.data.time)
                    assert lab.loop.data.time == held[-1]

        thread = threading.Thread(target=others)
        thread.start()
        assert lab.step(10_000).step == 10_000
        done.set()
        thread.join()
        assert len(set(asked)) > 2 and len(set(held)) > 2


def test_a_request_that_hangs_is_an_error(world):
    """Step while a callback hangs: a timeout, no wedge; then the loop serves others."""
    hang, entered = threading.Event(), threading.Event()
    with LiveLab(world, LabCfg(mode="direct")) as lab:

        def wait(*_) -> None:
            entered.set()
            hang.wait()

        handle = lab.loop.on_pre_step(wait)
        with pytest.raises(TimeoutError):
            lab.loop.step(5, timeout=0.2)
        handle.remove()
        hang.set()
        before = lab.loop.do(lambda model, data: lab.loop.num_steps)
        assert entered.is_set() and before <= 1
        assert lab.step(3).step == before + 3


def test_stopping_during_a_request(world):
    """Stop while a caller waits for steps: it gets an error at once, and no thread blocks."""
    lab = LiveLab(world, LabCfg(mode="direct"))
    lab.start()
    errors: list[Exception] = []

    def ask() -> None:
        try:
            lab.step(10_000_000)
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: lab.snapshot.step >= 10, "no step is made")
    lab.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive() and "stopped" in str(errors[0])
    assert lab.snapshot.step < 10_000_000


def test_whoever_holds_the_world_may_use_it(world):
    """Step, ask, and stop while holding the lock: no deadlock."""
    lab = LiveLab(world)
    lab.start()
    with lab.lock():
        step = lab.snapshot.step
        assert lab.step(2).step == step + 2
        assert lab.loop.do(lambda model, data: data.time) == lab.snapshot.time
        lab.stop()
    assert lab.loop.state == "stopped"


def test_a_reset_is_told_once(world):
    """Reset a running world thrice: listeners hear it thrice, after the state is the first."""
    heard = []
    with LiveLab(world) as lab:
        lab.on_reset(lambda: heard.append((lab.loop.data.time, lab["arm"].command.targets.sum())))
        lab["arm"].write("panel", {"elbow": 2.0})
        for _ in range(3):
            lab.reset()
    assert heard == [(0.0, 0.0)] * 3


def test_helping_threads_change_nothing(world):
    """Let threads help MuJoCo: the number is told, the physics are the same, also after a reset."""
    lab = LiveLab(world)
    lab.loop.set_threads(2)
    assert lab.loop.num_threads == 2
    assert np.array_equal(lab.step(100).qpos, reference(world, 100).qpos)
    lab.loop.set_threads(0)
    lab.reset()
    assert np.array_equal(lab.step(100).qpos, reference(world, 100).qpos)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        lab.loop.set_threads(-1)
    lab.stop()


def test_warnings_are_counted(lab):
    """Break velocities: MuJoCo's warning is counted, and the fault names the body and the time."""
    assert lab.loop.warnings == {}
    lab.step(3)
    lab.post(lambda model, data: data.qvel.__setitem__(4, np.nan))
    with pytest.raises(FaultError, match=r"velocities diverged at 0\.006 s, first of body 'ball'"):
        lab.step()
    assert lab.loop.warnings["badqvel"] == 1
    lab.reset()
    assert lab.loop.warnings == {}


def test_readers_take_no_lock(world):
    """Read snapshots from five threads while another holds the lock: no reader waits."""
    with LiveLab(world) as lab, lab.lock():
        done: list[bool] = []

        def read() -> None:
            for _ in range(1000):
                assert lab.snapshot.qpos.size
            done.append(True)

        readers = [threading.Thread(target=read) for _ in range(5)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(PATIENCE_S)
        assert len(done) == 5


def test_publishers_hear_all_modes(world):
    """Listen after steps while the mode changes, and while a puppet is shown."""
    seen = []
    lab = LiveLab(world)
    lab.loop.on_post_step(lambda model, data, moved: seen.append((lab.loop.mode, moved)))
    for mode in ("live", "direct"):
        lab.loop.mode = mode
        lab.step(3)
    puppet = Puppet()
    lab.loop.push_stepper(puppet, "me")
    puppet.show(time=1.0)
    lab.step()
    assert seen == [("live", True)] * 3 + [("direct", True)] * 4
    assert lab.snapshot.stepper == "puppet" and lab.snapshot.frame_id > 7
    lab.stop()


def test_a_process_may_end_without_stopping(tmp_path):
    """Leave a running, recording lab alone: the interpreter ends cleanly, and so does the file."""
    code = f"""
import mujoco
from pathlib import Path
from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, world_from_spec
spec = mujoco.MjSpec.from_string({ARM!r})
cfg = LabCfg(recorder=RecorderCfg(folder=Path({str(tmp_path)!r}), auto_record=True))
lab = LiveLab(world_from_spec(spec), cfg)
lab.start()
lab.step(100)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    (path,) = tmp_path.iterdir()
    recording = read_mcap(path)
    assert recording.complete and len(recording) >= 100
