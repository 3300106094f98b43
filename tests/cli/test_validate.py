from __future__ import annotations

from pathlib import Path

import mujoco
import pytest

from manyworlds.cli.main import main
from manyworlds.cli.validate import ModelFileError, load_spec, validate_file
from manyworlds.entity import EntityCfg
from manyworlds.lab import CompileError, LabCfg, LiveLab, world_from_scene, world_from_spec
from manyworlds.scene import SceneCfg
from manyworlds.spec.model_text import mjcf_schema
from tests.robots import robot_file

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
MESH = '<mujoco>{}<asset><mesh name="m" file="{}"/></asset></mujoco>'


def body(inner: str, rest: str = "") -> str:
    """Return a model whose body starts on line 4."""
    return (
        f'<mujoco>\n<worldbody>\n<body name="arm">\n{inner}\n</body>\n</worldbody>\n{rest}</mujoco>'
    )


HINGE = '<joint name="hinge1"/><geom name="link" size=".1"/>'


@pytest.fixture
def write(tmp_path: Path):
    """Write a model file into an empty folder."""

    def write(text: str | bytes, name: str = "model.xml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def explain(path: Path) -> str:
    """Return what is said of a file that does not compile."""
    report = validate_file(path)
    assert report.error is not None
    return str(report)


@pytest.mark.parametrize(
    "text, message, hint",
    [
        (body("<goem/>"), "unrecognized element", "line 4) cannot stand in <body>: did you mean"),
        (body("<goem/>"), "(element 'goem', line 4)", "'geom'"),
        (body('<motor joint="a"/>'), "unrecognized element", "its place is in <actuator>"),
        (body('<composite type="grid"/>'), "unrecognized element", "<replicate> or <flexcomp>"),
        (body('<geom sise=".1"/>'), "unrecognized attribute: 'sise'", "did you mean 'size'"),
        (body('<geom zzz=".1"/>'), "unrecognized attribute: 'zzz'", "it takes adhesion, axisangle"),
        (body('<geom type="cube"/>'), "invalid keyword: 'cube'", "plane, sphere, capsule"),
        (body('<geom pos="0, 0, 1"/>'), "bad format", "spaces, not commas"),
        (body('<geom pos="${x} 0 1"/>'), "bad format", "xacro"),
        (body('<geom pos="0 1"/>'), "not have enough data", "pos='0 1' (line 4) gives 2 values"),
        (body('<geom type="box" size=".1"/>'), "size 1 must be positive", "3: the half-lengths"),
        (body("<joint/>"), "mass and inertia of moving bodies", "give it a <geom> with mass"),
        (
            body('<inertial pos="0 0 0" mass="1" diaginertia="9 1 1"/>'),
            "A + B >= C",
            'balanceinertia="true"',
        ),
        (
            body('<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 1 1 1"/>'),
            "positive eigenvalues",
            "products of inertia (ixy, ixz, iyz) to 0",
        ),
        (body(HINGE + "\n" + HINGE), "repeated name 'hinge1'", "<joint> line 4, <joint> line 5"),
        (
            body(HINGE, '<actuator><motor joint="hinge"/></actuator>'),
            "unknown transmission target 'hinge'",
            "did you mean 'hinge1' (joint)",
        ),
        (body(HINGE, "<actuator><motor/></actuator>"), "missing transmission", "needs one of"),
        (
            body(HINGE, '<sensor><jointpos joint="link"/></sensor>'),
            "unrecognized name 'link'",
            "'link' is the name of a geom",
        ),
        (body('<geom type="mesh" mesh="m"/>'), "mesh 'm' not found", "no element"),
        (
            '<mujoco><default><default class="leg"/></default><worldbody><body childclass="lag"/>'
            "</worldbody></mujoco>",
            "unknown default childclass",
            "did you mean 'leg'",
        ),
        (
            '<mujoco><default><default class="leg"/></default><worldbody><geom class="lag"/>'
            "</worldbody></mujoco>",
            "unknown default class name 'lag'",
            "did you mean 'leg' (default class)",
        ),
        (body('<joint limited="true"/><geom size=".1"/>'), "range[0]", "range='lower upper'"),
        (
            '<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0"/></asset></mujoco>',
            "at least 4 vertices",
            "a mesh must be a solid",
        ),
        (
            "<mujoco>\n<worldbody>\n</mujoco>",
            "the XML cannot be read",
            "line 3, column 3: mismatched tag",
        ),
        ("hello", "the XML cannot be read", "does not look like XML"),
        ("<mujoco/>".encode("utf-16"), "the XML cannot be read", "UTF-8"),
        ("<html><body/></html>", "Unrecognized XML model type: 'html'", "download the raw file"),
        ("<sdf version='1.6'/>", "Unrecognized XML model type: 'sdf'", "SDF"),
        ("<mujocoinclude/>", "Unrecognized XML model type", "meant to be included"),
        ("<thing/>", "Unrecognized XML model type", "the first element must be <mujoco>"),
        ("", "the file is empty", ""),
        (LFS, "Git LFS pointer", "git lfs pull"),
    ],
)
def test_mistakes(write, text, message, hint):
    """Give MuJoCo's message and say what to do."""
    explained = explain(write(text))
    assert message in explained
    assert hint in explained


@pytest.mark.parametrize(
    ("name", "content", "problem", "hint"),
    [
        ("passwd", "root:x:0:0::/root:/bin/sh", "this is no model file", "MJCF and URDF"),
        ("notes.txt", "a text", "this is no model file", "MJCF and URDF"),
        ("program", b"\x7fELF\x02\x01\x00", "this is no model file", "MJCF and URDF"),
        (
            "a.urdf.xacro",
            '<robot><xacro:include filename="b.xacro"/></robot>',
            "is a call of xacro that nobody expanded",
            "`xacro a.urdf.xacro > a.urdf`",
        ),
    ],
)
@pytest.mark.parametrize("command", ["validate", "new-task X --robot"])
def test_files_that_are_no_models(
    write, capsys, monkeypatch, name, content, problem, hint, command
):
    """Say what a file is not, in words of our own."""
    path = write(content, name)
    monkeypatch.chdir(path.parent)
    assert main([*command.split(), str(path)]) == 1
    shown = "".join(capsys.readouterr())
    assert problem in shown and hint in shown and str(path) in shown
    assert "decoder" not in shown and "ErrorID" not in shown


class TestFiles:
    def test_missing_mesh(self, write, tmp_path):
        """Say which path of a mesh was looked for."""
        explained = explain(write(MESH.format("", "leg.stl")))
        assert "Error opening file 'leg.stl'" in explained
        assert f"looked for {tmp_path / 'leg.stl'}" in explained

    def test_mesh_elsewhere(self, write):
        """Point to a file of the same name in another folder."""
        write(b"", "assets/Leg.stl")
        assert "there is assets/Leg.stl" in explain(write(MESH.format("", "leg.stl")))

    def test_misspelt_mesh(self, write):
        """Propose a file of a similar name."""
        write(b"", "legs.stl")
        assert "did you mean 'legs.stl'" in explain(write(MESH.format("", "leg.stl")))

    def test_missing_meshdir(self, write):
        """Say that the mesh folder is missing."""
        text = MESH.format('<compiler meshdir="assets"/>', "leg.stl")
        assert "assets does not exist" in explain(write(text))

    def test_lfs_mesh(self, write):
        """Recognise a mesh that Git LFS did not fetch."""
        write(LFS, "leg.stl")
        assert "git lfs pull" in explain(write(MESH.format("", "leg.stl")))

    def test_urdf_package(self, write):
        """Say where the packages of package:// paths of a URDF are looked for."""
        mesh = '<geometry><mesh filename="package://robot/leg.stl"/></geometry>'
        text = f'<robot name="r"><link name="a"><collision>{mesh}</collision></link></robot>'
        assert "ROS_PACKAGE_PATH" in explain(write(text, "robot.urdf"))

    def test_included_file(self, write):
        """Find the line of a mistake in an included file."""
        write('<mujoco>\n<worldbody>\n<body poss="0"/></worldbody></mujoco>', "sub/part.xml")
        explained = explain(write('<mujoco><include file="sub/part.xml"/></mujoco>'))
        assert "<body> (line 3 of part.xml) has no 'poss': did you mean 'pos'?" in explained

    def test_broken_included_file(self, write):
        """Name the included file whose XML is broken."""
        write("<mujoco>\n<worldbody>\n</mujoco>", "part.xml")
        explained = explain(write('<mujoco><include file="part.xml"/></mujoco>'))
        assert "the XML of part.xml is broken at line 3" in explained

    def test_missing_include(self, write):
        """Say which included file is missing."""
        assert "part.xml" in explain(write('<mujoco><include file="part.xml"/></mujoco>'))

    def test_missing_file(self, write, tmp_path):
        """Propose the file that was meant."""
        write("<mujoco/>", "robot.xml")
        explained = explain(tmp_path / "robt.xml")
        assert "no such file" in explained
        assert "did you mean 'robot.xml'" in explained

    def test_missing_folder(self, tmp_path):
        """Say that already the folder is missing."""
        assert "does not exist either" in explain(tmp_path / "none" / "robot.xml")

    def test_folder(self, write, tmp_path):
        """List the models of a folder that was given instead of a file."""
        write("<mujoco/>", "robot.xml")
        assert "it holds robot.xml" in explain(tmp_path)

    @pytest.mark.parametrize("name, hint", [("a.stl", "no triangles"), ("a.mjb", "binary")])
    def test_other_kinds(self, write, name, hint):
        """Recognise files that are no XML."""
        assert hint in explain(write(b"\0\1\2", name))


class TestCompiles:
    def test_summary(self, write, capsys):
        """Print the sizes of a model that compiles and return 0."""
        path = write(body(HINGE, '<actuator><motor joint="hinge1"/></actuator>'))
        assert main(["validate", str(path)]) == 0
        assert capsys.readouterr().out == (
            f"{path}: ok: nq 1, nv 1, nu 1, nbody 2, ngeom 1, nsensor 0, timestep 0.002 s\n"
        )

    def test_urdf(self, write):
        """Accept a URDF."""
        link = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
        link += 'iyz="0"/></inertial>'
        text = f'<robot name="r"><link name="a">{link}</link></robot>'
        assert validate_file(write(text, "robot.urdf")).error is None

    @pytest.mark.parametrize(
        "text, warning",
        [
            ('<mujoco><option timestep="0"/></mujoco>', "timestep is 0 s"),
            ("<mujoco/>", "no body"),
            (body('<geom size=".1"/>'), "nothing can move"),
            (
                body(
                    '<freejoint/><geom size=".1"/>',
                    '<keyframe><key name="k" qpos="0 0"/></keyframe>',
                ),
                "keyframe 'k' gives 2 of 7 qpos values",
            ),
        ],
    )
    def test_doubts(self, write, text, warning):
        """Warn of what compiles but is hardly meant."""
        report = validate_file(write(text))
        assert report.error is None
        assert warning in " ".join(report.warnings)

    def test_mujoco_warning(self, write, tmp_path, monkeypatch):
        """Pass MuJoCo's own warnings on, and leave no log file behind."""
        monkeypatch.chdir(tmp_path)
        report = validate_file(write(body('<geom size=".1" pos="nan 0 0"/>')))
        assert "NaN" in " ".join(report.warnings)
        assert not (tmp_path / "MUJOCO_LOG.TXT").exists()

    @pytest.mark.parametrize(
        "name", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"]
    )
    def test_robots(self, name):
        """Find nothing wrong with real robots."""
        report = validate_file(robot_file(name))
        assert (report.error, report.warnings) == (None, [])


class TestCommand:
    def test_several_files(self, write, capsys):
        """ValidationReport on every file and return 1 if one fails."""
        good, bad = write("<mujoco/>", "good.xml"), write("<mujoc/>", "bad.xml")
        assert main(["validate", str(bad), str(good)]) == 1
        shown = capsys.readouterr().out
        assert f"{bad}: error" in shown
        assert f"{good}: ok" in shown

    def test_no_file(self, capsys):
        """Ask for a file where none is named."""
        assert main(["validate"]) == 2
        assert "name at least one" in capsys.readouterr().err

    def test_error_of_others(self, write):
        """Raise the same message, in one line, for commands that need the model."""
        with pytest.raises(
            ModelFileError, match=r"unrecognized attribute.*did you mean 'pos'"
        ) as e:
            load_spec(write(body('<geom poss="0 0 0"/>')))
        assert "\n" not in str(e.value)


def test_a_running_world_does_not_notice(write):
    """Validate files and an entity while a world steps: they are reported, the world goes on."""
    spec = mujoco.MjSpec.from_string(body('<joint name="hinge1"/><geom size=".1"/>'))
    with LiveLab(world_from_spec(spec), LabCfg(speed=float("inf"))) as lab:
        bad, good = write(body("<joint/>"), "bad.xml"), write(body(HINGE), "good.xml")
        step = lab.step().step
        assert "mass and inertia" in (validate_file(bad).error or "")
        assert "nq 1, nv 1, nu 0, nbody 2" in validate_file(good).summary
        broken = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(str(bad)))
        with pytest.raises(CompileError, match="mass and inertia.*broken/arm"):
            world_from_scene(SceneCfg(entities={"broken": broken}))
        assert lab.loop.state == "running" and lab.step().step > step + 1


