"""Base classes of all actuators and their configs."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypedDict, TypeGuard, TypeVar

import mujoco
import torch

from manyworlds.actuator.parameters import Cell, GainParameter, LimitParameter
from manyworlds.actuator.targets import COMMAND_FIELDS, CommandField, DriveTargets
from manyworlds.signals import DelayBuffer
from manyworlds.sim.views import DataView, ModelView
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.declared import declared
from manyworlds.utils.overrides import overrides
from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import EnvIds, Worlds, as_index, assign, takes_worlds

if TYPE_CHECKING:
    from manyworlds.entity import Entity, EntityData

INITIALIZE = "before its entity is part of a simulation: call scene.initialize."

ActuatorCfgT = TypeVar("ActuatorCfgT", bound="ActuatorCfg", covariant=True)
ActuatorT = TypeVar("ActuatorT", bound="Actuator[ActuatorCfg]")


class PassiveOverrides(TypedDict):
    """Changes of the targets' passive properties; None keeps the model's."""

    armature: float | None
    frictionloss: float | None
    viscous_damping: float | None


@dataclass(kw_only=True)
class ActuatorCfg(ABC):
    """Targets of an actuator, changes of their passive properties, and its delay."""

    target_names_expr: tuple[str, ...]
    """Regular expressions that select joints, tendons or sites."""
    transmission_type: TransmissionType = TransmissionType.JOINT
    """Kind of the targets."""
    armature: float | None = None
    """Reflected rotor inertia [kg m^2 or kg]; None keeps the model's, 0 clears it."""
    frictionloss: float | None = None
    """Dry friction [N m or N]; None keeps the model's."""
    viscous_damping: float | None = None
    """Passive damping [N m s/rad or N s/m]; None keeps the model's."""
    delay_min_lag: int = 0
    """Smallest delay of the targets [physics steps]."""
    delay_max_lag: int = 0
    """Largest delay [physics steps], drawn for each world; 0 for none."""
    delay_hold_prob: float = 0.0
    """Probability that a world keeps its delay at an update."""
    delay_update_period: int = 0
    """Period of delay updates [physics steps]; 0 updates in every step."""
    delay_per_env_phase: bool = True
    """Start the periods of the worlds at different steps."""
    delay_target: CommandField | tuple[CommandField, ...] = COMMAND_FIELDS
    """Kinds of targets that are delayed; they share one delay."""

    def __post_init__(self) -> None:
        """Check the values that need no model.

        Raises:
            ValueError: a pattern instead of a tuple of them, an unknown transmission, a passive
                property for a site, or invalid delays.
        """
        name = type(self).__name__
        if isinstance(self.target_names_expr, str):
            raise ValueError(
                f"{name}.target_names_expr must be a tuple of patterns, got "
                f"'{self.target_names_expr}': write ('{self.target_names_expr}',)."
            )
        for field in dataclasses.fields(self):
            if (
                isinstance(getattr(self, field.name), dict)
                and "dict" not in str(field.type).lower()
            ):
                raise ValueError(
                    f"{name}.{field.name} must be one value for all targets, got a dict: make a "
                    "configuration for each group of targets, with its own target_names_expr."
                )
        self.transmission_type = TransmissionType(self.transmission_type)
        if self.transmission_type == TransmissionType.SITE:
            for field in ("armature", "frictionloss", "viscous_damping"):
                if getattr(self, field) is not None:
                    raise ValueError(
                        f"{name}.{field} does not apply to sites, which have no dynamics of their "
                        "own: leave it out, or drive a joint or a tendon."
                    )
        late = self.delay_target
        if isinstance(late, str):
            late = (late,)
        if not late or set(late) - set(COMMAND_FIELDS):
            raise ValueError(
                f"{name}.delay_target must name some of {', '.join(COMMAND_FIELDS)}, got "
                f"{self.delay_target!r}."
            )
        try:
            self.make_delay_buffer(1, "cpu")
        except ValueError as error:
            raise ValueError(f"{name}: delay_{error}") from None

    @abstractmethod
    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> Actuator[ActuatorCfg]:
        """Return the actuator for the targets that the patterns selected."""

    @property
    def delay_fields(self) -> tuple[CommandField, ...]:
        """Kinds of targets that are delayed, in the order of `COMMAND_FIELDS`."""
        late = self.delay_target
        return tuple(field for field in COMMAND_FIELDS if field == late or field in late)

    @property
    def delay_key(self) -> tuple[Hashable, ...] | None:
        """Values that actuators must have in common to share a delay; None without a delay."""
        if self.delay_max_lag == 0 and self.delay_min_lag == 0:
            return None
        return (
            self.delay_min_lag,
            self.delay_max_lag,
            self.delay_hold_prob,
            self.delay_update_period,
            self.delay_per_env_phase,
            self.delay_fields,
        )

    def make_delay_buffer(self, num_envs: int, device: torch.device | str) -> DelayBuffer | None:
        """Return the buffer that delays targets; None without a delay."""
        if self.delay_key is None:
            return None
        return DelayBuffer(
            min_lag=self.delay_min_lag,
            max_lag=self.delay_max_lag,
            batch_size=num_envs,
            device=device,
            hold_prob=self.delay_hold_prob,
            update_period=self.delay_update_period,
            per_env_phase=self.delay_per_env_phase,
        )


