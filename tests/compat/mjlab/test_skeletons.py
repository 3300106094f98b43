"""mjlab's task skeletons, presets and learner configs are here as they are there."""

import importlib
import json
import re

import pytest

from manyworlds.compat import mjlab
from manyworlds.compat.mjlab.names import TASKS
from tests.compat.config_facts import differences
from tests.compat.names import shared_file
from tests.tasks.sharing import shared_parts

SKELETONS = (
    ("mjlab.tasks.velocity.velocity_env_cfg", "make_velocity_env_cfg"),
    ("mjlab.tasks.tracking.tracking_env_cfg", "make_tracking_env_cfg"),
    ("mjlab.tasks.manipulation.lift_cube_env_cfg", "make_lift_cube_env_cfg"),
)


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
    lines = [line for key, fact in facts.items() for line in differences(fact, _build(key), key)]
    assert lines == []


def _tables():
    """Read the table of each of mjlab's tasks: name -> kind of row -> entries."""
    text = shared_file("spec/framework.md").read_text()
    text = text[text.index("### 12b") : text.index("## 13")]
    parts = re.split(r"\n\*\*(Mjlab-[\w-]+)\*\*\n", text)[1:]
    for task, rows in zip(parts[::2], parts[1::2], strict=True):
        yield task, [row.removeprefix("- ") for row in rows.splitlines() if row.startswith("- ")]


def _entries(rows, kind):
    lines = [row.removeprefix(f"{kind} ") for row in rows if row.startswith(f"{kind} ")]
    return [entry.split(" ")[:3] for line in lines for entry in line.split(" · ")]


def test_robots_have_the_terms_of_the_tables():
    """Find terms, functions, weights, sensors and observations of mjlab's tasks in their order."""
    from mjlab.tasks.registry import load_env_cfg

    tables = dict(_tables())
    assert len(tables) == 5
    for task, rows in tables.items():
        cfg = load_env_cfg(task)
        for kind, terms, third in (
            ("REW", cfg.rewards, lambda term: term.weight),
            ("TERM", cfg.terminations, lambda term: term.time_out),
            ("EVT", cfg.events, lambda term: term.mode),
        ):
            ours = [[name, term.func.__name__, str(third(term))] for name, term in terms.items()]
            assert ours == _entries(rows, kind), task
        for kind, terms in (("CUR", cfg.curriculum), ("MET", cfg.metrics)):
            ours = [[name, term.func.__name__] for name, term in terms.items()]
            assert ours == [entry[:2] for entry in _entries(rows, kind)], task
        for row in rows:
            if row.startswith("OBS"):
                group = cfg.observations[row.split(" ")[1]]
                ours = [f"{name}({term.func.__name__}" for name, term in group.terms.items()]
                assert ours == re.findall(r"· (\w+\(\w+)", row), task
            if row.startswith("scene"):  # the row is cut off where it is long
                known = re.findall(r"SensorCfg\(name='(\w+)'", row)
                assert [sensor.name for sensor in cfg.scene.sensors][: len(known)] == known
            if row.startswith("dec"):
                buffers = {key: int(n) for key, n in re.findall(r"(nconmax|njmax)=(\d+)", row)}
                assert buffers == {key: getattr(cfg.sim, key) for key in buffers}
                assert f"body_name='{cfg.viewer.body_name}'" in row


@pytest.mark.parametrize(
    "place",
    [*SKELETONS, *sorted({(task.module, task.env_cfg) for task in TASKS.values()})],
    ids=lambda place: place[1],
)
def test_edits_stay_where_they_are_made(place):
    """Share no part between two terms or sensors, nor between two configs of the same task."""
    module, name = place
    make = getattr(importlib.import_module(module), name)
    assert not shared_parts(make(), make())


@pytest.mark.parametrize("task", TASKS)
def test_playback_is_quiet(task):
    """Watch endless episodes with exact observations of the same structure, without pushes."""
    from mjlab.tasks.registry import load_env_cfg

    cfg, play = load_env_cfg(task), load_env_cfg(task, play=True)
    assert play.episode_length_s > 1e6 and "push_robot" not in play.events
    assert cfg.observations["actor"].enable_corruption
    for name, group in play.observations.items():
        assert not group.enable_corruption
        assert list(group.terms) == list(cfg.observations[name].terms)
    assert play.actions == cfg.actions
    if "Rough" in task:
        assert not play.curriculum and not play.scene.terrain.terrain_generator.curriculum
        assert cfg.curriculum and cfg.scene.terrain.terrain_generator.curriculum
    if "Tracking" in task:
        motion = play.commands["motion"]
        assert (motion.sampling_mode, motion.pose_range, motion.velocity_range) == ("start", {}, {})
        assert motion.joint_position_range == (0.0, 0.0)