def test_schema():
    """Read MuJoCo's schema: nesting, recursion and attributes by place."""
    schema = mjcf_schema()
    assert "body" in schema.children["body"] & schema.children["worldbody"]
    assert {"joint", "coef"} == schema.attributes["fixed", "joint"]
    assert "range" in schema.attributes["body", "joint"]
    assert "kp" in schema.attributes["actuator", "position"]


def test_tasks_are_run_a_little(capsys, tmp_path):
    """Say that a shipped task is right; name what is wrong with one of the user's own."""
    assert main(["validate", "Cartpole-Balance"]) == 0
    assert capsys.readouterr().out.startswith("Cartpole-Balance: ok: nothing found\n")
    (tmp_path / "mine.py").write_text(
        "from manyworlds.tasks import load_env_cfg, load_rl_cfg, register_task\n"
        "cfg = load_env_cfg('Cartpole-Balance')\n"
        "cfg.rewards['smooth_reward'].func = lambda env, **params: env.action_manager.action\n"
        "register_task('Broken', cfg, cfg, load_rl_cfg('Cartpole-Balance'))\n"
    )
    assert main(["validate", "--load", str(tmp_path / "mine.py"), "Broken"]) == 1
    out = capsys.readouterr().out
    assert "Broken:" in out and "'smooth_reward'" in out and "expected (8,)" in out


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Push-Variant", "Did you mean 'Push-Variants'?"),
        ("velocity-flat-go1", "Did you mean 'Velocity-Flat-Go1'"),
        ("nosuch", "`manyworlds list` prints the tasks."),
    ],
)
def test_a_task_that_is_not_there(capsys, name, remedy):
    """Name the tasks that were probably meant, or the command that prints them."""
    assert main(["validate", name]) == 1
    out = capsys.readouterr().out
    assert f"no such file, and no such task. {remedy}" in out
    assert out.endswith(" A task of your own needs --load FILE.\n")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_of_a_task(capsys, tmp_path, is_there):
    """Say how the task of a Python file is checked."""
    path = tmp_path / "my task.py"
    if is_there:
        path.write_text("")
    assert main(["validate", str(path)]) == 1
    out = capsys.readouterr().out
    assert f"{path}: error\n  this is a Python file, not a model file" in out
    assert f"hint: `manyworlds validate TASK --load '{path}'` checks" in out


