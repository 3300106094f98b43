"""Actions that set actuator targets: `target = scale * action + offset`, then clipped.

They differ in the elements that they drive and in the kind of targets that they set.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import mujoco
import torch

from manyworlds.actuator.targets import COMMAND_FIELDS, CommandField
from manyworlds.entity import Entity
from manyworlds.entity.driven import DrivenTargets
from manyworlds.managers.action_manager import ActionTerm, ActionTermCfg, TargetColumns
from manyworlds.managers.symmetry import Reflection, check_alike
from manyworlds.spec.elements import TRANSMISSIONS
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.declared import declared
from manyworlds.utils.overrides import overrides
from manyworlds.validation.rules import refuse
from manyworlds.validation.worlds import EnvIds, Worlds, as_index, assign, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.managers.symmetry import EnvSymmetry


def find_targets(
    entity: Entity,
    actuator_names: Sequence[str],
    transmission: TransmissionType = TransmissionType.JOINT,
    preserve_order: bool = False,
    *,
    field: CommandField | None,
) -> tuple[list[int], DrivenTargets]:
    """Select the joints, tendons or sites that actuators drive.

    Warns of selected targets that no actuator configuration follows, and leaves them out; and of
    those whose actuators take targets of other kinds only.

    Args:
        entity: the entity.
        actuator_names: regular expressions on names of targets, or of actuators: see
            `DrivenTargets`.
        transmission: kind of target; actuators of other kinds are ignored.
        preserve_order: order by pattern instead of by position in the model.
        field: kind of the targets that will be set; None if it is not known.

    Returns:
        Entity-local ids, and the targets in the same order.

    Raises:
        ValueError: there is no pattern, a pattern matches nothing or has two meanings, or no
            actuator configuration follows what it matches.
    """
    kind = transmission.value
    driven = entity.driven_targets(transmission)
    selected = driven.select(actuator_names, preserve_order)
    if not selected:
        raise ValueError(f"actuator_names of an action on {kind}s is empty: give ('.*',) for all.")
    followed = {
        target
        for actuator in entity.actuators
        if actuator.transmission_type == transmission
        for target in actuator.target_names
    }
    lost = [name for name in selected if name not in followed]
    if lost:
        message = (
            f"No actuator configuration follows the targets of {kind}s {lost}: add one to "
            "articulation.actuators, such as an XmlActuatorCfg for actuators of the model."
        )
        patterns = actuator_names
        if isinstance(patterns, str):
            patterns = [patterns]
        if any(followed.isdisjoint(driven.select(pattern)) for pattern in patterns):
            raise ValueError(message)
        warnings.warn(f"{message} The action leaves them out.", stacklevel=2)
        selected = [name for name in selected if name in followed]
    if field is not None:
        _warn_of_no_effect(entity, transmission, selected, field)
    every = entity.names(kind)
    return [every.index(name) for name in selected], driven.of(selected)


def _warn_of_no_effect(
    entity: Entity, transmission: TransmissionType, names: Sequence[str], field: CommandField
) -> None:
    """Warn of elements whose actuators do not take targets of a kind."""
    taken: dict[str, set[str]] = {name: set() for name in names}
    for actuator in entity.actuators:
        if actuator.transmission_type == transmission:
            fields = {each for each in COMMAND_FIELDS if actuator.reads(each)}
            for name in taken.keys() & set(actuator.target_names):
                taken[name] |= fields
    deaf = [name for name in names if field not in taken[name]]
    if deaf:
        kinds = sorted(set().union(*(taken[name] for name in deaf)))
        warnings.warn(
            f"The actuators of the {transmission.value}s {deaf} take {' and '.join(kinds)} "
            f"targets, so {field} targets have no effect on them: use an action that sets such "
            f"targets, or give them an actuator that follows {field} targets.",
            stacklevel=2,
        )


def _gears(
    mj_model: mujoco.MjModel, transmission: TransmissionType, ids: Sequence[int]
) -> torch.Tensor:
    """Return the gear of the first actuator of each target, shape [len(ids)]."""
    gears: dict[int, float] = {}
    for actuator, kind in enumerate(mj_model.actuator_trntype):
        if mujoco.mjtTrn(kind) in TRANSMISSIONS[transmission]:
            gear = float(mj_model.actuator_gear[mj_model.actuator_outadr[actuator], 0])
            gears.setdefault(int(mj_model.actuator_trnid[actuator, 0]), gear)
    return torch.tensor([gears[i] for i in ids])


def clip_bounds(
    clip: dict[str, tuple[float, float]] | None, targets: DrivenTargets, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Look up the lower and upper bounds of targets, shape [num_targets] each.

    They are infinite for a target without a match; None if `clip` is None.
    """
    if clip is None:
        return None
    bounds = targets.values(clip, (-torch.inf, torch.inf))
    for name, (lower, upper) in zip(targets.names, bounds, strict=True):
        if not lower <= upper:
            refuse(
                f"clip bounds '{name}' by ({lower}, {upper}), between which there is nothing: give "
                "the lower bound first."
            )
    low, high = torch.tensor(bounds, dtype=torch.float32, device=device).unbind(1)
    return low, high


