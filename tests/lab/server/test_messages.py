"""Requests that grow when they are read: they are refused before that."""

from __future__ import annotations

import json
from pathlib import Path

import msgpack
import numpy as np
import pytest

from manyworlds.lab.errors import VerbError
from manyworlds.lab.server.config import Limits
from manyworlds.lab.server.messages import decode
from tests.memory import refusal_and_peak

IMPORTS = """
from pathlib import Path
from manyworlds.lab.server.config import Limits
from manyworlds.lab.server.messages import decode
decode(bytes([0x80]), Limits())
request = Path(sys.argv[1]).read_bytes()
"""
_ARRAY32 = bytes([0xDD])
_NIL = bytes([0xC0])
_EMPTY = bytes([0x90])


def nested(inner: bytes) -> bytes:
    """Return msgpack of 250 lists of 190 000 values."""
    count = (190_000).to_bytes(4, "big")
    lists = (_ARRAY32 + count + 190_000 * inner) * 250
    return bytes([0x81, 0xA1]) + b"a" + _ARRAY32 + (250).to_bytes(4, "big") + lists


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("json", b'{"a": [' + b"[]," * 15_000_000 + b"0]}"),
        ("nils", nested(_NIL)),
        ("lists", nested(_EMPTY)),
    ],
)
def test_values_are_counted_before_they_are_made(name, content, tmp_path: Path):
    """Send 47 MB of small values: the request is refused, and memory does not grow with them."""
    path = tmp_path / name
    path.write_bytes(content)
    text, growth = refusal_and_peak(IMPORTS, "decode(request, Limits())", path)
    assert "it has more than 200000 values" in text
    assert growth < 64 * 2**20


@pytest.mark.parametrize("pack", [msgpack.packb, lambda request: json.dumps(request).encode()])
def test_as_many_values_as_allowed_are_read(pack):
    """Send exactly as many values as are allowed, and one more."""
    limits = Limits(max_items=100)
    request = {"values": np.arange(97).tolist()}  # the map, its key and the list count, too
    assert decode(pack(request), limits) == request
    request["values"].append(0)
    with pytest.raises(VerbError, match="more than 100 values"):
        decode(pack(request), limits)
