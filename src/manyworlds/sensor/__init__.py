"""What can be measured in a scene."""

from manyworlds.sensor.sensor import Sensor, SensorCfg

__all__ = ["Sensor", "SensorCfg"]
