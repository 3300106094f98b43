"""Small types that actuators share with what builds and uses them."""

from __future__ import annotations

import enum


class TransmissionType(enum.StrEnum):
    """What an actuator acts on."""

    JOINT = "joint"
    TENDON = "tendon"
    SITE = "site"
