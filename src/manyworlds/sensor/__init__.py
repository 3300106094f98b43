"""What can be measured in a scene."""

from manyworlds.sensor.builtin_sensor import BuiltinSensor, BuiltinSensorCfg, ObjRef
from manyworlds.sensor.contact_sensor import (
    ContactData,
    ContactMatch,
    ContactSensor,
    ContactSensorCfg,
)
from manyworlds.sensor.sensor import Sensor, SensorCfg

__all__ = [
    "BuiltinSensor",
    "BuiltinSensorCfg",
    "ContactData",
    "ContactMatch",
    "ContactSensor",
    "ContactSensorCfg",
    "ObjRef",
    "Sensor",
    "SensorCfg",
]
