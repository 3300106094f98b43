"""Checks of the machine for `manyworlds doctor`: OpenGL, GPU, ports and disk."""

from __future__ import annotations

import importlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from manyworlds.utils.extras import install_command, is_installed
from manyworlds.utils.platforms import cache_folder, is_windows

PAGE_PORT = 8080
_SHIFTED = "manyworlds lab TARGET --serve --port-shift 100"
LEAST_FREE_GB = 2.0
"""Space below which a training with videos may fill the disk [GB]."""
_DRIVERS = ("/proc/driver/nvidia/version", "/dev/dxg")  # of Linux, and of WSL 2


class MachineCheck(NamedTuple):
    """Result of one check."""

    what: str
    found: str
    remedy: str = ""
    """Command or action that helps; empty if all is well."""


def check_machine() -> Iterator[MachineCheck]:
    """Yield the results of all checks; OpenGL takes a second or two."""
    yield from check_gl()
    _import_mujoco()
    yield from check_gpu()
    yield from check_ports()
    yield from check_disk()


def check_gl() -> Iterator[MachineCheck]:
    """Check whether videos and cameras can be drawn."""
    from manyworlds.utils.gl import gl_available, gl_backend

    reason = gl_available()
    if reason is None:
        yield MachineCheck("OpenGL", gl_backend() or "window system")
    else:
        found, _, remedy = reason.rpartition("): ")
        yield MachineCheck("OpenGL", f"{found})", remedy.rstrip("."))


def _import_mujoco() -> None:
    """Import MuJoCo, also where it fails with the backend that MUJOCO_GL names."""
    from manyworlds.utils.gl import gl_available

    asked = os.environ.get("MUJOCO_GL")
    if asked is None or gl_available() is None:
        return
    os.environ["MUJOCO_GL"] = "off"
    try:
        importlib.import_module("mujoco")
    finally:
        os.environ["MUJOCO_GL"] = asked


def check_gpu() -> Iterator[MachineCheck]:
    """Check whether PyTorch and MuJoCo Warp can use the GPU, if there is one of NVIDIA."""
    import torch

    if torch.cuda.is_available():
        found = torch.cuda.get_device_name()
        remedy = ""
        if not is_installed("mujoco_warp"):
            remedy = f"{install_command('gpu')}  # for physics on it"
    elif not has_nvidia_driver():
        found = "none of NVIDIA; the CPU is used"
        remedy = ""
    elif torch.version.cuda is None:  # pyright: ignore[reportAttributeAccessIssue]
        found = f"not usable by PyTorch {torch.__version__}, a build for the CPU"
        remedy = "pip uninstall torch; pip install 'torch<2.14'"
        if is_windows():
            remedy += " --index-url https://download.pytorch.org/whl/cu128"
    else:
        found = f"not usable by PyTorch, which was built for CUDA {torch.version.cuda}"  # pyright: ignore[reportAttributeAccessIssue]
        remedy = "nvidia-smi  # shows the driver's version: install a driver for that CUDA or newer"
    yield MachineCheck("GPU", found, remedy)


def has_nvidia_driver() -> bool:
    """Return True if the driver of an NVIDIA GPU is installed."""
    return shutil.which("nvidia-smi") is not None or any(Path(p).exists() for p in _DRIVERS)


def check_ports() -> Iterator[MachineCheck]:
    """Check whether the ports of pages and of `lab --serve` are free."""
    from manyworlds.lab.server.config import LabServerCfg

    remedies = {PAGE_PORT: "--port NUMBER; the next free port is taken without it"}
    remedies |= dict.fromkeys(sorted(LabServerCfg().ports.values()), _SHIFTED)
    holders = {number: _holder(number) for number in remedies}
    used: dict[tuple[str, str], list[int]] = {}
    for number, holder in holders.items():
        if holder is not None:
            used.setdefault((holder, remedies[number]), []).append(number)
    for (holder, remedy), numbers in used.items():
        what = f"port{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
        yield MachineCheck(what, f"in use{holder}", f"end that process, or {remedy}")
    free = ", ".join(str(number) for number, holder in holders.items() if holder is None)
    if free:
        yield MachineCheck("free ports", free)


def _holder(number: int) -> str | None:
    """Return words for the process that listens on a port; None if the port is free."""
    from manyworlds.lab.server.ports import holder_of

    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", number))
        except OSError:
            holder = holder_of(number)
            if not holder:
                return ""
            return f" by {holder}"
    return None


def check_disk() -> Iterator[MachineCheck]:
    """Check space, and whether files can be written: runs, caches and temporary files."""
    for what, folder in (
        ("disk of this folder", Path.cwd()),
        ("disk of caches", cache_folder()),
        ("disk of temporary files", Path(tempfile.gettempdir())),
    ):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free / 1e9
        found = f"{free:,.1f} GB free at {there}"
        if not _can_write(there):
            remedy = f"choose a folder that you can write: {_CHOICES[what]}"
            yield MachineCheck(what, f"{there} cannot be written", remedy)
        elif free < LEAST_FREE_GB:
            yield MachineCheck(what, found, f"make space, or choose another disk: {_CHOICES[what]}")
        else:
            yield MachineCheck(what, found)


_CHOICES = {
    "disk of this folder": "manyworlds train TASK --log-root FOLDER",
    "disk of caches": "export XDG_CACHE_HOME=FOLDER",
    "disk of temporary files": "export TMPDIR=FOLDER",
}


def _can_write(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
