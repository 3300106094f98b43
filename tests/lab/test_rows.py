"""Each row of the lab's contract has its test."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path

from tests.compat.names import shared_file
from tests.lab.file_rows import FILE_ROWS
from tests.lab.network.rows import NETWORK_ROWS
from tests.lab.play_rows import PLAY_ROWS
from tests.lab.rows import ROWS, SCOPE
from tests.lab.scene_rows import SCENE_ROWS

TESTS = Path(__file__).resolve().parents[1]
LATER = "not here: "


def contract() -> dict[str, set[str]]:
    """Rows by heading that are portable or MuJoCo's own; rows for the loop of the seed are not.

    Returns:
        What each heading in scope asks for.
    """
    rows: dict[str, set[str]] = {heading: set() for heading in SCOPE}
    prefix = ""
    for line in shared_file("spec/live_lab.md").read_text().splitlines():
        if line.startswith(("# ", "## ")):
            heading = re.match(r"## (\w+)\. ", line)
            prefix = heading[1] if heading else ""
        cells = [cell.strip() for cell in line.split("|")]
        if not prefix or len(cells) < 5:
            continue
        name = cells[1].replace("\u2014", "-")
        name = prefix + name if prefix == "K" else name
        if cells[-2] not in ("P", "S") and not re.fullmatch(r"BL\d+", name):  # has no kinds
            continue
        heading = re.match("K|[A-Z]+", name)
        if heading and heading[0] in rows and name not in SCOPE[heading[0]].split():
            rows[heading[0]].add(name)
    return rows


@functools.cache
def names_in(path: Path) -> set[str]:
    """Names of the functions of a file."""
    nodes = ast.walk(ast.parse(path.read_text())) if path.is_file() else ()
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def test_each_row_has_its_entry():
    """Read the contract: all its rows are in the table."""
    rows = contract()
    assert all(rows.values()), "headings of SCOPE that the contract does not have"
    missing = sorted(set().union(*rows.values()) - set(ROWS))
    assert not missing, f"rows without a test: {missing}"


def test_each_row_has_one_entry():
    """Read the tables: no row is in two of them, where one entry would hide the other."""
    tables = (NETWORK_ROWS, FILE_ROWS, PLAY_ROWS, SCENE_ROWS)
    rows = Counter(row for table in tables for row in table)
    here = ast.walk(ast.parse((TESTS / "lab/rows.py").read_text()))
    keys = [key for node in here if isinstance(node, ast.Dict) for key in node.keys]
    rows.update(key.value for key in keys if isinstance(key, ast.Constant))
    assert {row for row, count in rows.items() if count > 1} == set()


def test_each_entry_is_a_test():
    """Look for each test that the table names; what is not here must say why."""
    wrong = []
    for row, entry in ROWS.items():
        if entry.startswith(LATER):
            wrong += [row] * (len(entry) < len(LATER) + 20)
            continue
        for test in entry.split():
            path, _, name = test.partition("::")
            wrong += [f"{row}: {test}"] * (name not in names_in(TESTS / path))
    assert not wrong, f"entries of ROWS that are no tests: {wrong}"
