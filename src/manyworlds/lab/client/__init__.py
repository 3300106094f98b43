"""Client of a lab in another process: `connect`, errors, and a gymnasium environment.

Names are loaded on first use; none but `LabEnv` needs more than NumPy, MuJoCo, pyzmq and msgpack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.lab.client.client import LabClient, connect, image_of
    from manyworlds.lab.client.errors import (
        BadRequestError,
        BadValueError,
        FileError,
        LabConnectionError,
        LabDefectError,
        LabError,
        LabTimeoutError,
        LabVersionError,
        NotOwnerError,
        NotReadyError,
        SessionError,
        UnknownNameError,
    )
    from manyworlds.lab.client.lab_env import LabEnv
    from manyworlds.lab.client.robot import ClientRobot

__all__ = [
    "BadRequestError",
    "BadValueError",
    "ClientRobot",
    "FileError",
    "LabClient",
    "LabConnectionError",
    "LabDefectError",
    "LabEnv",
    "LabError",
    "LabTimeoutError",
    "LabVersionError",
    "NotOwnerError",
    "NotReadyError",
    "SessionError",
    "UnknownNameError",
    "connect",
    "image_of",
]

_PARTS = {
    "client": ("LabClient", "connect", "image_of"),
    "lab_env": ("LabEnv",),
    "robot": ("ClientRobot",),
}
_MODULES = {name: "manyworlds.lab.client.errors" for name in __all__ if name.endswith("Error")} | {
    name: f"manyworlds.lab.client.{module}" for module, names in _PARTS.items() for name in names
}

__getattr__ = lazy_names(__name__, _MODULES)
