"""Actuators with the same control law, evaluated in one operation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from inspect import getattr_static
from typing import TYPE_CHECKING

import torch

from manyworlds.actuator.actuator import (
    Actuator,
    ActuatorCfg,
    begin_delay,
    delay_fields,
    keeps_law,
    read_command,
)
from manyworlds.actuator.pd_actuator import IdealPdActuator, IdealPdActuatorCfg
from manyworlds.validation.worlds import Worlds, as_index, assign

if TYPE_CHECKING:
    from manyworlds.entity import EntityData


class _FusedGroup:
    """Actuators with the same law, transmission and delay."""

    def __init__(self, first: IdealPdActuator[IdealPdActuatorCfg]) -> None:
        self._law = first.control_law
        self._cfg = first.cfg
        self._members: list[IdealPdActuator[IdealPdActuatorCfg]] = []

    def add(self, actuator: IdealPdActuator[IdealPdActuatorCfg]) -> None:
        """Add an actuator."""
        self._members.append(actuator)

    def initialize(self, num_envs: int, device: torch.device) -> None:
        """Concatenate the columns; the actuators' parameters become views of the group's."""
        members = self._members
        self._target_index = as_index(torch.cat([member.target_ids for member in members]))
        self._ctrl_index = as_index(torch.cat([member.global_ctrl_ids for member in members]))
        counts = [len(member.target_ids) for member in members]
        self._params = {
            name: torch.cat([member.params[name] for member in members], dim=1)
            for name in members[0].param_names
        }
        self._buffer = self._cfg.make_delay_buffer(num_envs, device)
        columns = {name: values.split(counts, dim=1) for name, values in self._params.items()}
        for i, member in enumerate(members):
            member.params = {name: views[i] for name, views in columns.items()}
            member.share_delay(self._buffer, first=i == 0)

    def apply_controls(self, data: EntityData, beginning: Worlds | None) -> None:
        """Evaluate the law and write the controls; see `ActuatorGroups.apply_controls`."""
        cmd = read_command(data, self._cfg.transmission_type, self._target_index)
        if beginning is not None:
            if self._buffer is not None:
                targets = [cmd.targets.of(field) for field in self._cfg.delay_fields]
                begin_delay(self._buffer, beginning, *targets)
            controls = self._law(self._params, cmd)
            assign(data.data.ctrl, beginning.take(controls), beginning, self._ctrl_index)
            return
        if self._buffer is not None:
            cmd = delay_fields(self._buffer, cmd, self._cfg.delay_fields)
        data.data.ctrl[:, self._ctrl_index] = self._law(self._params, cmd)


@dataclass
class FusedActuatorGroup:
    """Evaluates each control law once, for any number of actuators that share it."""

    _groups: list[_FusedGroup] = field(default_factory=list)

    @staticmethod
    def process(
        actuators: Sequence[Actuator[ActuatorCfg]],
    ) -> tuple[FusedActuatorGroup, tuple[Actuator[ActuatorCfg], ...]]:
        """Return the groups, and the actuators that fit none."""
        leftovers = []
        groups: dict[Hashable, _FusedGroup] = {}
        for actuator in actuators:
            # Only a law without `self` may be evaluated for all actuators of a class at once.
            if not keeps_law(actuator, IdealPdActuator) or not isinstance(
                getattr_static(actuator, "control_law"), staticmethod
            ):
                leftovers.append(actuator)
                continue
            key = (
                type(actuator).control_law,
                actuator.param_names,
                actuator.transmission_type,
                actuator.cfg.delay_key,
            )
            groups.setdefault(key, _FusedGroup(actuator)).add(actuator)
        return FusedActuatorGroup(list(groups.values())), tuple(leftovers)

    def initialize(self, num_envs: int, device: torch.device) -> None:
        """Prepare the groups, after the actuators are initialized."""
        for group in self._groups:
            group.initialize(num_envs, device)

    def apply_controls(self, data: EntityData, beginning: Worlds | None = None) -> None:
        """Write the controls of all groups; see `ActuatorGroups.apply_controls`."""
        for group in self._groups:
            group.apply_controls(data, beginning)
