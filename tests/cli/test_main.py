from __future__ import annotations

import importlib
import subprocess
import sys
import types
import warnings

import pytest

from manyworlds import __version__
from manyworlds.cli import main as cli
from manyworlds.utils.extras import MissingExtraError, require_extra

# Fails where a command line loads what takes long.
LIGHT = """
import contextlib, io, sys
from manyworlds.cli.main import COMMANDS, main
def check(slow, *argv):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(list(argv))
    if loaded := sorted(slow & set(sys.modules)):
        sys.exit(f"{argv} loads {loaded}")
slow = {"torch", "rsl_rl", "viser", "warp", "trimesh", "onnxruntime"}
check(slow | {"mujoco", "numpy", "tyro", "rich"}, "--help")
check(slow | {"mujoco", "numpy", "rich"}, "list")
check(slow | {"mujoco", "numpy"}, "train", "Nope")
check(slow | {"mujoco", "numpy"}, "play", "Nope")
for name in COMMANDS:
    check(slow, name, "--help")
for task in ("Push-Variants", "Velocity-Rough-G1", "Tracking-Flat-Humanoid", "Lift-Cube-Arm-Rgb"):
    check(slow, "train", task, "--video-length", "x")
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch):
    """Replace the `list` command by a function."""

    def install(function) -> None:
        module = types.SimpleNamespace(main=function)
        monkeypatch.setattr(importlib, "import_module", lambda name: module)

    return install


def raising(error):
    """Return a function of no module that uses the package."""
    names = {"error": error}
    exec("def fail(*_):\n    raise error", names)
    return names["fail"]


class TestDispatch:
    def test_help(self, capsys):
        """Name every command in the help."""
        assert cli.main(["--help"]) == 0
        shown = capsys.readouterr().out
        assert all(name in shown for name in cli.COMMANDS)

    def test_no_arguments(self, capsys):
        """Welcome, with three things to try that exist."""
        from manyworlds.lab.world.gallery import GALLERY
        from manyworlds.tasks import list_tasks

        assert cli.main([]) == 0
        out = capsys.readouterr().out
        lines = [line.split() for line in out.splitlines() if line.startswith("  manyworlds ")]
        assert [words[1] for words in lines] == ["demo", "lab", "train"]
        assert lines[1][2] in GALLERY and lines[2][2] in list_tasks()
        assert set(words[1] for words in lines) <= set(cli.COMMANDS)
        assert "manyworlds doctor" in out and "manyworlds --help" in out
        assert max(map(len, out.splitlines())) <= 80

    def test_version(self, capsys):
        """Print the version."""
        assert cli.main(["--version"]) == 0
        assert __version__ in capsys.readouterr().out

    @pytest.mark.parametrize("name, near", [("benhc", "'bench'"), ("--versoin", "'--version'")])
    def test_misspelt(self, capsys, name, near):
        """Propose the command that was meant, in one line."""
        assert cli.main([name]) == 2
        assert near in (error := capsys.readouterr().err)
        assert error.count("\n") == 1

    def test_unknown(self, capsys):
        """List the commands where none is similar."""
        assert cli.main(["xyz"]) == 2
        assert "train" in capsys.readouterr().err

    def test_arguments_and_exit_code(self, command):
        """Pass the arguments on and return the command's exit code."""
        seen = []
        command(lambda argv: seen.append(argv) or 7)
        assert cli.main(["list", "a", "--b"]) == 7
        assert seen == [["a", "--b"]]

    def test_command_help(self, capsys):
        """Return 0 when the argument parser printed a command's help."""
        assert cli.main(["validate", "--help"]) == 0
        assert "FILE" in capsys.readouterr().out

    def test_light_commands_load_nothing_heavy(self):
        """Print help, tasks and wrong usage of a command's own options without heavy imports."""
        done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


