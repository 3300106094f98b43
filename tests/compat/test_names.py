"""All names that the reference offers are here, or it is known why not."""

import importlib

import pytest

from manyworlds.compat import mjlab
from manyworlds.compat.mjlab_names import ABSENT, RENAMED, remedy
from tests.compat.names import public_names, shared_file

pytestmark = pytest.mark.filterwarnings("ignore:manyworlds has no mjlab")


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
