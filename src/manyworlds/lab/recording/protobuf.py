"""Messages in the encoding of Protocol Buffers, with the descriptors that decoders need.

Only what recordings contain: messages of the tables `MESSAGES`, which are written, never read
(https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping
from typing import Final, cast

import numpy as np

from manyworlds.lab.recording.messages import MESSAGES

Value = bool | int | float | str | bytes | np.ndarray | Mapping[str, "Value"] | Iterable["Value"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SCALARS: Final[Mapping[str, tuple[int, int]]] = {
    "double": (1, _FIXED64),
    "int64": (3, _VARINT),
    "int32": (5, _VARINT),
    "fixed32": (7, _FIXED32),
    "bool": (8, _VARINT),
    "string": (9, _BYTES),
    "bytes": (12, _BYTES),
}
"""Number of each type in descriptors, and its form on the wire."""
_MESSAGE, _ENUM = 11, 14  # numbers of the other types in descriptors
_OPTIONAL, _REPEATED = 1, 3  # labels


def encode(name: str, values: Mapping[str, Value]) -> bytes:
    """Return the encoding of a message.

    Args:
        name: name of the message in `MESSAGES`.
        values: value of each field that is not left out. Messages are mappings, or bytes that
            `encode` returned.
    """
    fields, parts = MESSAGES[name], []
    for field, value in values.items():
        number, kind = fields[field]
        if kind[0] == "*":
            parts += _repeated(number, kind[1:], value)
        else:
            parts.append(_single(number, kind.lstrip("?"), value))
    return b"".join(parts)


def encode_points(field: int, points: np.ndarray) -> bytes:
    """Return the encoding of a field of repeated messages `foxglove.Point3`.

    Args:
        field: number of the field.
        points: coordinates, shape [num_points, 3].
    """
    parts = [("head", "u1", 2), *((f"{n}{part}", t) for n in "xyz" for part, t in _COORDINATE)]
    rows = np.empty(len(points), np.dtype(parts))
    rows["head"] = _key(field, _BYTES)[0], 27
    for column, axis in enumerate("xyz"):
        rows[f"{axis}key"] = _key(column + 1, _FIXED64)[0]
        rows[axis] = points[:, column]
    return rows.tobytes()


_COORDINATE: Final = (("key", "u1"), ("", "<f8"))


@functools.cache
def descriptors(name: str) -> bytes:
    """Return the `FileDescriptorSet` of a message and of all that it contains."""
    wanted = _contents(name)
    files = [_file(f"google/protobuf/{n.rpartition('.')[2].lower()}.proto", [n], ())
             for n in wanted if n.startswith("google.")]  # fmt: skip
    own = [n for n in wanted if n.startswith("foxglove.")]
    imported = [str(file["name"]) for file in files]
    files.append(_file(f"foxglove/{name.rpartition('.')[2]}.proto", own, imported))
    return encode("FileDescriptorSet", {"file": files})


def _contents(name: str) -> list[str]:
    """Return the messages that a message contains, and it as the last one."""
    found: dict[str, None] = {}
    for _, kind in MESSAGES[name].values():
        if (inner := kind.lstrip("*")) in MESSAGES:
            found |= dict.fromkeys(_contents(inner))
    return [*found, name]


def _file(name: str, messages: Iterable[str], imported: Iterable[str]) -> dict[str, Value]:
    described = [_describe(message) for message in messages]
    package = "google.protobuf" if name.startswith("google") else "foxglove"
    return {
        "name": name,
        "package": package,
        "dependency": list(imported),
        "message_type": described,
        "syntax": "proto3",
    }


def _describe(message: str) -> dict[str, Value]:
    """Return the `DescriptorProto` of a message."""
    fields: list[Value] = []
    enums: list[Value] = []
    oneofs: list[Value] = []
    for name, (number, kind) in MESSAGES[message].items():
        inner = kind.lstrip("*?")
        label = _REPEATED if kind[0] == "*" else _OPTIONAL
        field: dict[str, Value] = {"name": name, "number": number, "label": label}
        if inner in _SCALARS:
            field["type"] = _SCALARS[inner][0]
        elif inner in MESSAGES:
            field |= {"type": _MESSAGE, "type_name": f".{inner}"}
        else:
            _, enum, *members = inner.split()
            field |= {"type": _ENUM, "type_name": f".{message}.{enum}"}
            numbered = [{"name": member, "number": i} for i, member in enumerate(members)]
            enums.append({"name": enum, "value": numbered})
        if kind[0] == "?":
            field |= {"oneof_index": len(oneofs), "proto3_optional": True}
            oneofs.append({"name": f"_{name}"})
        fields.append(field)
    short = message.rpartition(".")[2]
    return {"name": short, "field": fields, "enum_type": enums, "oneof_decl": oneofs}


def _single(number: int, kind: str, value: Value) -> bytes:
    form = _SCALARS[kind][1] if kind in _SCALARS else _VARINT if kind[:5] == "enum " else _BYTES
    return _key(number, form) + _plain(kind, form, value)


def _plain(kind: str, form: int, value: Value) -> bytes:
    """Return the encoding of a value after its key."""
    if form == _FIXED64:
        return struct.pack("<d", value)
    if form == _FIXED32:
        return struct.pack("<I", value)
    if form == _VARINT:
        return _varint(int(value))  # type: ignore[arg-type]  # of this form
    if isinstance(value, str):
        value = value.encode()
    elif isinstance(value, Mapping):
        value = encode(kind, cast("Mapping[str, Value]", value))
    assert isinstance(value, bytes)
    return _varint(len(value)) + value


def _repeated(number: int, kind: str, values: Value) -> list[bytes]:
    """Return the encoding of a repeated field: numbers are packed into one block."""
    form = _SCALARS[kind][1] if kind in _SCALARS else _BYTES
    if isinstance(values, bytes):  # of `encode_points`
        return [values]
    if form == _BYTES:
        assert isinstance(values, Iterable)
        return [_single(number, kind, value) for value in values]
    block = np.asarray(values, "<f8" if form == _FIXED64 else "<u4").tobytes()
    return [_single(number, "bytes", block)]


@functools.cache
def _key(number: int, form: int) -> bytes:
    return _varint(number << 3 | form)


def _varint(value: int) -> bytes:
    """Return an integer in groups of seven bits, the lowest first."""
    if 0 <= value < 0x80:
        return bytes((value,))
    value &= 0xFFFFFFFFFFFFFFFF  # negative numbers are those of 64 bits
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*groups, value))
