"""Settings of torch: device, threads, precision, and determinism."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator

import torch


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_device(device: str | torch.device) -> torch.device:
    """Convert a name to a torch device.

    Raises:
        ValueError: the type of device is unknown, or the device is not available.
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
    if found.type == "cuda" and found.index is None:
        found = torch.device("cuda", torch.cuda.current_device())  # as that of its tensors
    return found


def same_device(a: str | torch.device, b: str | torch.device) -> bool:
    """Return True if both name one device; a type without an index is its first device."""
    first = torch.device(a)
    second = torch.device(b)
    return first.type == second.type and (first.index or 0) == (second.index or 0)


def configure_torch_backends(allow_tf32: bool = True, deterministic: bool = False) -> None:
    """Configure precision and determinism of torch for the whole process.

    Args:
        allow_tf32: let GPUs round the factors of float32 products to 10 bits.
        deterministic: use only deterministic algorithms; torch warns about operations without
            one.
    """
    torch.set_float32_matmul_precision("high" if allow_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = allow_tf32
    torch.backends.cudnn.benchmark = not deterministic
    torch.backends.cudnn.deterministic = deterministic
    if deterministic:
        # cuBLAS reads this at its first use; without it, torch refuses to multiply matrices.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic, warn_only=True)


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Run a block with `count` torch threads.

    One thread is best while physics steps: the engine's own pool uses the cores, and idle torch
    workers that busy-wait slow it down.
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


@functools.lru_cache(maxsize=1024)
def constants(
    values: tuple[float, ...] | tuple[tuple[float, ...], ...], device: torch.device | str
) -> torch.Tensor:
    """Return a tensor of given numbers, to be read only; a copy at each use would wait for them."""
    with torch.inference_mode(False):
        return torch.tensor(values, device=device)


class DeviceTimer:
    """Timer of one span of work, on the host or on the GPU that does it.

    Work of a GPU is measured by events in its stream, which do not wait for it.
    """

    def __init__(self, device: torch.device) -> None:
        self._events: list[torch.cuda.Event] | None = None
        if device.type == "cuda":
            self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self._start = self._stop = 0.0
        self.enabled = True
        """False measures nothing, where the work is part of a captured graph."""

    def start(self) -> None:
        """Begin the span."""
        if not self.enabled:
            return
        if self._events is None:
            self._start = time.perf_counter()
        else:
            self._events[0].record()

    def stop(self) -> None:
        """End the span."""
        if not self.enabled:
            return
        if self._events is None:
            self._stop = time.perf_counter()
        else:
            self._events[1].record()

    def leave_out(self, seconds: float) -> None:
        """Take time on the host out of the span that has begun [s]."""
        self._start += seconds

    def elapsed(self) -> float:
        """Return the time from the last start to the last stop [s]; a GPU must have passed both."""
        if not self.enabled:
            return 0.0
        if self._events is None:
            return self._stop - self._start
        return self._events[0].elapsed_time(self._events[1]) / 1000.0
