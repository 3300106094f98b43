"""Receivers of ROS 2 messages: a file that `ros2 bag play` reads, and ROS itself."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Protocol

from manyworlds.plugins.ros2.definitions import definition
from manyworlds.plugins.ros2.world import RosMessage
from manyworlds.utils.extras import MissingExtraError, require_extra


class Sink(Protocol):
    """Receiver of messages."""

    def put(self, message: RosMessage, time: float) -> None:
        """Take a message; `time` [s] is simulated time, which goes on after a reset."""
        ...

    def close(self) -> None:
        """Take no more messages."""
        ...


class McapSink:
    """MCAP file of the profile `ros2`: `ros2 bag play FILE`, Foxglove, PlotJuggler.

    Args:
        path: path of the new file.

    Raises:
        FileExistsError: there is such a file.
        MissingExtraError: the extra 'ros' is not installed.
    """

    def __init__(self, path: Path) -> None:
        library: Any = require_extra("mcap_ros2.writer", "ros")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.num_messages = 0
        """Number of messages in the file."""
        try:
            self._stream = path.open("xb")
        except FileExistsError:
            raise FileExistsError(f"{path} exists already: choose another file.") from None
        self._writer = library.Writer(self._stream)
        self._schemas: dict[str, Any] = {}

    def put(self, message: RosMessage, time: float) -> None:
        """Write a message."""
        schema = self._schemas.get(message.type)
        if schema is None:
            schema = self._writer.register_msgdef(message.type, definition(message.type))
            self._schemas[message.type] = schema
        now = max(0, round(time * 1e9))
        self._writer.write_message(message.topic, schema, message.content, now, now)
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
    message, types = kind(), kind.get_fields_and_field_types()
    for name, value in content.items():
        if isinstance(value, dict):
            value = _fill(type(getattr(message, name)), value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            (inner,) = re.findall(r"sequence<([^,>]+)", types[name])
            value = [_fill(_message_class(inner), item) for item in value]
        setattr(message, name, value)
    return message
