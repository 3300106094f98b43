"""Actuators that MuJoCo simulates: their targets are the values of `ctrl`."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeGuard

import mujoco
import torch

from manyworlds.actuator.actuator import (
    INITIALIZE,
    Actuator,
    ActuatorCfg,
    ActuatorCfgT,
    ActuatorCmd,
    keeps_law,
)
from manyworlds.actuator.parameters import ControlGears, LimitParameter
from manyworlds.actuator.targets import CommandField
from manyworlds.sim.views import DataView, ModelView
from manyworlds.spec.edits import (
    apply_target_overrides,
    create_dcmotor_actuator,
    create_motor_actuator,
    create_muscle_actuator,
    create_position_actuator,
    create_velocity_actuator,
)
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.declared import declared
from manyworlds.utils.overrides import overrides

if TYPE_CHECKING:
    from manyworlds.entity import Entity

FORCE_RANGE = ("actuator_forcerange",)
MOTOR_RANGES = ("actuator_forcerange", "actuator_ctrlrange")
"""A motor's effort is also bounded by the range of its control."""
# https://mujoco.readthedocs.io/en/stable/XMLreference.html#actuator-position
POSITION_CELLS = {
    "stiffness": (("actuator_gainprm", 0, 1.0), ("actuator_biasprm", 1, -1.0)),
    "damping": (("actuator_biasprm", 2, -1.0),),
}
DCMOTOR_CELLS = {
    "stiffness": (("actuator_gainprm", 4, 1.0),),
    "damping": (("actuator_gainprm", 6, 1.0),),
}
VELOCITY_CELLS = {"damping": (("actuator_gainprm", 0, 1.0), ("actuator_biasprm", 2, -1.0))}


class DirectActuator(Actuator[ActuatorCfgT]):
    """Copies targets into `ctrl`.

    The controls are one block for each of `command_fields`, with one control per target. Positions
    and velocities are those of the targets: behind a gear, the control is `gear` times as large.
    """

    derived_attributes = ("gears",)  # follow the model
    command_fields: tuple[CommandField, ...] = ("effort",)
    """Kinds of targets that the controls are."""
    gears: ControlGears = declared(INITIALIZE)
    """Factors from targets to controls."""

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the controls, parameters and gears in the compiled model."""
        super().initialize(mj_model, model, data, device)
        rows = mj_model.actuator_outadr[self.global_actuator_ids.cpu().numpy()]
        geared = torch.tensor([field != "effort" for field in self.command_fields], device=device)
        self.gears = ControlGears(
            model,
            torch.as_tensor(rows, dtype=torch.long, device=device),
            geared.repeat_interleave(len(self.target_ids)),
        )

    @property
    def needs_substeps(self) -> bool:
        """True if targets are delayed, or a subclass changes what happens in a physics step."""
        changed = not is_passthrough(self) or overrides(self, DirectActuator, "update")
        return self.has_delay or changed

    def reads(self, field: CommandField) -> bool:
        """Return whether targets of a kind are copied, or may be read by a subclass."""
        return field in self.command_fields or not is_passthrough(self)

    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the controls, shape [num_envs, number of controls]."""
        controls = self.control_law(self.params, cmd)
        factors = self.gears.read()
        if factors is not None:
            controls = controls * factors
        return controls

    def control_law(self, params: Mapping[str, torch.Tensor], cmd: ActuatorCmd) -> torch.Tensor:
        """Return the targets in blocks, before gears, shape [num_envs, number of controls]."""
        targets = [cmd.targets.of(field) for field in self.command_fields]
        if len(targets) == 1:
            return targets[0]
        return torch.cat(targets, dim=-1)


def is_passthrough(
    actuator: Actuator[ActuatorCfg],
) -> TypeGuard[DirectActuator[ActuatorCfg]]:
    """Return whether an actuator copies its targets, so that a group may do so."""
    return keeps_law(actuator, DirectActuator) and not overrides(
        actuator, DirectActuator, "control_law"
    )


def _reject_site(cfg: ActuatorCfg, why: str) -> None:
    if cfg.transmission_type == TransmissionType.SITE:
        raise ValueError(
            f"{type(cfg).__name__}: transmission_type SITE is not possible, because {why}: use "
            "JOINT or TENDON, or a BuiltinMotorActuatorCfg on the site."
        )


