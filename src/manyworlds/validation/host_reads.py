"""Shortcuts that depend on values, which the host reads without a wait on CPUs alone."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_GPU_PATHS = contextvars.ContextVar("gpu_paths", default=False)


def reads_are_free(device: torch.device) -> bool:
    """Return whether the host reads tensors of a device without a wait: on the CPU alone.

    Code may then take a shortcut that depends on values. Within `gpu_paths` the answer is no.
    """
    return device.type == "cpu" and not _GPU_PATHS.get()


@contextlib.contextmanager
def gpu_paths() -> Iterator[None]:
    """Run a block as on a GPU, without the shortcuts of the CPU, to see what its code reads."""
    token = _GPU_PATHS.set(True)
    try:
        yield
    finally:
        _GPU_PATHS.reset(token)
