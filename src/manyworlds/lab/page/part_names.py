"""Parts of a page by name, so that a program of its own can import them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence

from manyworlds.lab.page.in_process_page import PartMaker


def name_parts(tabs: Mapping[str, Sequence[PartMaker | str]]) -> dict[str, list[str]]:
    """Return the names `module:Class` of the parts of each tab.

    Raises:
        ValueError: another process cannot import a part.
    """
    return {title: [_name(part, title) for part in parts] for title, parts in tabs.items()}


def find_parts(names: Iterable[str]) -> tuple[PartMaker, ...]:
    """Import parts by their names.

    Raises:
        ValueError: there is no such module, or no such class in it.
    """
    return tuple(_find(name) for name in names)


def _name(part: PartMaker | str, title: str) -> str:
    if isinstance(part, str):
        return part
    module, name = getattr(part, "__module__", ""), getattr(part, "__qualname__", repr(part))
    if module == "__main__" or not module or not name.replace(".", "_").isidentifier():
        why = (
            "it is in the program itself" if module == "__main__" else "it has no name in a module"
        )
        raise ValueError(
            f"The page runs in a process of its own, which cannot import the part '{name}' of the "
            f"tab '{title}': {why}. Put the class into a module that can be imported, or use "
            "InProcessPage."
        )
    return f"{module}:{name}"


def _find(name: str) -> PartMaker:
    module, _, path = name.partition(":")
    try:
        found = importlib.import_module(module)
        for each in path.split("."):
            found = getattr(found, each)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"The page cannot import its part '{name}': {error}. Name it as 'module:Class'."
        ) from error
    return found  # type: ignore[return-value]  # a class
