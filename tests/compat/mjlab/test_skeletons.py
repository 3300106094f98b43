"""mjlab's task skeletons, presets and learner configs are here as they are there."""

import importlib
import json
import re

import pytest

from manyworlds.compat import mjlab
from manyworlds.compat.mjlab.names import TASKS
from tests.compat.config_facts import differences
from tests.compat.names import shared_file


@pytest.fixture(autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


def _build(key):
    """Build what a key of the facts names: `module:function()`, `module:name` or `rl:task`."""
    from mjlab.tasks.registry import load_rl_cfg

    place, _, name = key.partition(":")
    if place == "rl":
        return load_rl_cfg(name)
    value = getattr(importlib.import_module(place), name.removesuffix("()"))
    return value() if name.endswith("()") else value


def test_built_configs_are_those_of_the_facts():
    """Find each class, function, parameter, weight and order of mjlab 1.6.0, and nothing else."""
    facts = json.loads(shared_file("peer/mjlab_configs.json").read_text())
    assert len(facts) > 20
    found = [line for key, fact in facts.items() for line in differences(fact, _build(key), key)]
    assert found == []
