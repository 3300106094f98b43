"""Messages of Protocol Buffers, read by Google's implementation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mcap.records import Schema

from manyworlds.lab.recording.messages import MESSAGES
from manyworlds.lab.recording.protobuf import descriptors, encode, encode_points
from tests.lab.protobuf_reader import read_message


def decode(name: str, content: bytes) -> dict:
    """Decode a message by its descriptors."""
    return read_message(Schema(1, descriptors(name), "protobuf", name), content)


@pytest.mark.parametrize("name", [name for name in MESSAGES if name.startswith("foxglove.")])
def test_each_message_is_described(name):
    """Decode an empty message: its descriptors are complete, and it has all fields."""
    assert set(decode(name, b"")) == set(MESSAGES[name])


def test_values_come_back():
    """Encode text, large and negative numbers, zeros, and nested and repeated messages."""
    long = "ж" * 200
    joints = [
        {"name": long, "position": -0.0, "velocity": math.inf},
        {"name": "", "position": 1e-300, "effort": 0.1},
    ]
    stamp = {"seconds": -(2**40), "nanos": 999_999_999}
    found = decode(
        "foxglove.JointStates",
        encode("foxglove.JointStates", {"timestamp": stamp, "joints": joints}),
    )
    assert found["timestamp"] == stamp
    assert [joint["name"] for joint in found["joints"]] == [long, ""]
    assert [joint["velocity"] for joint in found["joints"]] == [math.inf, 0.0]
    assert found["joints"][1]["effort"] == 0.1 and str(found["joints"][0]["position"]) == "-0.0"


def test_large_arrays_come_back():
    """Encode the points and triangles of a mesh at once: the same numbers."""
    generator = np.random.default_rng(1)
    points = generator.normal(size=(1000, 3))
    indices = generator.integers(0, 2**32, size=3000, dtype=np.uint32)
    field = MESSAGES["foxglove.TriangleListPrimitive"]["points"][0]
    values = {"points": encode_points(field, points), "indices": indices}
    found = decode(
        "foxglove.TriangleListPrimitive", encode("foxglove.TriangleListPrimitive", values)
    )
    assert [list(point.values()) for point in found["points"]] == points.tolist()
    assert found["indices"] == indices.tolist()


def test_matrices_and_pictures_come_back():
    """Encode a calibration and an image: numbers in blocks, and bytes as they are."""
    calibration = {"width": 640, "height": 480, "K": [0.5 * i for i in range(9)], "D": []}
    found = decode("foxglove.CameraCalibration", encode("foxglove.CameraCalibration", calibration))
    assert (found["width"], found["height"], found["D"]) == (640, 480, [])
    assert found["K"] == calibration["K"]
    content = bytes(range(256)) * 5
    image = encode("foxglove.CompressedImage", {"data": content, "format": "jpeg"})
    assert decode("foxglove.CompressedImage", image)["data"] == content
