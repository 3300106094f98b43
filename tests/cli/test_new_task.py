"""`manyworlds new-task`."""

from __future__ import annotations

import copy
import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import pytest
import torch

from manyworlds.cli.errors import UsageError
from manyworlds.cli.main import main
from manyworlds.cli.new_task import effort_limits, write_robot_task, write_task
from manyworlds.envs import ManagerBasedRlEnv, check_env, mdp
from manyworlds.managers import SceneEntityCfg
from manyworlds.rl import OnnxPolicy
from manyworlds.tasks import load_rl_cfg, registry
from manyworlds.tasks.velocity.config.derived import velocity_env_cfg
from tests.robots import robot_file

DATA = Path(__file__).parent / "data"
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


def wheeled_legs(wheel: str, others: int = 0) -> str:
    """Return a robot on four limited hinges with wheels, of which some are replaced by feet."""
    legs = ""
    for i, (x, y) in enumerate(((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2))):
        end = f'<joint name="roll_{i}" axis="0 1 0"/><geom {wheel}/>'
        if i < others:
            end = f'<joint name="toe_{i}" axis="0 1 0" range="-30 30"/><geom size=".1"/>'
        legs += f"""
        <body name="leg_{i}" pos="{x} {y} 0"><joint name="hip_{i}" axis="0 1 0" range="-60 60"/>
          <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
          <body name="wheel_{i}" pos="0 0 -.3">{end}</body></body>"""
    return f"""<mujoco><worldbody><body name="trunk" pos="0 0 .4"><freejoint/>
        <geom type="box" size=".35 .2 .05"/>{legs}</body></worldbody></mujoco>"""


ROUND = 'type="cylinder" size=".1 .02" zaxis="0 1 0"'
SQUARE = 'type="box" size=".1 .02 .1"'
WHEELED = ["wheel_0", "wheel_1", "wheel_2", "wheel_3"]


def test_wheels_are_no_feet(tmp_path, monkeypatch, capsys):
    """Write a task with velocity actuators for a robot whose last bodies are wheels."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    robot = tmp_path / "robot.xml"
    robot.write_text(wheeled_legs(ROUND), encoding="utf-8")
    path = write_robot_task("My-Rover", tmp_path, robot, (), 30.0)
    assert "wheels: roll_0 (30 N m" in capsys.readouterr().out
    module = runpy.run_path(str(path))
    assert list(module["WHEELS"]) == ["roll_0", "roll_1", "roll_2", "roll_3"]
    assert list(module["DRIVES"]) == ["hip_0", "hip_1", "hip_2", "hip_3"]
    actions = module["env_cfg"]().actions
    assert isinstance(actions["wheels"], mdp.JointVelocityActionCfg)
    assert isinstance(actions["joints"], mdp.JointPositionActionCfg)
    write_robot_task("My-Walker", tmp_path, robot, WHEELED, 30.0)
    assert f"warning: The feet {WHEELED} are probably" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (wheeled_legs(SQUARE), "not clear whether .*wheel_3.* are wheels.* not round"),
        (wheeled_legs(ROUND, others=2), "stands on the wheels .*wheel_2.* and also on .*wheel_0"),
    ],
)
def test_what_may_be_wheels_is_asked(text, question, tmp_path, monkeypatch):
    """Ask for the option that decides where wheels cannot be told from feet, and obey it."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    robot = tmp_path / "robot.xml"
    robot.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"robot\.xml'.*{question}.*--wheels BODY.*--feet BODY"):
        write_robot_task("My-Rover", tmp_path, robot, (), 30.0)
    path = write_robot_task("My-Rover", tmp_path, robot, (), 30.0, wheels=WHEELED[2:])
    assert list(runpy.run_path(str(path))["WHEELS"]) == ["roll_2", "roll_3"]
    write_robot_task("My-Walker", tmp_path, robot, WHEELED, 30.0)


