"""Tasks for a robot that is named, and files of tasks for a robot's model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

from manyworlds.cli.main import main
from manyworlds.tasks import load_env_cfg, load_rl_cfg, registry
from manyworlds.tasks.velocity.config import robots
from manyworlds.tasks.velocity.config.derived import derive_robot
from manyworlds.tasks.velocity.velocity_cpu import use_cpu_preset

ANT = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Leave the registry as it is."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    monkeypatch.setattr(registry, "_CPU_TRAINING", dict(registry._CPU_TRAINING))


@pytest.fixture
def menagerie(monkeypatch) -> list[str]:
    """Let MuJoCo Menagerie have the ant as each of its robots, in its cache; list what is read."""
    pytest.importorskip("mujoco_menagerie")
    from mujoco_menagerie import Robot

    read = []

    def xml(self, entry: str | None = None, cache=None) -> Path:
        read.append(self.name)
        return ANT

    monkeypatch.setattr(Robot, "xml", xml)
    return read


@pytest.mark.parametrize(
    ("robot", "task"),
    [
        ("quadruped", "Velocity-Flat-Quadruped"),
        ("humanoid", "Velocity-Flat-Humanoid"),
        ("go1", "Velocity-Flat-Go1"),
        ("unitree_g1", "Velocity-Flat-G1"),
    ],
)
def test_robots_with_tasks_of_their_own(robot, task):
    """Take the tasks that were written for these robots."""
    assert registry.task_of_robot("Velocity-Flat", robot) == task
    assert task in registry.BUILTIN_TASKS


def test_robots_of_menagerie(menagerie):
    """Derive the task once; a later process finds it by its name."""
    task = registry.task_of_robot("Velocity-Rough", "unitree_go2")
    assert (
        task
        == "Velocity-Rough-unitree_go2"
        == registry.task_of_robot("Velocity-Rough", "unitree_go2")
    )
    assert menagerie == ["unitree_go2"]
    cfg, play = load_env_cfg(task), load_env_cfg(task, play=True)
    assert cfg.scene.terrain.terrain_type == "generator" and play.episode_length_s > 1e6
    assert load_rl_cfg(task).experiment_name == "unitree_go2_velocity"
    assert registry._TASKS[task].cpu_preset is use_cpu_preset
    registry.require_task("Velocity-Flat-anybotics_anymal_c")
    assert menagerie[-1] == "anybotics_anymal_c"
    assert "illegal_contact" in load_env_cfg("Velocity-Flat-anybotics_anymal_c").terminations


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train Velocity-Flat", "name one, as in Velocity-Flat --robot quadruped"),
        ("train Velocity-Flat --robot unitree_go", "no legged robot 'unitree_go'"),
        ("train Velocity-Flat --robot franka_emika_panda", "new-task NAME --robot FILE"),
        ("train Reach --robot quadruped", "'Reach' is no task for a named robot"),
        ("play Velocity-Flat-quadrupd", "'quadrupd'"),
        ("new-task Mine --robot no.xml", "no.xml"),
        ("new-task Mine --effort-limit 3", "are for --robot FILE"),
    ],
)
def test_wrong_robots(line, message, capsys, tmp_path, monkeypatch):
    """Say in one line what is wrong, and what there is."""
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) in (1, 2)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1, error
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_be_downloaded(monkeypatch):
    """Name the robot, and the reason."""
    menagerie = pytest.importorskip("mujoco_menagerie")

    def xml(self, entry=None, cache=None):
        raise menagerie.DownloadError("no route\nto host")

    monkeypatch.setattr(menagerie.Robot, "xml", xml)
    with pytest.raises(OSError, match="cannot give 'unitree_go2': no route to host"):
        robots.menagerie_file("unitree_go2")


def test_a_file_for_any_robot(tmp_path, monkeypatch, capsys):
    """Write a task for a model, show what was derived, train and find no fault of style."""
    monkeypatch.chdir(tmp_path)
    assert main(["new-task", "My-Ant", "--robot", str(ANT)]) == 0
    out = capsys.readouterr().out
    assert "feet: ankle_1_body, ankle_2_body" in out and "hip_4" in out and "0.5585" in out
    small = ["--agent.max-iterations", "1", "--env.scene.num-envs", "8"]
    assert main(["train", "My-Ant", "--load", "my_ant.py", *small]) == 0
    assert list(tmp_path.glob("runs/my_ant/*/policy.onnx"))
    module = sys.modules["manyworlds_loaded_my_ant"]
    assert derive_robot(ANT) == module.MODEL  # pyright: ignore[reportAttributeAccessIssue]
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "my_ant.py"]
    subprocess.run([*check, "--select", "E,F", "--line-length", "100"], check=True)
