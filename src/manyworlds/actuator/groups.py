"""All actuators of an entity, grouped so that one operation computes several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from manyworlds.actuator.actuator import Actuator, ActuatorCfg
from manyworlds.actuator.builtin_group import BuiltinActuatorGroup
from manyworlds.actuator.fused_group import FusedActuatorGroup
from manyworlds.utils.overrides import overrides
from manyworlds.validation.worlds import Worlds, assign

if TYPE_CHECKING:
    from manyworlds.entity import EntityData


class ActuatorGroups:
    """Computes the controls of actuators, each in a group or on its own.

    Args:
        actuators: the actuators of an entity.
    """

    def __init__(self, actuators: Sequence[Actuator[ActuatorCfg]]) -> None:
        self._actuators = tuple(actuators)
        self._updated = [a for a in actuators if overrides(a, Actuator, "update")]
        self.builtin_group, rest = BuiltinActuatorGroup.process(actuators)
        """Actuators that copy targets."""
        self.fused_group, self.custom = FusedActuatorGroup.process(rest)
        """Actuators that share a law (`custom`: actuators in no group)."""
        self.needs_substeps = any(actuator.needs_substeps for actuator in actuators)
        """True if controls must be computed before every physics step."""

    def initialize(self, num_envs: int, device: torch.device) -> None:
        """Prepare the groups, after the actuators are initialized."""
        self.builtin_group.initialize(num_envs, device)
        self.fused_group.initialize(num_envs, device)

    def apply_controls(self, data: EntityData, beginning: Worlds | None = None) -> None:
        """Turn the entity's targets into controls.

        Args:
            data: the entity's targets and state.
            beginning: worlds whose episode begins, before its first physics step: only their
                controls are written, their delays begin with the present targets, and nothing
                that actuators remember of the other worlds moves. None for a physics step of all.
        """
        self.builtin_group.apply_controls(data, beginning)
        self.fused_group.apply_controls(data, beginning)
        for actuator in self.custom:
            columns = actuator.global_ctrl_index
            if beginning is not None:
                controls = actuator.begin(data, beginning)
                assign(data.data.ctrl, beginning.take(controls), beginning, columns)
                continue
            cmd = actuator.apply_delay(actuator.get_command(data))
            data.data.ctrl[:, columns] = actuator.compute(cmd)

    def reset(self, worlds: Worlds) -> None:
        """Clear the state of the actuators in the given worlds."""
        for actuator in self._actuators:
            actuator.reset(worlds.for_term(actuator.reset))

    def update(self, dt: float) -> None:
        """Advance time-dependent actuator state by `dt` [s]."""
        for actuator in self._updated:
            actuator.update(dt)
