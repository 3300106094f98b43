"""Glossary of the project's terms."""

import dataclasses
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"
COLUMNS = ("term", "meaning", "here", "MuJoCo", "mjlab", "Isaac Lab")


def read_rows() -> list[dict[str, str]]:
    """Return the rows of the table, by column."""
    lines = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("|")]
    cells = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines]
    assert cells[0] == COLUMNS
    return [dict(zip(COLUMNS, row, strict=True)) for row in cells[2:]]


ROWS = read_rows()
NAMES = sorted(set(re.findall(r"`((?:manyworlds|mujoco)\.[\w.]+)`", GLOSSARY.read_text())))


def resolve(name: str) -> Any:
    """Return the module, class, function or attribute that a dotted name means.

    Raises:
        AttributeError: no module or attribute has this name.
    """
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if hasattr(found, part):
            found = getattr(found, part)
        elif dataclasses.is_dataclass(found) and part in {
            f.name for f in dataclasses.fields(found)
        }:
            found = None
        else:
            try:
                found = importlib.import_module(".".join(parts[:i]))
            except ModuleNotFoundError:
                raise AttributeError(f"'{name}' in {GLOSSARY.name} does not exist.") from None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_names_resolve(name):
    """Name only modules, classes, functions and attributes that exist."""
    resolve(name)


@pytest.mark.parametrize("name", ["manyworlds.lab.Absent", "manyworlds.absent", "mujoco.MjAbsent"])
def test_absent_names_do_not_resolve(name):
    """Tell absent names from present ones."""
    with pytest.raises(AttributeError, match=name):
        resolve(name)


def test_code_column_holds_dotted_paths():
    """Give names of code as dotted paths, so that the tests above check them."""
    for row in ROWS:
        paths = re.findall(r"`([^`]+)`", row["here"])
        assert [path for path in paths if path not in NAMES] == [], row["term"]


def test_terms_are_sorted_and_have_one_meaning_each():
    """List each term once, in alphabetical order, with a meaning."""
    terms = [row["term"] for row in ROWS]
    assert terms == sorted(set(terms), key=str.lower)
    assert all(row["meaning"].endswith(".") for row in ROWS)
