"""Entering of a running training: one of its worlds goes on in a lab."""

from manyworlds.lab.entry.entered_world import EnteredWorld, enter, enter_run
from manyworlds.lab.entry.visitor import Visitor, running_trainings

__all__ = ["EnteredWorld", "Visitor", "enter", "enter_run", "running_trainings"]
