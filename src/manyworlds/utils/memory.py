"""Free memory of this machine."""

from __future__ import annotations

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Return the memory that this process can still take [bytes]; None if it is not known.

    That is the least of what Linux estimates for the machine and what a container has left.
    """
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        parts = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # no container, or "max"
        pass
    else:
        cached = int(parts.get("inactive_file", 0))  # of files, which the system drops on demand
        found.append(max(0, limit - used + cached))
    return min(found, default=None)


def check_memory(what: str, num_envs: int, bytes_per_world: int) -> None:
    """Check that worlds can fit into memory, because the system kills a process that exceeds it.

    Args:
        what: what the worlds are of, such as "this model".
        num_envs: number of worlds.
        bytes_per_world: least memory of a world [bytes].

    Raises:
        ValueError: they cannot.
    """
    free = free_memory()
    needed = num_envs * bytes_per_world
    if free is not None and num_envs > 1 and needed > free:
        most = max(1, free // bytes_per_world)
        raise ValueError(
            f"{num_envs} worlds of {what} need more than {needed / 1e9:.1f} GB, and this machine "
            f"has {free / 1e9:.1f} GB free: make num_envs at most {most}."
        )
