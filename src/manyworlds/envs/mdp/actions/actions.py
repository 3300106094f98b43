"""Actions that set targets of actuators: `target = scale * action + offset`, then clipped.

They differ in the elements that they drive and in the kind of targets that they set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import mujoco
import torch

from manyworlds.actuator import CommandField
from manyworlds.entity import Entity
from manyworlds.managers.action_manager import ActionTerm, ActionTermCfg
from manyworlds.spec.elements import TRANSMISSIONS
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.validation.names import resolve_expr, resolve_field
from manyworlds.validation.worlds import EnvIds, as_index, assign

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


def find_targets(
    entity: Entity,
    mj_model: mujoco.MjModel,
    actuator_names: Sequence[str],
    transmission: TransmissionType = TransmissionType.JOINT,
    preserve_order: bool = False,
) -> tuple[list[int], list[str]]:
    """Select the joints, tendons or sites that actuators move.

    Args:
        entity: the entity.
        mj_model: the model that its scene was compiled to.
        actuator_names: regular expressions on names of actuators.
        transmission: the kind of target; actuators of other kinds are left out.
        preserve_order: order by pattern instead of by position in the model.

    Returns:
        Entity-local ids and names.

    Raises:
        ValueError: no actuator matches, none of them is of this kind, or nothing would read the
            targets.
    """
    kind = transmission.value
    actuators, names = entity.find("actuator", actuator_names, preserve_order=preserve_order)
    local = {int(i): n for n, i in enumerate(getattr(entity.indexing, f"{kind}_ids"))}
    ids = [
        local[int(mj_model.actuator_trnid[i, 0])]
        for i in entity.indexing.ctrl_ids[actuators].tolist()
        if mujoco.mjtTrn(mj_model.actuator_trntype[i]) in TRANSMISSIONS[transmission]
    ]
    if not ids:
        raise ValueError(f"None of the actuators {names} acts on a {kind}: set actuator_names.")
    # An actuator of two parts, such as position and velocity, has one target.
    ids = list(dict.fromkeys(ids if preserve_order else sorted(ids)))
    every = entity.names(kind)
    followed = {
        target
        for actuator in entity.actuators
        if actuator.transmission_type == transmission
        for target in actuator.target_names
    }
    if lost := [every[i] for i in ids if every[i] not in followed]:
        raise ValueError(
            f"No actuator configuration follows the targets of {kind}s {lost}: add one to "
            "articulation.actuators, such as an XmlActuatorCfg for actuators of the model."
        )
    return ids, [every[i] for i in ids]


def clip_bounds(
    clip: dict[str, tuple[float, float]] | None, names: Sequence[str], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Look up lower and upper bounds by name, infinite where no pattern matches."""
    if clip is None:
        return None
    bounds = resolve_expr(clip, names, (-torch.inf, torch.inf))
    low, high = torch.tensor(bounds, dtype=torch.float32, device=device).unbind(1)
    return low, high


@dataclass(kw_only=True)
class BaseActionCfg(ActionTermCfg):
    """Which actuators an action drives, and how it is scaled."""

    transmission_type: TransmissionType = TransmissionType.JOINT
    """What the actuators act on; it is given by the kind of action."""
    actuator_names: tuple[str, ...] | list[str]
    """Regular expressions that select the actuators."""
    scale: float | dict[str, float] = 1.0
    """Factor, one for all targets or by regular expression on their names (1 for the others)."""
    offset: float | dict[str, float] = 0.0
    """Offset, one for all targets or by regular expression on their names (0 for the others)."""
    preserve_order: bool = False
    """Order targets by pattern instead of by position in the model."""

    term: ClassVar[type[BaseAction]]

    def build(self, env: ManagerBasedRlEnv) -> BaseAction:
        """Make the term."""
        return self.term(self, env)


