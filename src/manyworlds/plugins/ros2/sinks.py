"""Receivers of ROS 2 messages: a file that `ros2 bag play` reads, and ROS itself."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from manyworlds.plugins.ros2.world import RosMessage
from manyworlds.utils.extras import MissingExtraError, require_extra

if TYPE_CHECKING:
    from mcap.writer import Writer
    from rosbags.typesys.store import Typestore


class Sink(Protocol):
    """Receiver of messages."""

    def put(self, message: RosMessage, time: float) -> None:
        """Take a message; `time` [s] is simulated time; it does not return to 0 at a reset."""
        ...

    def close(self) -> None:
        """Take no more messages."""
        ...


class RosTypes:
    """Definitions and encoding of ROS 2's messages, by the library `rosbags`.

    Raises:
        MissingExtraError: the extra 'ros' is not installed.
    """

    def __init__(self) -> None:
        library = require_extra("rosbags.typesys", "ros")
        self._store: Typestore = library.get_typestore(library.Stores.ROS2_JAZZY)
        self._kinds = require_extra("rosbags.interfaces", "ros").Nodetype

    def definition(self, name: str) -> str:
        """Return the definition of a type, followed by those of all types in it."""
        return self._store.generate_msgdef(name, ros_version=2)[0]

    def encode(self, name: str, content: Mapping[str, Any]) -> bytes:
        """Return a message in ROS's encoding, CDR.

        Args:
            name: its type.
            content: all its fields; messages in it are maps, too.
        """
        return bytes(self._store.serialize_cdr(self._message(name, content), name))

    def _message(self, name: str, content: Mapping[str, Any]) -> object:
        """Return a message of the library."""
        definition = self._store.get_msgdef(name)
        values: dict[str, object] = {}
        fields = cast("Sequence[tuple[str, tuple[Any, Any]]]", definition.fields)
        for field, (kind, what) in fields:
            value = content[field]
            if kind == self._kinds.NAME:
                value = self._message(what, value)
            elif kind != self._kinds.BASE:  # an array or a sequence
                inner_kind, inner = what[0]
                if inner_kind == self._kinds.NAME:
                    value = [self._message(inner, item) for item in value]
                elif isinstance(value, bytes):
                    value = np.frombuffer(value, np.uint8)
                elif inner[0] != "string":
                    value = np.asarray(value, inner[0])
            values[field] = value
        return definition.cls(**values)


class McapSink:
    """MCAP file of the profile `ros2`: `ros2 bag play FILE`, Foxglove, PlotJuggler.

    Args:
        path: path of the new file.

    Raises:
        FileExistsError: there is such a file.
        MissingExtraError: the extra 'ros' is not installed.
    """

    def __init__(self, path: Path) -> None:
        library = require_extra("mcap.writer", "ros")
        self._types = RosTypes()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.num_messages = 0
        """Number of messages in the file."""
        try:
            self._stream = path.open("xb")
        except FileExistsError:
            raise FileExistsError(f"{path} exists already: choose another file.") from None
        self._writer: Writer = library.Writer(self._stream)
        self._writer.start(profile="ros2")
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}

    def put(self, message: RosMessage, time: float) -> None:
        """Write a message."""
        topic, kind = message.topic, message.type
        if kind not in self._schemas:
            text = self._types.definition(kind).encode()
            self._schemas[kind] = self._writer.register_schema(kind, "ros2msg", text)
        if topic not in self._channels:
            channel = self._writer.register_channel(topic, "cdr", self._schemas[kind])
            self._channels[topic] = channel
        now = max(0, round(time * 1e9))
        content = self._types.encode(kind, message.content)
        self._writer.add_message(self._channels[topic], now, content, now)
        self.num_messages += 1

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.finish()
        self._stream.close()


class RosSink:
    """ROS 2 itself, through `rclpy`: a node `manyworlds`.

    Raises:
        MissingExtraError: there is no ROS 2 in this Python.
    """

    def __init__(self) -> None:
        try:
            self._ros: Any = importlib.import_module("rclpy")
        except ImportError as error:
            raise MissingExtraError(
                "There is no ROS 2 in this Python (no module 'rclpy'): run `source "
                "/opt/ros/DISTRO/setup.bash` with ROS's own Python, or write a file with --output."
            ) from error
        if not self._ros.ok():
            self._ros.init()
        self._node: Any = self._ros.create_node("manyworlds")
        self._publishers: dict[str, Any] = {}

    def put(self, message: RosMessage, time: float) -> None:
        """Publish a message."""
        kind = _message_class(message.type)
        if message.topic not in self._publishers:
            self._publishers[message.topic] = self._node.create_publisher(kind, message.topic, 10)
        self._publishers[message.topic].publish(_fill(kind, message.content))

    def close(self) -> None:
        """End the node."""
        self._node.destroy_node()
        self._ros.try_shutdown()


def _message_class(name: str) -> Any:
    package, _, kind = name.replace("/msg/", "/").partition("/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)


def _fill(kind: Any, content: dict[str, Any]) -> Any:
    """Return a message of ROS with the values of a map."""
    message = kind()
    types = kind.get_fields_and_field_types()
    for name, value in content.items():
        if isinstance(value, dict):
            value = _fill(type(getattr(message, name)), value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            (inner,) = re.findall(r"sequence<([^,>]+)", types[name])
            value = [_fill(_message_class(inner), item) for item in value]
        setattr(message, name, value)
    return message
