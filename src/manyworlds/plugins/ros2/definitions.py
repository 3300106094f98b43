"""Definitions of the ROS 2 messages that are written, as in their packages' `.msg` files."""

from __future__ import annotations

import re

_OWN = {
    "builtin_interfaces/msg/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/msg/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/msg/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/msg/Transform": (
        "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation"
    ),
    "geometry_msgs/msg/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform"
    ),
    "tf2_msgs/msg/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "rosgraph_msgs/msg/Clock": "builtin_interfaces/Time clock",
    "sensor_msgs/msg/JointState": (
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
        "float64[] effort"
    ),
    "sensor_msgs/msg/Imu": (
        "std_msgs/Header header\n"
        "geometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance"
    ),
    "sensor_msgs/msg/Image": (
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n"
        "uint8 is_bigendian\nuint32 step\nuint8[] data"
    ),
    "sensor_msgs/msg/RegionOfInterest": (
        "uint32 x_offset\nuint32 y_offset\nuint32 height\nuint32 width\nbool do_rectify"
    ),
    "sensor_msgs/msg/CameraInfo": (
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring distortion_model\n"
        "float64[] d\nfloat64[9] k\nfloat64[9] r\nfloat64[12] p\n"
        "uint32 binning_x\nuint32 binning_y\nsensor_msgs/RegionOfInterest roi"
    ),
}
TYPES = tuple(
    name
    for name in _OWN
    if name.partition("/")[0] in ("sensor_msgs", "tf2_msgs", "rosgraph_msgs")
    and not name.endswith("RegionOfInterest")
)
"""Types of the messages."""
_LINE = "=" * 80


def definition(name: str) -> str:
    """Return the definition of a type, followed by those of all types in it."""
    parts, waiting, known = [_OWN[name]], [name], {name}
    while waiting:
        for used in re.findall(r"^(\w+)/(\w+)", _OWN[waiting.pop(0)], re.MULTILINE):
            inner = f"{used[0]}/msg/{used[1]}"
            if inner not in known:
                known.add(inner)
                waiting.append(inner)
                parts.append(f"{_LINE}\nMSG: {used[0]}/{used[1]}\n{_OWN[inner]}")
    return "\n".join(parts) + "\n"
