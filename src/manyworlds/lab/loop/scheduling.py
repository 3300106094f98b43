"""Scheduling of the physics thread by the operating system."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import threading

_SLICE_S = 1e-4  # the shortest that Linux accepts
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}  # number of the system call
_SCHED_ATTR = struct.Struct("=IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, ...


def prefer_wakeups() -> bool:
    """Let the calling thread run as soon as it wakes up, in place of a program with long slices.

    Linux 6.12 and later let a thread that asked for short time slices interrupt others of its
    priority, which otherwise may finish a slice of some 3 ms first. The share of the processor does
    not change, and no privilege is needed (`sched_setattr(2)`, `sched_runtime`).

    Returns:
        False if the operating system does not offer this.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if not sys.platform.startswith("linux") or number is None:
        return False
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False  # chosen by the user
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    runtime = round(1e9 * _SLICE_S)
    attributes = _SCHED_ATTR.pack(_SCHED_ATTR.size, os.SCHED_OTHER, 0, nice, 0, runtime, 0, 0)
    return ctypes.CDLL(None).syscall(number, 0, ctypes.c_char_p(attributes), 0) == 0
