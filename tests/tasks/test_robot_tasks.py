"""Tasks for a robot that is named, and files of tasks for a robot's model."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

from manyworlds.cli.main import main
from manyworlds.cli.new_task import write_robot_task
from manyworlds.rl.config import SYMMETRIC_MLP
from manyworlds.tasks import load_env_cfg, load_rl_cfg, registry
from manyworlds.tasks.velocity.config import derived, robots
from manyworlds.tasks.velocity.config.derived import (
    cpu_preset,
    derive_robot,
    legged_robot,
    settled_height,
    velocity_env_cfg,
    velocity_rl_cfg,
)
from manyworlds.utils.extras import MissingExtraError
from tests.robots import robot_file

ANT = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Leave the registry as it is."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    monkeypatch.setattr(registry, "_CPU_TRAINING", dict(registry._CPU_TRAINING))


@pytest.fixture
def menagerie(monkeypatch, tmp_path) -> Path:
    """Let the package of MuJoCo Menagerie read an empty folder."""
    pytest.importorskip("mujoco_menagerie")
    folder = tmp_path / "menagerie"
    folder.mkdir()
    monkeypatch.setenv("MENAGERIE_ROOT", str(folder))
    return folder


def put(folder: Path, name: str, file: Path) -> None:
    """Give a robot of another maker, with its meshes, the name of one of Menagerie."""
    import mujoco_menagerie

    robot = mujoco_menagerie.get(name)
    target = folder / name / robot.entry(robot.default_model).file
    target.parent.mkdir()
    shutil.copy(file, target)
    if (meshes := file.parent / "assets").is_dir():
        shutil.copytree(meshes, target.parent / "assets")


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


@pytest.mark.parametrize(
    ("robot", "file", "feet", "joints", "iterations"),
    [
        ("anybotics_anymal_c", "ant.xml", 4, 8, 10000),
        ("booster_t1", "humanoid.xml", 2, 17, 30000),
    ],
)
def test_robots_of_menagerie(menagerie, robot, file, feet, joints, iterations):
    """Derive the task of a quadruped and of a humanoid, once."""
    put(menagerie, robot, ANT.with_name(file))
    task = registry.task_of_robot("Velocity-Rough", robot)
    assert task == f"Velocity-Rough-{robot}"
    cfg, play, rl_cfg = load_env_cfg(task), load_env_cfg(task, play=True), load_rl_cfg(task)
    assert cfg.scene.terrain.terrain_type == "generator" and play.episode_length_s > 1e6
    assert (rl_cfg.experiment_name, rl_cfg.max_iterations) == (f"{robot}_velocity", iterations)
    assert len(cfg.rewards["foot_slip"].params["asset_cfg"].site_names) == feet
    assert len(cfg.actions["joint_pos"].scale) == joints
    assert "illegal_contact" in cfg.terminations
    whole = registry.require_task(f"Velocity-Flat-{robot}")  # as in a later process
    assert load_env_cfg(whole).scene.terrain.terrain_type == "plane"
    shutil.rmtree(menagerie)
    assert registry.task_of_robot("Velocity-Rough", robot) == task
    with pytest.raises(OSError, match="cannot give 'unitree_go2': .*MENAGERIE_ROOT"):
        registry.task_of_robot("Velocity-Rough", "unitree_go2")


@pytest.mark.parametrize(
    ("robot", "file", "message"),
    [
        ("unitree_go2", "unitree_go1/go1.xml", "no largest torque of FR_hip_joint"),
        ("unitree_h1", "i2rt_yam/yam.xml", r"reach the ground in its default pose are 0 \(none\)"),
    ],
)
def test_robots_of_menagerie_that_do_not_fit(menagerie, robot, file, message):
    """Refuse a robot whose model lacks something, and an arm, and name the file."""
    put(menagerie, robot, robot_file(file))
    with pytest.raises(ValueError, match=f"Cannot derive .*{robot}.*{message}"):
        registry.task_of_robot("Velocity-Flat", robot)
    assert f"Velocity-Flat-{robot}" not in registry.list_tasks()


def test_a_robot_that_is_not_symmetric(tmp_path):
    """Take symmetric networks for symmetric robots; for others, say that they are left out."""
    lame = tmp_path / "lame.xml"
    text = ANT.read_text(encoding="utf-8")
    assert text.count('range="30 70"') == 2  # the left front ankle, and the right back one
    lame.write_text(text.replace('range="30 70"', 'range="30 80"', 1), encoding="utf-8")
    for file, network in ((ANT, SYMMETRIC_MLP), (lame, "MLPModel")):
        robot = legged_robot(file, derive_robot(file))
        env_cfg, rl_cfg = velocity_env_cfg(robot, "rough"), velocity_rl_cfg("ant", robot)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cpu_preset(robot)(env_cfg, rl_cfg)
        assert rl_cfg.actor.class_name == network
        said = [str(w.message) for w in caught if "without mirror symmetry" in str(w.message)]
        assert len(said) == (file == lame)
    assert "ankle" in said[0] and env_cfg.scene.num_envs == 512


@pytest.mark.parametrize("task", ["Velocity-Flat-go1", "Velocity-Rough-humanoid"])
def test_short_names_in_names_of_tasks(task):
    """Find the task that was written for a robot by the robot's short name, too."""
    assert load_rl_cfg(task).experiment_name == f"{task.rpartition('-')[2]}_velocity"
    assert registry.require_task(task) in registry.BUILTIN_TASKS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train Velocity-Flat", "name one, as in Velocity-Flat --robot quadruped"),
        ("train Velocity-Flat --robot unitree_go", "no legged robot 'unitree_go'"),
        ("train Velocity-Flat --robot franka_emika_panda", "new-task NAME --robot FILE"),
        ("train Velocity-Flat --robot no.xml", "new-task NAME --robot no.xml"),
        ("train Velocity-Flat --robot /etc/passwd", "new-task NAME --robot /etc/passwd"),
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


