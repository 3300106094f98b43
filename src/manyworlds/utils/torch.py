"""How many cores torch uses."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_device(device: str | torch.device) -> torch.device:
    """Turn a name into a torch device.

    Raises:
        ValueError: there is no such kind of device, or no such device here.
    """
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ValueError(f"There is no device '{device}': use 'cpu' or 'cuda'.") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"PyTorch finds no GPU for device '{device}': use device='cpu', or install a driver "
            "and a CUDA build of PyTorch."
        )
    return found


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Run a block with `count` torch threads.

    While physics steps, one thread is best: the engine's own pool has the cores, and idle torch
    workers that spin for work slow it down.
    """
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