def test_second_actuators_of_a_file(write):
    """Warn of two servos on one joint; not of a servo with a damper, nor of motors on a ball."""
    rest = '<actuator><position name="a" joint="hinge1"/><position joint="hinge1"/></actuator>'
    (warning,) = validate_file(write(body(HINGE, rest))).warnings
    assert "joint 'hinge1' has 2 actuators that take positions (a, number 1), whose" in warning
    usual = '<actuator><position joint="hinge1"/><velocity joint="hinge1"/></actuator>'
    assert not validate_file(write(body(HINGE, usual))).warnings
    ball = HINGE.replace("name", 'type="ball" name', 1)
    motors = '<motor joint="hinge1" gear="1 0 0"/><motor joint="hinge1" gear="0 1 0"/>'
    assert not validate_file(write(body(ball, f"<actuator>{motors}</actuator>"))).warnings


def test_second_actuators_of_a_task(capsys, tmp_path):
    """Find an actuator of the model beside that of the task's configuration."""
    (tmp_path / "mine.py").write_text(
        "from manyworlds.actuator import BuiltinPositionActuatorCfg\n"
        "from manyworlds.entity import EntityArticulationInfoCfg\n"
        "from manyworlds.tasks import load_env_cfg, load_rl_cfg, register_task\n"
        "import mujoco\n"
        "cfg = load_env_cfg('Reach')\n"
        "robot = cfg.scene.entities['robot']\n"
        "make = robot.spec_fn\n"
        "def with_servo():\n"
        "    spec = make()\n"
        "    joint = mujoco.mjtTrn.mjTRN_JOINT\n"
        "    spec.add_actuator(name='own', target='elbow', trntype=joint).set_to_position(kp=9)\n"
        "    return spec\n"
        "robot.spec_fn = with_servo\n"
        "register_task('Second', cfg, cfg, load_rl_cfg('Reach'))\n"
    )
    assert main(["validate", "--load", str(tmp_path / "mine.py"), "Second"]) == 1
    out = capsys.readouterr().out
    assert "Second: error\n  The model's own actuators act on the joints ['elbow'] beside" in out
    assert out.count("own actuators") == 1
