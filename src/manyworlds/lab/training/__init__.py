"""Entering a running training: one of its worlds continues in a lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.lab.training.entered_world import EnteredWorld, enter, enter_run
    from manyworlds.lab.training.visitor import Visitor, running_trainings
    from manyworlds.lab.training.warm_lab import WarmLab

__all__ = ["EnteredWorld", "Visitor", "WarmLab", "enter", "enter_run", "running_trainings"]

_MODULES = {
    "EnteredWorld": "manyworlds.lab.training.entered_world",
    "Visitor": "manyworlds.lab.training.visitor",
    "WarmLab": "manyworlds.lab.training.warm_lab",
    "enter": "manyworlds.lab.training.entered_world",
    "enter_run": "manyworlds.lab.training.entered_world",
    "running_trainings": "manyworlds.lab.training.visitor",
}

__getattr__ = lazy_names(__name__, _MODULES)
