"""A write is seen by the next read, in each mode and state of the loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, Puppet, RecorderCfg, world_from_file
from tests.robots import robot_file
from tests.waiting import PATIENCE_S

READS = 300


def write_and_read(lab: LiveLab, count: int = READS) -> list[int]:
    """Write a force on the world body, wait, and read; return the writes that a read missed."""
    stale = []
    for i in range(count):
        value = 1.0 + i
        future = lab.post(lambda model, data, v=value: data.xfrc_applied.__setitem__((0, 0), v))
        future.result(PATIENCE_S)
        snapshot = lab.snapshot
        if snapshot.xfrc_applied[0, 0] != value or snapshot.frame_id < future.frame_id:
            stale.append(i)
    return stale


def test_reads_of_a_running_world(world):
    """Write and read three hundred times while physics runs in real time."""
    with LiveLab(world) as lab:
        assert not write_and_read(lab)


@pytest.mark.parametrize("speed", [1.0, float("inf")])
def test_reads_after_a_reset(world, speed):
    """Reset, and go back to a saved state, three hundred times: each read is after it."""
    stale = []
    with LiveLab(world, LabCfg(speed=speed)) as lab:
        start = lab.states.save("start")
        for i in range(READS):
            lab.post(lambda model, data: setattr(data, "time", 1000.0)).result(PATIENCE_S)
            assert lab.snapshot.time >= 1000.0
            if i % 2:
                lab.reset()
            else:
                lab.states.restore("start")
            stale += [i] * (lab.snapshot.time > start.time + 900.0)
    assert not stale


def paused(lab: LiveLab) -> None:
    """Pause."""
    lab.pause()


def direct(lab: LiveLab) -> None:
    """Let the world wait for steps."""
    lab.loop.mode = "direct"


def faulted(lab: LiveLab) -> None:
    """Stop the world by a controller that fails."""
    lab["arm"].controller.compute = lambda *_: 1 / 0  # type: ignore[method-assign]
    while lab.loop.state != "faulted":
        time.sleep(0.001)


def puppet(lab: LiveLab) -> None:
    """Let a puppet with nothing to show replace physics."""
    lab.loop.push_stepper(Puppet(), "me")


@pytest.mark.parametrize("enter", [paused, direct, faulted, puppet])
@pytest.mark.parametrize("threaded", [True, False])
def test_reads_in_other_states(world, enter: Callable[[LiveLab], None], threaded):
    """Write and read while the world is paused, waits for steps, is faulted, or is a puppet's."""
    lab = LiveLab(world)
    if threaded:
        lab.start()
        enter(lab)
        assert not write_and_read(lab, 30)
        lab.reset()
        assert lab.snapshot.time < 1.0 and lab.snapshot.xfrc_applied[0, 0] == 0.0
    elif enter is not faulted:
        enter(lab)
        lab.loop.do(lambda model, data: data.mocap_pos.__setitem__((0, 0), 7.0))
        assert lab.snapshot.mocap_pos[0, 0] == 7.0
    lab.stop()


def test_reads_during_a_replay(world, tmp_path):
    """Move to moments of a recording, playing or not: each read shows the moment."""
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(folder=tmp_path, to_file=False))
    with LiveLab(world, cfg) as lab:
        lab.recorder.start()
        lab.step(500)
        lab.recorder.stop()
        lab.loop.mode = "live"
        lab.replay.start()
        lab.replay.loop = False
        for playing in (True, False):
            (lab.replay.play if playing else lab.replay.pause)()
            for i in range(50):
                moment = (0.1, 0.8)[i % 2]
                lab.replay.seek(moment)
                assert moment - 1e-9 <= lab.snapshot.time < moment + (0.7 if playing else 1e-9)
        assert not write_and_read(lab, 50)


def test_reads_of_other_writers(world):
    """Write from four threads at once, also to a stopped loop: each sees its own, or an error."""
    stale: list[int] = []
    with LiveLab(world) as lab:

        def work(who: int) -> None:
            for i in range(50):
                value = 100.0 * (i + 1)
                future = lab.post(
                    lambda model, data, v=value: data.xfrc_applied.__setitem__((1 + who, 0), v)
                )
                future.result(PATIENCE_S)
                stale.extend([who] * int(lab.snapshot.xfrc_applied[1 + who, 0] != value))

        threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not stale
    with pytest.raises(RuntimeError, match="was stopped"):
        lab.post(lambda model, data: None)


def test_commands_of_one_drain_share_a_snapshot(lab):
    """Queue three commands, one of which fails: all end with the same frame, after its snapshot."""
    seen = []
    futures = [
        lab.post(lambda model, data: data.mocap_pos.__setitem__((0, 0), 5.0)),
        lab.post(lambda model, data: 1 / 0),
        lab.post(lambda model, data: data.time),
    ]
    for future in futures:
        future.add_done_callback(lambda _: seen.append(lab.snapshot.mocap_pos[0, 0]))
    before = lab.snapshot.frame_id
    assert [future.frame_id for future in futures] == [-1] * 3
    lab.loop.iterate_once()
    assert [future.frame_id for future in futures] == [before + 1] * 3
    assert lab.snapshot.frame_id == before + 1 and seen == [5.0] * 3
    assert isinstance(futures[1].exception(), ZeroDivisionError)


def test_settings_are_seen_at_once(world):
    """Pause, play, and set mode and speed of a running world: the next read has each."""
    with LiveLab(world) as lab:
        for _ in range(20):
            lab.pause()
            assert lab.paused and lab.snapshot.paused
            lab.play()
            assert not lab.paused and not lab.snapshot.paused
            for mode in ("direct", "live"):
                lab.loop.mode = mode
                assert lab.loop.mode == mode == lab.snapshot.mode
            lab.loop.speed = 0.5
            assert lab.loop.speed == 0.5
            lab.loop.speed = 1.0


@pytest.mark.parametrize("name", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def test_reads_of_robots(name):
    """Write joint positions of third-party robots: the next read is of these."""
    with LiveLab(world_from_file(robot_file(name)), LabCfg(start_paused=True)) as lab:
        for value in np.linspace(-0.1, 0.1, 20):

            def put(model: mujoco.MjModel, data: mujoco.MjData, v: float = value) -> None:
                data.qpos[-3:] = v

            lab.post(put).result(PATIENCE_S)
            assert (lab.snapshot.qpos[-3:] == value).all()
