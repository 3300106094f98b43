from __future__ import annotations

import importlib
import subprocess
import sys
import types

import pytest

from manyworlds import __version__
from manyworlds.cli import main as cli
from manyworlds.utils.extras import MissingExtraError, require_extra

HEAVY = ("torch", "mujoco", "numpy", "tyro", "rich", "rsl_rl", "viser", "warp")
SLOW = ("torch", "rsl_rl", "viser", "warp", "trimesh", "onnxruntime")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch):
    """Replace the `list` command by a function."""

    def install(function) -> None:
        module = types.SimpleNamespace(main=function)
        monkeypatch.setattr(importlib, "import_module", lambda name: module)

    return install


def raising(error: BaseException):
    """Return a command that fails."""

    def main(argv: list[str]) -> int:
        raise error

    return main


class TestDispatch:
    def test_help(self, capsys):
        """Name every command in the help."""
        assert cli.main(["--help"]) == 0
        shown = capsys.readouterr().out
        assert all(name in shown for name in cli.COMMANDS)

    def test_no_arguments(self, capsys):
        """Show the help and fail without a command."""
        assert cli.main([]) == 2
        assert "usage" in capsys.readouterr().out

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

    @pytest.mark.parametrize("command", [[], *([name] for name in cli.COMMANDS)])
    def test_help_imports_nothing_heavy(self, command):
        """Answer `--help` of every command without any heavy import."""
        code = (
            f"import sys; from manyworlds.cli.main import main; main([*{command}, '--help']); "
            f"print([name for name in {HEAVY if not command else SLOW} if name in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "[]"


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

    def test_debug(self, command, monkeypatch):
        """Keep the traceback on demand."""
        monkeypatch.setenv("MANYWORLDS_DEBUG", "1")
        command(raising(ValueError("no")))
        with pytest.raises(ValueError):
            cli.main(["list"])

    def test_defect(self, command):
        """Keep the traceback of an error that no input should cause."""
        command(raising(TypeError("a defect")))
        with pytest.raises(TypeError):
            cli.main(["list"])

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
    "diff": "Missing: FIRST, SECOND.",
    "diff a.xml": "Missing: SECOND.",
    "diff a.xml b.xml c.xml": "'c.xml' is one too many.",
    "diff a.xml b.xml --tolerance x": "--tolerance: could not convert string to float: 'x'.",
    "bench": "Missing: FILE.",
    "bench a.xml --threads": "Missing value for argument '--threads'.",
    "replay-dump": "Missing: FILE.",
    "lab": "Missing: TARGET.",
    "motion": "Expected one of {convert, clip}.",
    "motion convert a.csv": "Missing: --task STR.",
    "terrain --rows x": "--rows: no type matching {None}|INT could be instantiated from ['x'].",
    "train Cartpole-Balance --preset x": "invalid choice 'x' for argument '--preset'. "
    "Expected one of ('auto', 'cpu', 'gpu').",
    "train Cartpole-Balance --agent.actor.hidden-dims 64 64": "--agent.actor.hidden-dims: 64 is no "
    'tuple: write it as in Python and quote it, as "(1, 2)", "[\'a\']" or "{\'a\': 1}".',
    "train Cartpole-Balance --agent.actor.hidden-dims x": "--agent.actor.hidden-dims: 'x' is no "
    'value: write it as in Python and quote it, as "(1, 2)", "[\'a\']" or "{\'a\': 1}".',
}


class TestUsage:
    @pytest.mark.parametrize("columns", ["60", "200"])
    @pytest.mark.parametrize("line", USAGE_ERRORS)
    def test_what_is_wrong_is_one_line(self, capsys, monkeypatch, line, columns):
        """Say what is missing or wrong in one line, however wide the terminal is."""
        monkeypatch.setenv("COLUMNS", columns)
        assert cli.main(line.split()) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1 and said[0].startswith(f"error: {USAGE_ERRORS[line]} `manyworlds ")


class TestExtras:
    def test_present(self):
        """Return the module that is there."""
        assert require_extra("json", "train").__name__ == "json"

    def test_missing(self):
        """Name the command that installs what is missing."""
        with pytest.raises(MissingExtraError, match=r"pip install 'manyworlds\[train\]'"):
            require_extra("no_such_module_anywhere", "train")