class TestErrors:
    @pytest.mark.parametrize(
        "error, text",
        [
            (ValueError("two\n words"), "two words"),
            (ValueError("short"), "ValueError: short"),
            (KeyError("no task 'X'"), "no task 'X'"),
            (KeyError("x"), "KeyError: x"),
            (FileNotFoundError(2, "No such file", "a.xml"), "No such file: 'a.xml'"),
            (OSError(28, "No space left on device"), "No space left on device"),
            (MissingExtraError("install this"), "install this"),
        ],
    )
    def test_expected(self, capsys, command, error, text):
        """Turn an expected error into one line and exit code 1."""
        command(raising(error))
        assert cli.main(["list"]) == 1
        assert capsys.readouterr().err == f"error: {text}\n"

    @pytest.mark.parametrize("error", [ValueError("no"), OSError(2, "no"), KeyError("no")])
    def test_debug(self, command, monkeypatch, error):
        """Keep the traceback on demand."""
        command(raising(error))
        for argv in (["list", "--debug"], ["--debug", "list"]):
            with pytest.raises(type(error)):
                cli.main(argv)
        monkeypatch.setenv("MANYWORLDS_DEBUG", "1")
        with pytest.raises(type(error)):
            cli.main(["list"])

    @pytest.mark.parametrize(
        "line", ["list --nosuch", "train Reach --agent.seed=x", "validate", "doctor all", "nosuch"]
    )
    def test_wrong_usage_has_no_traceback(self, capsys, monkeypatch, line):
        """Show no traceback of a mistyped command line, even with `--debug`."""
        monkeypatch.setenv("MANYWORLDS_DEBUG", "1")
        assert cli.main([*line.split(), "--debug"]) == 2
        assert "Traceback" not in capsys.readouterr().err

    def test_place_in_a_project(self, capsys, command):
        """Name file and line of a project's code that raised the error, and how to see all."""

        def fails(_):
            raise ValueError("no such motor")

        command(fails)
        assert cli.main(["list"]) == 1
        place = f"{__file__}, line {fails.__code__.co_firstlineno + 1}"
        shown = capsys.readouterr().err
        assert shown == (
            f"error: no such motor ({place}) Run it with --debug for the whole traceback.\n"
        )

    def test_defect(self, command):
        """Keep the traceback of an error that no input should cause."""
        command(raising(TypeError("a defect")))
        with pytest.raises(TypeError):
            cli.main(["list"])

    def test_warnings(self, command):
        """Print a warning of the package in one line, and another one with its place, as before."""
        default, shown = warnings.formatwarning, []

        def warn(argv: list[str]) -> int:
            for file in (cli.__file__, "own_task.py"):
                text = warnings.formatwarning("two\n words", UserWarning, file, 7)  # type: ignore[arg-type]
                shown.append(text)
            return 0

        command(warn)
        assert cli.main(["list"]) == 0
        assert shown[0] == "warning: two words\n" and shown[1].startswith("own_task.py:7: UserW")
        assert warnings.formatwarning is default

    def test_interrupt(self, capsys, command):
        """Stop silently at Ctrl-C."""
        command(raising(KeyboardInterrupt()))
        assert cli.main(["list"]) == 130
        assert capsys.readouterr().err == ""

    def test_interrupt_of_an_import(self, capsys, command):
        """Stop silently where Ctrl-C came while a module in C++ was loaded."""
        error = ImportError("initialization failed")
        error.__cause__ = KeyboardInterrupt()
        command(raising(error))
        assert cli.main(["list"]) == 130
        assert capsys.readouterr().err == ""

    def test_broken_pipe(self, tmp_path):
        """Stop silently when the reader of the output has gone."""
        code = "import sys; from manyworlds.cli.main import main; sys.exit(main(['--help']))"
        writer = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert writer.stdout is not None and writer.stderr is not None
        writer.stdout.close()
        assert writer.stderr.read() == b""
        assert writer.wait() == 0
        writer.stderr.close()


