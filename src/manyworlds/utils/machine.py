"""Description of the machine and of the installed packages, for results that depend on them."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from manyworlds.utils.devices import usable_cores
from manyworlds.utils.extras import installed_version, own_version

_PACKAGES = ("mujoco", "mujoco-warp", "warp-lang", "torch", "rsl-rl-lib", "numpy")


def machine(gpu: bool) -> dict[str, object]:
    """Return processor, cores, load, system and Python version, and the GPU if asked."""
    return {
        "processor": _processor(),
        "cores": usable_cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "gpu": _gpu() if gpu else None,
    }


def package_versions() -> dict[str, str]:
    """Return the versions of the installed packages that training depends on."""
    found = {"manyworlds": own_version()}
    found |= {name: installed_version(name) for name in _PACKAGES}
    return {name: version for name, version in found.items() if version}


def _gpu() -> str | None:
    import torch

    if not torch.cuda.is_available():
        return None
    return torch.cuda.get_device_name()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
