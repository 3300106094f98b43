"""Nested data with tensors as bytes that can be read from a source that is not trusted.

The bytes are an NPZ archive: one entry for each tensor or array, and one with the structure as
JSON. Reading runs no code.
"""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

_STRUCTURE = "structure"
_MOST_BYTES = 2**31
_DEEPEST = 64


def pack(value: object) -> bytes:
    """Return nested data as bytes.

    Args:
        value: tensors, arrays, numbers, texts, bytes, None, and lists, tuples and dicts of them.

    Raises:
        TypeError: a part has another type.
    """
    arrays: dict[str, np.ndarray] = {}
    structure = json.dumps(_describe(value, arrays)).encode()
    buffer = io.BytesIO()
    arrays[_STRUCTURE] = np.frombuffer(structure, np.uint8)
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack(data: bytes, most_bytes: int = _MOST_BYTES) -> object:
    """Return the nested data that `pack` wrote; tensors are on the CPU.

    Args:
        data: the bytes.
        most_bytes: largest size of all arrays together [bytes].

    Raises:
        ValueError: the bytes are damaged or too large, or are something else.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > most_bytes:
            raise ValueError(
                f"The archive unpacks to {size} bytes, more than {most_bytes}: it is refused."
            )
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            structure = json.loads(arrays[_STRUCTURE].tobytes())
            return _restore(structure, lambda name: np.array(arrays[name]), 0)
    except (zipfile.BadZipFile, KeyError, TypeError, OSError, EOFError, RecursionError) as error:
        raise ValueError(
            f"The archive cannot be read ({type(error).__name__}: {error}): it is damaged, or was "
            "written by another program."
        ) from None


def _describe(value: object, arrays: dict[str, np.ndarray]) -> object:
    """Return a value as JSON, in which arrays are names."""

    def add(array: np.ndarray) -> str:
        name = f"a{len(arrays)}"
        arrays[name] = array
        return name

    def items(values: Any) -> list[object]:
        return [_describe(item, arrays) for item in values]

    match value:
        case None | bool() | int() | float() | str():
            return value
        case torch.Tensor():
            return {"tensor": add(value.detach().cpu().numpy())}
        case np.ndarray() | np.generic() if np.asarray(value).dtype.kind in "biufc":
            return {"array": add(np.asarray(value))}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case complex():
            return {"complex": [value.real, value.imag]}
        case list():
            return {"list": items(value)}
        case tuple():
            return {"tuple": items(value)}
        case dict():
            return {"dict": [items(pair) for pair in value.items()]}
    raise TypeError(
        f"A {type(value).__name__} cannot be packed: use tensors, arrays, numbers, texts, and "
        "lists, tuples and dicts of them."
    )


def _restore(node: Any, load: Callable[[str], np.ndarray], depth: int) -> Any:
    if not isinstance(node, dict):
        if isinstance(node, list):
            raise TypeError("a list without a kind")
        return node
    if depth > _DEEPEST or len(node) != 1:
        raise TypeError("a malformed structure")
    ((kind, content),) = node.items()
    match kind:
        case "tensor":
            return torch.from_numpy(load(content))
        case "array":
            return load(content)[()]
        case "bytes":
            return base64.b64decode(content)
        case "complex":
            return complex(*content)
        case "list":
            return [_restore(item, load, depth + 1) for item in content]
        case "tuple":
            return tuple(_restore(item, load, depth + 1) for item in content)
        case "dict":
            return {
                _restore(key, load, depth + 1): _restore(item, load, depth + 1)
                for key, item in content
            }
    raise TypeError(f"an unknown kind '{kind}'")
