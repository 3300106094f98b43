"""`manyworlds list --randomization TASK`."""

import pytest

from manyworlds.cli import randomization_table
from manyworlds.cli.main import main
from manyworlds.cli.randomization_table import randomization_rows
from manyworlds.envs import mdp
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.rl import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import register_task, registry
from tests.envs.mdp.dr.robot import env_cfg, make_env

EVENTS = {
    "feet": EventTermCfg(
        func=dr.geom_friction,
        mode="startup",
        params={
            "ranges": (0.3, 1.2),
            "asset_cfg": SceneEntityCfg("robot", geom_names=("tip", "tail", "lower", "upper")),
        },
    ),
    "com": EventTermCfg(func=dr.body_com_offset, mode="reset", params={"ranges": {0: (0.0, 0.1)}}),
    "turn": EventTermCfg(func=dr.site_quat, mode="reset", params={"yaw_range": (0.0, 0.1)}),
    "home": EventTermCfg(func=mdp.reset_scene_to_default, mode="reset"),
}


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Forget tasks that a test registers."""
    monkeypatch.setattr(registry, "_TASKS", {})


def test_rows():
    """List fields, elements, draws, modes and costs of what randomizes, and of nothing else."""
    *rows, (*turn, cost) = randomization_rows(make_env(**EVENTS))
    assert [row[:-1] for row in rows] == [
        (
            "feet",
            "geom_friction",
            "robot: upper, lower, tip and 1 more",
            "abs uniform (0.3, 1.2)",
            "startup",
        ),
        (
            "com",
            "body_ipos",
            "robot: all",
            "add uniform {0: (0.0, 0.1)}",
            "reset",
        ),
    ]
    assert turn == [
        "turn",
        "site_quat",
        "robot: all",
        "uniform yaw_range=(0.0, 0.1)",
        "reset",
    ]
    assert all(row[-1] > 0.0 for row in rows) and cost > 0.0


def test_the_command(capsys, monkeypatch):
    """Print the table, or what is wrong."""
    monkeypatch.setattr(randomization_table, "_WORLDS", 4)
    register_task("Wobbly", env_cfg(**EVENTS), env_cfg(), RslRlOnPolicyRunnerCfg())
    register_task("Plain", env_cfg(), env_cfg(), RslRlOnPolicyRunnerCfg())
    assert main(["list", "--randomization", "Wobbly"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("geom_friction", "(0.3, 1.2)", "startup", "us a world"))
    assert main(["list", "--randomization", "Plain"]) == 0
    assert "all its worlds are alike" in capsys.readouterr().out
    assert main(["list", "--randomization", "Wobly"]) == 1
    assert "Wobbly" in capsys.readouterr().err
