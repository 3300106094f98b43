"""All names that the reference offers are here, or it is known why not."""

import contextlib
import importlib
import importlib.util
import io
import json
import re
import sys
from pathlib import Path

import pytest

from manyworlds.compat import mjlab
from manyworlds.compat.mjlab.names import ABSENT, MODULES, NAMES, remedy
from tests.compat.names import public_names, shared_file

DOCS = Path(__file__).parents[3] / "docs" / "coming_from_mjlab.md"
RESOLVED = Path(__file__).with_name("resolved_names.txt")


@pytest.fixture(autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


def _exists(name: str) -> bool:
    module, _, attribute = name.partition(":")
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError:
        return False


def test_each_name_is_here():
    """Import all public names of the reference."""
    names = public_names(shared_file("spec/framework.md").read_text())
    assert len(names) > 700
    missing = {name for name in names if not _exists(name) and not remedy(name.replace(":", "."))}
    assert not missing, f"neither here nor known to be missing: {sorted(missing)}"


def test_names_stay_resolved():
    """Resolve every public name of mjlab 1.6.0 that has been resolved before."""
    lost = [
        f"{module}:{name}"
        for row in RESOLVED.read_text().splitlines()
        for module, _, names in [row.partition(":")]
        for name in names.split()
        if not _exists(f"{module}:{name}")
    ]
    assert not lost


@pytest.mark.parametrize("name", NAMES)
def test_each_renamed_name_resolves(name):
    """Find all names of the table, none of which is at the same place here."""
    module, _, attribute = name.partition(":")
    assert getattr(importlib.import_module(module), attribute) is not None
    ours = module.replace("mjlab", "manyworlds", 1)
    mjlab.uninstall()
    with pytest.raises((ImportError, AttributeError)):
        getattr(importlib.import_module(ours), attribute)


def test_each_absent_name_is_absent():
    """Have a remedy only for what cannot be imported."""
    known = {name.partition(":")[0] for name in NAMES} | set(MODULES)
    for path in set(ABSENT) - known:
        module, _, name = path.rpartition(".")
        assert not _exists(f"{module}:{name}"), path


def test_each_absent_name_is_documented():
    """Document each missing name with its remedy and a reason, and no other."""
    rows = re.findall(r"^\| `(mjlab\.[\w.]+)` \| (.+) \| (.+) \|$", DOCS.read_text(), re.M)
    documented = {name: remedy for name, remedy, reason in rows if name in ABSENT and reason}
    assert documented == ABSENT
    missing = DOCS.read_text().partition("## Missing names")[2]
    assert set(re.findall(r"^\| `(mjlab[\w.]+)`", missing, re.M)) == set(ABSENT)


@pytest.fixture
def check_surface():
    """Load the script that compares a public surface with that of the alias."""
    spec = importlib.util.spec_from_file_location(
        "check_surface", shared_file("peer/check_surface.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_else_is_missing(check_surface, monkeypatch):
    """Miss no module, and no name but those with a remedy, of mjlab 1.6.0's public surface."""
    monkeypatch.setattr(sys, "argv", ["check_surface", "--list", "module", "--list", "name"])
    with contextlib.redirect_stdout(io.StringIO()) as output:
        check_surface.main()
    modules, names = re.search(
        r"^module +(\d+)\n(.*)^name +(\d+)\n.*?^member", output.getvalue(), re.M | re.S
    ).group(1, 3)
    listed = re.findall(r"^  (mjlab[\w.]+)$", output.getvalue(), re.M)
    assert (modules, names) == ("0", "7")
    assert len(listed) == 7 and set(listed) <= set(ABSENT)


def test_functions_take_the_same_arguments(check_surface):
    """Accept each argument of each function, by name and by position, and require no other."""
    surface = json.loads(shared_file("peer/mjlab_surface.json").read_text())
    functions = [
        (f"{module}.{name}", entry["params"], getattr(importlib.import_module(module), name))
        for module, entries in surface.items()
        for name, entry in entries.items()
        if entry["kind"] == "func" and "params" in entry and f"{module}.{name}" not in ABSENT
    ]
    assert len(functions) > 500
    differences = {
        name: found
        for name, params, ours in functions
        if (found := [*check_surface.compare_parameters(params, ours)])
    }
    assert differences == {}
