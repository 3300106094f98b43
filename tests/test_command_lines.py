"""The command lines in texts are right: options, targets of make, and files exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from manyworlds.cli.errors import UsageError
from manyworlds.cli.main import COMMANDS
from manyworlds.cli.new_task import write_task
from manyworlds.tasks import registry
from tools.docs.command_lines import parse_line

ROOT = Path(__file__).parents[1]
TASK = "Cartpole-Swingup"
FILES = [
    *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),  # it has old versions
    *(ROOT / "docs").rglob("*.md"),
    *(path for path in (ROOT / "examples").rglob("*") if path.is_file()),
    *(ROOT / "docker").iterdir(),
]
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))


def command_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file that are meant for a shell."""
    text = re.sub(r"\\\n#?\s*", " ", path.read_text())
    if path.suffix == ".md":
        for kind, block in re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", text, re.M | re.S):
            if kind in ("sh", "bash"):
                yield from block.splitlines()
            elif not kind:  # a command and what it prints
                yield from re.findall(r"^(?:\$ )?(manyworlds .*)$", block, re.M)
    else:
        yield from re.findall(r"^ {2,}((?:manyworlds|python) .*)$", text, re.M)
        yield from re.findall(r"^# +(docker .*)$", text, re.M)
        yield from re.findall(r"^.* (-m manyworlds .*)$", text, re.M)


def named_lines(path: Path) -> Iterator[str]:
    """Yield the commands that sentences name, which may lack arguments."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    yield from re.findall(r"`((?:manyworlds|make|python) [^`]+)`", text)


def commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line without what starts them, such as `torchrun ... -m`."""
    words = [word for word in shlex.split(line, comments=True) if not word.startswith("$@")]
    for part in " \0 ".join(words).split(" \0 && \0 "):
        found = part.split(" \0 ")
        if "manyworlds" in found and found[0] not in ("pip", "pipx", "uv"):
            yield found[len(found) - 1 - found[::-1].index("manyworlds") :]
        elif found[0] in ("make", "python"):
            yield found


def with_load(words: list[str], lines: list[list[str]]) -> list[str]:
    """Add the `--load` of a line that trains the same task, which its run remembers."""
    for line in lines:
        if line[:2] != ["manyworlds", "train"] or "--load" not in line:
            continue
        if words[1:] == ["play", line[-1]]:
            start = line.index("--load")
            return [*words, *line[start : start + 2]]
    return words


def problem(words: list[str]) -> str:
    """Return what is wrong with a command; empty if nothing is."""
    program, *args = words
    if program == "make":
        wrong = [a for a in args if "=" not in a and a not in TARGETS]
        return f"there is no target {wrong[0]}" if wrong else ""
    if program == "python":
        return _python_problem(args)
    if not args or args[0] not in COMMANDS:
        return "" if not args or args[0] in ("--help", "--version", "COMMAND") else "no command"
    args = [TASK if a in ("TASK", "$TASK", "$task") else a for a in args if a != "--help"]
    if args[0] in ("play", "evaluate") and (len(args) == 1 or args[1] not in ("--onnx", "--load")):
        args[1:1] = [] if args[1:] and not args[1].startswith("-") else [TASK]  # of the newest run
    try:
        with mock.patch.dict(registry._TASKS):  # for `--load`
            parse_line(args)
    except UsageError as error:
        return str(error)
    except OSError as error:
        known = re.search("MANYWORLDS_ROBOTS|MuJoCo Menagerie", str(error))
        return "" if known else str(error)  # robots that are not here
    except (KeyError, ValueError) as error:
        return str(error)
    return ""


def _own_task(path: Path, folder: Path) -> str:
    """Return the program of a text that registers a task, or else that of a new task."""
    programs = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S)
    own = [p for p in programs if "register_task(" in p and not re.search(r"^\s*\.\.\.", p, re.M)]
    return own[0] if own else write_task("My-Task", folder).read_text()


def _python_problem(args: list[str]) -> str:
    if args[0] == "-m":
        return "" if importlib.util.find_spec(args[1]) else f"there is no module {args[1]}"
    ours = args[0].startswith(("examples/", "tools/", "benchmarks/"))
    return f"there is no file {args[0]}" if ours and not (ROOT / args[0]).is_file() else ""


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_command_lines_are_right(path, tmp_path, monkeypatch):
    """Parse each command of this package as it does, and look up targets, modules and files."""
    monkeypatch.chdir(tmp_path)
    for name in dict.fromkeys(re.findall(r"--load (\w+\.py)", path.read_text())):
        Path(name).write_text(_own_task(path, tmp_path))
    lines = [words for line in command_lines(path) for words in commands(line)]
    found = [with_load(words, lines) for words in lines]
    wrong = [f"{shlex.join(words)}: {text}" for words in found if (text := problem(words))]
    found = [words for line in named_lines(path) for words in commands(line)]
    wrong += [
        f"{shlex.join(words)}: {text}"
        for words in found
        if (text := problem(words))
        and not re.search(r" needs |Missing (from|argument)|^Name a task", text)
    ]
    assert wrong == []


def test_wrong_lines_are_seen():
    """Find lines in every kind of text, and tell what is wrong with each."""
    for name, least in (("README.md", 25), ("docs/lab.md", 12), ("docker/Dockerfile.cpu", 1)):
        path = ROOT / name
        assert len([w for line in command_lines(path) for w in commands(line)]) >= least
    (line,) = commands('torchrun --nnodes=2 -m manyworlds train "$task" --seed 1 "$@"  # two')
    assert line == ["manyworlds", "train", "$task", "--seed", "1"]
    assert "Unrecognized options: --seed" in problem(line)
    assert [*commands("pip install manyworlds && make test")] == [["make", "test"]]
    for text, reason in (
        ("make tests", "no target tests"),
        ("python examples/99_missing.py", "no file"),
        ("python -m manyworlds.missing", "no module"),
        ("manyworlds trian Cartpole-Swingup", "no command"),
        ("manyworlds demo --hots 0.0.0.0", "Unrecognized options: --hots"),
        ("manyworlds lab a.xml --port x", "--port: invalid literal for int()"),
    ):
        assert reason in problem(shlex.split(text))
