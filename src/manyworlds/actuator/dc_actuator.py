"""A PD law behind the torque-speed curve of a DC motor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import torch

from manyworlds.actuator.actuator import ActuatorCmd
from manyworlds.actuator.builtin_actuator import check_positive
from manyworlds.actuator.pd_actuator import IdealPdActuator, IdealPdActuatorCfg, pd_torque

if TYPE_CHECKING:
    from manyworlds.entity import Entity

DcMotorCfgT = TypeVar("DcMotorCfgT", bound="DcMotorActuatorCfg", covariant=True)


@dataclass(kw_only=True)
class DcMotorActuatorCfg(IdealPdActuatorCfg):
    """PD law with the torque limited by the torque-speed curve of a DC motor."""

    saturation_effort: float
    """Torque at rest [N m or N]."""
    velocity_limit: float
    """Speed without load [rad/s or m/s]."""

    def __post_init__(self) -> None:
        """Check the numbers; warn if `effort_limit` exceeds `saturation_effort`."""
        super().__post_init__()
        check_positive(self, "saturation_effort", "velocity_limit")
        if math.isinf(self.effort_limit) or self.effort_limit > self.saturation_effort:
            warnings.warn(
                f"{type(self).__name__}.effort_limit is {self.effort_limit}, more than "
                f"saturation_effort={self.saturation_effort} of the motor at rest: set it "
                "to the largest continuous torque of the motor.",
                UserWarning,
                stacklevel=3,
            )

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> DcMotorActuator[DcMotorActuatorCfg]:
        """Make the actuator."""
        return DcMotorActuator(self, entity, target_ids, target_names)


def dc_motor_clip(
    effort: torch.Tensor,
    saturation_effort: torch.Tensor,
    velocity_limit: torch.Tensor,
    force_limit: torch.Tensor,
    vel: torch.Tensor,
) -> torch.Tensor:
    """Clip efforts to the range of a DC motor at a speed, all [num_envs, num_targets].

    At full voltage the torque decreases in proportion to the speed, from `saturation_effort` at
    rest to 0 at `velocity_limit`, and is negative beyond that: `tau = tau_s (+-1 - v / v_0)`; see
    any text on the steady state of `V = R i + k v`, `tau = k i`. `force_limit` bounds it on both
    sides.
    """
    slope = saturation_effort * (vel / velocity_limit)
    top = (saturation_effort - slope).clamp_(min=-force_limit, max=force_limit)
    bottom = (-saturation_effort - slope).clamp_(min=-force_limit, max=force_limit)
    return torch.clamp(effort, min=bottom, max=top)


class DcMotorActuator(IdealPdActuator[DcMotorCfgT], Generic[DcMotorCfgT]):
    """A PD law, clipped to the torque-speed curve of a DC motor."""

    param_names = (*IdealPdActuator.param_names, "saturation_effort", "velocity_limit_motor")

    @property
    def saturation_effort(self) -> torch.Tensor:
        """Torque at rest [N m or N], shape [num_envs, num_targets]."""
        return self.get_param("saturation_effort")

    @property
    def velocity_limit_motor(self) -> torch.Tensor:
        """Speed without load [rad/s or m/s], shape [num_envs, num_targets]."""
        return self.get_param("velocity_limit_motor")

    @staticmethod
    def control_law(params: Mapping[str, torch.Tensor], cmd: ActuatorCmd) -> torch.Tensor:
        """Return efforts from parameters and command, all [num_envs, num_targets]."""
        return clip_to_curve(params, pd_torque(params["stiffness"], params["damping"], cmd), cmd)

    def _initial_params(self) -> dict[str, float]:
        return super()._initial_params() | {
            "saturation_effort": self.cfg.saturation_effort,
            "velocity_limit_motor": self.cfg.velocity_limit,
        }


def clip_to_curve(
    params: Mapping[str, torch.Tensor], effort: torch.Tensor, cmd: ActuatorCmd
) -> torch.Tensor:
    """Apply `dc_motor_clip` with an actuator's parameters, shape [num_envs, num_targets]."""
    return dc_motor_clip(
        effort,
        params["saturation_effort"],
        params["velocity_limit_motor"],
        params["force_limit"],
        cmd.vel,
    )