@dataclass(kw_only=True)
class BaseActionCfg(ActionTermCfg):
    """Configuration of an action that drives actuators."""

    transmission_type: TransmissionType = TransmissionType.JOINT
    """Kind of the targets, given by the action's class."""
    actuator_names: tuple[str, ...] | list[str]
    """Regular expressions that select the targets, by their names or by those of their actuators:
    see `DrivenTargets`."""
    scale: float | dict[str, float] = 1.0
    """Factor: one for all targets, or by regular expression on the same names (default 1)."""
    offset: float | dict[str, float] = 0.0
    """Offset: one for all targets, or by regular expression on the same names (default 0)."""
    preserve_order: bool = False
    """Order targets by pattern instead of by position in the model."""

    term: ClassVar[type[BaseAction]]

    def build(self, env: ManagerBasedRlEnv) -> BaseAction:
        """Build the term."""
        return self.term(self, env)


class BaseAction(ActionTerm):
    """Action that scales, offsets and clips its slice.

    A subclass may write to `_scale` and `_offset`, both [num_envs, action_dim], and to `_clip`, the
    bounds in shape [num_envs, action_dim, 2] or None.

    Raises:
        ValueError: the config sets a transmission other than the action's, or has patterns that
            match no target.
    """

    cfg: BaseActionCfg
    state_attributes = ("_raw_actions", "_processed_actions")
    derived_attributes = ("_offset", "_offset_of")
    transmission_type: TransmissionType = declared()
    """Kind of transmission of the actuators; a class without one takes that of its config."""
    command_field: ClassVar[CommandField]
    """Kind of the targets set by the action."""

    def __init__(self, cfg: BaseActionCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        if not hasattr(self, "transmission_type"):
            self.transmission_type = cfg.transmission_type
        if cfg.transmission_type != self.transmission_type:
            raise ValueError(
                f"{type(cfg).__name__} drives {self.transmission_type.value}s, but its "
                f"transmission_type is '{cfg.transmission_type.value}': leave that out."
            )
        field: CommandField | None = None  # an own `apply_actions` may set anything
        if not overrides(self, BaseAction, "apply_actions"):
            field = self.command_field
        ids, self._driven_targets = find_targets(
            self._entity,
            cfg.actuator_names,
            cfg.transmission_type,
            cfg.preserve_order,
            field=field,
        )
        self._target_names = list(self._driven_targets.names)
        self._target_ids = torch.tensor(ids, device=self.device)
        self._index = as_index(self._target_ids)
        self._num_targets = self._action_dim = len(ids)
        with torch.inference_mode(False):
            self._raw_actions = torch.zeros(self.num_envs, len(ids), device=self.device)
            self._processed_actions = torch.zeros_like(self._raw_actions)
            self._scale = self._rows(cfg.scale, 1.0)
            self._offset = self._rows(cfg.offset, 0.0)
        self._follows_defaults = bool(getattr(cfg, "use_default_offset", False))
        if self._follows_defaults and cfg.offset != 0.0:
            refuse(
                f"{type(cfg).__name__} has offset={cfg.offset}, but use_default_offset uses the "
                "entity's defaults as the offset: set use_default_offset=False."
            )
        self._clip: torch.Tensor | None = None
        bounds = clip_bounds(cfg.clip, self._driven_targets, self.device)
        if bounds is not None:
            self._clip = torch.stack(bounds, dim=-1).repeat(self.num_envs, 1, 1)
        still = self._scale[0] == 0.0
        if self._clip is not None:
            still = still | (self._clip[0, :, 0] == self._clip[0, :, 1])
        if bool(still.any()):
            names = [name for name, off in zip(self._target_names, still, strict=True) if off]
            warnings.warn(
                f"{type(cfg).__name__}: actions have no effect on {names}, whose scale is 0 or "
                "whose clip is a single value: leave them out, or change it.",
                stacklevel=4,
            )
        self._offset_of: tuple[torch.Tensor | None, int] = (None, 0)
        self._follow_defaults()

    @property
    def needs_substeps(self) -> bool:  # type: ignore[override]
        """True if a subclass has its own `apply_actions`, which may depend on the state."""
        return overrides(self, BaseAction, "apply_actions")

    @property
    def target_ids(self) -> torch.Tensor:
        """Entity-local ids of the targets, shape [action_dim]."""
        return self._target_ids

    @property
    def target_names(self) -> list[str]:
        """Names of the targets."""
        return self._target_names

    @property
    def scale(self) -> torch.Tensor:
        """Factors, shape [num_envs, action_dim]."""
        return self._scale

    @property
    def sets(self) -> TargetColumns | None:
        """Targets that the term sets, unless a subclass applies its actions in its own way."""
        if overrides(self, BaseAction, "apply_actions"):
            return None
        return TargetColumns(
            self.cfg.entity_name, self.transmission_type, self.command_field, self._target_names
        )

    @property
    def offset(self) -> torch.Tensor:
        """Current offsets, shape [num_envs, action_dim].

        With `use_default_offset` they are replaced whenever the entity's defaults change.
        """
        self._follow_defaults()
        return self._offset

    @property
    def driven_targets(self) -> DrivenTargets:
        """Targets with the names of their actuators."""
        return self._driven_targets

    @property
    def action_dim(self) -> int:
        """Width of the slice: one element per target."""
        return self._action_dim

    @property
    def raw_action(self) -> torch.Tensor:
        """Unprocessed slice of the policy's action, shape [num_envs, action_dim]."""
        return self._raw_actions

    def mirror(self, mirror: EnvSymmetry) -> Reflection:
        """Return the mirror image of the term's slice.

        Raises:
            ValueError: targets, scales, offsets or bounds are not symmetric.
        """
        kind = self.transmission_type.value
        if self.transmission_type == TransmissionType.SITE:
            raise ValueError("no mirror image is known for efforts at sites.")
        name = self.cfg.entity_name
        ids = getattr(self._entity.indexing, f"{kind}_ids").cpu()[self._target_ids.cpu()].numpy()
        sign = torch.tensor(getattr(mirror.table(name), f"{kind}_sign")[ids], dtype=torch.float32)
        index = mirror.elements(kind, ids, name)
        if self.command_field == "effort":
            # Efforts are those of actuators, whose gears may have opposite signs.
            gears = _gears(mirror.env.sim.mj_model, self.transmission_type, ids.tolist())
            sign = sign * (gears * gears[index]).sign()
        reflection = Reflection(torch.tensor(index), sign)
        unsigned = Reflection(reflection.index, torch.ones_like(sign))
        check_alike(unsigned, self._scale[0], "scales", self._target_names)
        check_alike(reflection, self.offset[0], "offsets", self._target_names)
        if self._clip is not None:
            low, high = self._clip[0].cpu().unbind(-1)
            image = torch.where(sign > 0, low[reflection.index], -high[reflection.index])
            if not torch.equal(image, low):
                raise ValueError(f"clip={self.cfg.clip} is not symmetric: make it so.")
        return reflection

    def process_actions(self, actions: torch.Tensor) -> None:
        """Scale, offset and clip actions of shape [num_envs, action_dim]."""
        self._raw_actions.copy_(actions)
        # A new tensor, because a subclass may keep the last one; the property, which subclasses
        # override.
        self._processed_actions = torch.addcmul(self.offset, actions, self._scale)
        if self._clip is not None:
            self._processed_actions.clamp_(*self._clip.unbind(-1))

    def apply_actions(self) -> None:
        """Write the targets to the entity."""
        self._entity.set_target(
            self.transmission_type, self.command_field, self._targets(), self._index
        )

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Set the actions of the given worlds to zero."""
        worlds = Worlds.of(env_ids, self.num_envs, self.device)
        assign(self._raw_actions, 0.0, worlds)
        # A subclass may have kept the tensor, and one of inference mode refuses writes elsewhere.
        self._processed_actions = self._processed_actions.clone()
        assign(self._processed_actions, 0.0, worlds)

    def _targets(self) -> torch.Tensor:
        return self._processed_actions

    def _follow_defaults(self) -> None:
        if not self._follows_defaults:
            return
        defaults = self._defaults()
        known, version = self._offset_of
        now = -1  # a tensor of inference mode has no version
        if not defaults.is_inference():
            now = defaults._version
        if defaults is not known or now != version or now < 0:
            self._offset.copy_(defaults[:, self._index])
            self._offset_of = defaults, now

    def _defaults(self) -> torch.Tensor:
        """Return the offsets of all elements if the config says `use_default_offset`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no default targets: set use_default_offset=False."
        )

    def _rows(self, value: float | dict[str, float], default: float) -> torch.Tensor:
        row = self._driven_targets.values(value, default)
        row = torch.tensor(row, dtype=torch.float32, device=self.device)
        return row.repeat(self.num_envs, 1)


