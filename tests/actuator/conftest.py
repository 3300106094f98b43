"""Fixtures of the actuators' tests."""

from tests.sim.conftest import quick_compilation

__all__ = ["quick_compilation"]
