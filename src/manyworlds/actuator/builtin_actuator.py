"""Actuators that MuJoCo itself simulates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import torch

from manyworlds.actuator.actuator import Actuator, ActuatorCfg, ActuatorCmd
from manyworlds.utils.spec import create_motor_actuator

if TYPE_CHECKING:
    from manyworlds.entity import Entity


@dataclass(kw_only=True)
class BuiltinMotorActuatorCfg(ActuatorCfg):
    """A direct-drive motor: its effort is the target, within a limit."""

    effort_limit: float
    """Largest effort at the joint [N or N m]."""
    gear: float = 1.0
    """Gear ratio from control to joint effort."""

    def __post_init__(self) -> None:
        if self.effort_limit <= 0.0 or self.gear <= 0.0:
            raise ValueError(
                "BuiltinMotorActuatorCfg needs effort_limit > 0 and gear > 0, "
                f"got {self.effort_limit} and {self.gear}."
            )

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> BuiltinMotorActuator:
        """Make the motors."""
        return BuiltinMotorActuator(self, entity, target_ids, target_names)


class BuiltinMotorActuator(Actuator[BuiltinMotorActuatorCfg]):
    """MuJoCo's `<motor>` on each target."""

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the motors."""
        self._override_targets(spec, target_names)
        self._mjs_actuators += [
            create_motor_actuator(
                spec, name, effort_limit=self.cfg.effort_limit, gear=self.cfg.gear
            )
            for name in target_names
        ]

    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the controls that give the desired efforts."""
        return cmd.effort_target if self.cfg.gear == 1.0 else cmd.effort_target / self.cfg.gear