class _JointAction(BaseAction):
    transmission_type = TransmissionType.JOINT


class JointPositionAction(_JointAction):
    """Joint position targets as measured by encoders, encoder bias included."""

    command_field = "position"

    def _defaults(self) -> torch.Tensor:
        return self._entity.data.default_joint_pos

    def _targets(self) -> torch.Tensor:
        return self._processed_actions - self._entity.data.encoder_bias[:, self._index]


class RelativeJointPositionAction(_JointAction):
    """Joint position targets relative to the positions at each physics step.

    The encoder bias is added to both the position and the target, so it cancels.
    """

    command_field = "position"
    needs_substeps = True  # type: ignore[assignment]

    def _targets(self) -> torch.Tensor:
        return self._processed_actions + self._entity.data.joint_pos[:, self._index]


class JointVelocityAction(_JointAction):
    """Joint velocity targets."""

    command_field = "velocity"

    def _defaults(self) -> torch.Tensor:
        return self._entity.data.default_joint_vel


class JointEffortAction(_JointAction):
    """Joint effort targets."""

    command_field = "effort"


class TendonLengthAction(BaseAction):
    """Tendon length targets."""

    transmission_type = TransmissionType.TENDON
    command_field = "position"


class TendonVelocityAction(BaseAction):
    """Tendon velocity targets."""

    transmission_type = TransmissionType.TENDON
    command_field = "velocity"


