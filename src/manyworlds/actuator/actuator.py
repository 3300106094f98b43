"""The contract of all actuators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import mujoco
import torch

from manyworlds.utils.actuator import TransmissionType
from manyworlds.utils.indices import as_index
from manyworlds.utils.spec import apply_target_overrides

if TYPE_CHECKING:
    from manyworlds.entity import Entity

CfgT = TypeVar("CfgT", bound="ActuatorCfg")


@dataclass(kw_only=True)
class ActuatorCfg(ABC):
    """Which joints an actuator moves, and what it changes about them."""

    target_names_expr: tuple[str, ...]
    """Regular expressions that select the joints."""
    armature: float | None = None
    """Reflected rotor inertia [kg m^2 or kg]; None keeps the model's, 0 clears it."""
    frictionloss: float | None = None
    """Dry friction [N m or N]; None keeps the model's."""
    viscous_damping: float | None = None
    """Joint damping [N m s/rad or N s/m]; None keeps the model's."""

    @abstractmethod
    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> Actuator[ActuatorCfg]:
        """Make the actuator for the joints that the patterns selected."""


@dataclass(kw_only=True)
class ActuatorCmd:
    """What an actuator computes its control from, each of shape [num_envs, num_targets]."""

    effort_target: torch.Tensor
    """Desired effort [N or N m]."""


class Actuator(ABC, Generic[CfgT]):
    """Turns targets into `ctrl` for a group of joints.

    Args:
        cfg: its configuration.
        target_ids: entity-local ids of its joints.
        target_names: the names of these joints.
    """

    needs_substeps: ClassVar[bool] = False
    """Whether `compute` depends on the state, so that it must run before every physics step."""

    def __init__(self, cfg: CfgT, target_ids: list[int], target_names: list[str]) -> None:
        self.cfg = cfg
        self.target_ids = as_index(target_ids)
        self.target_names = target_names
        self.transmission_type = TransmissionType.JOINT
        self.ctrl_ids: slice | torch.Tensor = slice(0, 0)
        """Positions of its controls in `sim.data.ctrl`, in the order of `target_names`."""

    @abstractmethod
    def edit_spec(self, spec: mujoco.MjSpec) -> list[mujoco.MjsActuator]:
        """Create the MuJoCo actuators, one a target; runs before compilation."""

    @abstractmethod
    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the controls, shape [num_envs, num_targets]."""

    def edit_targets(self, spec: mujoco.MjSpec) -> None:
        """Apply the configured joint properties."""
        for name in self.target_names:
            apply_target_overrides(
                spec,
                name,
                self.transmission_type,
                armature=self.cfg.armature,
                frictionloss=self.cfg.frictionloss,
                viscous_damping=self.cfg.viscous_damping,
            )
