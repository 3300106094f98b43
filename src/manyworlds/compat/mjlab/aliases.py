"""Modules named `mjlab...` that show the names of ours.

The module `mjlab.a.b` is an object of its own with the same classes and functions as the module of
this project that takes its place. `names.py` holds the table of paths and names, `facades` the
modules whose structure or meaning differs.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from manyworlds.compat.mjlab import absent_packages, members, signatures, stand_ins
from manyworlds.compat.mjlab.names import MODULES, NAMES, TASKS, remedy
from manyworlds.tasks import registry
from manyworlds.utils.extras import MissingExtraError, is_installed
from manyworlds.validation.names import near_matches
from manyworlds.validation.rules import RULES, Rules

PACKAGE = "mjlab"
_FACADES = "manyworlds.compat.mjlab.facades"
_PLUGIN_GROUP = "mjlab.tasks"
_RULES = Rules(tables_match_prefixes=True, tolerates_doubts=True, keeps_params=True)


def install() -> None:
    """Alias `mjlab` and all its modules to this package; a second call has no effect.

    Tasks that installed packages name in the entry-point group `mjlab.tasks` are found, too, and
    mjlab's tasks by their ids.

    Raises:
        ImportError: the real mjlab is already imported.
    """
    if _FINDER in sys.meta_path:
        return
    if (real := sys.modules.get(PACKAGE)) is not None:
        raise ImportError(
            f"mjlab is already imported from {getattr(real, '__file__', None)!r}: call "
            "manyworlds.compat.mjlab.install() before anything imports mjlab, or run the program "
            "by `python -m manyworlds.compat.mjlab`."
        )
    sys.meta_path.insert(0, _FINDER)
    sys.meta_path.append(_ABSENT)
    RULES.append(_RULES)
    _attach()
    registry.PLUGIN_GROUPS.setdefault(_PLUGIN_GROUP, False)
    for task_id, task in TASKS.items():
        registry.register_lazy_task(task_id, task)


def uninstall() -> None:
    """Undo `install`."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        sys.meta_path.remove(_ABSENT)
        absent_packages.forget()
        RULES.remove(_RULES)
        registry.PLUGIN_GROUPS.pop(_PLUGIN_GROUP, None)
        for task_id in TASKS:
            registry.unregister_task(task_id)
    members.detach()
    signatures.detach()
    stand_ins.detach()
    for name in [name for name in sys.modules if _is_alias(name)]:
        del sys.modules[name]


class _AliasModule(ModuleType):
    """A module that shows the names of other modules and of the table."""

    _sources: tuple[ModuleType, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = f"{self.__name__}.{name}"
        ours = NAMES.get(f"{self.__name__}:{name}")
        if isinstance(ours, str):
            module, _, attribute = ours.partition(":")
            value = getattr(_import(module), attribute)
            _attach()
            return value
        if ours is not None:
            return ours
        for source in self._sources:
            # Some of ours import on demand.
            value = getattr(source, name, None)
            if value is not None and not _is_submodule(value):
                _attach()
                return value
        if _has_alias(path):
            return importlib.import_module(path)
        raise AttributeError(_missing(path, [*dir(self), *_names_below(self.__name__)]))

    def __dir__(self) -> list[str]:
        # Some of ours import on demand.
        return sorted({*super().__dir__(), *vars(self).get("__all__", ())})


class _AliasFinder(MetaPathFinder, Loader):
    """Finds `mjlab.a.b` where a facade, a module of ours or the table has something for it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_alias(fullname):
            return None
        if not _has_alias(fullname):
            parent = fullname.rpartition(".")[0]
            # With the parent's name, so that `from mjlab.a import b` shows this text: the import
            # system replaces that of an error which names the module it looked for.
            raise ModuleNotFoundError(_missing(fullname, _known_below(parent)), name=parent)
        # Every alias is a package, so that the finder is asked for whatever is imported from it.
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _AliasModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        names = _paths(module.__name__)
        sources = tuple(importlib.import_module(name) for name in names if _has_module(name))
        exported: dict[str, None] = {}
        for source in reversed(sources):
            own = {k: v for k, v in vars(source).items() if not k.startswith("__")}
            vars(module).update({k: v for k, v in own.items() if not _is_submodule(v)})
            exported |= dict.fromkeys(getattr(source, "__all__", ()))
            module.__doc__ = source.__doc__
            module.__file__ = source.__file__
        vars(module)["_sources"] = sources
        _attach()
        if exported:
            added = [
                key.partition(":")[2] for key in NAMES if key.startswith(f"{module.__name__}:")
            ]
            vars(module)["__all__"] = [*exported, *added]


_FINDER = _AliasFinder()
_ABSENT = absent_packages.AbsentFinder()


def _import(module: str) -> ModuleType:
    """Import a module that the table names.

    Raises:
        MissingExtraError: it is of another package, which is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if is_installed(package):
            raise
        raise MissingExtraError(
            f"This needs the Python package '{package}', which is not installed: run "
            f"`pip install {package}`.",
            name=package,
        ) from error


def _attach() -> None:
    """Give classes that were imported meanwhile their members and earlier signatures."""
    members.attach()
    signatures.attach()
    stand_ins.attach()


def _is_alias(name: str) -> bool:
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")


def _paths(name: str) -> tuple[str, ...]:
    """Facade of a module of mjlab, and the modules of ours that take its place."""
    below = name.removeprefix(PACKAGE)
    head, tail = name, ""
    while head not in MODULES and head != PACKAGE:
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    ours = MODULES.get(head, "manyworlds")
    if isinstance(ours, str):
        ours = (ours,)
    return (_FACADES + below, *(place + tail for place in ours))


def _has_alias(name: str) -> bool:
    return any(map(_has_module, _paths(name))) or any(_names_below(name))


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a parent is missing or not a package
        return False


def _is_submodule(value: object) -> bool:
    """Return True if a value is a module of ours, which an alias shows as its own alias."""
    return isinstance(value, ModuleType) and value.__name__.startswith("manyworlds.")


def _names_below(path: str) -> Iterator[str]:
    """Yield the names and modules that the table has directly below a module."""
    for key in (*NAMES, *MODULES):
        if key.startswith((f"{path}:", f"{path}.")):
            yield key[len(path) + 1 :].replace(":", ".").partition(".")[0]


def _known_below(parent: str) -> list[str]:
    """Names and modules of an alias."""
    sources = ()
    if parent in sys.modules:
        sources = sys.modules[parent]._sources
    modules = [
        module.name
        for source in sources
        for module in pkgutil.iter_modules(getattr(source, "__path__", ()))
    ]
    return [*dir(sys.modules.get(parent)), *modules, *_names_below(parent)]


def _missing(path: str, known: Sequence[str]) -> str:
    text = remedy(path)
    if text:
        return f"manyworlds has no {path}: {text}."
    names = [name for name in known if not name.startswith("_")]
    return f"manyworlds has no {path}.{near_matches(path.rpartition('.')[2], names)}"