def _check_gear(
    cfg: BuiltinMotorActuatorCfg | BuiltinMuscleActuatorCfg | BuiltinDcMotorActuatorCfg,
) -> None:
    """Raise ValueError unless the gear is a finite number other than 0."""
    if not (math.isfinite(cfg.gear) and cfg.gear):
        raise ValueError(
            f"{type(cfg).__name__}.gear must be a finite number other than 0, got {cfg.gear}: "
            "a gear of 0 transmits no effort; a negative gear reverses the direction."
        )


def check_positive(cfg: ActuatorCfg, *names: str, or_zero: bool = False) -> None:
    """Raise ValueError unless the named numbers are positive, or None."""
    for name in names:
        value = getattr(cfg, name)
        if value is not None and not (value > 0.0 or (or_zero and value == 0.0)):
            bound = "must not be negative" if or_zero else "must be positive"
            raise ValueError(f"{type(cfg).__name__}.{name} {bound}, got {value}.")


@dataclass(kw_only=True)
class BuiltinPositionActuatorCfg(ActuatorCfg):
    """MuJoCo's `<position>`: a spring to the position target, and damping."""

    stiffness: float
    """Effort per position error [N m/rad or N/m]."""
    damping: float
    """Effort per velocity [N m s/rad or N s/m]."""
    effort_limit: float | None = None
    """Largest effort [N m or N]; None for no limit."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        _reject_site(self, "a site has no position")
        check_positive(self, "stiffness", "damping", or_zero=True)
        check_positive(self, "effort_limit")

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> DirectActuator[BuiltinPositionActuatorCfg]:
        """Make the actuator."""
        return BuiltinPositionActuator(self, entity, target_ids, target_names)


class BuiltinPositionActuator(DirectActuator[BuiltinPositionActuatorCfg]):
    """MuJoCo's `<position>` on each target; its control is never limited."""

    command_fields = ("position",)
    param_names = ("stiffness", "damping", "force_limit")
    gain_cells = POSITION_CELLS
    limit_fields = FORCE_RANGE

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the actuators of some targets."""
        self._mjs_actuators += [
            create_position_actuator(
                spec,
                name,
                stiffness=self.cfg.stiffness,
                damping=self.cfg.damping,
                effort_limit=self.cfg.effort_limit,
                transmission_type=self.transmission_type,
                **self._overrides(),
            )
            for name in target_names
        ]


@dataclass(kw_only=True)
class BuiltinVelocityActuatorCfg(ActuatorCfg):
    """MuJoCo's `<velocity>`: effort in proportion to the velocity error."""

    damping: float
    """Effort per velocity error [N m s/rad or N s/m]."""
    effort_limit: float | None = None
    """Largest effort [N m or N]; None for no limit."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        _reject_site(self, "the velocity of a site is no single number")
        check_positive(self, "damping", or_zero=True)
        check_positive(self, "effort_limit")

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> BuiltinVelocityActuator:
        """Make the actuator."""
        return BuiltinVelocityActuator(self, entity, target_ids, target_names)


class BuiltinVelocityActuator(DirectActuator[BuiltinVelocityActuatorCfg]):
    """MuJoCo's `<velocity>` on each target."""

    command_fields = ("velocity",)
    param_names = ("damping", "force_limit")
    gain_cells = VELOCITY_CELLS
    limit_fields = FORCE_RANGE

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the actuators of some targets."""
        self._mjs_actuators += [
            create_velocity_actuator(
                spec,
                name,
                damping=self.cfg.damping,
                effort_limit=self.cfg.effort_limit,
                transmission_type=self.transmission_type,
                **self._overrides(),
            )
            for name in target_names
        ]


@dataclass(kw_only=True)
class BuiltinPdActuatorCfg(BuiltinPositionActuatorCfg):
    """A `<position>` and a `<velocity>` per target, whose sum follows both targets.

    MuJoCo's implicit integrators treat both as parts of the dynamics, so that large gains remain
    stable, unlike in an explicit law. The limit is that of the joint or the tendon: it bounds
    the sum of all its actuators.
    """

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> BuiltinPdActuator:
        """Make the actuator."""
        return BuiltinPdActuator(self, entity, target_ids, target_names)


class BuiltinPdActuator(DirectActuator[BuiltinPdActuatorCfg]):
    """A pair of actuators per target; controls are all positions, then all velocities."""

    command_fields = ("position", "velocity")
    param_names = ("stiffness", "damping", "force_limit")
    gain_cells = {"stiffness": POSITION_CELLS["stiffness"], "damping": VELOCITY_CELLS["damping"]}

    def __init__(
        self,
        cfg: BuiltinPdActuatorCfg,
        entity: Entity,
        target_ids: list[int],
        target_names: list[str],
    ) -> None:
        super().__init__(cfg, entity, target_ids, target_names)
        tendon = cfg.transmission_type == TransmissionType.TENDON
        self.limit_fields = ("tendon_actfrcrange" if tendon else "jnt_actfrcrange",)
        self._targets: list[mujoco.MjsJoint | mujoco.MjsTendon] = []

    @property
    def num_targets(self) -> int:
        """Number of targets, half that of controls."""
        return len(self.target_ids)

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the pairs of some targets."""
        cfg = self.cfg
        springs = [
            create_position_actuator(
                spec,
                name,
                stiffness=cfg.stiffness,
                damping=0.0,
                transmission_type=self.transmission_type,
                actuator_name=f"{name}_pd_pos",
                **self._overrides(),
            )
            for name in target_names
        ]
        dampers = [
            create_velocity_actuator(
                spec,
                name,
                damping=cfg.damping,
                transmission_type=self.transmission_type,
                actuator_name=f"{name}_pd_vel",
            )
            for name in target_names
        ]
        half = len(self._mjs_actuators) // 2
        before = self._mjs_actuators
        self._mjs_actuators = [*before[:half], *springs, *before[half:], *dampers]
        by_name = {element.name: element for element in spec.joints}
        if "tendon" in self.limit_fields[0]:
            by_name = {element.name: element for element in spec.tendons}
        targets = [by_name[name] for name in target_names]
        self._targets += targets
        if cfg.effort_limit is not None:
            for target in targets:
                target.actfrclimited = True
                target.actfrcrange[:] = (-cfg.effort_limit, cfg.effort_limit)

    def _actuator_ids_of(self, name: str) -> torch.Tensor:
        springs, dampers = self.global_actuator_ids.chunk(2)
        if name == "stiffness":
            return springs
        return dampers

    def _limit_parameter(self, mj_model: mujoco.MjModel, model: ModelView) -> LimitParameter:
        ids = torch.tensor([target.id for target in self._targets], device=self.target_ids.device)
        owner = f"{type(self).__name__} of {self.target_names}"
        rows = {self.limit_fields[0]: ids}
        differs = self.entity.variant_metadata is not None
        return LimitParameter(owner, mj_model, model, rows, differs)