@pytest.mark.parametrize("robot", ["agility_cassie", "unitree_go2", "unitree_h1"])
def test_a_model_that_lacks_torques(robot, menagerie, monkeypatch, tmp_path, capsys):
    """Name the file, and the command with the option that `train` does not have."""
    file = tmp_path / "robot.xml"
    text = ANT.read_text(encoding="utf-8").replace('ctrllimited="true"', 'ctrllimited="false"')
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr("mujoco_menagerie.Robot.xml", lambda self, entry: file)
    assert main(["train", "Velocity-Flat", "--robot", robot]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"from '{file}'" in error
    assert "of hip_1, ankle_1, hip_2, ankle_2, hip_3, ankle_3 and 2 others: " in error
    assert "manyworlds new-task NAME --robot FILE --effort-limit VALUE" in error


def test_a_model_that_cannot_be_downloaded(monkeypatch):
    """Name the robot, and the reason."""
    menagerie = pytest.importorskip("mujoco_menagerie")

    def xml(self, entry=None, cache=None):
        raise menagerie.DownloadError("no route\nto host")

    monkeypatch.setattr(menagerie.Robot, "xml", xml)
    with pytest.raises(
        OSError, match="cannot give 'unitree_go2': no route to host.*MENAGERIE_ROOT"
    ):
        robots.menagerie_file("unitree_go2")


def test_without_menagerie(monkeypatch):
    """Name the robots that need no extra, and the command that installs the extra."""
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    with pytest.raises(MissingExtraError) as caught:
        robots.menagerie_file("quadrupd")
    text = str(caught.value)
    assert "Did you mean 'quadruped'" in text and "go1" in text and "[robots]" in text


def test_a_model_that_does_not_compile(tmp_path, capsys):
    """Say what MuJoCo says of the file, with a remedy, in one line."""
    file = tmp_path / "bad.urdf"
    inertia = " ".join(f'{name}="1e-6"' for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    file.write_text(
        '<robot name="r"><link name="base"><inertial><mass value="1"/>'
        f"<inertia {inertia}/></inertial></link></robot>"
    )
    assert main(["new-task", "Mine", "--robot", str(file)]) == 1
    error = capsys.readouterr().err
    assert f"{file}: " in error and "positive eigenvalues" in error and error.count("\n") == 1
    assert "Hint: no rigid body has such an inertia: set its products" in error


@pytest.mark.slow
def test_a_file_for_any_robot(tmp_path, monkeypatch, capsys):
    """Write a task for a model, show what was derived, train and find no fault of style."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert main(["new-task", "My-Ant", "--robot", str(ANT)]) == 0
    out, error = capsys.readouterr()
    assert "sinks" not in error
    assert "feet: ankle_1_body, ankle_2_body" in out and "hip_4" in out and "0.5585" in out
    small = ["--agent.max-iterations", "1", "--env.scene.num-envs", "8"]
    assert main(["train", "My-Ant", "--load", "my_ant.py", *small]) == 0
    assert list(tmp_path.glob("runs/my_ant/*/policy.onnx"))
    module = sys.modules["my_ant"]
    assert derive_robot(ANT) == module.MODEL  # pyright: ignore[reportAttributeAccessIssue]
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "my_ant.py"]
    subprocess.run([*check, "--select", "E,F", "--line-length", "100"], check=True)


def test_a_robot_that_sinks_gets_a_warning(tmp_path, monkeypatch, capsys):
    """Say that a robot does not keep the height of its default pose."""
    model = derive_robot(ANT)
    stands = settled_height(legged_robot(ANT, model))
    assert stands == pytest.approx(model.height, rel=0.05)
    high = replace(model, height=0.6)
    assert settled_height(legged_robot(ANT, high)) == pytest.approx(stands, rel=0.05)
    monkeypatch.setattr(derived, "derive_robot", lambda *args: high)
    write_robot_task("My-High-Ant", tmp_path, ANT, (), None)
    assert f"warning: the robot sinks from 0.60 to {stands:.2f} m" in capsys.readouterr().err
