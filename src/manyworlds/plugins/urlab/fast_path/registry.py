"""Registry of the publishers on this machine: a file for each of them, in one folder."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from manyworlds.utils.files import write_atomic
from manyworlds.utils.platforms import process_exists

REFRESH_S = 5.0
"""Period in which a publisher writes its file again [s]."""
STALE_S = 30.0
"""Age from which a file is that of a publisher that was killed [s]."""
_ROLE = "fastpath_owner"


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """Publisher of a world, as its file describes it."""

    instance_id: str
    pid: int
    host: str
    scene: str
    ngeom: int
    control_port: int
    bus_port: int
    started_at: int = 0
    """Time of its start [s since 1970]; 0 if the publisher does not tell it."""
    registry_written_at: int = 0
    """Time of the last write [s since 1970]."""

    @property
    def control(self) -> str:
        """Endpoint of requests."""
        return f"tcp://{self.host}:{self.control_port}"

    @property
    def bus(self) -> str:
        """Endpoint of poses."""
        return f"tcp://{self.host}:{self.bus_port}"


def registry_folder() -> Path:
    """Return the folder of the files: `MANYWORLDS_REGISTRY`, or one in the temporary folder."""
    named = os.environ.get("MANYWORLDS_REGISTRY")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(named or Path(tempfile.gettempdir()) / f"manyworlds-{user}")


class RegistryFile:
    """File of one publisher.

    Args:
        instance_id: id of the publisher.
        folder: folder of the files; None takes `registry_folder()`.
    """

    def __init__(self, instance_id: str, folder: Path | None = None) -> None:
        self.path = (folder or registry_folder()) / f"fastpath_{instance_id}_{os.getpid()}.json"
        self._written: Publisher | None = None
        self._time = 0.0

    def write(self, publisher: Publisher) -> None:
        """Write the file if it is new, has changed, or is due again.

        Raises:
            OSError: the file cannot be written.
        """
        now = time.time()
        if publisher == self._written and 0.0 <= now - self._time < REFRESH_S:
            return
        self._written = publisher
        self._time = now
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fields = {
            **dataclasses.asdict(publisher),
            "role": _ROLE,
            "capabilities": [_ROLE],
            "control": publisher.control,
            "bus": publisher.bus,
            "registry_written_at": int(now),
        }
        write_atomic(self.path, json.dumps(fields))

    def remove(self) -> None:
        """Remove the file, if there is one."""
        self._written = None
        self.path.unlink(missing_ok=True)


def find_publishers(folder: Path | None = None) -> list[Publisher]:
    """Return the publishers on this machine, the one that started last first.

    Files of other users, damaged ones, and those of publishers that were killed are left out.

    Args:
        folder: folder of the files; None takes `registry_folder()`.
    """
    found: list[Publisher] = []
    names = [field.name for field in dataclasses.fields(Publisher)]
    for path in (folder or registry_folder()).glob("fastpath_*.json"):
        try:
            state = path.stat()
            fields = json.loads(path.read_text(encoding="utf-8"))
            publisher = Publisher(**{name: fields[name] for name in names if name in fields})
            mine = not hasattr(os, "getuid") or state.st_uid == os.getuid()
            recent = abs(time.time() - publisher.registry_written_at) < STALE_S
            if mine and recent and process_exists(int(publisher.pid)):
                found.append(publisher)
        except (OSError, ValueError, TypeError):
            continue  # it has just ended, or is no file of a publisher
    return sorted(found, key=lambda publisher: publisher.started_at, reverse=True)
