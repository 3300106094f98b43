"""Configurations of runs that the code no longer fits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from manyworlds.tasks.run_configs import configs_of_run


@pytest.mark.parametrize("task", ["Reach", "Velocity-Flat-Quadruped"])
def test_an_entry_that_is_gone_is_named(task):
    """Name the entry, also for a task without settings for few cores."""
    params = {"scene": {"number_of_worlds": 3}}
    run: Any = SimpleNamespace(task=task, env_params=lambda: params, agent_params=dict)
    with pytest.raises((ValueError, KeyError, TypeError), match="number_of_worlds"):
        configs_of_run(run)
