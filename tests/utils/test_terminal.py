"""Text on terminals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import manyworlds
from manyworlds.utils.terminal import new_console, new_progress, print_line

PACKAGE = Path(manyworlds.__file__).parent
OWN_CONSOLES = {
    "utils/terminal.py": "the consoles of all others",
    "utils/table.py": "a table as text",
    "compat/mjlab/facades/utils/logging.py": "a style that the caller names",
}
"""Files that make a console, with the reason; each does it without markup."""


@pytest.fixture
def terminal(monkeypatch):
    """Let rich take the output for a terminal."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "40")


def test_text_is_printed_as_it_is(terminal, capsys):
    """Print units, paths with brackets, closing tags, emoji names and long lines unchanged."""
    text = "time [s] runs/[bold]x[/bold] [/] :smile: 3.5 'a' " + "x" * 60
    print_line(new_console(), text)
    assert capsys.readouterr().out == f"{text}\n"
    print_line(new_console(stderr=True), text)
    assert capsys.readouterr().err == f"{text}\n"
    print_line(new_console(silent=True), text)
    assert capsys.readouterr() == ("", "")


def test_descriptions_of_bars_are_text(terminal, capsys):
    """Show a description with brackets beside a bar; show nothing without a terminal."""
    with new_progress(new_console(stderr=True), auto_refresh=False) as bar:
        bar.add_task("runs/[red]a[/red] [s]", total=1.0)
        bar.refresh()
    assert "runs/[red]a[/red] [s]" in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", capsys.readouterr().err)


def test_no_bar_without_a_terminal(capsys):
    """Show nothing of a bar in a file."""
    with new_progress(new_console(stderr=True)) as bar:
        bar.advance(bar.add_task("x", total=1.0))
    assert capsys.readouterr() == ("", "")


def test_consoles_are_made_in_one_place():
    """Find no console that would take text of users for markup."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if re.search(r"\bConsole\(", path.read_text()):
            found.add(str(path.relative_to(PACKAGE)))
    assert found == set(OWN_CONSOLES)
    for name in OWN_CONSOLES:
        assert "markup=False" in (PACKAGE / name).read_text()
