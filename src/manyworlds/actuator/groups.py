"""All actuators of an entity: together where one operation serves many, else one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.actuator.actuator import Actuator
from manyworlds.actuator.builtin_group import BuiltinActuatorGroup
from manyworlds.actuator.fused_group import FusedActuatorGroup
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.entity import EntityData


class ActuatorGroups:
    """Runs actuators, each of which is in one group or is left to itself.

    Args:
        actuators: the actuators of an entity.
    """

    def __init__(self, actuators: Sequence[Actuator[Any]]) -> None:
        self._actuators = tuple(actuators)
        self.builtin_group, rest = BuiltinActuatorGroup.process(actuators)
        """Those that copy targets."""
        self.fused_group, self.custom = FusedActuatorGroup.process(rest)
        """Those that share a law, and those left over."""
        self.needs_substeps = any(actuator.needs_substeps for actuator in actuators)
        """Whether controls must be computed before every physics step."""

    def initialize(self, num_envs: int, device: torch.device) -> None:
        """Prepare the groups, after the actuators are initialized."""
        self.builtin_group.initialize(num_envs, device)
        self.fused_group.initialize(num_envs, device)

    def apply_controls(self, data: EntityData) -> None:
        """Turn the entity's targets into controls."""
        self.builtin_group.apply_controls(data)
        self.fused_group.apply_controls(data)
        for actuator in self.custom:
            cmd = actuator.apply_delay(actuator.get_command(data))
            data.data.ctrl[:, actuator.global_ctrl_index] = actuator.compute(cmd)

    def reset(self, env_ids: EnvIds = None) -> None:
        """Forget what the worlds named have carried over."""
        for actuator in self._actuators:
            actuator.reset(env_ids)

    def update(self, dt: float) -> None:
        """Advance what actuators track over time by `dt` [s]."""
        for actuator in self._actuators:
            actuator.update(dt)
