"""Requests and replies as bytes: JSON or msgpack, within limits."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.readers.packing import load_msgpack, pack_array
from manyworlds.lab.server.config import Limits

Encoding = Literal["msgpack", "json", "arrays"]
"""`arrays` is msgpack with whole numbers as such, and arrays as `packing.ARRAY`."""


_JSON_STARTS = b"{ \t\r\n"
_SEPARATORS = (b",", b"[", b"{")  # at least one of them before each value of JSON
_BYTES_KEY = "__b64__"
_LARGEST = 2**63
_AS_IT_IS = frozenset((str, bool, type(None)))
_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON may have them, UTF-8 may not


def decode(request: bytes, limits: Limits, encoding: Encoding | None = None) -> dict[str, object]:
    """Return a request as a map.

    Args:
        request: JSON if it begins with `{` or white space; else msgpack, or JSON if it is none.
        limits: bounds on size, depth and number of values.
        encoding: `json` if it is known to be JSON.

    Raises:
        VerbError: it is no map of plain values within the limits.
    """
    if len(request) > limits.max_bytes:
        raise _bad(f"it has {len(request)} bytes, more than {limits.max_bytes}")
    if encoding == "json" or (request[:1] and request[0] in _JSON_STARTS):
        return decode_json(request, limits)
    msgpack = load_msgpack()
    count = 0

    def counted(values: Any) -> Any:  # before the rest is unpacked, which may be much more
        nonlocal count
        count += len(values)
        if count > limits.max_items:
            raise _too_many(limits)
        return values

    try:
        value = msgpack.unpackb(
            request,
            strict_map_key=True,
            max_array_len=limits.max_items,
            max_map_len=limits.max_items,
            max_ext_len=0,
            list_hook=counted,
            object_hook=counted,
        )
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        if isinstance(error, VerbError):
            raise
        try:
            return decode_json(request, limits)
        except VerbError:
            raise _bad(f"it is neither JSON nor msgpack ({_reason(error)})") from error
    return _check(value, limits)


def decode_json(request: bytes, limits: Limits) -> dict[str, object]:
    """Return a JSON object as a map; bytes are base64 in keys `NAME__b64__`.

    Raises:
        VerbError: it is no JSON object within the limits.
    """
    if sum(map(request.count, _SEPARATORS)) > limits.max_items:
        raise _too_many(limits)
    try:
        value = json.loads(request, parse_constant=_refuse_constant)
        return _unpack_bytes(_check(value, limits))
    except (ValueError, RecursionError) as error:
        if isinstance(error, VerbError):
            raise
        raise _bad(f"it is no JSON ({_reason(error)})") from error


def encode(reply: Mapping[str, object], encoding: Encoding) -> bytes:
    """Return a reply as bytes; all numbers are float64, except in the encoding `arrays`.

    Args:
        reply: plain values, arrays, and bytes, which JSON has as base64 in keys `NAME__b64__`.
        encoding: format. JSON has null in place of numbers that are not finite.
    """
    if encoding == "arrays":
        return load_msgpack().packb(reply, default=_pack_special)
    plain = _plain(reply, encoding == "json")
    if encoding == "json":
        return json.dumps(plain, allow_nan=False).encode()
    return load_msgpack().packb(plain)


def _check(value: object, limits: Limits) -> dict[str, object]:  # noqa: C901 - one check a time
    """Return a map whose values are plain, not too deep and not too many."""
    if not isinstance(value, dict):
        raise _bad(f"it is no map, but a {type(value).__name__}")
    level: list[object] = [value]
    count = depth = 0
    while level:
        depth += 1
        count += len(level)
        if depth > limits.max_depth:
            raise _bad(f"it has more than {limits.max_depth} levels")
        if count > limits.max_items:
            raise _too_many(limits)
        inner: list[object] = []
        for item in level:
            if type(item) is float:  # most values of a request are
                continue
            if isinstance(item, dict):
                if not all(isinstance(key, str) for key in item):
                    raise _bad("a key is no text")
                inner += [*item, *item.values()]
            elif isinstance(item, list):
                inner += item
            elif isinstance(item, str):
                if not item.isascii() and _SURROGATE.search(item):
                    raise _bad("a text has half a character")
            elif isinstance(item, int):
                if abs(item) > _LARGEST:
                    raise _bad("a whole number is beyond 64 bits")
            elif item is not None and not isinstance(item, bytes):
                raise _bad(f"it has a {type(item).__name__}")
        level = inner
    return value


def _unpack_bytes(value: dict[str, object]) -> dict[str, object]:
    fresh: dict[str, object] = {}
    for key, item in value.items():
        if key.endswith(_BYTES_KEY) and isinstance(item, str):
            try:
                fresh[key.removesuffix(_BYTES_KEY)] = base64.b64decode(item, validate=True)
            except binascii.Error as error:
                raise _bad(f"'{key[:80]}' is no base64") from error
        else:
            fresh[key] = item
    return fresh


def _plain(value: object, is_json: bool) -> object:
    kind = type(value)
    if kind in _AS_IT_IS or (kind is float and not is_json):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fiu" and (not is_json or np.isfinite(value).all()):
            return value.astype(float, copy=False).tolist()  # a tenth of the time of one by one
        value = value.tolist()
    if isinstance(value, (dict, Mapping)):  # the look at a dict is much shorter
        if not is_json:
            return {str(key): _plain(item, False) for key, item in value.items()}
        plain = {}
        for key, item in value.items():
            name = f"{key}{_BYTES_KEY}" if isinstance(item, bytes) else str(key)
            plain[name] = _plain(item, True)
        return plain
    if isinstance(value, (float, int, np.number)):
        number = float(value)
        return None if is_json and not math.isfinite(number) else number
    if isinstance(value, bytes):
        return base64.b64encode(value).decode() if is_json else value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item, is_json) for item in value]
    raise TypeError(f"A reply cannot contain a {type(value).__name__}.")


def _pack_special(value: object) -> object:
    """Return what msgpack packs in place of a value that it does not know."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return pack_array(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"A reply cannot contain a {type(value).__name__}.")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


def _too_many(limits: Limits) -> VerbError:
    return _bad(f"it has more than {limits.max_items} values")


def _bad(reason: str) -> VerbError:
    return VerbError("bad_request", f"The request cannot be read: {reason}.")
