"""Steps in direct mode: which thread runs them, and what may hold them up."""

from __future__ import annotations

import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from manyworlds.lab import Controller, LabCfg, LiveLab


class Held(Controller):
    """Law of a client, which notes the thread that it runs in."""

    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def compute(self, model, data, target):
        """Return the targets."""
        self.seen.append(threading.current_thread().name)
        return target


def test_a_direct_step_runs_in_its_caller(world):
    """Step in direct mode: without code of clients the caller does it, otherwise the loop does."""
    seen: list[str] = []

    def note(*_) -> None:
        seen.append(threading.current_thread().name)

    with LiveLab(world, LabCfg(mode="direct")) as lab, ThreadPoolExecutor(1) as pool:
        names = []
        lab.loop.publisher.publish = lambda snapshot: names.append(threading.current_thread().name)
        pool.submit(lab.step, 300).result()  # the loop's thread, where it wakes, does some of them
        assert len(names) >= 300 and next(iter(pool._threads)).name in names
        handle = lab.loop.on_post_step(note)
        pool.submit(lab.step, 2).result()
        assert seen == ["manyworlds-physics"] * 2
        handle.remove()
        law, lab["arm"].controller = lab["arm"].controller, Held(seen)
        pool.submit(lab.step, 2).result()
        assert seen == ["manyworlds-physics"] * 4
        lab["arm"].controller = law
        calls: list[object] = []
        handle = lab.loop.on_post_step(functools.partial(lambda *args: calls.append(args)))
        pool.submit(lab.step, 2).result()
        assert len(calls) == 2
        handle.remove()
        before = lab.snapshot.step
        futures = [pool.submit(lab.step, 50) for _ in range(4)]
        own = lab.step(50).step
        last = max(own, *(future.result().step for future in futures))
        assert last == lab.snapshot.step == before + 250


def test_a_command_that_hangs_does_not_hold_up_steps(world):
    """Step while a client's command hangs in direct mode: a timeout."""
    hang = threading.Event()
    with LiveLab(world, LabCfg(mode="direct")) as lab:
        lab.loop.post(lambda model, data: hang.wait())
        with pytest.raises(TimeoutError):
            lab.loop.step(timeout=0.2)
        hang.set()
        assert lab.step().step >= 1


def test_the_lock_interrupts_direct_steps(world):
    """Hold the lock while another thread steps directly: no step, and then all of them."""
    with LiveLab(world, LabCfg(mode="direct")) as lab, ThreadPoolExecutor(1) as pool:
        future = pool.submit(lab.step, 20_000)
        while lab.snapshot.step < 5:
            time.sleep(0.0005)
        with lab.lock():
            held = lab.snapshot.step
            time.sleep(0.05)
            assert lab.snapshot.step == held < 20_000
        assert future.result().step == 20_000
