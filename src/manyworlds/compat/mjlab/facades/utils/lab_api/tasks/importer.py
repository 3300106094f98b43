"""Import of all packages below a package, which registers the tasks that they contain."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection

__all__ = ["import_packages"]


def import_packages(package_name: str, blacklist_pkgs: Collection[str] | None = None) -> None:
    """Import a package and, recursively, its subpackages; plain modules are not imported.

    Args:
        package_name: full name of the package, such as `__name__` in its `__init__.py`.
        blacklist_pkgs: parts of names, such as ".mdp"; a subpackage whose full name contains one
            of them is skipped with all that is below it. None skips nothing.

    Raises:
        ImportError: a package cannot be imported.
        ValueError: the name is that of a plain module.
    """
    package = importlib.import_module(package_name)
    if not hasattr(package, "__path__"):
        raise ValueError(
            f"'{package_name}' is a module, not a package, and has nothing below it: pass the "
            "package's __name__ from its __init__.py."
        )
    skipped = tuple(blacklist_pkgs or ())
    for info in pkgutil.iter_modules(package.__path__, f"{package_name}."):
        if info.ispkg and not any(part in info.name for part in skipped):
            import_packages(info.name, skipped)
