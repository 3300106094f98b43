"""The contract of all actuators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import mujoco
import torch

from manyworlds.sim.sim_data import WarpBridge
from manyworlds.utils.actuator import TransmissionType
from manyworlds.utils.indices import EnvIds, as_index
from manyworlds.utils.spec import apply_target_overrides
from manyworlds.utils.state import Stateful

if TYPE_CHECKING:
    from manyworlds.entity import Entity, EntityData

CfgT = TypeVar("CfgT", bound="ActuatorCfg")


@dataclass(kw_only=True)
class ActuatorCfg(ABC):
    """Which targets an actuator moves, and what it changes about them."""

    target_names_expr: tuple[str, ...]
    """Regular expressions that select joints, tendons or sites."""
    transmission_type: TransmissionType = TransmissionType.JOINT
    """What the actuator acts on."""
    armature: float | None = None
    """Reflected rotor inertia [kg m^2 or kg]; None keeps the model's, 0 clears it."""
    frictionloss: float | None = None
    """Dry friction [N m or N]; None keeps the model's."""
    viscous_damping: float | None = None
    """Passive damping [N m s/rad or N s/m]; None keeps the model's."""

    @abstractmethod
    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> Actuator[ActuatorCfg]:
        """Make the actuator for the targets that the patterns selected."""


@dataclass(kw_only=True)
class ActuatorCmd:
    """What an actuator computes its control from, each of shape [num_envs, num_targets]."""

    position_target: torch.Tensor
    """Desired positions [rad or m]."""
    velocity_target: torch.Tensor
    """Desired velocities [rad/s or m/s]."""
    effort_target: torch.Tensor
    """Desired efforts [N m or N]."""
    pos: torch.Tensor
    """Positions [rad or m]."""
    vel: torch.Tensor
    """Velocities [rad/s or m/s]."""


class Actuator(ABC, Generic[CfgT], Stateful):
    """Turns targets into `ctrl` for a group of joints, tendons or sites.

    Args:
        cfg: its configuration.
        entity: the entity that it drives.
        target_ids: entity-local ids of its targets.
        target_names: the names of these targets.
    """

    needs_substeps: ClassVar[bool] = False
    """Whether `compute` depends on the state, so that it must run before every physics step."""

    def __init__(
        self, cfg: CfgT, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> None:
        self.cfg = cfg
        self.entity = entity
        self.target_names = target_names
        self.target_ids = torch.tensor(target_ids, dtype=torch.long)
        """Entity-local ids of its targets."""
        self.transmission_type = cfg.transmission_type
        self._mjs_actuators: list[mujoco.MjsActuator] = []
        self.global_ctrl_index: slice | torch.Tensor = slice(0, 0)

    @abstractmethod
    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the MuJoCo actuators of some targets; runs before compilation."""

    @abstractmethod
    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the controls, shape [num_envs, number of controls]."""

    def initialize(
        self, mj_model: mujoco.MjModel, model: WarpBridge, data: WarpBridge, device: torch.device
    ) -> None:
        """Find its controls in the compiled model."""
        self.target_ids = self.target_ids.to(device)
        self.target_index = as_index(self.target_ids)
        self.global_ctrl_index = as_index([actuator.id for actuator in self._mjs_actuators])

    def get_command(self, data: EntityData) -> ActuatorCmd:
        """Collect targets and state."""
        pick = self.target_index
        return ActuatorCmd(
            position_target=data.joint_pos_target[:, pick],
            velocity_target=data.joint_vel_target[:, pick],
            effort_target=data.joint_effort_target[:, pick],
            pos=data.joint_pos[:, pick],
            vel=data.joint_vel[:, pick],
        )

    def apply_delay(self, cmd: ActuatorCmd) -> ActuatorCmd:
        """Hold back the targets."""
        return cmd

    def reset(self, env_ids: EnvIds = None) -> None:
        """Forget what the worlds named have carried over."""

    def update(self, dt: float) -> None:
        """Advance what it tracks over time by `dt` [s]."""

    def _override_targets(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Apply the configured properties of the targets."""
        for name in target_names:
            apply_target_overrides(
                spec,
                name,
                self.transmission_type,
                armature=self.cfg.armature,
                frictionloss=self.cfg.frictionloss,
                viscous_damping=self.cfg.viscous_damping,
            )
