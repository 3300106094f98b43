"""Messages of recordings that other programs read: those of Foxglove, and their descriptors.

The tables are those of https://github.com/foxglove/foxglove-sdk/tree/main/schemas/proto and of
https://protobuf.dev.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Fields = Mapping[str, tuple[int, str]]
"""Number and type of each field: a name of a message or of a scalar type; with `*` it is repeated,
with `?` it has a presence of its own, and `enum NAME A B` is an enumeration."""


def _doubles(names: str) -> Fields:
    return {name: (number, "double") for number, name in enumerate(names, 1)}


def _shape(**more: str) -> Fields:
    types = {"pose": "foxglove.Pose", "size": "foxglove.Vector3", **more}
    types["color"] = "foxglove.Color"
    return {name: (number, kind) for number, (name, kind) in enumerate(types.items(), 1)}


_TIME: Final[Fields] = {"seconds": (1, "int64"), "nanos": (2, "int32")}
_STAMP: Final = "google.protobuf.Timestamp"
MESSAGES: Final[Mapping[str, Fields]] = {
    "google.protobuf.Timestamp": _TIME,
    "google.protobuf.Duration": _TIME,
    "foxglove.Vector3": _doubles("xyz"),
    "foxglove.Point3": _doubles("xyz"),
    "foxglove.Quaternion": _doubles("xyzw"),
    "foxglove.Color": _doubles("rgba"),
    "foxglove.Pose": {
        "position": (1, "foxglove.Vector3"),
        "orientation": (2, "foxglove.Quaternion"),
    },
    "foxglove.FrameTransform": {
        "timestamp": (1, _STAMP),
        "parent_frame_id": (2, "string"),
        "child_frame_id": (3, "string"),
        "translation": (4, "foxglove.Vector3"),
        "rotation": (5, "foxglove.Quaternion"),
    },
    "foxglove.FrameTransforms": {"transforms": (1, "*foxglove.FrameTransform")},
    "foxglove.JointState": {
        "name": (1, "string"),
        "position": (2, "?double"),
        "velocity": (3, "?double"),
        "acceleration": (4, "?double"),
        "effort": (5, "?double"),
    },
    "foxglove.JointStates": {"timestamp": (1, _STAMP), "joints": (2, "*foxglove.JointState")},
    "foxglove.CubePrimitive": _shape(),
    "foxglove.SpherePrimitive": _shape(),
    "foxglove.CylinderPrimitive": _shape(bottom_scale="double", top_scale="double"),
    "foxglove.TriangleListPrimitive": {
        "pose": (1, "foxglove.Pose"),
        "points": (2, "*foxglove.Point3"),
        "color": (3, "foxglove.Color"),
        "colors": (4, "*foxglove.Color"),
        "indices": (5, "*fixed32"),
    },
    "foxglove.KeyValuePair": {"key": (1, "string"), "value": (2, "string")},
    "foxglove.ArrowPrimitive": {
        "pose": (1, "foxglove.Pose"),
        "shaft_length": (2, "double"),
        "shaft_diameter": (3, "double"),
        "head_length": (4, "double"),
        "head_diameter": (5, "double"),
        "color": (6, "foxglove.Color"),
    },
    "foxglove.LinePrimitive": {
        "type": (1, "enum Type LINE_STRIP LINE_LOOP LINE_LIST"),
        "pose": (2, "foxglove.Pose"),
        "thickness": (3, "double"),
        "scale_invariant": (4, "bool"),
        "points": (5, "*foxglove.Point3"),
        "color": (6, "foxglove.Color"),
        "colors": (7, "*foxglove.Color"),
        "indices": (8, "*fixed32"),
    },
    "foxglove.TextPrimitive": {
        "pose": (1, "foxglove.Pose"),
        "billboard": (2, "bool"),
        "font_size": (3, "double"),
        "scale_invariant": (4, "bool"),
        "color": (5, "foxglove.Color"),
        "text": (6, "string"),
    },
    "foxglove.ModelPrimitive": {
        "pose": (1, "foxglove.Pose"),
        "scale": (2, "foxglove.Vector3"),
        "color": (3, "foxglove.Color"),
        "override_color": (4, "bool"),
        "url": (5, "string"),
        "media_type": (6, "string"),
        "data": (7, "bytes"),
    },
    "foxglove.SceneEntityDeletion": {
        "timestamp": (1, _STAMP),
        "type": (2, "enum Type MATCHING_ID ALL"),
        "id": (3, "string"),
    },
    "foxglove.SceneEntity": {
        "timestamp": (1, _STAMP),
        "frame_id": (2, "string"),
        "id": (3, "string"),
        "lifetime": (4, "google.protobuf.Duration"),
        "frame_locked": (5, "bool"),
        "metadata": (6, "*foxglove.KeyValuePair"),
        "arrows": (7, "*foxglove.ArrowPrimitive"),
        "cubes": (8, "*foxglove.CubePrimitive"),
        "spheres": (9, "*foxglove.SpherePrimitive"),
        "cylinders": (10, "*foxglove.CylinderPrimitive"),
        "lines": (11, "*foxglove.LinePrimitive"),
        "triangles": (12, "*foxglove.TriangleListPrimitive"),
        "texts": (13, "*foxglove.TextPrimitive"),
        "models": (14, "*foxglove.ModelPrimitive"),
    },
    "foxglove.SceneUpdate": {
        "deletions": (1, "*foxglove.SceneEntityDeletion"),
        "entities": (2, "*foxglove.SceneEntity"),
    },
    "foxglove.CompressedImage": {
        "timestamp": (1, _STAMP),
        "data": (2, "bytes"),
        "format": (3, "string"),
        "frame_id": (4, "string"),
    },
    "foxglove.CameraCalibration": {
        "timestamp": (1, _STAMP),
        "width": (2, "fixed32"),
        "height": (3, "fixed32"),
        "distortion_model": (4, "string"),
        "D": (5, "*double"),
        "K": (6, "*double"),
        "R": (7, "*double"),
        "P": (8, "*double"),
        "frame_id": (9, "string"),
    },
    # Descriptors are messages, too.
    "FileDescriptorSet": {"file": (1, "*FileDescriptorProto")},
    "FileDescriptorProto": {
        "name": (1, "string"),
        "package": (2, "string"),
        "dependency": (3, "*string"),
        "message_type": (4, "*DescriptorProto"),
        "syntax": (12, "string"),
    },
    "DescriptorProto": {
        "name": (1, "string"),
        "field": (2, "*FieldDescriptorProto"),
        "enum_type": (4, "*EnumDescriptorProto"),
        "oneof_decl": (8, "*OneofDescriptorProto"),
    },
    "FieldDescriptorProto": {
        "name": (1, "string"),
        "number": (3, "int32"),
        "label": (4, "int32"),
        "type": (5, "int32"),
        "type_name": (6, "string"),
        "oneof_index": (9, "int32"),
        "proto3_optional": (17, "bool"),
    },
    "EnumDescriptorProto": {"name": (1, "string"), "value": (2, "*EnumValueDescriptorProto")},
    "EnumValueDescriptorProto": {"name": (1, "string"), "number": (2, "int32")},
    "OneofDescriptorProto": {"name": (1, "string")},
}
"""Fields of each message."""
