"""Nested data as bytes that run no code when they are read."""

from __future__ import annotations

import io
import math
import pickle
import zipfile

import numpy as np
import pytest
import torch

from manyworlds.utils.plain_archive import pack, unpack

VALUES = {
    "floats": torch.tensor([[1.5, -0.0], [math.nan, math.inf]]),
    "none": torch.zeros(0, 3, dtype=torch.long),
    "flags": torch.tensor([True, False]),
    "array": np.arange(6, dtype=np.int32).reshape(2, 3),
    "number": np.float32(0.1),
    3: [1, 2.5, None, "text", (True, b"\x00\xff"), {}],
    "nested": {"complex": 1 - 2j, "infinite": math.inf},
}


def same(a: object, b: object) -> bool:
    """Equality of two nested values, to the bit in arrays."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        a, b = a.numpy(), b.numpy()
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_values_come_back():
    """Pack and unpack every supported type: equal, to the bit."""
    assert same(unpack(pack(VALUES)), VALUES)
    assert not same(unpack(pack(VALUES)), {**VALUES, 3: [2]})


def test_what_cannot_be_packed():
    """Pack an object: the message names its type."""
    with pytest.raises(TypeError, match="A object cannot be packed"):
        pack({"a": [object()]})


class Evil:
    """Object that runs code when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("code ran",)


@pytest.mark.parametrize("kind", ["pickle", "object array", "cut", "other archive", "structure"])
def test_foreign_bytes_are_refused(kind):
    """Unpack pickles, damaged and other files: an error, and no code runs."""
    buffer = io.BytesIO()
    if kind == "pickle":
        data = pickle.dumps(Evil())
    elif kind == "object array":
        np.savez(
            buffer,
            structure=np.frombuffer(b'{"array": "a0"}', np.uint8),
            a0=np.array([Evil()], dtype=object),
        )
        data = buffer.getvalue()
    elif kind == "cut":
        data = pack(VALUES)[:-100]
    elif kind == "other archive":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a.txt", "a")
        data = buffer.getvalue()
    else:
        np.savez(buffer, structure=np.frombuffer(b'{"call": "exit"}', np.uint8))
        data = buffer.getvalue()
    with pytest.raises(ValueError, match=r"cannot be read|allow_pickle"):
        unpack(data)


def test_a_bomb_is_refused():
    """Unpack a small file of a large array: refused before it is read."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, structure=np.zeros(10_000_000, np.uint8))
    with pytest.raises(ValueError, match="more than 1000: it is refused"):
        unpack(buffer.getvalue(), most_bytes=1000)
