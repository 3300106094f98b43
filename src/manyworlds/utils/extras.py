"""Optional packages: import them where they are used, and say how to install them."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtraError(ImportError):
    """An optional package is not installed."""


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional package.

    Args:
        module: the module to import.
        extra: the extra of this package that installs it.

    Raises:
        MissingExtraError: the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"This needs the package '{module}': install it with pip install 'manyworlds[{extra}]'."
        ) from error
