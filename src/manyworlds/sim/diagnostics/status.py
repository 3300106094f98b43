"""Status of worlds: one bit field of errors per world, kept until the world is reset."""

from __future__ import annotations

import contextlib
import enum

import mujoco
import numpy as np

from manyworlds.utils.mujoco_messages import MujocoWarnings


class WorldStatus(enum.IntFlag):
    """Bits of `Simulation.status`; zero means that no error occurred.

    The first seven are MuJoCo's warnings, in the order of `mjtWarning`. MuJoCo considers a value
    bad if it is NaN, infinite, or beyond 1e10. MuJoCo Warp has no such warnings and sets only
    `NAN`.
    """

    INERTIA = 1 << 0
    """The inertia matrix is nearly singular."""
    CONTACT_OVERFLOW = 1 << 1
    """Contacts were dropped because the buffer was full."""
    CONSTRAINT_OVERFLOW = 1 << 2
    """Constraints were dropped because the buffer was full."""
    BAD_QPOS = 1 << 3
    BAD_QVEL = 1 << 4
    BAD_QACC = 1 << 5
    BAD_CTRL = 1 << 6
    """A control is bad; MuJoCo C then uses zero for all controls of the world."""
    NAN = 1 << 7
    """The state diverged: on the native engine, any of BAD_QPOS, BAD_QVEL and BAD_QACC."""
    ENGINE_ERROR = 1 << 8
    """MuJoCo raised an error in this world, whose state is that before the call."""
    MEMORY = 1 << 9
    """The error was a lack of memory: raise `<size memory="..."/>` in the model."""
    SENSOR_OVERFLOW = 1 << 10
    """A sensor matched more contacts than fit into its buffer."""


FATAL = (
    WorldStatus.NAN
    | WorldStatus.BAD_QPOS
    | WorldStatus.BAD_QVEL
    | WorldStatus.BAD_QACC
    | WorldStatus.BAD_CTRL
    | WorldStatus.ENGINE_ERROR
    | WorldStatus.MEMORY
    | WorldStatus.CONTACT_OVERFLOW
    | WorldStatus.CONSTRAINT_OVERFLOW
)
"""Bits of worlds whose results are invalid until they are reset."""

_DIVERGED = WorldStatus.BAD_QPOS | WorldStatus.BAD_QVEL | WorldStatus.BAD_QACC
_WARNING_BITS = (1 << np.arange(int(mujoco.mjtWarning.mjNWARNING))).astype(np.int32)


def warning_bits(counters: np.ndarray) -> np.ndarray:
    """Convert MuJoCo's warning counters to status bits.

    Args:
        counters: last argument and count of each warning, int32, shape
            (num_envs, mjNWARNING, 2).

    Returns:
        Bits, int32, shape (num_envs,).
    """
    bits = np.zeros(len(counters), np.int32)
    worlds = np.unique(np.flatnonzero(counters) // counters[0].size)
    found = ((counters[worlds, :, 1] > 0) * _WARNING_BITS).sum(axis=1, dtype=np.int32)
    found[(found & int(_DIVERGED)) != 0] |= int(WorldStatus.NAN)
    bits[worlds] = found
    return bits


def error_bits(message: str) -> int:
    """Return the status bits of a world in which MuJoCo raised an error with this message."""
    bits = WorldStatus.ENGINE_ERROR
    if "memory" in message:
        bits |= WorldStatus.MEMORY
    return int(bits)


def status_counts(status: np.ndarray) -> dict[str, int]:
    """Count the worlds that have each bit; bits without worlds are omitted.

    Args:
        status: bits, shape (num_envs,).
    """
    bits = status[status != 0]
    if not bits.size:
        return {}
    counts = {str(bit.name).lower(): int(((bits & int(bit)) != 0).sum()) for bit in WorldStatus}
    return {name: count for name, count in counts.items() if count}


def _ignore(message: str) -> None:
    """Ignore a warning of MuJoCo that the status bits report as well."""


_QUIET = MujocoWarnings(_ignore)


def quiet_mujoco() -> contextlib.AbstractContextManager[None]:
    """Suppress MuJoCo's message per failed world, since the status bits report it.

    A warning handler that the user installed still receives these messages.
    """
    if mujoco.get_mju_user_warning() is not None:
        return contextlib.nullcontext()
    return _QUIET
