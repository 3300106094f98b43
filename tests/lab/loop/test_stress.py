"""Many starts, many hands: nothing leaks, hangs, tears or gets lost."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.lab import (
    LabCfg,
    LiveLab,
    PoseSequencer,
    Puppet,
    RecorderCfg,
    world_from_spec,
)
from manyworlds.lab.loop import physics_loop
from manyworlds.lab.robots.sequence import Pose
from tests.lab.conftest import ARM

KEYS = '<keyframe><key name="up" qpos="1 0 0 0 1 1 0 0 0"/></keyframe>'
SPEC = ARM.replace("</actuator>", f"</actuator>{KEYS}")
NUM_THREADS = 8


def stress_lab(folder: Path) -> LiveLab:
    """A lab with everything: a robot, a keyframe, a mocap body, recordings."""
    world = world_from_spec(mujoco.MjSpec.from_string(SPEC))
    return LiveLab(world, LabCfg(recorder=RecorderCfg(folder=folder, max_duration=2.0)))


def descriptors() -> int:
    """Number of files, sockets and pipes that this process has open."""
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="there is no /proc")
def test_a_hundred_starts_and_stops_leak_nothing(tmp_path):
    """Start, record, step, stop, a hundred times: no thread, no descriptor is left."""

    def cycle(i: int) -> None:
        with stress_lab(tmp_path) as lab:
            if i % 10 == 0:
                lab.recorder.start(f"{i}.mcap")
            lab.step(3)

    cycle(0)
    gc.collect()
    (tmp_path / "0.mcap").unlink()
    before = threading.active_count(), descriptors()
    for i in range(100):
        cycle(i)
    gc.collect()
    assert (threading.active_count(), descriptors()) == before
    assert len(list(tmp_path.iterdir())) == 10


class Hammer:
    """Everything that a lab offers, called at random, and what became of each call."""

    def __init__(self, lab: LiveLab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.puppet = Puppet()
        self.worlds = [lab.world, world_from_spec(mujoco.MjSpec.from_string(SPEC))]
        self.calls: dict[str, int] = {}
        self.errors: list[str] = []
        self.posted, self.applied = [0] * NUM_THREADS, [0] * NUM_THREADS
        self.torn = 0

    def verbs(self, rng: random.Random) -> dict[str, Callable[[], object]]:
        """Actions by name."""
        lab = self.lab
        robot = lab["arm"]
        name = f"s{rng.randrange(4)}"
        owner = rng.choice(("panel", "script", "nobody"))
        return {
            "pause": lab.pause,
            "play": lab.play,
            "step": lambda: lab.step(rng.randrange(1, 5)),
            "reset": lab.reset,
            "mode": lambda: setattr(lab.loop, "mode", rng.choice(("live", "direct", "auto"))),
            "speed": lambda: setattr(lab.loop, "speed", rng.choice((0.5, 1.0, float("inf")))),
            "take": lambda: robot.take(owner),
            "release": lambda: robot.release(owner),
            "write": lambda: robot.write(owner, {"elbow": rng.uniform(-5, 5)}),
            "write_all": lambda: robot.write(owner, np.full(2, rng.uniform(-5, 5))),
            "save": lambda: lab.states.save(name),
            "restore": lambda: lab.states.restore(name),
            "disk": lambda: lab.states.read(lab.states.write(name, self.folder)),
            "keyframe": lambda: lab.keyframes.reset("arm", "up"),
            "hold": lambda: lab.keyframes.hold("arm"),
            "unhold": lambda: lab.keyframes.stop_hold("arm"),
            "grab": lambda: lab.perturbation.grab(3, np.zeros(3)),
            "pull": lambda: lab.perturbation.pull(np.ones(3)),
            "drop": lab.perturbation.release,
            "record": lambda: lab.recorder.start(),
            "unrecord": lab.recorder.stop,
            "load": lambda: lab.recorder.load("Live"),
            "replay": lambda: lab.replay.start("Live"),
            "seek": lambda: lab.replay.seek(rng.random()),
            "frames": lambda: lab.replay.step_frames(1),
            "unreplay": lab.replay.stop,
            "option": lambda: lab.set_option("timestep", rng.choice((0.001, 0.002))),
            "sequence": lambda: PoseSequencer(robot, (Pose(targets={"elbow": 1.0}),)).play(),
            "view": lambda: lab.view("joint", "elbow").qpos,
            "why": lambda: lab.why_not_moving("arm"),
            "info": lab.info,
            "lock": self.hold,
            "drive": self.show,
            "rebuild": lambda: lab.rebuild(rng.choice(self.worlds)),
        }

    def hold(self) -> None:
        """Keep the world: it does not move meanwhile."""
        with self.lab.lock():
            before = self.lab.loop.data.qpos.copy()
            time.sleep(0.001)
            self.torn += not np.array_equal(before, self.lab.loop.data.qpos)

    def show(self) -> None:
        """Be a puppet for a moment."""
        drive = self.lab.loop.push_stepper(self.puppet, "hammer")
        self.puppet.show(time=1.0)
        self.lab.loop.remove_stepper(drive)

    def work(self, who: int, until: float) -> None:
        """Do something until it is time, and count commands that go in and come to pass."""
        rng = random.Random(who)
        while time.monotonic() < until:
            verb, act = rng.choice(list(self.verbs(rng).items()))
            try:
                act()
            # What others did meanwhile may leave nothing to do: refusals are right, hangs are not.
            except TimeoutError as error:
                self.errors.append(f"{verb}: {error!r}")
            except (RuntimeError, KeyError, ValueError, FileNotFoundError):
                pass
            except Exception as error:
                self.errors.append(f"{verb}: {error!r}")
            self.calls[verb] = self.calls.get(verb, 0) + 1
            self.posted[who] += 1
            self.lab.post(lambda model, data: self.count(who))
            self.look()

    def count(self, who: int) -> None:
        """Note that a command came to pass."""
        self.applied[who] += 1

    def look(self) -> None:
        """Read a snapshot twice: it is good, and never changes."""
        snapshot = self.lab.snapshot
        self.torn += not np.isfinite(snapshot.block).all()
        before = snapshot.block.tobytes()
        time.sleep(0)
        self.torn += before != snapshot.block.tobytes()


def hammer(folder: Path, seconds: float) -> Hammer:
    """Let eight threads do everything at once."""
    lab = stress_lab(folder)
    lab.start()
    state = Hammer(lab, folder)
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=state.work, args=(who, until), name=f"hammer-{who}", daemon=True)
        for who in range(NUM_THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60.0)
    assert not any(thread.is_alive() for thread in threads), "a thread blocks"
    lab.reset()
    assert lab.loop.state == "running"
    lab.stop()
    return state


@pytest.mark.parametrize("seconds", [2.0, pytest.param(30.0, marks=pytest.mark.slow)])
def test_eight_threads_do_no_harm(tmp_path, monkeypatch, seconds):
    """Call everything from eight threads: no deadlock, torn snapshot or lost command."""
    # Nine threads of one process may wait seconds for a busy machine; a deadlock lasts.
    monkeypatch.setattr(physics_loop, "_COMMAND_S", 30.0)
    state = hammer(tmp_path, seconds)
    assert not state.errors and state.torn == 0
    assert state.applied == state.posted and min(state.posted) > 20
    assert len(state.calls) > 25
    assert not state.lab.loop.callback_errors and state.lab.loop.state == "stopped"


@pytest.mark.slow
def test_poses_and_joints_are_of_one_step(tmp_path):
    """Read from eight threads at full speed: each pose follows from the joints beside it."""
    world = world_from_spec(mujoco.MjSpec.from_string(SPEC))
    wrong: list[float] = []
    counts = [0] * NUM_THREADS
    with LiveLab(world, LabCfg(speed=float("inf"))) as lab:
        until = time.monotonic() + 2.0

        def read(who: int) -> None:
            data = mujoco.MjData(world.model)
            while time.monotonic() < until:
                before, snapshot = lab.snapshot, lab.snapshot
                assert snapshot.frame_id >= before.frame_id
                # Poses are those of the positions before the step that led to these.
                data.qpos[:], data.mocap_pos[:] = snapshot.qpos, snapshot.mocap_pos
                mujoco.mj_integratePos(world.model, data.qpos, snapshot.qvel, -0.002)
                mujoco.mj_kinematics(world.model, data)
                if snapshot.step:
                    wrong.append(float(np.abs(data.xpos - snapshot.xpos).max()))
                counts[who] += 1

        threads = [threading.Thread(target=read, args=(who,)) for who in range(NUM_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert min(counts) > 10 and max(wrong) < 1e-9


def test_commands_are_whole(tmp_path):
    """Write all targets from a thread at full speed: physics never sees half of a command."""
    torn: list[list[float]] = []
    world = world_from_spec(mujoco.MjSpec.from_string(SPEC))
    with LiveLab(world, LabCfg(speed=float("inf"))) as lab:

        def check(model, data, moved) -> None:
            if data.ctrl[0] != data.ctrl[1]:
                torn.append(data.ctrl.tolist())

        lab.loop.on_post_step(check)
        until, value = time.monotonic() + 1.0, 0.1
        while time.monotonic() < until:
            value = -value * (1.0 + 2**-52)
            lab["arm"].write("panel", np.array([value, value]))
        lab.step()
        assert lab.snapshot.ctrl.tolist() == [value, value] and not torn