USAGE_ERRORS = {
    "diff a.xml b.xml c.xml": (
        "The argument 'c.xml' is one too many: see `manyworlds diff --help`.",
    ),
    "new-task a b": ("'b' is one too many",),
    "doctor all": ("'all' is one too many",),
    "new-task a --effort-limit a=1 b=2": ("'b=2' is one too many: see",),
    "list cart pole": ("'pole' is one too many",),
    "train Reach --seeds 1 2": ("'2' is one too many", "seeds as in 1,2,3"),
    "report a b": ("'b' is one too many",),
    "list cart --randomization Reach": ("either a keyword or --randomization",),
    "validate": ("No file to validate",),
    "train": ("Name a task: manyworlds train TASK",),
    "train --resume": ("Name a task: manyworlds train TASK",),
    "train Reach Reach": ("Name one task, not 2",),
    "train Reach --num-envs -4": ("--num-envs must be at least 1, got -4",),
    "train Reach --env.scene.num-envs 0": ("--num-envs must be at least 1, got 0",),
    "play Cartpole-Balance --latest --checkpoint x": ("either --latest or --checkpoint",),
    "play runs/x": ("'runs/x' is no task", "--checkpoint"),
    "evaluate Reach --num-envs 0": ("--num-envs must be at least 1, got 0",),
    "train Reach --seeds 1,x": ("--seeds '1,x' must be different numbers",),
    "train Reach --seeds 1,1": ("--seeds '1,1' must be different numbers",),
    "train Reach --seeds=": ("--seeds '' must be different numbers",),
    "train Reach --seeds 99999999999999999999": ("from 0 to 9223372036854775807",),
    "train Reach --seeds-parallel": ("--seeds-parallel needs --seeds, such as --seeds 1,2,3",),
    "compare --keys mean_return runs/x": ("Name the runs, before --keys",),
    "train Reach --seeds 1,2 --agent.seed 3": ("either --seeds or --agent.seed",),
    "report --worlds 0": ("--worlds must be at least 1, got 0",),
    "report --film-seconds nan": ("--film-seconds must be positive, got nan",),
    "report --out page.pdf": ("neither .html nor .md", "--format"),
    "compare": ("manyworlds compare RUN RUN",),
    "compare a b --out picture.jpg": ("must end in .png",),
}
"""Command lines and what the errors of this package contain."""
PARSE_ERRORS = {
    "diff": ("Missing from manyworlds diff:", "FIRST", "SECOND", "manyworlds diff --help"),
    "diff a.xml b.xml --tolerance x": ("--tolerance", "could not convert string to float: 'x'"),
    "bench": ("TARGET",),
    "bench a.xml --threads": ("Missing value for argument '--threads'",),
    "replay-dump": ("FILE",),
    "new-task": ("NAME",),
    "lab": ("TARGET",),
    "lab ant --port abc": ("--port", "invalid literal for int() with base 10: 'abc'"),
    "lab ant --seconds x": ("--seconds", "'x'"),
    "list --foo": ("Unrecognized options: --foo", "manyworlds list --help"),
    "list --load": ("Missing value for argument '--load'",),
    "motion": ("Expected one of {convert, clip}",),
    "motion clip a.npz --task Tracking-Flat-Humanoid --tasks": ("meant: --task STR",),
    "motion convert a.csv": ("--task STR",),
    "lab ant --command twist=0.5": ("--command", "\"{'twist': (0.5, 0.0, 0.0)}\"", "'twist=0.5'"),
    "play --onnx x --command {'twist':0.5}": ("\"{'twist': (0.5, 0.0, 0.0)}\"",),
    "terrain --change step_width=0.5": ("\"{'step_width': 0.5}\"",),
    "terrain --rows x": ("--rows", "invalid literal for int()"),
    "train Reach --env.sim.engine x": ("'--env.sim.engine'", "('auto', 'native', 'warp')"),
    "train Reach --preset x": ("'--preset'. Expected one of ('auto', 'cpu', 'gpu')",),
    "train Reach --agent.actor.hidden-dims 64 64": (
        "Value 64",
        "--agent.actor.hidden-dims (INT,...)",
        "'(128, 128, 128)'",
    ),
    "train Reach --agent.actor.hidden-dims x": ("--agent.actor.hidden-dims (INT,...)", "'x'"),
    "train Reach --gpu-ids [x]": ("no type matching {None}|[INT,...]|{all}", "'[x]'"),
    "train Reach --env.scene.num-envs 1.5": ("--env.scene.num-envs", "int()", "'1.5'"),
    "train Reach --max-iterations 3": ("meant: --agent.max-iterations INT",),
    "train Velocity-Flat-Quadruped --agent.max-iteratons 3": ("meant: --agent.max-iterations",),
    "train Velocity-Flat-Quadruped --env.actions.joint-pos.actuator-name x": (
        "meant: --env.actions.joint-pos.actuator-names",
    ),
    "train Cartpole-Balance --env.actions.effort.actuator-name=x": (
        "meant: --env.actions.effort.actuator-names",
    ),
    "play Cartpole-Balance --num-env 3": ("--num-envs INT", "--env.scene.num-envs INT"),
    "play --onnx": ("Missing value for argument '--onnx'",),
    "evaluate Cartpole-Balance --checkpont x": ("meant: --checkpoint",),
    "report --format pdf": ("'pdf' for argument '--format'. Expected one of", "'html'"),
    "compare a b --key mean_return": ("meant: --keys",),
}
"""Command lines that tyro refuses, and what it prints."""


class TestUsage:
    @pytest.mark.parametrize("line", USAGE_ERRORS)
    def test_wrong_usage(self, capsys, line):
        """Return 2, and name what is missing, wrong, or nearest to an unknown option, in a line."""
        assert cli.main(line.split()) == 2
        out, error = capsys.readouterr()
        assert all(text in error for text in USAGE_ERRORS[line]), error
        assert error.startswith("error: ") and error.count("\n") == 1 and out == ""

    @pytest.mark.parametrize("line", PARSE_ERRORS)
    def test_what_does_not_parse(self, capsys, line):
        """Return 2, and name the option, its wrong value, and those nearest to an unknown one."""
        assert cli.main(line.split()) == 2
        out, error = capsys.readouterr()
        printed = " ".join(error.replace("│", " ").split())
        assert all(text in printed for text in PARSE_ERRORS[line]), printed
        assert out == ""


class TestExtras:
    def test_present(self):
        """Return the module that is there."""
        assert require_extra("json", "train").__name__ == "json"

    def test_missing(self):
        """Name the command that installs what is missing."""
        with pytest.raises(MissingExtraError, match=r"pip install 'manyworlds-rl\[train\]'"):
            require_extra("no_such_module_anywhere", "train")


@pytest.mark.parametrize(
    "argv",
    [
        ("lab",),
        ("play",),
        ("play", "Cartpole-Balance"),
        ("terrain",),
        ("demo",),
        ("train", "Cartpole-Balance"),
    ],
    ids=" ".join,
)
def test_commands_with_a_page_have_one_option_for_its_port(argv, capsys):
    """Spell and explain the option alike, with one default."""
    assert cli.main([*argv, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    text = "Port of the page; the next free port is taken if this one is in use. (default: 8080)"
    assert f"--port INT {text}" in shown
    assert shown.count("port INT") == 1