@dataclass(kw_only=True)
class BuiltinMotorActuatorCfg(ActuatorCfg):
    """A motor: its effort is the effort target, within a limit.

    Target and limit apply before the gear: the effort at the joint is `gear` times the motor's.
    """

    effort_limit: float
    """Largest effort of the motor, before the gear [N m or N]."""
    gear: float = 1.0
    """Effort at the joint, tendon or site per effort of the motor; negative reverses it."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        check_positive(self, "effort_limit")
        _check_gear(self)

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> BuiltinMotorActuator:
        """Make the motors."""
        return BuiltinMotorActuator(self, entity, target_ids, target_names)


class BuiltinMotorActuator(DirectActuator[BuiltinMotorActuatorCfg]):
    """MuJoCo's `<motor>` on each target."""

    param_names = ("force_limit",)
    limit_fields = MOTOR_RANGES

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the motors of some targets."""
        self._mjs_actuators += [
            create_motor_actuator(
                spec,
                name,
                effort_limit=self.cfg.effort_limit,
                gear=self.cfg.gear,
                transmission_type=self.transmission_type,
                **self._overrides(),
            )
            for name in target_names
        ]


@dataclass(kw_only=True)
class BuiltinMuscleActuatorCfg(ActuatorCfg):
    """MuJoCo's `<muscle>`, whose attributes these are; the effort target is its excitation."""

    length_range: tuple[float, float] = (0.0, 0.0)
    """Feasible lengths [m or rad]; (0, 0) lets MuJoCo find them."""
    gear: float = 1.0
    """Scale of length and force; negative reverses both."""
    timeconst: tuple[float, float] = (0.01, 0.04)
    """Time constants of activation and deactivation [s]."""
    tausmooth: float = 0.0
    """Width of the smooth transition between activation and deactivation."""
    range: tuple[float, float] = (0.75, 1.05)
    """Operating lengths, in units of the optimal length."""
    force: float = -1.0
    """Peak active force at rest [N]; negative for `scale` over the inertia at rest."""
    scale: float = 200.0
    """See `force`."""
    lmin: float = 0.5
    """Shortest length with force, in units of the optimal length."""
    lmax: float = 1.6
    """Longest length with force, in units of the optimal length."""
    vmax: float = 1.5
    """Shortening velocity without force, in optimal lengths per second."""
    fpmax: float = 1.3
    """Passive force at `lmax`, in units of the peak force."""
    fvmax: float = 1.2
    """Active force at the fastest lengthening, in units of the peak force."""

    def __post_init__(self) -> None:
        """Check transmission and gear."""
        super().__post_init__()
        _reject_site(self, "a site has no length that a muscle could shorten")
        _check_gear(self)

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> BuiltinMuscleActuator:
        """Make the muscles."""
        return BuiltinMuscleActuator(self, entity, target_ids, target_names)


