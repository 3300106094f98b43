"""Delay as a wrapper, equal to the delay fields of the wrapped configuration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from manyworlds.actuator.actuator import Actuator, ActuatorCfg
from manyworlds.spec.transmissions import TransmissionType

if TYPE_CHECKING:
    from manyworlds.entity import Entity


@dataclass(kw_only=True)
class DelayedActuatorCfg(ActuatorCfg):
    """Any actuator with delayed targets; `base_cfg` defines the targets."""

    base_cfg: ActuatorCfg
    """Configuration of the actuator, without a delay of its own."""
    target_names_expr: tuple[str, ...] = field(init=False)
    transmission_type: TransmissionType = field(init=False)
    armature: float | None = field(init=False)
    frictionloss: float | None = field(init=False)
    viscous_damping: float | None = field(init=False)

    def __post_init__(self) -> None:
        """Copy the targets of the wrapped configuration.

        Raises:
            ValueError: the wrapped configuration has a delay already.
        """
        if self.base_cfg.delay_key is not None:
            raise ValueError(
                f"DelayedActuatorCfg wraps a {type(self.base_cfg).__name__} that has a delay "
                f"(delay_max_lag={self.base_cfg.delay_max_lag}): give the delay in one place."
            )
        self.target_names_expr = self.base_cfg.target_names_expr
        self.transmission_type = self.base_cfg.transmission_type
        self.armature = self.base_cfg.armature
        self.frictionloss = self.base_cfg.frictionloss
        self.viscous_damping = self.base_cfg.viscous_damping
        super().__post_init__()

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> Actuator[ActuatorCfg]:
        """Make the wrapped actuator with this delay."""
        delayed = replace(
            self.base_cfg,
            delay_min_lag=self.delay_min_lag,
            delay_max_lag=self.delay_max_lag,
            delay_hold_prob=self.delay_hold_prob,
            delay_update_period=self.delay_update_period,
            delay_per_env_phase=self.delay_per_env_phase,
            delay_target=self.delay_target,
        )
        return delayed.build(entity, target_ids, target_names)


class _HasDelay(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Actuator) and instance.has_delay


class DelayedActuator(metaclass=_HasDelay):
    """Virtual class of all actuators with a delay, for `isinstance`; not constructed."""