@pytest.mark.parametrize(
    ("wheels", "message"),
    [(["tyre"], "no body 'tyre': choose wheels"), (["trunk"], "'trunk' has no hinge: choose")],
)
def test_wrong_wheels_are_refused(wheels, message, tmp_path):
    """Refuse bodies that are no wheels."""
    robot = tmp_path / "robot.xml"
    robot.write_text(wheeled_legs(ROUND), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        write_robot_task("My-Rover", tmp_path, robot, (), 30.0, wheels=wheels)


def test_options_of_robots_exclude_each_other(tmp_path, monkeypatch, capsys):
    """Refuse feet together with wheels, and both without a robot."""
    monkeypatch.chdir(tmp_path)
    assert main(["new-task", "My-No", "--wheels", "a"]) == 2
    assert (
        "--feet, --wheels, --fixed-base and --effort-limit are for --robot FILE."
        in capsys.readouterr().err
    )
    assert main(["new-task", "My-No", "--robot", "a.xml", "--feet", "a", "--wheels", "b"]) == 2
    assert (
        "--feet is for robots on legs, --wheels for others, and --fixed-base"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("file", "wheels", "drives"),
    [
        ("balancer.xml", ["left_wheel", "right_wheel"], []),
        (
            "rover.xml",
            ["front_left_roll", "front_right_roll", "rear_left_roll", "rear_right_roll"],
            ["front_left_steer", "front_right_steer"],
        ),
    ],
)
def test_robots_on_wheels(file, wheels, drives, tmp_path, monkeypatch):
    """Derive wheels and steering, replace the file's actuators, and find nothing to mend."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    path = write_robot_task("My-Wheels", tmp_path, DATA / file, (), None)
    module = runpy.run_path(str(path))
    assert list(module["WHEELS"]) == wheels
    assert list(module.get("DRIVES", {})) == drives
    cfg = module["env_cfg"]()
    assert check_env(cfg, steps=20).ok
    robot = cfg.scene.entities["robot"].build()
    assert robot.names("actuator") == (*wheels, *drives)
    data = mujoco.MjData(model := robot.compile())
    assert model.nkey == 0 and len(data.ctrl) == len(wheels) + len(drives)


@pytest.mark.parametrize(
    ("file", "joints"),
    [
        ("hopper.xml", ["thigh_joint", "leg_joint", "foot_joint"]),
        ("walker2d.xml", None),
        ("half_cheetah.xml", ["bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"]),
    ],
)
@pytest.mark.filterwarnings("ignore:compiler attribute")
def test_robots_in_a_plane(file, joints, tmp_path, monkeypatch):
    """Write a task of running forward that stands on the ground at first, and mends nothing."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    path = write_robot_task("My-Plane", tmp_path, ANT.with_name(file), (), None)
    module = runpy.run_path(str(path))
    assert list(module["MOTORS"]) == (joints or list(module["MOTORS"]))
    cfg = module["env_cfg"]()
    assert check_env(cfg, steps=20).ok
    cfg.scene.num_envs = 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    heights = env.scene.entity("robot").data.body_link_pos_w[:, :, 2]
    assert (heights.max(dim=1).values >= module["HEIGHT"] - 0.01).all()
    env.sim.data.qvel[:, 0] = 2.0
    env.sim.forward()
    assert module["forward_velocity"](env, _resolved(module["ROOT"], env)).tolist() == (
        pytest.approx([2.0, 2.0], abs=1e-4)
    )
    env.close()


def _resolved(cfg: SceneEntityCfg, env: ManagerBasedRlEnv) -> SceneEntityCfg:
    cfg = copy.deepcopy(cfg)
    cfg.resolve(env.scene)
    return cfg


def test_a_robot_in_a_plane_without_motors(tmp_path, monkeypatch):
    """Control positions of a planar robot without motors, and ask for its torques."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    text = ANT.with_name("hopper.xml").read_text(encoding="utf-8")
    robot = tmp_path / "hopper.xml"
    start = text.index("  <actuator>")
    robot.write_text(text[:start] + text[text.index("</actuator>") + 11 :], encoding="utf-8")
    with pytest.raises(ValueError, match="no largest torque of thigh_joint, leg_joint, foot_joint"):
        write_robot_task("My-Plane", tmp_path, robot, (), None)
    path = write_robot_task("My-Plane", tmp_path, robot, (), 100.0)
    module = runpy.run_path(str(path))
    assert list(module["DRIVES"]) == ["thigh_joint", "leg_joint", "foot_joint"]
    assert check_env(module["env_cfg"](), steps=20).ok


def test_other_roots_are_refused(tmp_path):
    """Say of a root that swims that it is neither free nor in a plane nor fixed."""
    with pytest.raises(
        ValueError, match=r"by the joints \['slider1', .*nor fixed: .*--robot FILE --fixed-base"
    ):
        write_robot_task("My-Fish", tmp_path, ANT.with_name("swimmer.xml"), (), None)


def test_a_robot_with_a_fixed_base_reaches_goals(tmp_path, monkeypatch, capsys):
    """Write a task of an arm from a URDF file, with its base link, that mends nothing."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    path = write_robot_task("My-Arm", tmp_path, DATA / "arm.urdf", (), None)
    assert "tip: (0, 0, 0.24) m in the frame of lower" in capsys.readouterr().out
    module = runpy.run_path(str(path))
    cfg = module["env_cfg"]()
    assert check_env(cfg, steps=20).ok
    cfg.scene.num_envs = 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    robot = env.scene.entity("robot")
    assert robot.is_fixed_base and robot.joint_names == ("arm.pan+1", "arm[lift]", "elbow")
    model = env.sim.mj_model
    lowest = [i for i in range(model.ngeom) if model.geom_size[i, 0] == pytest.approx(0.1)]
    assert len(lowest) == 1  # the base link, which MuJoCo puts into the world
    assert module["HEIGHT"] == pytest.approx(0.05)
    robot.write_joint_state_to_sim(torch.zeros(2, 3), torch.zeros(2, 3))
    env.sim.forward()
    tip = module["tip_position"](env, _resolved(module["TIP"], env))
    assert tip.tolist() == [pytest.approx([0.0, 0.0, 0.79], abs=1e-5)] * 2
    command: Any = env.command_manager.get_term("goal")
    goals = command.points
    assert goals.shape == (1024, 3) and float(goals[:, 2].min()) > -0.05
    assert float(goals.norm(dim=1).max()) < 0.8
    env.close()


def test_an_arm_below_the_ground_is_raised(tmp_path, monkeypatch):
    """Place a hanging arm so high that it is above the ground, with its fingers held."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    robot = tmp_path / "arm.xml"
    robot.write_text(
        """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="arm">
        <joint axis="0 1 0" range="-90 90"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03"/>
        <body name="hand" pos="0 0 -.4"><joint axis="1 0 0" range="-45 45"/><geom size=".04"/>
        <body name="left" pos="0 .05 0"><joint type="slide" axis="0 1 0" range="0 .02"/>
        <geom type="box" pos="0 0 -.1" size=".01 .005 .05"/></body>
        <body name="right" pos="0 -.05 0"><joint type="slide" axis="0 1 0" range="-.02 0"/>
        <geom type="box" pos="0 0 -.1" size=".01 .005 .05"/></body>
        </body></body></worldbody></mujoco>""",
        encoding="utf-8",
    )
    path = write_robot_task("My-Hanging", tmp_path, robot, (), 10.0)
    module = runpy.run_path(str(path))
    assert module["HEIGHT"] == pytest.approx(0.55) and module["TIP_BODY"] == "hand"
    assert module["TIP_POS"] == pytest.approx((0.0, 0.0, -0.15))
    assert len(module["DRIVES"]) == 4 and len(module["SCALES"]) == 2
    assert check_env(module["env_cfg"](), steps=20).ok


def test_the_base_can_be_said_to_be_fixed(tmp_path, monkeypatch):
    """Let a legged robot whose file has no free joint reach with a foot, on request."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    robot = tmp_path / "robot.xml"
    robot.write_text(wheeled_legs(SQUARE).replace("<freejoint/>", ""), encoding="utf-8")
    path = write_robot_task("My-Reach", tmp_path, robot, (), 30.0, fixed_base=True)
    assert list(runpy.run_path(str(path))["SCALES"]) == ["hip_0", "roll_0"]


def test_a_ball_is_no_wheel(tmp_path):
    """Refuse a robot that stands on one ball, and ask for what decides."""
    robot = tmp_path / "robot.xml"
    robot.write_text(
        """<mujoco><worldbody><body name="head" pos="0 0 .5"><freejoint/>
        <geom type="box" size=".1 .1 .1"/><body name="ball" pos="0 0 -.3"><joint axis="0 1 0"/>
        <geom size=".2"/></body></body></worldbody></mujoco>""",
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match=r"two or four feet, but .* 1 \(ball\).*--fixed-base"):
        write_robot_task("My-Ball", tmp_path, robot, (), 30.0)


@pytest.mark.parametrize(
    ("file", "joint", "strange"),
    [
        (DATA / "balancer.xml", "left_wheel", "left[wheel].1+"),
        (DATA / "rover.xml", "front_left_steer", "front (left)|steer"),
        (ANT.with_name("hopper.xml"), "thigh_joint", "thigh.joint+1"),
        (ANT, "hip_1", "hip[1]^$"),
    ],
)
def test_names_may_look_like_patterns(file, joint, strange, tmp_path, monkeypatch):
    """Write tasks of robots whose joints have names with characters of regular expressions."""
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    robot = tmp_path / file.name
    text = file.read_text(encoding="utf-8")
    assert f'"{joint}"' in text
    robot.write_text(text.replace(f'"{joint}"', f'"{strange}"'), encoding="utf-8")
    path = write_robot_task("My-Strange", tmp_path, robot, (), None)
    cfg = runpy.run_path(str(path))["env_cfg"]()
    assert check_env(cfg, steps=5).ok
    assert strange in cfg.scene.entities["robot"].build().names("joint")


@pytest.mark.slow
@pytest.mark.parametrize(
    "robot", [DATA / "balancer.xml", ANT.with_name("walker2d.xml"), DATA / "arm.urdf"]
)
def test_tasks_of_robots_train(robot, tmp_path, monkeypatch, capsys):
    """Train for an iteration, evaluate, and run the policy in the lab; ruff has nothing to say."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    name = f"My_{robot.stem}"  # a file of another name each, because modules stay loaded
    file = f"my_{robot.stem}.py"
    assert main(["new-task", name, "--robot", str(robot)]) == 0
    small = ["--agent.max-iterations", "1", "--env.scene.num-envs", "8"]
    assert main(["train", name, "--load", file, *small]) == 0
    (run,) = tmp_path.glob(f"runs/my_{robot.stem}/*")
    assert main(["evaluate", str(run), "--num-envs", "4", "--env.episode-length-s", "0.5"]) == 0
    assert main(["lab", str(run), "--headless", "--seconds", "1"]) == 0
    assert "it does not control" not in capsys.readouterr().out
    check = [sys.executable, "-m", "ruff", "check", "--isolated", file]
    subprocess.run([*check, "--select", "E,F", "--line-length", "100"], check=True)


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