class TendonEffortAction(BaseAction):
    """Tendon force targets."""

    transmission_type = TransmissionType.TENDON
    command_field = "effort"


class SiteEffortAction(BaseAction):
    """Site effort targets."""

    transmission_type = TransmissionType.SITE
    command_field = "effort"


@dataclass(kw_only=True)
class JointPositionActionCfg(BaseActionCfg):
    """Configuration of joint position targets [rad or m], encoder bias subtracted."""

    use_default_offset: bool = True
    """Interpret actions relative to the entity's current default joint positions."""

    term = JointPositionAction


@dataclass(kw_only=True)
class RelativeJointPositionActionCfg(BaseActionCfg):
    """Configuration of joint position targets relative to the current positions [rad or m]."""

    term = RelativeJointPositionAction

    def __post_init__(self) -> None:
        """Check that the offset is zero, so that a zero action requests no motion."""
        if self.offset != 0.0:
            raise ValueError(
                f"RelativeJointPositionActionCfg.offset is {self.offset}: leave it out, because "
                "actions are relative to the current positions."
            )


@dataclass(kw_only=True)
class JointVelocityActionCfg(BaseActionCfg):
    """Configuration of joint velocity targets [rad/s or m/s]."""

    use_default_offset: bool = True
    """Interpret actions relative to the entity's current default joint velocities."""

    term = JointVelocityAction


@dataclass(kw_only=True)
class JointEffortActionCfg(BaseActionCfg):
    """Configuration of joint effort targets [N m or N], applied before the actuators' gears."""

    term = JointEffortAction


@dataclass(kw_only=True)
class TendonLengthActionCfg(BaseActionCfg):
    """Configuration of tendon length targets [m]."""

    transmission_type: TransmissionType = TransmissionType.TENDON
    term = TendonLengthAction


@dataclass(kw_only=True)
class TendonVelocityActionCfg(BaseActionCfg):
    """Configuration of tendon velocity targets [m/s]."""

    transmission_type: TransmissionType = TransmissionType.TENDON
    term = TendonVelocityAction


@dataclass(kw_only=True)
class TendonEffortActionCfg(BaseActionCfg):
    """Configuration of tendon force targets [N], applied before the actuators' gears."""

    transmission_type: TransmissionType = TransmissionType.TENDON
    term = TendonEffortAction


@dataclass(kw_only=True)
class SiteEffortActionCfg(BaseActionCfg):
    """Configuration of efforts at sites [N or N m], applied before the actuators' gears."""

    transmission_type: TransmissionType = TransmissionType.SITE
    term = SiteEffortAction
