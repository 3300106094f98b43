"""Actuators that only copy targets to `ctrl`, several in one operation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from manyworlds.actuator.actuator import Actuator, ActuatorCfg, begin_delay, pick_columns
from manyworlds.actuator.builtin_actuator import DirectActuator, is_passthrough
from manyworlds.actuator.parameters import ControlGears
from manyworlds.actuator.targets import COMMAND_FIELDS, CommandField
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.validation.worlds import Worlds, as_index, assign

if TYPE_CHECKING:
    from manyworlds.entity import EntityData


class _CopyGroup:
    """Actuators whose targets are copied in one operation, with the same delay."""

    def __init__(
        self, transmission: TransmissionType, fields: tuple[CommandField, ...], delayed: bool
    ) -> None:
        self._transmission = transmission
        self._fields = fields
        self._delayed = delayed
        self._members: list[DirectActuator[ActuatorCfg]] = []

    def add(self, actuator: DirectActuator[ActuatorCfg]) -> None:
        """Add an actuator."""
        self._members.append(actuator)

    def initialize(self, num_envs: int, device: torch.device) -> None:
        """Find the columns in the order of the controls, which are then a slice if possible."""
        self._sources: list[tuple[int, slice | torch.Tensor]] = []
        ctrl_ids = []
        gear_rows = []
        geared = []
        for name in self._fields:
            ctrl = []
            target = []
            rows = []
            for member in self._members:
                start = member.command_fields.index(name) * len(member.target_ids)
                block = slice(start, start + len(member.target_ids))
                ctrl.append(member.global_ctrl_ids[block])
                rows.append(member.gears.rows[block])
                target.append(member.target_ids)
            order = torch.cat(ctrl).argsort()
            # `DriveTargets` are in the order of `COMMAND_FIELDS`.
            source = COMMAND_FIELDS.index(name), as_index(torch.cat(target)[order])
            self._sources.append(source)
            ctrl_ids.append(torch.cat(ctrl)[order])
            gear_rows.append(torch.cat(rows)[order])
            geared.append(torch.full_like(order, name != "effort", dtype=torch.bool))
        self._ctrl_index = as_index(torch.cat(ctrl_ids))
        model = self._members[0].gears.model
        self._gears = ControlGears(model, torch.cat(gear_rows), torch.cat(geared))
        self._buffer = None
        if self._delayed:
            self._buffer = self._members[0].cfg.make_delay_buffer(num_envs, device)
            for i, member in enumerate(self._members):
                member.share_delay(self._buffer, first=i == 0)

    def apply_controls(self, data: EntityData, beginning: Worlds | None) -> None:
        """Write the controls; see `ActuatorGroups.apply_controls`."""
        targets = data.drive_targets(self._transmission)
        parts: list[torch.Tensor] = []
        for position, columns in self._sources:
            parts.append(pick_columns(targets[position], columns))
        values = parts[0]
        if len(parts) > 1:
            values = torch.cat(parts, dim=-1)
        if self._buffer is not None and beginning is not None:
            begin_delay(self._buffer, beginning, values)
        elif self._buffer is not None:
            self._buffer.append(values)
            values = self._buffer.compute()
        factors = self._gears.read()
        if factors is not None:
            values = values * factors
        if beginning is None:
            data.data.ctrl[:, self._ctrl_index] = values
        else:
            assign(data.data.ctrl, beginning.take(values), beginning, self._ctrl_index)


@dataclass
class BuiltinActuatorGroup:
    """Copies the targets of all actuators without a control law.

    There is one copy operation for each kind of target and each delay, for any number of actuators.
    """

    _groups: list[_CopyGroup] = field(default_factory=list)
    _delayed_groups: list[_CopyGroup] = field(default_factory=list)

    @staticmethod
    def process(
        actuators: Sequence[Actuator[ActuatorCfg]],
    ) -> tuple[BuiltinActuatorGroup, tuple[Actuator[ActuatorCfg], ...]]:
        """Return the groups, and the actuators that fit none."""
        leftovers = []
        groups: dict[tuple[Hashable, ...], _CopyGroup] = {}
        for actuator in actuators:
            if not is_passthrough(actuator):
                leftovers.append(actuator)
                continue
            delay = actuator.cfg.delay_key
            transmission = actuator.transmission_type
            late: list[CommandField] = []
            for command_field in actuator.command_fields:
                if delay and command_field in actuator.cfg.delay_fields:
                    late.append(command_field)
                    continue
                fields = (command_field,)
                group = _CopyGroup(transmission, fields, delayed=False)
                groups.setdefault((transmission, fields, None), group).add(actuator)
            if late:
                fields = tuple(late)
                group = _CopyGroup(transmission, fields, delayed=True)
                groups.setdefault((transmission, fields, delay), group).add(actuator)
        return (
            BuiltinActuatorGroup(
                [group for key, group in groups.items() if key[-1] is None],
                [group for key, group in groups.items() if key[-1] is not None],
            ),
            tuple(leftovers),
        )

    def initialize(self, num_envs: int, device: torch.device) -> None:
        """Prepare the copies, after the actuators are initialized."""
        for group in (*self._groups, *self._delayed_groups):
            group.initialize(num_envs, device)

    def apply_controls(self, data: EntityData, beginning: Worlds | None = None) -> None:
        """Write the controls of all groups; see `ActuatorGroups.apply_controls`."""
        for group in (*self._groups, *self._delayed_groups):
            group.apply_controls(data, beginning)
