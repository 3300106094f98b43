"""`manyworlds new-task`."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium
import mujoco
import pytest

from manyworlds.cli.errors import UsageError
from manyworlds.cli.main import main
from manyworlds.cli.new_task import effort_limits, write_robot_task, write_task
from manyworlds.rl import OnnxPolicy
from manyworlds.tasks import load_rl_cfg, registry
from manyworlds.tasks.velocity.config.derived import velocity_env_cfg
from tests.robots import robot_file

ANT = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"


@pytest.mark.slow
def test_the_file_trains_as_it_stands(tmp_path, monkeypatch, capsys):
    """Write a task, check it, train it for an iteration, and find that ruff has nothing to say."""
    monkeypatch.chdir(tmp_path)
    others = dict(registry._TASKS)
    monkeypatch.setattr(registry, "_TASKS", dict(others))
    assert main(["new-task", "My-Own-Reach"]) == 0
    out = capsys.readouterr().out
    assert "manyworlds train My-Own-Reach --load my_own_reach.py" in out
    small = ["--agent.max-iterations", "1", "--env.scene.num-envs", "8"]
    args = ["train", "My-Own-Reach", "--load", "my_own_reach.py", *small]
    assert main(args) == 0
    (policy,) = tmp_path.glob("runs/my_own_reach/*/policy.onnx")
    assert (policy.parent / "model_0.pt").is_file()
    monkeypatch.setattr(registry, "_TASKS", others)
    args = ["play", "--onnx", str(policy), "--load", "my_own_reach.py"]
    assert main([*args, "--headless", "--steps", "5"]) == 0
    model = mujoco.MjModel.from_xml_path(str(policy.parent / "scene" / "scene.xml"))
    plain = OnnxPolicy(policy, model)
    plain.reset(data := mujoco.MjData(model))
    seen = plain.observe(data, "actor")
    assert seen[4:6] == pytest.approx([0.55, 0.0], abs=1e-6)  # the tip of the stretched arm
    program = (
        "import mujoco, sys, my_own_reach\n"
        "from manyworlds.rl import OnnxPolicy\n"
        "model = mujoco.MjModel.from_xml_path(sys.argv[2])\n"
        "OnnxPolicy(sys.argv[1], model).step(mujoco.MjData(model))\n"
    )
    (tmp_path / "program.py").write_text(program)  # its folder is where `import` looks first
    scene = policy.parent / "scene" / "scene.xml"
    subprocess.run([sys.executable, "program.py", str(policy), str(scene)], check=True)
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "my_own_reach.py"]
    subprocess.run([*check, "--select", "E,F", "--line-length", "100"], check=True)


def test_the_task_has_nothing_that_users_should_mend(tmp_path):
    """Check the template as users check their tasks."""
    from manyworlds.envs import check_env
    from manyworlds.tasks import load_env_cfg

    assert not check_env(load_env_cfg("Reach")).findings


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["../evil"], "is no name for a task"),
        (["Cartpole-Balance"], "a task 'Cartpole-Balance' already"),
        (["My-No", "--robot", "go1"], "`manyworlds train Velocity-Flat --robot go1`, or give"),
        (["My-No", "--robot", "nosuch"], "nosuch: there is no such file."),
        (["Torch"], "would hide the Python module 'torch' from"),
        (["Random", "--robot", "robot.xml"], "choose another name, such as My-Random."),
        (["Rsl-Rl"], "'rsl_rl.py' of the task 'Rsl-Rl' would hide"),
        (["sys"], "would hide the Python module 'sys'"),
        (["_My-Robot"], "digits and underscores, begin with a letter, and join words by hyphens"),
    ],
)
def test_wrong_names_are_refused(args, message, tmp_path, monkeypatch, capsys):
    """Refuse what is no name, and write nothing."""
    monkeypatch.chdir(tmp_path)
    assert main(["new-task", *args]) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_stays(tmp_path):
    """Never overwrite an existing folder."""
    (tmp_path / "mine.py").write_text("precious")
    with pytest.raises(FileExistsError, match=r"mine\.py' is there already"):
        write_task("Mine", tmp_path)
    assert (tmp_path / "mine.py").read_text() == "precious"


def test_a_task_moves_with_its_robot(tmp_path, monkeypatch, capsys):
    """Name a model in or below the task's folder relative to it, and others by their whole path."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    (tmp_path / "old" / "robots").mkdir(parents=True)
    shutil.copy(ANT, tmp_path / "old" / "robots" / "my ant.xml")
    monkeypatch.chdir(tmp_path / "old")
    assert main(["new-task", "My-Inner", "--robot", "robots/../robots/my ant.xml"]) == 0
    assert main(["new-task", "My-Outer", "--robot", str(ANT)]) == 0
    assert f"FILE = Path({json.dumps(str(ANT.resolve()))})" in Path("my_outer.py").read_text()
    monkeypatch.chdir(tmp_path)
    Path("old").rename("new")
    files = ["--load", "new/my_inner.py", "--load", "new/my_outer.py"]
    capsys.readouterr()
    assert main(["list", "My-", *files]) == 0
    out = capsys.readouterr().out
    assert "My-Inner" in out and "My-Outer" in out