class BaseAction(ActionTerm):
    """Scales, offsets and clips its slice of the action.

    Raises:
        ValueError: the config asks for another transmission than this action has, names no
            actuator, or has patterns that match no target.
    """

    cfg: BaseActionCfg
    state_attributes = ("_raw_action", "_processed_actions")
    transmission_type: ClassVar[TransmissionType] = TransmissionType.JOINT
    command_field: ClassVar[CommandField]
    """Kind of the targets that it sets."""

    def __init__(self, cfg: BaseActionCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        if cfg.transmission_type != self.transmission_type:
            raise ValueError(
                f"{type(cfg).__name__} drives {self.transmission_type.value}s, but its "
                f"transmission_type is '{cfg.transmission_type.value}': leave that out."
            )
        ids, self._target_names = find_targets(
            self._entity,
            env.sim.mj_model,
            cfg.actuator_names,
            cfg.transmission_type,
            cfg.preserve_order,
        )
        self._target_ids = torch.tensor(ids, device=self.device)
        self._index = as_index(self._target_ids)
        self._raw_action = torch.zeros(self.num_envs, len(ids), device=self.device)
        self._processed_actions = torch.zeros_like(self._raw_action)
        self._scale = self._row(cfg.scale, 1.0)
        self._offset = self._row(cfg.offset, 0.0)
        self._follows_defaults = bool(getattr(cfg, "use_default_offset", False))
        if self._follows_defaults and cfg.offset != 0.0:
            raise ValueError(
                f"{type(cfg).__name__} has offset={cfg.offset}, but use_default_offset takes the "
                "entity's defaults: set use_default_offset=False."
            )
        self._clip = clip_bounds(cfg.clip, self._target_names, self.device)

    @property
    def target_ids(self) -> torch.Tensor:
        """Entity-local ids of its targets, shape [action_dim]."""
        return self._target_ids

    @property
    def target_names(self) -> list[str]:
        """Names of its targets."""
        return self._target_names

    @property
    def scale(self) -> torch.Tensor:
        """Factors, shape [action_dim]."""
        return self._scale

    @property
    def offset(self) -> torch.Tensor:
        """Present offsets, shape [action_dim], or [num_envs, action_dim] where they are defaults.

        Defaults may change while the simulation runs.
        """
        if self._follows_defaults:
            return self._defaults()[:, self._index]
        return self._offset

    @property
    def action_dim(self) -> int:
        """Width of its slice: one per target."""
        return self._raw_action.shape[1]

    @property
    def raw_action(self) -> torch.Tensor:
        """The slice as the policy gave it, shape [num_envs, action_dim]."""
        return self._raw_action

    def process_actions(self, actions: torch.Tensor) -> None:
        """Scale, offset and clip."""
        self._raw_action.copy_(actions)
        torch.addcmul(self.offset, actions, self._scale, out=self._processed_actions)
        if self._clip is not None:
            self._processed_actions.clamp_(*self._clip)

    def apply_actions(self) -> None:
        """Set the targets."""
        self._entity.set_target(
            self.transmission_type, self.command_field, self._targets(), self._index
        )

    def reset(self, env_ids: EnvIds = None) -> None:
        """Forget the actions of the worlds named."""
        assign(self._raw_action, 0.0, env_ids)
        assign(self._processed_actions, 0.0, env_ids)

    def _targets(self) -> torch.Tensor:
        return self._processed_actions

    def _defaults(self) -> torch.Tensor:
        """Return the offsets of all elements if the config says `use_default_offset`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no default targets: set use_default_offset=False."
        )

    def _row(self, value: float | dict[str, float], default: float) -> torch.Tensor:
        row = resolve_field(value, self._target_names, default)
        return torch.tensor(row, dtype=torch.float32, device=self.device)


class JointPositionAction(BaseAction):
    """Drives joints by positions as their encoders tell them."""

    command_field = "position"

    def _defaults(self) -> torch.Tensor:
        return self._entity.data.default_joint_pos

    def _targets(self) -> torch.Tensor:
        return self._processed_actions - self._entity.data.encoder_bias[:, self._index]


class RelativeJointPositionAction(BaseAction):
    """Drives joints by positions relative to where they are in each physics step.

    What an encoder adds to the position it adds to the target, too, so that it does not matter.
    """

    command_field = "position"
    needs_substeps = True

    def _targets(self) -> torch.Tensor:
        return self._processed_actions + self._entity.data.joint_pos[:, self._index]


class JointVelocityAction(BaseAction):
    """Drives joints by velocity."""

    command_field = "velocity"

    def _defaults(self) -> torch.Tensor:
        return self._entity.data.default_joint_vel


class JointEffortAction(BaseAction):
    """Drives joints by effort."""

    command_field = "effort"


class TendonLengthAction(BaseAction):
    """Drives tendons by length."""

    transmission_type = TransmissionType.TENDON
    command_field = "position"


class TendonVelocityAction(BaseAction):
    """Drives tendons by velocity."""

    transmission_type = TransmissionType.TENDON
    command_field = "velocity"


class TendonEffortAction(BaseAction):
    """Drives tendons by force."""

    transmission_type = TransmissionType.TENDON
    command_field = "effort"


class SiteEffortAction(BaseAction):
    """Drives sites by effort."""

    transmission_type = TransmissionType.SITE
    command_field = "effort"


@dataclass(kw_only=True)
class JointPositionActionCfg(BaseActionCfg):
    """Sets joint position targets [rad or m], less what encoders add to positions."""

    use_default_offset: bool = True
    """Whether actions are relative to the entity's present default joint positions."""

    term = JointPositionAction


@dataclass(kw_only=True)
class RelativeJointPositionActionCfg(BaseActionCfg):
    """Sets joint position targets relative to the present positions [rad or m]."""

    term = RelativeJointPositionAction

    def __post_init__(self) -> None:
        """Check that no action means no motion."""
        if self.offset != 0.0:
            raise ValueError(
                f"RelativeJointPositionActionCfg has no offset, got {self.offset}: actions are "
                "relative to the present positions."
            )


@dataclass(kw_only=True)
class JointVelocityActionCfg(BaseActionCfg):
    """Sets joint velocity targets [rad/s or m/s]."""

    use_default_offset: bool = True
    """Whether actions are relative to the entity's present default joint velocities."""

    term = JointVelocityAction


@dataclass(kw_only=True)
class JointEffortActionCfg(BaseActionCfg):
    """Sets joint effort targets [N m or N], which count before the actuators' gears."""

    term = JointEffortAction


@dataclass(kw_only=True)
class TendonLengthActionCfg(BaseActionCfg):
    """Sets tendon length targets [m]."""

    transmission_type: TransmissionType = TransmissionType.TENDON
    term = TendonLengthAction


@dataclass(kw_only=True)
class TendonVelocityActionCfg(BaseActionCfg):
    """Sets tendon velocity targets [m/s]."""

    transmission_type: TransmissionType = TransmissionType.TENDON
    term = TendonVelocityAction


@dataclass(kw_only=True)
class TendonEffortActionCfg(BaseActionCfg):
    """Sets tendon force targets [N], which count before the actuators' gears."""

    transmission_type: TransmissionType = TransmissionType.TENDON
    term = TendonEffortAction


@dataclass(kw_only=True)
class SiteEffortActionCfg(BaseActionCfg):
    """Sets efforts at sites [N or N m], which count before the actuators' gears."""

    transmission_type: TransmissionType = TransmissionType.SITE
    term = SiteEffortAction
