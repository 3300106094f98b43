"""Counts where the host would have to wait for a GPU, by watching code that runs on the CPU."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import manyworlds

# The package itself, whatever folders above it are called; its modules have this path, too.
_PACKAGE = Path(manyworlds.__path__[0])
# What tells the host values or sizes that depend on them: item, bool, int, float; ids of a mask.
_OPERATORS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal")
# What only the CPU does, to fail early or to save work; and the engine, which is not torch's.
_ON_CPU_ONLY = {
    "managers/action_manager.py:process_action",
    "sensor/raycast_sensor.py:_compute_data",
    "tasks/velocity/mdp/velocity_command.py:_resample_where",
}


@contextlib.contextmanager
def host_reads(monkeypatch) -> Iterator[list[str]]:
    """List the places, as file:function, that read values of tensors on the host."""
    places: list[str] = []

    def note() -> None:
        place = _place()
        if place not in _ON_CPU_ONLY and not place.startswith("sim/"):
            places.append(place)

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if any(name in func.__name__ for name in _OPERATORS):
                note()
            return func(*args, **(kwargs or {}))

    with monkeypatch.context() as patch, Watch():
        for method in ("cpu", "tolist"):
            own = getattr(torch.Tensor, method)

            def noted(tensor, *args, _own=own, **kwargs):
                note()
                return _own(tensor, *args, **kwargs)

            patch.setattr(torch.Tensor, method, noted)
        yield places


def _place() -> str:
    """The innermost function of the package, or the test, that is being run."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            inside = path.relative_to(_PACKAGE)
            if inside.parts[0] not in ("utils", "validation"):  # rather who calls it
                return f"{inside.as_posix()}:{frame.f_code.co_name}"
        frame = frame.f_back
    return "test"
