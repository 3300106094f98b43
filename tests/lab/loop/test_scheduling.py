"""Time slices of the physics thread."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import threading

import mujoco
import pytest

from manyworlds.lab.loop.physics_loop import PhysicsLoop
from manyworlds.lab.loop.scheduling import prefer_wakeups

_XML = "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275, "riscv64": 275}


def attributes(thread_id: int) -> tuple[int, int, int]:
    """Return policy, niceness and time slice [ns] of a thread."""
    buffer = ctypes.create_string_buffer(48)
    number = _SCHED_GETATTR[platform.machine()]
    assert ctypes.CDLL(None).syscall(number, thread_id, buffer, len(buffer), 0) == 0
    values = struct.unpack("=IIQiIQQQ", buffer.raw)
    return values[1], values[3], values[5]


linux = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in _SCHED_GETATTR,
    reason="needs Linux's sched_getattr",
)


def kernel_has_slices() -> bool:
    """Return True for Linux 6.12 and later."""
    release = platform.release().split(".")
    return (int(release[0]), int(release[1].split("-")[0])) >= (6, 12)


@linux
def test_physics_thread_asks_for_short_slices_and_keeps_its_niceness() -> None:
    """Its policy is the default one."""
    if not kernel_has_slices():
        pytest.skip("Linux keeps time slices of threads since 6.12")
    here = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    loop = PhysicsLoop(mujoco.MjModel.from_xml_string(_XML))
    loop.start()
    try:
        physics = loop.do(lambda model, data: threading.get_native_id(), edits_model=False)
        assert attributes(physics) == (os.SCHED_OTHER, here, 100_000)
    finally:
        loop.stop()


@linux
def test_a_nicer_thread_stays_nicer() -> None:
    """A lower niceness would need a privilege."""
    found: list[tuple[bool, int]] = []

    def run() -> None:
        me = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, me, 15)
        found.append((prefer_wakeups(), attributes(me)[1]))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(True, 15)]


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of the system call is not known there."""
    monkeypatch.setattr(platform, "machine", lambda: "something else")
    assert prefer_wakeups() is False
