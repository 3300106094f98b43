"""Packages of the reference that projects import although this project does not need them."""

from __future__ import annotations

import importlib
import sys

import pytest

from manyworlds.compat import mjlab
from manyworlds.compat.mjlab import absent_packages
from manyworlds.utils.extras import MissingExtraError, is_installed


@pytest.fixture
def absent(monkeypatch):
    """Install the alias, with a package that nobody has among those that may be absent."""
    monkeypatch.setitem(absent_packages.PACKAGES, "no_such_package", "`pip install it`")
    mjlab.install()
    yield
    mjlab.uninstall()


def test_an_import_succeeds_and_a_use_says_what_to_install(absent):
    """Import modules and names, also from submodules; raise at a call."""
    package = importlib.import_module("no_such_package")
    sub = importlib.import_module("no_such_package.deep.part")
    names: dict = {}
    exec(
        "from no_such_package import array, kernel\n"
        "def f(x: array | None, y: 'int | array') -> array[int]: ...\n"
        "found = isinstance(3, array)",
        names,
    )
    assert not names["found"]
    for use in (package.run_it, sub.thing.method, names["kernel"]):
        with pytest.raises(MissingExtraError, match=r"no_such_package\..* `pip install it`"):
            use(1)
    with pytest.raises(MissingExtraError, match="no_such_package.Base"):
        type("Mine", (object,), {}) and exec("class Mine(package.Base): ...", {"package": package})


def test_what_is_absent_counts_as_not_installed(absent):
    """Tell those who ask that the package is not there, before and after its import."""
    assert not is_installed("no_such_package")
    importlib.import_module("no_such_package")
    assert not is_installed("no_such_package")
    mjlab.uninstall()
    assert "no_such_package" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_package")


def test_installed_packages_are_themselves(absent):
    """Leave what is installed alone."""
    pytest.importorskip("warp")
    assert importlib.import_module("warp").__file__
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("another_package")


def test_no_run_of_wandb_is_active(absent):
    """Let `wandb.run` be None, as without a run."""
    if is_installed("wandb"):
        pytest.skip("wandb is installed")
    wandb = importlib.import_module("wandb")
    assert wandb.run is None
    with pytest.raises(MissingExtraError, match=r"wandb\.save needs .*\[wandb\]"):
        wandb.save("x")
