"""The Dockerfiles, without Docker: what they copy, install and run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from manyworlds.cli.main import main

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "docker").glob("Dockerfile.*"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_what_is_copied_is_there(path):
    """Copy files that exist, that `.dockerignore` lets through, and that the build needs."""
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.+)$", path.read_text(), re.MULTILINE)
        for name in line.split()[:-1]
    }
    ignored, *let_through = (ROOT / ".dockerignore").read_text().split()
    assert ignored == "*" and copied == {n[1:] for n in let_through if n.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)
    needed = {"pyproject.toml", "setup.py", "README.md", "src", *PROJECT["license-files"]}
    assert needed <= copied


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_what_is_installed_is_offered(path):
    """Install extras that there are, and PyTorch in the versions that the package accepts."""
    text = path.read_text()
    (extras,) = re.findall(r"\$\{wheel\}\[([\w,]+)\]", text)
    assert set(extras.split(",")) < set(PROJECT["optional-dependencies"])
    for version in re.findall(r'"(torch[^"]*)"', text):
        assert version in PROJECT["dependencies"]


COMMANDS = sorted({
    command
    for path in (*DOCKERFILES, ROOT / "docs" / "installation.md")
    for command in re.findall(
        r"manyworlds:\w+ (manyworlds .+)$",
        re.sub(r"\\\n#? *", "", path.read_text()),
        re.MULTILINE,
    )
})  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_containers_exist(command, capsys):
    """Name commands, tasks and options that there are."""
    _, *words = command.split()
    options = [word for word in words if word.startswith("--")]
    names = words[: words.index(options[0])] if options else words
    assert main([*names, "--help"]) == 0
    text = capsys.readouterr().out
    assert all(re.search(rf"{option}\b", text) for option in options)


def test_containers_are_documented():
    """Find the commands that are tested above."""
    assert len(COMMANDS) >= 3 and len(DOCKERFILES) == 2