_ACTUATOR_FIELDS = {field.name for field in fields(ActuatorCfg)}


class BuiltinMuscleActuator(DirectActuator[BuiltinMuscleActuatorCfg]):
    """MuJoCo's `<muscle>` on each target, with an excitation from 0 to 1 as effort target."""

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the muscles of some targets."""
        own = {
            field.name: getattr(self.cfg, field.name)
            for field in fields(self.cfg)
            if field.name not in _ACTUATOR_FIELDS
        }
        for name in target_names:
            apply_target_overrides(spec, name, self.transmission_type, **self._overrides())
            self._mjs_actuators.append(
                create_muscle_actuator(spec, name, transmission_type=self.transmission_type, **own)
            )


class DcMotorInputMode(enum.IntEnum):
    """Meaning of a DC motor's control."""

    VOLTAGE = 0
    POSITION = 1
    VELOCITY = 2


@dataclass(frozen=True)
class DcMotorDatasheetParams:
    """A DC motor as its datasheet describes it."""

    nominal_voltage: float
    """[V]."""
    stall_torque: float
    """Torque at nominal voltage and rest [N m]."""
    no_load_speed: float
    """Speed at nominal voltage without load [rad/s]."""


@dataclass(frozen=True)
class DcMotorPhysicalParams:
    """A DC motor as a circuit."""

    kt: float
    """Torque per current [N m/A]."""
    ke: float
    """Voltage per speed [V s/rad]."""
    resistance: float
    """[Ohm]."""


