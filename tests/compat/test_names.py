"""All names that the reference offers are here, or it is known why not."""

import importlib
from fnmatch import fnmatchcase

import pytest

from manyworlds.compat import mjlab
from manyworlds.compat.mjlab_names import ABSENT, RENAMED, remedy
from tests.compat.names import public_names, shared_file

NOT_YET = {
    "mjlab.scripts.visualize_terrain:*": "viewers",
}
"""Names that later work brings. A row goes when its names come; the test says which."""


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


def test_each_name_is_here_or_known_to_be_missing():
    """Import all public names; list new gaps and rows that are out of date."""
    names = public_names(shared_file("spec/framework.md").read_text())
    assert len(names) > 700
    here = {name for name in names if _exists(name)}
    missing = {name for name in names - here if not remedy(name.replace(":", "."))}

    def match(row: str, among: set[str]) -> list[str]:
        return sorted(name for name in among if fnmatchcase(name, row))

    gaps = missing - {name for row in NOT_YET for name in match(row, missing)}
    assert not gaps, f"neither here nor known to be missing: {sorted(gaps)}"
    done = [row for row in NOT_YET if not match(row, missing)]
    assert not done, f"delete these rows of NOT_YET, nothing of which is missing: {done}"
    arrived = {row: found for row in NOT_YET if (found := match(row, here))}
    assert not arrived, f"narrow these rows of NOT_YET, parts of which are here: {arrived}"


@pytest.mark.parametrize("name", RENAMED)
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
    known = {name.partition(":")[0] for name in RENAMED}
    for path in set(ABSENT) - known:
        module, _, name = path.rpartition(".")
        assert not _exists(f"{module}:{name}"), path