@pytest.mark.parametrize(
    ("texts", "limits"),
    [
        ((), []),
        (("20",), [(".*", 20.0)]),
        (("20", ".*knee=35.5", "a=b=1e2"), [(".*knee", 35.5), ("a=b", 100.0), (".*", 20.0)]),
        ((".*=3", "hip=2"), [(".*", 3.0), ("hip", 2.0)]),
    ],
)
def test_torques_of_joints(texts, limits):
    """Read torques by pattern, in their order; a value alone is for the other joints."""
    assert list(effort_limits(texts).items()) == limits


@pytest.mark.parametrize(
    "texts", [["x"], ["a="], ["a=-1"], ["0"], ["inf"], ["1", "2"], ["a=1"] * 2]
)
def test_wrong_torques(texts):
    """Refuse what is no torque, and two torques for one pattern."""
    with pytest.raises(UsageError, match=f"--effort-limit .*(got '{texts[0]}'|given twice)"):
        effort_limits(texts)


@pytest.mark.slow
def test_torques_of_a_robot(tmp_path, monkeypatch, capsys):
    """Write each joint's own torque, and show the joints' whole names."""
    monkeypatch.chdir(tmp_path)
    robot = str(robot_file("unitree_g1/g1.xml"))
    limits = ("--effort-limit", "20", "--effort-limit", ".*_knee_joint=139")
    assert main(["new-task", "My-Humanoid", "--robot", robot, *limits]) == 0
    source = (tmp_path / "my_humanoid.py").read_text(encoding="utf-8")
    assert '"left_knee_joint": JointDrive(0.06109, 139.0,' in source
    assert '"left_hip_yaw_joint": JointDrive(0.0, 20.0,' in source
    assert "right_shoulder_pitch_joint" in capsys.readouterr().out
    assert main(["new-task", "Other", "--robot", robot, "--effort-limit", ".*_kneee=139"]) == 1
    error = capsys.readouterr().err
    assert "Pattern '.*_kneee' matches none of" in error and not (tmp_path / "other.py").exists()


def test_wheels_are_no_feet(tmp_path, capsys):
    """Warn of a robot whose last bodies are wheels, and write its task all the same."""
    legs = "".join(
        f"""
        <body name="leg_{i}" pos="{x} {y} 0"><joint name="hip_{i}" axis="0 1 0" range="-60 60"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
          <body name="wheel_{i}" pos="0 0 -.3"><joint name="roll_{i}" axis="0 1 0"/>
            <geom type="cylinder" size=".1 .02" zaxis="0 1 0"/></body></body>"""
        for i, (x, y) in enumerate(((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)))
    )
    robot = tmp_path / "rover.xml"
    robot.write_text(
        f"""<mujoco><worldbody><body name="trunk" pos="0 0 .4"><freejoint/>
        <geom type="box" size=".35 .2 .05"/>{legs}</body></worldbody></mujoco>""",
        encoding="utf-8",
    )
    write_robot_task("My-Rover", tmp_path, robot, (), 30.0)
    error = capsys.readouterr().err
    assert "warning: The feet ['wheel_0', 'wheel_1', 'wheel_2', 'wheel_3'] are probably" in error


def test_names_with_underscores_are_names(tmp_path, monkeypatch, capsys):
    """Write, register and check a task whose name has underscores."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    monkeypatch.chdir(tmp_path)
    assert main(["new-task", "my_robot_2-Reach"]) == 0
    assert "--load my_robot_2_reach.py" in capsys.readouterr().out
    assert main(["validate", "my_robot_2-Reach", "--load", "my_robot_2_reach.py"]) == 0


def test_rewards_of_legs_are_written_out(tmp_path, monkeypatch):
    """Write the rewards of the velocity task, of which some are then left out."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    path = write_robot_task("My_Ant", tmp_path, ANT, (), None)
    source = path.read_text(encoding="utf-8")
    assert 'std_walking": ROBOT.posture[1]' in source
    module = runpy.run_path(str(path))
    derived = velocity_env_cfg(module["ROBOT"]).rewards
    written = module["rewards"]()
    assert list(written) == list(derived)
    for name, term in derived.items():
        assert (written[name].func, written[name].weight) == (term.func, term.weight)
        assert repr(written[name].params) == repr(term.params)
    cfg = module["env_cfg"]()
    for name in ("air_time", "foot_clearance", "action_rate_l2"):
        del cfg.rewards[name]
    module["use_few_cores"](cfg, load_rl_cfg("My_Ant"))
    assert "air_time" not in cfg.rewards and "air_time_weight" not in cfg.curriculum
