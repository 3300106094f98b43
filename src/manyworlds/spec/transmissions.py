"""Transmission types and motor properties that several modules share; physics of gears."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import NamedTuple


class TransmissionType(enum.StrEnum):
    """Kind of target that an actuator acts on."""

    JOINT = "joint"
    TENDON = "tendon"
    SITE = "site"


@dataclass(frozen=True)
class ElectricActuator:
    """Properties of an electric motor with its gear, at the joint."""

    reflected_inertia: float
    """Inertia at the joint, for its `armature` [kg m^2]."""
    velocity_limit: float
    """Maximum speed of the joint [rad/s]."""
    effort_limit: float
    """Maximum torque at the joint [N m]."""


class LinearJointProperties(NamedTuple):
    """Properties of a rotary actuator at the slide joint that it drives."""

    armature: float
    """Effective mass at the joint [kg]."""
    velocity_limit: float
    """Maximum speed [m/s]."""
    effort_limit: float
    """Maximum force [N]."""


def reflected_inertia(rotor_inertia: float, gear_ratio: float) -> float:
    """Return the inertia of a rotor at the output of its gear [kg m^2]: `J n^2`.

    The rotor turns n times as fast as the output, and its kinetic energy is the same on either
    side: `J (n w)^2 / 2 = (J n^2) w^2 / 2`.

    Args:
        rotor_inertia: inertia J of the rotor [kg m^2].
        gear_ratio: turns n of the rotor per turn of the output.
    """
    return rotor_inertia * gear_ratio**2


def reflected_inertia_from_two_stage_planetary(
    rotor_inertia: tuple[float, float, float], gear_ratio: tuple[float, float, float]
) -> float:
    """Return the inertia of a motor with a two-stage planetary gear, at the output [kg m^2].

    Each rotating part turns as fast as the output times all ratios between them, and kinetic
    energies add up: `J_1 (n_1 n_2)^2 + J_2 n_2^2 + J_3`, where n_1 is the ratio from the rotor to
    the first carrier and n_2 that from the first carrier to the output.

    Args:
        rotor_inertia: inertia of the rotor, and of the parts that turn with the first and with the
            second carrier [kg m^2].
        gear_ratio: ratio before the first stage (1: the rotor is its input), of the first stage,
            and of the second stage.

    Raises:
        ValueError: the first ratio is not 1.
    """
    if gear_ratio[0] != 1:
        raise ValueError(
            f"The first gear ratio belongs to the rotor and must be 1, got {gear_ratio[0]}: "
            "give (1, first stage, second stage)."
        )
    rotor, first, second = rotor_inertia
    return (
        reflected_inertia(rotor, gear_ratio[1] * gear_ratio[2])
        + reflected_inertia(first, gear_ratio[2])
        + second
    )


def rpm_to_rad(rpm: float) -> float:
    """Convert revolutions per minute to rad/s."""
    return rpm * 2.0 * math.pi / 60.0


def reflect_rotary_to_linear(
    armature_rotary: float,
    velocity_limit_rotary: float,
    effort_limit_rotary: float,
    transmission_ratio: float,
) -> LinearJointProperties:
    """Return the properties of a rotary actuator at the slide joint that it drives.

    With `v = r w`, equal power on both sides (`F v = T w`) gives `F = T / r`, and equal kinetic
    energy (`m v^2 = J w^2`) gives `m = J / r^2`.

    Args:
        armature_rotary: inertia J at the rotary output [kg m^2].
        velocity_limit_rotary: maximum speed w [rad/s].
        effort_limit_rotary: maximum torque T [N m].
        transmission_ratio: travel r per angle [m/rad]: a pinion's radius, or a screw's lead / 2 pi.

    Raises:
        ValueError: the ratio is not positive.
    """
    if not transmission_ratio > 0:
        raise ValueError(
            f"The transmission_ratio [m/rad] must be positive, got {transmission_ratio}."
        )
    return LinearJointProperties(
        armature=armature_rotary / transmission_ratio**2,
        velocity_limit=velocity_limit_rotary * transmission_ratio,
        effort_limit=effort_limit_rotary / transmission_ratio,
    )
