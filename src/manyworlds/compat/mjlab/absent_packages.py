"""Packages that mjlab brings and this project does not need, for programs that import them anyway.

Where such a package is not installed, its import succeeds, and the first use of a name raises an
error that says what to install.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from manyworlds.utils.extras import MissingExtraError, install_hint

PACKAGES = {
    "mediapy": "`pip install mediapy`",
    "mujoco_warp": install_hint("gpu"),
    "wandb": install_hint("wandb"),
    "warp": install_hint("gpu"),
}
"""How to install each package."""
_INACTIVE = {"wandb.run": None}
"""Values of names that say that nothing is in use."""
_ASKS_ITSELF = frozenset({"manyworlds", "rsl_rl", "torch"})
"""Packages that import these to find out whether they are installed."""


class AbsentName:
    """Name of a package that is not installed; any use raises what to install."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> AbsentName:
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentName(f"{self._path}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise what to install."""
        package = self._path.partition(".")[0]
        raise MissingExtraError(
            f"{self._path} needs the Python package '{package}', which is not installed: run "
            f"{PACKAGES[package]}.",
            name=package,
        )

    def __instancecheck__(self, instance: object) -> bool:
        return False  # without the package there are no such objects

    def __or__(self, other: object) -> AbsentName:
        return self  # in an annotation

    __ror__ = __or__

    def __getitem__(self, item: object) -> AbsentName:
        return self  # in an annotation

    def __mro_entries__(self, bases: tuple[type, ...]) -> tuple[type, ...]:
        return self()

    def __repr__(self) -> str:
        return f"<{self._path}, which is not installed>"


class _AbsentModule(ModuleType):
    """Module of a package that is not installed."""

    def __getattr__(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if path in _INACTIVE:
            return _INACTIVE[path]
        return AbsentName(path)


class AbsentFinder(MetaPathFinder, Loader):
    """Finds the packages that are not installed; it must be the last of `sys.meta_path`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a package that is not installed, or a module below it."""
        if fullname.partition(".")[0] not in PACKAGES or _importer() in _ASKS_ITSELF:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return _AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Hide the module from those who ask whether it is installed."""
        module.__spec__ = None  # which `importlib.util.find_spec` refuses


def _importer() -> str:
    """Return the package of the code that imports at present."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name != __name__ and not name.startswith(("importlib", "_frozen_importlib")):
            return name.partition(".")[0]
        frame = frame.f_back
    return ""


def forget() -> None:
    """Remove the modules of absent packages, so that a later import looks for them again."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, _AbsentModule):
            del sys.modules[name]
