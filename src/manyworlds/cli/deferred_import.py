"""Import of a package at its first use."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any


def defer_import(name: str) -> None:
    """Make `import name` cheap: the package loads when code first reads an attribute of it.

    `importlib.util.LazyLoader` does not suffice, since a second import statement loads its modules.
    A package that is already loaded, or not installed, stays as it is.
    """
    if name in sys.modules or (spec := importlib.util.find_spec(name)) is None:
        return
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _DeferredModule
    vars(module).pop("__path__", None)  # so that the import of a submodule loads the package first
    sys.modules[name] = module


class _DeferredModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        assert spec is not None and spec.loader is not None
        object.__setattr__(self, "__class__", ModuleType)
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        spec.loader.exec_module(self)
        return getattr(self, name)
