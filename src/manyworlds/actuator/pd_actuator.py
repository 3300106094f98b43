"""A PD law that is computed in Python and applied by a motor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import mujoco
import torch

from manyworlds.actuator.actuator import Actuator, ActuatorCfg, ActuatorCmd
from manyworlds.actuator.builtin_actuator import MOTOR_RANGES, check_positive
from manyworlds.actuator.targets import CommandField
from manyworlds.spec.edits import create_motor_actuator
from manyworlds.utils.overrides import overrides

if TYPE_CHECKING:
    from manyworlds.entity import Entity

IdealPdCfgT = TypeVar("IdealPdCfgT", bound="IdealPdActuatorCfg", covariant=True)


@dataclass(kw_only=True)
class IdealPdActuatorCfg(ActuatorCfg):
    """Torque from position and velocity errors, plus a feed-forward effort."""

    stiffness: float
    """Effort per position error [N m/rad or N/m]."""
    damping: float
    """Effort per velocity error [N m s/rad or N s/m]."""
    effort_limit: float = math.inf
    """Largest effort [N m or N]."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        check_positive(self, "stiffness", "damping", or_zero=True)
        check_positive(self, "effort_limit")

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> IdealPdActuator[IdealPdActuatorCfg]:
        """Make the actuator."""
        return IdealPdActuator(self, entity, target_ids, target_names)


def pd_torque(stiffness: torch.Tensor, damping: torch.Tensor, cmd: ActuatorCmd) -> torch.Tensor:
    """Return `kp (q* - q) + kd (v* - v) + tau*`, shape [num_envs, num_targets]."""
    effort = torch.addcmul(cmd.effort_target, stiffness, cmd.position_target - cmd.pos)
    return effort.addcmul_(damping, cmd.velocity_target - cmd.vel)


class IdealPdActuator(Actuator[IdealPdCfgT], Generic[IdealPdCfgT]):
    """A PD law evaluated before every physics step, on a `<motor>`.

    A subclass overrides `control_law`, and adds the parameters of its law to `param_names` and
    `_initial_params`; entities then evaluate the law of all its groups in one operation.
    """

    param_names = ("stiffness", "damping", "force_limit")

    def __init__(
        self, cfg: IdealPdCfgT, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> None:
        super().__init__(cfg, entity, target_ids, target_names)
        # A motor without a limit has no ranges that a larger force_limit must widen.
        self.limit_fields = ()
        if math.isfinite(cfg.effort_limit):
            self.limit_fields = MOTOR_RANGES

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the motors of some targets."""
        self._mjs_actuators += [
            create_motor_actuator(
                spec,
                name,
                effort_limit=self.cfg.effort_limit,
                transmission_type=self.transmission_type,
                **self._overrides(),
            )
            for name in target_names
        ]

    @staticmethod
    def control_law(  # type: ignore[override]
        params: Mapping[str, torch.Tensor], cmd: ActuatorCmd
    ) -> torch.Tensor:
        """Return efforts from parameters and command, all [num_envs, num_targets]."""
        effort = pd_torque(params["stiffness"], params["damping"], cmd)
        limit = params["force_limit"]
        return torch.clamp(effort, min=-limit, max=limit)

    def reads(self, field: CommandField) -> bool:
        """Return whether targets of a kind have an effect: positions need a stiffness."""
        if overrides(self, IdealPdActuator, "compute", "control_law"):
            return super().reads(field)
        gains = {"position": self.cfg.stiffness, "velocity": self.cfg.damping}
        return gains.get(field, 1.0) > 0.0

    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the efforts, shape [num_envs, num_targets]."""
        return self.control_law(self.params, cmd)

    def _initial_params(self) -> dict[str, float]:
        """Return the configured values of `param_names`."""
        cfg = self.cfg
        return {
            "stiffness": cfg.stiffness,
            "damping": cfg.damping,
            "force_limit": cfg.effort_limit,
        }

    def _fill_params(self, num_envs: int, device: torch.device) -> None:
        shape = (num_envs, len(self.target_ids))
        self.params = {
            name: torch.full(shape, value, device=device)
            for name, value in self._initial_params().items()
            if name in self.param_names
        }
