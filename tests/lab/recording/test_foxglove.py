"""Messages of Foxglove: described completely, and equal to what was put in."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from mcap.records import Schema

pytest.importorskip("foxglove_schemas_protobuf", reason="needs the extra 'lab'")

from foxglove_schemas_protobuf.CameraCalibration_pb2 import CameraCalibration
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
from foxglove_schemas_protobuf.JointState_pb2 import JointState
from foxglove_schemas_protobuf.JointStates_pb2 import JointStates
from google.protobuf.message import Message

from manyworlds.lab.recording.foxglove import descriptors, quaternion, stamp, vector
from manyworlds.lab.recording.images import MESSAGES
from manyworlds.lab.recording.scene_messages import TOPICS, scene_update
from tests.lab.protobuf_reader import read_message


def decode(message: Message) -> dict:
    """Decode a message by its own descriptors, as a reader of a file does."""
    name = message.DESCRIPTOR.full_name
    schema = Schema(1, descriptors(type(message)), "protobuf", name)
    return read_message(schema, message.SerializeToString())


@pytest.mark.parametrize("kind", [*TOPICS.values(), *MESSAGES.values()])
def test_each_message_is_described(kind):
    """Decode an empty message: its descriptors are complete, and it has all fields."""
    assert set(decode(kind())) == set(kind.DESCRIPTOR.fields_by_name)


def test_values_come_back():
    """Encode text, large and negative numbers, zeros, and nested and repeated messages."""
    long = "ж" * 200
    joints = [
        JointState(name=long, position=-0.0, velocity=math.inf),
        JointState(name="", position=1e-300, effort=0.1),
    ]
    moment = stamp(-(2**40) * 10**9 + 999_999_999)
    found = decode(JointStates(timestamp=moment, joints=joints))
    assert found["timestamp"] == {"seconds": -(2**40), "nanos": 999_999_999}
    assert [joint["name"] for joint in found["joints"]] == [long, ""]
    assert [joint["velocity"] for joint in found["joints"]] == [math.inf, 0.0]
    assert found["joints"][1]["effort"] == 0.1 and str(found["joints"][0]["position"]) == "-0.0"
    assert decode(vector([1.0, 2.0, 3.0])) == {"x": 1.0, "y": 2.0, "z": 3.0}
    assert decode(quaternion([1.0, 2.0, 3.0, 4.0])) == {"w": 1.0, "x": 2.0, "y": 3.0, "z": 4.0}


def test_large_meshes_come_back():
    """Encode the points and triangles of a mesh at once: the same numbers."""
    points = np.random.default_rng(1).normal(size=(1000, 3))
    spec = mujoco.MjSpec()
    spec.add_mesh(name="cloud", uservert=points.ravel())
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="cloud")
    model = spec.compile()
    ((entity,),) = [decode(scene_update(model, 0))["entities"]]
    (mesh,) = entity["triangles"]
    found = [[point[axis] for axis in "xyz"] for point in mesh["points"]]
    np.testing.assert_array_equal(found, np.round(model.mesh_vert.astype(float), 5))
    assert mesh["indices"] == model.mesh_face.ravel().tolist()
    assert mesh["color"] == {"r": 0.5, "g": 0.5, "b": 0.5, "a": 1.0}


def test_matrices_and_pictures_come_back():
    """Encode a calibration and an image: numbers in blocks, and bytes as they are."""
    matrix = [0.5 * i for i in range(9)]
    found = decode(CameraCalibration(width=640, height=480, K=matrix))
    assert (found["width"], found["height"], found["D"]) == (640, 480, [])
    assert found["K"] == matrix
    content = bytes(range(256)) * 5
    assert decode(CompressedImage(data=content, format="jpeg"))["data"] == content
