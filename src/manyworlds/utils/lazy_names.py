"""Names of a package that are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the function `__getattr__` of a package whose names are imported on first use.

    Args:
        package: name of the package.
        modules: module of each name; one that begins with a dot is relative to the package.
    """

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(importlib.import_module(modules[name], package), name)

    return find
