"""Sensors of a scene: contacts, rays, terrain heights, cameras, and MuJoCo's own sensors."""

from manyworlds.sensor.builtin_sensor import BuiltinSensor, BuiltinSensorCfg, ObjRef
from manyworlds.sensor.camera_sensor import CameraSensor, CameraSensorCfg, CameraSensorData
from manyworlds.sensor.contact_sensor import (
    ContactData,
    ContactMatch,
    ContactSensor,
    ContactSensorCfg,
)
from manyworlds.sensor.raycast_sensor import (
    GridPatternCfg,
    PinholeCameraPatternCfg,
    RayCastData,
    RayCastSensor,
    RayCastSensorCfg,
    RingPatternCfg,
)
from manyworlds.sensor.sensor import Sensor, SensorCfg
from manyworlds.sensor.sensor_context import SensorContext
from manyworlds.sensor.terrain_height_sensor import (
    TerrainHeightData,
    TerrainHeightSensor,
    TerrainHeightSensorCfg,
)

__all__ = [
    "BuiltinSensor",
    "BuiltinSensorCfg",
    "CameraSensor",
    "CameraSensorCfg",
    "CameraSensorData",
    "ContactData",
    "ContactMatch",
    "ContactSensor",
    "ContactSensorCfg",
    "GridPatternCfg",
    "ObjRef",
    "PinholeCameraPatternCfg",
    "RayCastData",
    "RayCastSensor",
    "RayCastSensorCfg",
    "RingPatternCfg",
    "Sensor",
    "SensorCfg",
    "SensorContext",
    "TerrainHeightData",
    "TerrainHeightSensor",
    "TerrainHeightSensorCfg",
]