@dataclass(kw_only=True)
class BuiltinDcMotorActuatorCfg(ActuatorCfg):
    """MuJoCo's `<dcmotor>`, driven by a voltage or by its own controller.

    Effort targets, gains and limits are those of the motor, before the gear: the effort at the
    joint is `gear` times the motor's. Positions and velocities are those of the joint. The voltage
    of the controller is bounded.
    """

    motor_params: DcMotorDatasheetParams | DcMotorPhysicalParams
    """The motor."""
    mode: DcMotorInputMode = DcMotorInputMode.POSITION
    """Meaning of the control; in VOLTAGE mode, the effort target is the voltage [V]."""
    stiffness: float = 0.0
    """Gain of the position error, in POSITION mode."""
    damping: float = 0.0
    """Gain of the velocity error."""
    voltage_limit: float = 0.0
    """Largest voltage of the controller [V]."""
    integral_gain: float = 0.0
    """Gain of the integral of the error."""
    integral_limit: float = 0.0
    """Largest effort of the integral."""
    slew_rate: float = 0.0
    """Largest change of the setpoint per second; 0 for no limit."""
    effort_limit: float | None = None
    """Largest effort of the motor, before the gear [N m or N]; None for no limit."""
    gear: float = 1.0
    """Turns of the motor per turn of the target; negative reverses the direction."""
    inductance: float = 0.0
    """[H]; 0 for none."""
    electrical_time_constant: float = 0.0
    """Inductance over resistance [s], instead of `inductance`."""
    thermal: tuple[float, float, float, float, float, float] | None = None
    """MuJoCo's `thermal` parameters."""
    cogging: tuple[float, float, float] | None = None
    """MuJoCo's `cogging` parameters: amplitude, periodicity, phase."""
    lugre: tuple[float, float, float, float, float] | None = None
    """MuJoCo's `lugre` friction parameters."""

    def __post_init__(self) -> None:
        """Check that mode, gains and limits fit each other.

        Raises:
            ValueError: they do not; the message names the field.
        """
        super().__post_init__()
        name = type(self).__name__
        mode = self.mode.name
        _reject_site(self, "a site has no speed for a motor to turn at")
        gains = ("stiffness", "damping", "integral_gain", "integral_limit", "slew_rate")
        check_positive(self, *gains, "voltage_limit", or_zero=True)
        check_positive(self, "inductance", "electrical_time_constant", or_zero=True)
        check_positive(self, "effort_limit")
        _check_gear(self)
        if self.mode == DcMotorInputMode.VOLTAGE:
            given = [gain for gain in (*gains, "voltage_limit") if getattr(self, gain)]
            if given:
                raise ValueError(
                    f"{name}: {', '.join(given)} must be 0 in VOLTAGE mode, which has no "
                    "controller: use POSITION or VELOCITY mode, or leave it out."
                )
            return
        needed = "damping"
        if self.mode == DcMotorInputMode.POSITION:
            needed = "stiffness"
        for field in (needed, "voltage_limit"):
            if getattr(self, field) == 0.0:
                raise ValueError(f"{name}.{field} must be positive in {mode} mode, got 0.")
        if self.mode == DcMotorInputMode.VELOCITY and self.stiffness:
            raise ValueError(
                f"{name}.stiffness must be 0 in VELOCITY mode, where MuJoCo would pull to "
                f"position 0 with it, got {self.stiffness}: the gain of the velocity is damping."
            )

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> BuiltinDcMotorActuator:
        """Make the motors."""
        return BuiltinDcMotorActuator(self, entity, target_ids, target_names)


_DC_INPUTS: dict[DcMotorInputMode, tuple[CommandField, int]] = {
    DcMotorInputMode.VOLTAGE: ("effort", mujoco.mjtCtrlInput.mjINPUT_VOLTAGE.value),
    DcMotorInputMode.POSITION: ("position", mujoco.mjtCtrlInput.mjINPUT_POS.value),
    DcMotorInputMode.VELOCITY: ("velocity", mujoco.mjtCtrlInput.mjINPUT_VEL.value),
}


class BuiltinDcMotorActuator(DirectActuator[BuiltinDcMotorActuatorCfg]):
    """MuJoCo's `<dcmotor>` on each target."""

    limit_fields = FORCE_RANGE
    gain_cells = DCMOTOR_CELLS

    def __init__(
        self,
        cfg: BuiltinDcMotorActuatorCfg,
        entity: Entity,
        target_ids: list[int],
        target_names: list[str],
    ) -> None:
        super().__init__(cfg, entity, target_ids, target_names)
        self.command_fields = (_DC_INPUTS[cfg.mode][0],)
        gains = {
            DcMotorInputMode.VOLTAGE: (),
            DcMotorInputMode.POSITION: ("stiffness", "damping"),
            DcMotorInputMode.VELOCITY: ("damping",),
        }
        self.param_names = (*gains[cfg.mode], "force_limit")

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the motors of some targets."""
        cfg = self.cfg
        motor = self.cfg.motor_params
        if isinstance(motor, DcMotorDatasheetParams):
            values: dict[str, Any] = {
                "nominal": (motor.nominal_voltage, motor.stall_torque, motor.no_load_speed)
            }
        else:
            values = {"motorconst": (motor.kt, motor.ke), "resistance": motor.resistance}
        optional = {"thermal": cfg.thermal, "cogging": cfg.cogging, "lugre": cfg.lugre}
        controller = (cfg.stiffness, cfg.integral_gain, cfg.damping)
        limits = (cfg.slew_rate, cfg.integral_limit, cfg.voltage_limit)
        self._mjs_actuators += [
            create_dcmotor_actuator(
                spec,
                name,
                effort_limit=cfg.effort_limit,
                gear=cfg.gear,
                transmission_type=self.transmission_type,
                inductance=(cfg.inductance, cfg.electrical_time_constant),
                controller=(*controller, *limits),
                ctrlspec=_DC_INPUTS[cfg.mode][1],
                **self._overrides(),
                **{key: value for key, value in optional.items() if value is not None},
                **values,
            )
            for name in target_names
        ]