@dataclass
class ActuatorCmd:
    """Inputs of an actuator's control law, each of shape [num_envs, num_targets]."""

    position_target: torch.Tensor
    """Desired positions [rad or m]."""
    velocity_target: torch.Tensor
    """Desired velocities [rad/s or m/s]."""
    effort_target: torch.Tensor
    """Desired efforts, before a gear [N m or N]."""
    pos: torch.Tensor
    """Positions [rad or m]."""
    vel: torch.Tensor
    """Velocities [rad/s or m/s]."""

    @property
    def targets(self) -> DriveTargets:
        """The three targets."""
        return DriveTargets(self.position_target, self.velocity_target, self.effort_target)


def pick_columns(tensor: torch.Tensor, index: slice | torch.Tensor) -> torch.Tensor:
    """Return columns of shape [num_envs, number of columns]: a view if they are contiguous."""
    if isinstance(index, slice):
        return tensor[:, index]
    return tensor.index_select(1, index)


def read_command(
    data: EntityData, transmission: TransmissionType, columns: slice | torch.Tensor
) -> ActuatorCmd:
    """Read targets and state of some elements of an entity."""
    targets = data.drive_targets(transmission)
    state = data.drive_state(transmission)
    return ActuatorCmd(
        position_target=pick_columns(targets.position, columns),
        velocity_target=pick_columns(targets.velocity, columns),
        effort_target=pick_columns(targets.effort, columns),
        pos=pick_columns(state.pos, columns),
        vel=pick_columns(state.vel, columns),
    )


