"""Arrays of numbers in msgpack."""

from __future__ import annotations

import functools
from types import ModuleType

import numpy as np

from manyworlds.utils.extras import require_extra

ARRAY = 1
"""Extension type of arrays in msgpack: a msgpack list of dtype, shape and bytes."""


@functools.cache
def load_msgpack() -> ModuleType:
    """Import msgpack, once: looking for a module takes longer than packing a small message.

    Raises:
        MissingExtraError: it is not installed.
    """
    return require_extra("msgpack", "net")


def pack_array(value: np.ndarray) -> object:
    """Return an array of numbers, little-endian, as an extension of msgpack."""
    msgpack = load_msgpack()
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return msgpack.ExtType(
        ARRAY, msgpack.packb([little.dtype.str, list(value.shape), little.tobytes()])
    )


def unpack_array(kind: int, content: bytes) -> object:
    """Return the read-only array of an extension; other extensions stay as they are."""
    msgpack = load_msgpack()
    if kind != ARRAY:
        return msgpack.ExtType(kind, content)
    dtype, shape, values = msgpack.unpackb(content)
    return np.frombuffer(values, np.dtype(dtype)).reshape(shape)
