"""Import of a package at its first use."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
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
        if name == "__path__":
            sys.meta_path.insert(0, _LoadedFinder(spec.name))
        spec.loader.exec_module(self)
        return getattr(self, name)


class _LoadedFinder(MetaPathFinder):
    """Finds a submodule that its package has loaded while the submodule was imported.

    The import system looks for a submodule in `sys.modules` before it reads the package's
    `__path__`, which loads a deferred package, and executes the submodule afterwards: again, if the
    package has imported it.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = sys.modules.get(fullname)
        if target is not None or module is None or not fullname.startswith(f"{self._package}."):
            return None
        return ModuleSpec(fullname, _KeptModule(module))


class _KeptModule(Loader):
    """Returns a loaded module as it is."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
