"""Messages of recordings, read by Google's implementation of Protocol Buffers."""

from __future__ import annotations

from typing import Any

import pytest
from mcap.records import Schema


def read_message(schema: Schema, content: bytes) -> dict[str, Any]:
    """Decode a message by the descriptors in its file; all fields are there, unknown ones fail."""
    pytest.importorskip("google.protobuf", reason="reads the messages")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    assert schema.encoding == "protobuf"
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
        pool.Add(file)
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
    message = found.FromString(content)
    assert message.IsInitialized() and message.ByteSize() == len(message.SerializeToString())
    return _plain(message)


def _plain(message: Any) -> dict[str, Any]:
    plain = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            value = [_plain(item) if field.message_type else item for item in value]
        elif field.message_type:
            value = _plain(value)
        plain[field.name] = value
    return plain
