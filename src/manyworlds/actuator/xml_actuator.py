"""Actuators that the robot's MJCF file defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mujoco
import torch

from manyworlds.actuator.actuator import ActuatorCfg
from manyworlds.actuator.builtin_actuator import (
    DCMOTOR_CELLS,
    FORCE_RANGE,
    MOTOR_RANGES,
    POSITION_CELLS,
    VELOCITY_CELLS,
    DirectActuator,
)
from manyworlds.actuator.parameters import Cell
from manyworlds.actuator.targets import CommandField
from manyworlds.sim.views import DataView, ModelView
from manyworlds.spec.edits import apply_target_overrides
from manyworlds.spec.elements import TRANSMISSIONS, detect_command_field
from manyworlds.utils.declared import declared

if TYPE_CHECKING:
    from manyworlds.entity import Entity

PID_CELLS = {
    "stiffness": (("actuator_biasprm", 1, -1.0),),
    "damping": (("actuator_biasprm", 2, -1.0),),
}
# Gains of each kind of MuJoCo actuator.
_CELLS = {
    "spring": POSITION_CELLS,
    "damper": VELOCITY_CELLS,
    "dcmotor": DCMOTOR_CELLS,
    "pid": PID_CELLS,
}


@dataclass(kw_only=True)
class XmlActuatorCfg(ActuatorCfg):
    """Actuators of the spec itself; targets without such an actuator are left out."""

    command_field: CommandField | None = None
    """Meaning of the controls; None detects it from the types of the actuators. If a target has
    several actuators, this selects those with this meaning and those of unknown type."""

    def build(self, entity: Entity, target_ids: list[int], target_names: list[str]) -> XmlActuator:
        """Wrap the actuators."""
        return XmlActuator(self, entity, target_ids, target_names)


@dataclass(kw_only=True)
class XmlPositionActuatorCfg(XmlActuatorCfg):
    """`XmlActuatorCfg` for `<position>`."""

    command_field: CommandField | None = field(default="position", init=False)

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> XmlPositionActuator:
        """Wrap the actuators."""
        return XmlPositionActuator(self, entity, target_ids, target_names)


@dataclass(kw_only=True)
class XmlVelocityActuatorCfg(XmlActuatorCfg):
    """`XmlActuatorCfg` for `<velocity>`."""

    command_field: CommandField | None = field(default="velocity", init=False)

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> XmlVelocityActuator:
        """Wrap the actuators."""
        return XmlVelocityActuator(self, entity, target_ids, target_names)


@dataclass(kw_only=True)
class XmlMotorActuatorCfg(XmlActuatorCfg):
    """`XmlActuatorCfg` for `<motor>`."""

    command_field: CommandField | None = field(default="effort", init=False)

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> XmlMotorActuator:
        """Wrap the actuators."""
        return XmlMotorActuator(self, entity, target_ids, target_names)


class XmlActuator(DirectActuator[XmlActuatorCfg]):
    """Drives the actuators of the spec that act on the selected targets.

    The targets are copied to `ctrl`.

    Raises:
        ValueError: none of the targets has an actuator, the meaning of the controls is unknown or
            differs between actuators, or an actuator has several controls.
    """

    command_field: CommandField = declared()
    """Meaning of the controls."""

    def __init__(
        self, cfg: XmlActuatorCfg, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> None:
        found = _find_actuators(entity.spec, cfg, target_names)
        if not found:
            raise ValueError(
                "No XML actuators found for any targets matching the patterns "
                f"{cfg.target_names_expr} (transmission {cfg.transmission_type}, targets "
                f"{', '.join(target_names)}): add actuators to the spec, or use another "
                "configuration."
            )
        ids = dict(zip(target_names, target_ids, strict=True))
        names = [actuator.target for actuator in found]
        super().__init__(cfg, entity, [ids[name] for name in names], names)
        self._mjs_actuators = found
        self.command_field = _common_field(cfg, found)
        self.command_fields = (self.command_field,)
        self.gain_cells = _common_cells(found)
        self.param_names = (*self.gain_cells, "force_limit")
        self.limit_fields = MOTOR_RANGES if self.command_field == "effort" else FORCE_RANGE

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Apply the configured changes of some targets, which have their actuators already."""
        for name in target_names:
            apply_target_overrides(spec, name, self.transmission_type, **self._overrides())

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the controls; each MuJoCo actuator must have exactly one."""
        for actuator in self._mjs_actuators:
            count = mj_model.actuator_ctrlnum[actuator.id]
            if count != 1:
                raise ValueError(
                    f"The XML actuator on '{actuator.target}' has {count} controls instead of one: "
                    "leave it out, and write its controls with write_ctrl_to_sim."
                )
        super().initialize(mj_model, model, data, device)


class XmlPositionActuator(XmlActuator):
    """An `XmlActuator` whose controls are positions."""


class XmlVelocityActuator(XmlActuator):
    """An `XmlActuator` whose controls are velocities."""


class XmlMotorActuator(XmlActuator):
    """An `XmlActuator` whose controls are efforts."""


def _find_actuators(
    spec: mujoco.MjSpec, cfg: XmlActuatorCfg, target_names: Sequence[str]
) -> list[mujoco.MjsActuator]:
    """List the actuators of the targets, in the order of these."""
    of_target: dict[str, list[mujoco.MjsActuator]] = {name: [] for name in target_names}
    for actuator in spec.actuators:
        if (
            actuator.target in of_target
            and actuator.trntype in TRANSMISSIONS[cfg.transmission_type]
        ):
            of_target[actuator.target].append(actuator)
    if cfg.command_field is not None:
        for name, actuators in of_target.items():
            if len(actuators) > 1:
                of_target[name] = [each for each in actuators if _may_take(cfg, each)]
    return [actuator for actuators in of_target.values() for actuator in actuators]


def _may_take(cfg: XmlActuatorCfg, actuator: mujoco.MjsActuator) -> bool:
    """Return whether an actuator takes the configured command or is of unknown type."""
    try:
        return detect_command_field(actuator) == cfg.command_field
    except ValueError:
        return True


def _common_field(cfg: XmlActuatorCfg, actuators: list[mujoco.MjsActuator]) -> CommandField:
    """Return the common meaning of the actuators' controls, or raise ValueError."""
    if cfg.command_field is not None:
        return cfg.command_field
    by_field: dict[CommandField, str] = {
        detect_command_field(actuator): actuator.target for actuator in actuators
    }
    if len(by_field) > 1:
        found = ", ".join(f"{kind} on '{target}'" for kind, target in by_field.items())
        raise ValueError(
            f"The XML actuators of {cfg.target_names_expr} take different commands ({found}): "
            "use one configuration for each kind, or give command_field."
        )
    return next(iter(by_field))


def _common_cells(actuators: list[mujoco.MjsActuator]) -> Mapping[str, tuple[Cell, ...]]:
    """Return the model columns of the actuators' gains, if they are the same for all."""
    kinds = {_cells_of(actuator) for actuator in actuators}
    kind = kinds.pop()
    if kinds or kind is None:
        return {}
    return _CELLS[kind]


def _cells_of(actuator: mujoco.MjsActuator) -> str | None:
    if actuator.gaintype == mujoco.mjtGain.mjGAIN_DCMOTOR:
        return "dcmotor"
    if actuator.gaintype == mujoco.mjtGain.mjGAIN_PID:
        return "pid"
    if actuator.biastype != mujoco.mjtBias.mjBIAS_AFFINE:
        return None
    gain = actuator.gainprm[0]
    bias = actuator.biasprm
    if gain == -bias[1]:
        return "spring"
    if bias[1] == 0.0 and gain == -bias[2]:
        return "damper"
    return None
