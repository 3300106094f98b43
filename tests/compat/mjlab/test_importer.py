"""Registration of tasks by the import of all packages below a package."""

import itertools
import sys

import pytest

from manyworlds.compat.mjlab.facades.utils.lab_api.tasks.importer import import_packages

_NAMES = (f"tree_of_tasks_{i}" for i in itertools.count())


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Write packages below one, and remove what is imported of them."""
    name = next(_NAMES)
    monkeypatch.syspath_prepend(tmp_path)

    def write(*packages, text=""):
        for package in ("", *packages):
            folder = tmp_path / name / package
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").write_text(text if package == packages[-1] else "")
        (tmp_path / name / "module.py").write_text("raise RuntimeError")
        return name

    yield write
    for module in [module for module in sys.modules if module.split(".")[0] == name]:
        del sys.modules[module]


def _imported(name):
    return {module[len(name) + 1 :] for module in sys.modules if module.startswith(f"{name}.")}


def test_all_packages_below_are_imported(tree):
    """Import packages at all depths, but no plain modules."""
    name = tree("walk", "walk/config", "walk/config/go1", "lift")
    import_packages(name)
    assert _imported(name) == {"walk", "walk.config", "walk.config.go1", "lift"}


def test_a_blacklist_skips_packages(tree):
    """Skip a package whose full name contains a part, with all below it."""
    name = tree("walk", "walk/mdp", "walk/mdp/deep", "walk/config", "utils", "utils/tools")
    import_packages(name, ["utils", ".mdp"])
    assert _imported(name) == {"walk", "walk.config"}


def test_an_import_that_fails_is_raised(tree):
    """Raise the error of a package: its tasks would be missing."""
    name = tree("good", "bad", text="import no_such_module_anywhere")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        import_packages(name)


def test_a_module_is_refused():
    """Say that a plain module has nothing below it."""
    with pytest.raises(ValueError, match="'json.decoder' is a module, not a package"):
        import_packages("json.decoder")


@pytest.mark.parametrize("place", ["mjlab.tasks", "mjlab.utils.lab_api.tasks.importer"])
def test_the_usual_places(place, alias):
    """Find the function at both places, and in a package's own `__init__`."""
    namespace = {}
    exec(f"from {place} import import_packages", namespace)
    assert namespace["import_packages"] is import_packages
    import_packages("mjlab.tasks", ["utils"])
