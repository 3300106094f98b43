"""An alias that lets projects which import `mjlab` run on manyworlds, unmodified.

`python -m manyworlds.compat.mjlab SCRIPT [ARGUMENTS]` and `... -m MODULE [ARGUMENTS]` run a program
with the import name `mjlab` aliased to `manyworlds`; `install()` does the same inside a program.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import runpy
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from manyworlds.compat.mjlab_names import RENAMED, our_task_id, remedy
from manyworlds.tasks import registry
from manyworlds.utils.string import near_matches

_PLUGIN_GROUP = "mjlab.tasks"
_USAGE = "usage: python -m manyworlds.compat.mjlab {SCRIPT | -m MODULE} [ARGUMENTS]"


def install() -> None:
    """Alias `mjlab` and all its modules to this package; calling it again does nothing.

    `mjlab.a.b` is the same module object as `manyworlds.a.b`. Tasks that installed packages name in
    the entry-point group `mjlab.tasks` are found, too, and ours by the ids that they have there.

    Raises:
        ImportError: the real mjlab is imported already.
    """
    if _FINDER in sys.meta_path:
        return
    if (real := sys.modules.get("mjlab")) is not None:
        raise ImportError(
            f"mjlab is already imported from {getattr(real, '__file__', None)!r}: call "
            "manyworlds.compat.mjlab.install() before anything imports mjlab, or run the program "
            "by `python -m manyworlds.compat.mjlab`."
        )
    sys.meta_path.insert(0, _FINDER)
    registry.PLUGIN_GROUPS.setdefault(_PLUGIN_GROUP, False)
    registry.TRANSLATIONS[_PLUGIN_GROUP] = our_task_id


def uninstall() -> None:
    """Undo `install`."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    registry.PLUGIN_GROUPS.pop(_PLUGIN_GROUP, None)
    registry.TRANSLATIONS.pop(_PLUGIN_GROUP, None)
    for name in [name for name in sys.modules if _is_alias(name)]:
        module = sys.modules.pop(name)
        module.__class__ = ModuleType
        parent, _, child = _our_name(name).rpartition(".")
        if _is_alias(module.__name__) and parent in sys.modules:  # a module of the table alone
            delattr(sys.modules[parent], child)


class _Module(ModuleType):
    """Module with the additional names of the other framework."""

    def __getattr__(self, name: str) -> Any:
        path = _their_name(self.__name__)
        if name.startswith("__"):
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        if (ours := RENAMED.get(f"{path}:{name}")) is not None:
            return _resolve(ours)
        if any(_names_below(f"{path}.{name}")):  # a module of which there is only the table
            return importlib.import_module(f"{path}.{name}")
        known = [*dir(self), *self.__dict__.get("__all__", ()), *_names_below(path)]
        text = _missing(f"{path}.{name}", known)
        if not _has_module(f"{self.__name__}.{name}"):
            # `from x import y` replaces the text of an AttributeError by its own.
            warnings.warn(text, stacklevel=2)
        raise AttributeError(text)


class _Finder(MetaPathFinder, Loader):
    """Finder of `mjlab.a.b` at `manyworlds.a.b`, or in the table of names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_alias(fullname):
            return None
        if not (_has_module(_our_name(fullname)) or any(_names_below(fullname))):
            parent = fullname.rpartition(".")[0]
            beside = [module.name for module in pkgutil.iter_modules(path)]
            text = _missing(fullname, [*beside, *_names_below(parent)])
            raise ModuleNotFoundError(text, name=fullname)
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        ours = _our_name(spec.name)
        if _has_module(ours):
            module = importlib.import_module(ours)
        else:
            module = ModuleType(spec.name)
            module.__path__ = []
        # The import system is about to overwrite it with the alias's.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state or module.__spec__
        module.__class__ = _Module


_FINDER = _Finder()


def _is_alias(name: str) -> bool:
    return name == "mjlab" or name.startswith("mjlab.")


def _our_name(name: str) -> str:
    return "manyworlds" + name.removeprefix("mjlab")


def _their_name(name: str) -> str:
    return "mjlab" + name.removeprefix("manyworlds").removeprefix("mjlab")


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a parent is missing or not a package
        return False


def _names_below(path: str) -> Iterator[str]:
    """Yield the names and modules that the table has directly below a module."""
    for key in RENAMED:
        if key.startswith((f"{path}:", f"{path}.")):
            yield key[len(path) + 1 :].replace(":", ".").partition(".")[0]


def _resolve(ours: Any) -> Any:
    if not isinstance(ours, str):
        return ours
    module, _, name = ours.partition(":")
    return getattr(importlib.import_module(module), name)


def _missing(path: str, known: Sequence[str]) -> str:
    if text := remedy(path):
        return f"manyworlds has no {path}: {text}."
    names = [name for name in known if not name.startswith("_")]
    return f"manyworlds has no {path}.{near_matches(path.rpartition('.')[2], names)}"


def main() -> None:
    """Run the program that the command line names, with the alias installed."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return
    if arguments in ([], ["-m"]):
        print(_USAGE, file=sys.stderr)
        raise SystemExit(2)
    install()
    if arguments[0] != "-m":
        sys.argv = arguments
        if not sys.flags.safe_path:
            sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
        return
    name = arguments[1]
    sys.argv = arguments[1:]
    if _is_alias(name):
        importlib.import_module(name).main()
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    # Under its own name, so that a program that calls `install` finds the same module.
    importlib.import_module("manyworlds.compat.mjlab").main()
