"""Names of packages that are imported on first use."""

from __future__ import annotations

import importlib

import pytest

PACKAGES = ("lab", "lab.page", "viewer", "viewer.native")


@pytest.mark.parametrize("name", PACKAGES)
def test_all_names_are_found(name):
    """Import each public name from the module that the package names; refuse others."""
    if name.startswith("lab.page"):
        pytest.importorskip("viser", reason="needs the extra 'lab'")
    package = importlib.import_module(f"manyworlds.{name}")
    for each in package.__all__:
        assert getattr(package, each) is not None
    with pytest.raises(AttributeError, match=f"module 'manyworlds.{name}' has no attribute 'none'"):
        _ = package.none
