"""Actuators: configs that edit the spec, and objects that turn targets into `ctrl`."""

from manyworlds.actuator.actuator import (
    Actuator,
    ActuatorCfg,
    ActuatorCmd,
    delay_command,
)
from manyworlds.actuator.builtin_actuator import (
    BuiltinDcMotorActuator,
    BuiltinDcMotorActuatorCfg,
    BuiltinMotorActuator,
    BuiltinMotorActuatorCfg,
    BuiltinMuscleActuator,
    BuiltinMuscleActuatorCfg,
    BuiltinPdActuator,
    BuiltinPdActuatorCfg,
    BuiltinPositionActuator,
    BuiltinPositionActuatorCfg,
    BuiltinVelocityActuator,
    BuiltinVelocityActuatorCfg,
    DcMotorDatasheetParams,
    DcMotorInputMode,
    DcMotorPhysicalParams,
)
from manyworlds.actuator.builtin_group import BuiltinActuatorGroup
from manyworlds.actuator.dc_actuator import DcMotorActuator, DcMotorActuatorCfg
from manyworlds.actuator.delayed_actuator import DelayedActuator, DelayedActuatorCfg
from manyworlds.actuator.fused_group import FusedActuatorGroup
from manyworlds.actuator.groups import ActuatorGroups
from manyworlds.actuator.learned_actuator import (
    LearnedLstmActuator,
    LearnedLstmActuatorCfg,
    LearnedMlpActuator,
    LearnedMlpActuatorCfg,
)
from manyworlds.actuator.pd_actuator import IdealPdActuator, IdealPdActuatorCfg
from manyworlds.actuator.targets import CommandField, DriveState, DriveTargets
from manyworlds.actuator.xml_actuator import (
    XmlActuator,
    XmlActuatorCfg,
    XmlMotorActuator,
    XmlMotorActuatorCfg,
    XmlPositionActuator,
    XmlPositionActuatorCfg,
    XmlVelocityActuator,
    XmlVelocityActuatorCfg,
)
from manyworlds.spec.transmissions import TransmissionType

__all__ = [
    "Actuator",
    "ActuatorCfg",
    "ActuatorCmd",
    "ActuatorGroups",
    "BuiltinActuatorGroup",
    "BuiltinDcMotorActuator",
    "BuiltinDcMotorActuatorCfg",
    "BuiltinMotorActuator",
    "BuiltinMotorActuatorCfg",
    "BuiltinMuscleActuator",
    "BuiltinMuscleActuatorCfg",
    "BuiltinPdActuator",
    "BuiltinPdActuatorCfg",
    "BuiltinPositionActuator",
    "BuiltinPositionActuatorCfg",
    "BuiltinVelocityActuator",
    "BuiltinVelocityActuatorCfg",
    "CommandField",
    "DcMotorActuator",
    "DcMotorActuatorCfg",
    "DcMotorDatasheetParams",
    "DcMotorInputMode",
    "DcMotorPhysicalParams",
    "DelayedActuator",
    "DelayedActuatorCfg",
    "DriveState",
    "DriveTargets",
    "FusedActuatorGroup",
    "IdealPdActuator",
    "IdealPdActuatorCfg",
    "LearnedLstmActuator",
    "LearnedLstmActuatorCfg",
    "LearnedMlpActuator",
    "LearnedMlpActuatorCfg",
    "TransmissionType",
    "XmlActuator",
    "XmlActuatorCfg",
    "XmlMotorActuator",
    "XmlMotorActuatorCfg",
    "XmlPositionActuator",
    "XmlPositionActuatorCfg",
    "XmlVelocityActuator",
    "XmlVelocityActuatorCfg",
    "delay_command",
]
