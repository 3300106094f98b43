"""A package that is imported at its first use."""

import importlib
import sys

import pytest

from manyworlds.cli.deferred_import import defer_import


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that counts how often its modules are executed."""
    name = "counted_package"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import used\nfrom .used import COUNT\n")
    (folder / "used.py").write_text("COUNT = []\nimport sys\nsys.executed.append(__name__)\n")
    (folder / "extra.py").write_text("import sys\nsys.executed.append(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "executed", [], raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    defer_import(name)
    yield name
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


def test_an_attribute_loads_the_package(package):
    """Load nothing by an import, and the package by a read."""
    module = importlib.import_module(package)
    assert sys.executed == []
    assert module.COUNT is sys.modules[f"{package}.used"].COUNT


@pytest.mark.parametrize("submodule", ["used", "extra"])
def test_a_submodule_is_executed_once(package, submodule):
    """Execute a submodule once, whether or not the package imports it."""
    module = importlib.import_module(f"{package}.{submodule}")
    assert sys.executed.count(f"{package}.{submodule}") == 1
    assert module is getattr(sys.modules[package], submodule)
    assert module.__spec__.origin.endswith(f"{submodule}.py")
    assert importlib.reload(module) is module and sys.executed.count(module.__name__) == 2
