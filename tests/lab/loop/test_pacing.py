"""Simulated time and the clock on the wall."""

from __future__ import annotations

import math
import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.loop.pacing import Pacer
from tests.waiting import until


class Clock:
    """Clock that advances by 10 us with each reading, and while a thread waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 1e-5
        return self.now

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        self.now += seconds + 3e-4  # waits are late


def run(pacer: Pacer, clock: Any, steps: int, timestep: float = 0.002, work: float = 5e-4) -> float:
    """Make steps that take some time each; return how long all took."""
    start = clock.now
    for _ in range(steps):
        clock.now += work
        pacer.wait(timestep, clock)
    return clock.now - start


@pytest.fixture
def clock() -> Clock:
    """A clock."""
    return Clock()


@pytest.fixture
def pacer(clock: Clock, monkeypatch) -> Pacer:
    """A pacer by that clock."""
    monkeypatch.setattr("manyworlds.lab.loop.pacing.time.sleep", lambda seconds: None)
    return Pacer(clock=clock)


def test_ten_seconds_take_ten_seconds(pacer, clock):
    """Pace 5000 steps whose waits are all late: no error adds up."""
    assert run(pacer, clock, 5000) == pytest.approx(10.0, abs=1e-3)
    assert pacer.pace.real_time_factor == pytest.approx(1.0, abs=1e-3)
    assert pacer.pace.behind_s == 0.0


@pytest.mark.parametrize(
    ("asked", "speed"), [(0.25, 0.25), (4.0, 4.0), (0.01, 0.05), (50.0, 10.0), (1.0, 1.0)]
)
def test_speeds_are_kept_within_bounds(pacer, clock, asked, speed):
    """Ask for slow and fast motion: what counts is told, and time passes at it."""
    pacer.speed = asked
    assert pacer.speed == speed == pacer.pace.speed
    assert run(pacer, clock, 500, work=1e-5) == pytest.approx(1.0 / speed, rel=0.01)


def test_without_bound_nobody_waits(pacer, clock):
    """Run as fast as it goes; a speed that is no number is refused."""
    pacer.speed = math.inf
    assert run(pacer, clock, 100) == pytest.approx(100 * 5e-4, rel=0.1)
    with pytest.raises(ValueError, match="got nan"):
        pacer.speed = math.nan


def test_a_stall_is_told_and_made_up_for(pacer, clock):
    """Stall for 50 ms: the factor says so, and the world catches up."""
    run(pacer, clock, 100)
    clock.now += 0.05
    pacer.wait(0.002, clock)
    assert pacer.pace.behind_s == pytest.approx(0.048, abs=0.002)
    assert pacer.pace.real_time_factor < 0.85
    start = clock.now
    run(pacer, clock, 400)
    assert clock.now - start == pytest.approx(0.8 - 0.048, abs=0.003)
    assert pacer.pace.behind_s == 0.0


@pytest.mark.parametrize("most", [0.0, 0.1])
def test_what_is_too_late_is_dropped(pacer, clock, most):
    """Stall for longer than the world may be late: it goes on at its pace from there."""
    pacer.max_behind_s = most
    run(pacer, clock, 100)
    clock.now += 0.5
    pacer.wait(0.002, clock)
    assert run(pacer, clock, 400) == pytest.approx(0.8, abs=0.003)


def test_a_world_that_is_too_slow_says_so(pacer, clock):
    """Make steps that take twice as long as they should: the factor is one half."""
    run(pacer, clock, 1000, work=0.004)
    assert pacer.pace.real_time_factor == pytest.approx(0.5, abs=0.01)


def test_the_timestep_may_change(pacer, clock):
    """Change it while the world runs: the pace is kept."""
    run(pacer, clock, 300)
    assert run(pacer, clock, 300, timestep=0.005) == pytest.approx(1.5, abs=2e-3)
    assert pacer.pace.real_time_factor == pytest.approx(1.0, abs=2e-3)


def test_the_engine_reads_the_timestep_anew(world):
    """Change the timestep of a running world: its time goes by that, and the pacer is told."""
    asked = set()
    with LiveLab(world) as lab:
        wait = lab.loop.pacer.wait

        def noted(timestep: float, stop: threading.Event) -> None:
            asked.add(timestep)
            wait(timestep, stop)

        lab.loop.pacer.wait = noted
        for timestep in (0.004, 0.001):
            lab.set_option("timestep", timestep)
            until(lambda: timestep in asked, "the pacer is not told")  # noqa: B023


def idle_machine() -> None:
    """Skip a test of real time where others work, too."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.5 * cores:
        pytest.skip(f"the machine is busy: load {load:.1f} on {cores} cores")


@pytest.mark.slow
@pytest.mark.parametrize("timestep", [0.002, 0.001])
def test_real_time_with_a_reader(world, timestep):
    """Run 10 s beside a thread that reads 60 times a second: 1 %, and less than one core."""
    idle_machine()
    done = threading.Event()

    def read() -> None:
        while not done.wait(1 / 60):
            sum(float(np.sum(getattr(lab.snapshot, name))) for name in ("qpos", "xpos", "xquat"))

    with LiveLab(world, LabCfg(options={"timestep": timestep})) as lab:
        reader = threading.Thread(target=read)
        reader.start()
        lab.loop.do(lambda model, data: None)
        start, since, cpu = lab.snapshot.time, time.perf_counter(), time.process_time()
        time.sleep(10.0)
        snapshot = lab.snapshot
        elapsed, busy = time.perf_counter() - since, time.process_time() - cpu
        factor = lab.loop.pace.real_time_factor
        done.set()
        reader.join()
    assert (snapshot.time - start) / elapsed == pytest.approx(1.0, abs=0.01)
    assert factor == pytest.approx(1.0, abs=0.02) and busy < elapsed