def delay_command(buffer: DelayBuffer, *targets: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Delay targets of one shape by one lag per world.

    Args:
        buffer: the earlier targets.
        targets: position, velocity and effort targets, or some of them.
    """
    buffer.append(torch.cat(targets, dim=-1))
    return buffer.compute().split(targets[0].shape[-1], dim=-1)


def begin_delay(buffer: DelayBuffer, worlds: Worlds, *targets: torch.Tensor) -> None:
    """Fill the delays of worlds whose episode begins; those of the others do not advance.

    Args:
        buffer: the earlier targets.
        worlds: the worlds.
        targets: targets at the beginning, each [num_envs, num_targets]; see `delay_command`.
    """
    values = torch.cat(targets, dim=-1)
    if buffer.is_initialized:
        buffer.backfill(worlds.take(values), worlds)
    else:
        buffer.append(values)


def delay_fields(
    buffer: DelayBuffer, cmd: ActuatorCmd, fields: tuple[CommandField, ...]
) -> ActuatorCmd:
    """Return a command with some kinds of targets delayed."""
    targets = cmd.targets
    held = delay_command(buffer, *(targets.of(field) for field in fields))
    late = dict(zip(fields, held, strict=True))
    return replace(
        cmd,
        position_target=late.get("position", targets.position),
        velocity_target=late.get("velocity", targets.velocity),
        effort_target=late.get("effort", targets.effort),
    )


class Actuator(ABC, Generic[ActuatorCfgT], Stateful):
    """Turns targets into `ctrl` for a group of joints, tendons or sites.

    The parameters that may differ between worlds are in `param_names`. `get_param`, `set_param` and
    `default_param` read and write them. A subclass declares parameters that are stored in the model
    by `gain_cells` and `limit_fields`, and stores the others in `params` when it is initialized.

    Args:
        cfg: the configuration.
        entity: the entity that the actuator drives.
        target_ids: entity-local ids of the targets.
        target_names: the names of these targets.
    """

    state_attributes = ("params", "delay_buffer")
    param_names: tuple[str, ...] = ()
    """Names of the parameters that may differ between worlds."""
    gain_cells: Mapping[str, tuple[Cell, ...]] = MappingProxyType({})
    """Model fields and columns that store the gains among the parameters."""
    limit_fields: tuple[str, ...] = ()
    """Model fields that limit the effort."""
    target_names: list[str] = declared()
    """Names of the targets."""
    target_ids: torch.Tensor = declared()
    """Entity-local ids of the targets, shape [num_targets]."""
    transmission_type: TransmissionType = declared()
    """Kind of the targets."""
    ctrl_ids: torch.Tensor = declared(INITIALIZE)
    """Entity-local ids of the MuJoCo actuators, shape [number of controls]."""
    global_ctrl_ids: torch.Tensor = declared(INITIALIZE)
    """Columns of `ctrl` that the actuator writes, shape [number of controls]."""

    def __init__(
        self, cfg: ActuatorCfgT, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> None:
        self.cfg = cfg
        self.entity = entity
        self.target_names = target_names
        self.target_ids = torch.tensor(target_ids, dtype=torch.long)
        self.transmission_type = cfg.transmission_type
        self.params: dict[str, torch.Tensor] = {}
        """Parameters that are not stored in the model, each [num_envs, num_targets]."""
        self.delay_buffer: DelayBuffer | None = None
        self._shares_delay = False
        self._mjs_actuators: list[mujoco.MjsActuator] = []
        self._model_params: dict[str, GainParameter | LimitParameter] = {}
        self._defaults: dict[str, torch.Tensor] = {}

    @property
    def stiffness(self) -> torch.Tensor:
        """Effort per position error, shape [num_envs, num_targets]."""
        return self.get_param("stiffness")

    @property
    def damping(self) -> torch.Tensor:
        """Effort per velocity error, shape [num_envs, num_targets]."""
        return self.get_param("damping")

    @property
    def force_limit(self) -> torch.Tensor:
        """Largest effort before a gear [N m or N], infinite for none, [num_envs, num_targets]."""
        return self.get_param("force_limit")

    @property
    def default_stiffness(self) -> torch.Tensor:
        """`stiffness` as compiled, shape [num_envs, num_targets]."""
        return self.default_param("stiffness")

    @property
    def default_damping(self) -> torch.Tensor:
        """`damping` as compiled, shape [num_envs, num_targets]."""
        return self.default_param("damping")

    @property
    def default_force_limit(self) -> torch.Tensor:
        """`force_limit` as compiled, shape [num_envs, num_targets]."""
        return self.default_param("force_limit")

    @property
    def has_delay(self) -> bool:
        """True if targets are delayed."""
        return self.cfg.delay_key is not None

    @property
    def needs_substeps(self) -> bool:
        """True if the control must be computed before every physics step.

        By default it is, because `compute` may depend on the state.
        """
        return True

    @property
    def model_fields(self) -> tuple[str, ...]:
        """Model fields that a change of the parameters writes."""
        gains = (field for cells in self._own_gain_cells().values() for field, _, _ in cells)
        return tuple(dict.fromkeys((*gains, *self.limit_fields)))

    def reads(self, field: CommandField) -> bool:
        """Return whether targets of a kind have an effect; by default, all do."""
        return field in COMMAND_FIELDS

    @abstractmethod
    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the MuJoCo actuators of some targets; runs before compilation."""

    @abstractmethod
    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the controls, shape [num_envs, number of controls]."""

    def control_law(self, params: Mapping[str, torch.Tensor], cmd: ActuatorCmd) -> torch.Tensor:
        """Return controls, shape [num_envs, number of controls], from nothing but the arguments.

        A hook. If it is a static method, it may be evaluated once for several actuators; see
        `IdealPdActuator`.

        Raises:
            NotImplementedError: the controls depend on more than that.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no control law apart from its state: call compute(cmd)."
        )

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the controls and parameters in the compiled model."""
        ids = [actuator.id for actuator in self._mjs_actuators]
        adr = mj_model.actuator_ctrladr[ids].tolist()
        elements = [actuator.id for actuator in self.entity.spec.actuators]
        self.target_ids = self.target_ids.to(device)
        self.target_index = as_index(self.target_ids)
        self.ctrl_ids = torch.tensor([elements.index(i) for i in ids], device=device).long()
        self.global_ctrl_ids = torch.tensor(adr, device=device).long()
        self.global_actuator_ids = torch.tensor(ids, device=device).long()
        self.global_ctrl_index = as_index(self.global_ctrl_ids)
        for name, cells in self._own_gain_cells().items():
            self._model_params[name] = GainParameter(model, cells, self._actuator_ids_of(name))
        if self.limit_fields:
            self._model_params["force_limit"] = self._limit_parameter(mj_model, model)
        self._fill_params(data.qpos.shape[0], device)
        self._defaults = {name: self.get_param(name).clone() for name in self.param_names}
        self.delay_buffer = self.cfg.make_delay_buffer(data.qpos.shape[0], device)

    # Commands.

    def get_command(self, data: EntityData) -> ActuatorCmd:
        """Return copies of targets and state, which an actuator may keep."""
        return read_command(data, self.transmission_type, self.target_ids)

    def apply_delay(self, cmd: ActuatorCmd) -> ActuatorCmd:
        """Return the command with the configured delay; called once per physics step."""
        if self.delay_buffer is None:
            return cmd
        return delay_fields(self.delay_buffer, cmd, self.cfg.delay_fields)

    def begin(self, data: EntityData, worlds: Worlds) -> torch.Tensor:
        """Return the controls of worlds whose episode begins, before its first physics step.

        Nothing that the actuator remembers advances, in no world; only the delays of these worlds
        are filled with their targets.

        Args:
            data: targets and state.
            worlds: the worlds; their delays are empty.

        Returns:
            Controls, shape [num_envs, number of controls], which are right for these worlds.
        """
        cmd = self.get_command(data)
        before = self.state_dict()
        control = self.compute(cmd)  # the delays of these worlds hold nothing else
        self.load_state_dict(before)
        if self.delay_buffer is not None:
            targets = [cmd.targets.of(field) for field in self.cfg.delay_fields]
            begin_delay(self.delay_buffer, worlds, *targets)
        return control

    def set_lags(self, lags: torch.Tensor, env_ids: EnvIds = None) -> None:
        """Set the delay until its next update, clamped to its range.

        Actuators of an entity with the same control law and equal delay settings share one delay.

        Args:
            lags: delays [physics steps], shape [len(env_ids)].
            env_ids: the worlds; None for all.

        Raises:
            ValueError: the actuator has no delay.
        """
        if self.delay_buffer is None:
            raise ValueError(
                f"{type(self).__name__} of {self.target_names} has no delay: set delay_max_lag."
            )
        self.delay_buffer.set_lags(lags, env_ids)

    def share_delay(self, buffer: DelayBuffer | None, first: bool) -> None:
        """Set a buffer that several actuators share; the first of them resets it.

        The buffer stores the targets of all of them: their group applies the delay from then on,
        instead of the `apply_delay` of each actuator.
        """
        self.delay_buffer = buffer
        self._shares_delay = not first

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Clear the delayed targets of the given worlds; None for all."""
        if self.delay_buffer is not None and not self._shares_delay:
            self.delay_buffer.reset(env_ids)

    def update(self, dt: float) -> None:
        """Advance time-dependent state by `dt` [s]."""

    # Parameters.

    def get_param(self, name: str) -> torch.Tensor:
        """Return the present values of a parameter, shape [num_envs, num_targets].

        Raises:
            AttributeError: the actuator has no such parameter.
        """
        self._require_param(name)
        if name in self.params:
            return self.params[name]
        return self._model_params[name].read()

    def default_param(self, name: str) -> torch.Tensor:
        """Return a parameter as compiled for each world's variant, [num_envs, num_targets].

        Raises:
            AttributeError: the actuator has no such parameter.
        """
        self._require_param(name)
        built = self._defaults[name]
        if self.entity.variant_metadata is None or name in self.params:
            return built
        return self._model_params[name].read_default().expand_as(built)

    def set_param(
        self,
        name: str,
        value: torch.Tensor | float,
        env_ids: EnvIds = None,
        target_columns: torch.Tensor | slice | None = None,
    ) -> None:
        """Set a parameter of some worlds and targets, in the model or in `params`.

        Args:
            name: one of `param_names`.
            value: new values, shape [len(env_ids), len(target_columns)] or broadcastable to it.
            env_ids: the worlds; None for all.
            target_columns: columns of the actuator's targets; None for all.

        Raises:
            AttributeError: the actuator has no such parameter.
            ValueError: a limit is set for a target that was compiled without one.
        """
        self._require_param(name)
        columns = slice(None) if target_columns is None else target_columns
        value = torch.as_tensor(value, dtype=torch.float32, device=self.target_ids.device)
        if name in self._model_params:
            self._model_params[name].write(value, env_ids, columns)
        if name in self.params:
            assign(self.params[name], value, env_ids, columns)

    def set_gains(
        self,
        env_ids: EnvIds = None,
        kp: torch.Tensor | float | None = None,
        kd: torch.Tensor | float | None = None,
    ) -> None:
        """Set stiffness and damping of some worlds, each [len(env_ids), num_targets]; None keeps.

        Raises:
            AttributeError: the actuator has no such gain.
        """
        for name, value in (("stiffness", kp), ("damping", kd)):
            if value is not None:
                self.set_param(name, value, env_ids)

    def set_effort_limit(self, env_ids: EnvIds, effort_limit: torch.Tensor | float) -> None:
        """Set the largest effort before a gear [N m or N], shape [len(env_ids), num_targets].

        Raises:
            AttributeError: the actuator has no such limit.
            ValueError: the model was compiled without a limit.
        """
        self.set_param("force_limit", effort_limit, env_ids)

    def target_columns(self, ctrl_ids: torch.Tensor | list[int]) -> torch.Tensor:
        """Return the columns of the targets that some MuJoCo actuators drive, shape [n].

        Args:
            ctrl_ids: entity-local ids of MuJoCo actuators; those of other actuators are ignored.
        """
        named = torch.isin(self.ctrl_ids, torch.as_tensor(ctrl_ids, device=self.ctrl_ids.device))
        return named.nonzero().squeeze(-1).remainder(max(len(self.target_ids), 1)).unique()

    def _own_gain_cells(self) -> dict[str, tuple[Cell, ...]]:
        return {name: cells for name, cells in self.gain_cells.items() if name in self.param_names}

    def _overrides(self) -> PassiveOverrides:
        """Return the changes of passive properties that the configuration asks for."""
        return {
            "armature": self.cfg.armature,
            "frictionloss": self.cfg.frictionloss,
            "viscous_damping": self.cfg.viscous_damping,
        }

    def _require_param(self, name: str) -> None:
        if name not in self.param_names:
            names = ", ".join(self.param_names) or "none"
            raise AttributeError(
                f"{type(self).__name__} has no parameter '{name}'; its parameters are: {names}."
            )

    def _fill_params(self, num_envs: int, device: torch.device) -> None:
        """Allocate the parameters that are not stored in the model."""

    def _actuator_ids_of(self, name: str) -> torch.Tensor:
        """Return the global ids of the MuJoCo actuators with a gain, one per target."""
        return self.global_actuator_ids

    def _limit_parameter(self, mj_model: mujoco.MjModel, model: ModelView) -> LimitParameter:
        rows: dict[str, torch.Tensor] = {}
        for field in self.limit_fields:
            rows[field] = self.global_actuator_ids
            if "ctrl" in field:
                rows[field] = self.global_ctrl_ids
        return LimitParameter(
            f"{type(self).__name__} of {self.target_names}",
            mj_model,
            model,
            rows,
            self.entity.variant_metadata is not None,
        )


def keeps_law(actuator: Actuator[ActuatorCfg], kind: type[ActuatorT]) -> TypeGuard[ActuatorT]:
    """Return whether an actuator has the unchanged law of a class, so that a group may apply it."""
    return (
        isinstance(actuator, kind)
        and not overrides(actuator, kind, "compute")
        and not overrides(actuator, Actuator, "get_command", "apply_delay")
    )
