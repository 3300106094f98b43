"""What moves an entity: configs that edit the spec, and actuators that turn targets into ctrl."""

from manyworlds.actuator.actuator import Actuator, ActuatorCfg, ActuatorCmd
from manyworlds.actuator.builtin_actuator import BuiltinMotorActuator, BuiltinMotorActuatorCfg
from manyworlds.utils.actuator import TransmissionType

__all__ = [
    "Actuator",
    "ActuatorCfg",
    "ActuatorCmd",
    "BuiltinMotorActuator",
    "BuiltinMotorActuatorCfg",
    "TransmissionType",
]
