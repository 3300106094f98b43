"""Optional dependencies."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtraError(ImportError):
    """A feature needs a package that is not installed."""


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional package.

    Args:
        module: name of the module to import.
        extra: the extra of this package that installs it.

    Raises:
        MissingExtraError: the package is missing; the message names the install command.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or module.split(".")[0] != error.name.split(".")[0]:
            raise
        raise MissingExtraError(
            f"This needs the package '{error.name}': "
            f"install it with pip install 'manyworlds[{extra}]'."
        ) from None
