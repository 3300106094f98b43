"""Optional dependencies, with a clear error for those that are not installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from types import ModuleType

DISTRIBUTION = "manyworlds-rl"
"""Name for pip. On PyPI, `manyworlds` is another project, with an import package of this name.

It stands here because that project's `__init__.py` may have taken the place of ours."""


class MissingExtraError(ImportError):
    """A feature needs an optional dependency that is not installed."""


def require_extra(module: str, extra: str) -> ModuleType:
    """Import a module that an extra of manyworlds provides.

    Args:
        module: the module to import, such as `rsl_rl`.
        extra: the extra that installs it, such as `train`.

    Returns:
        The imported module.

    Raises:
        MissingExtraError: the module, or one that it needs, is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"This needs the Python package '{error.name or module}', which is not installed: "
            f"run {install_hint(extra)}.",
            name=error.name,
        ) from error


def check_extra(module: str, extra: str) -> None:
    """Raise the error of `require_extra` if a module is not installed, without importing it."""
    if not is_installed(module):
        require_extra(module, extra)


def is_installed(module: str) -> bool:
    """Return True if a module can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # it is hidden from imports
        return False


def install_command(extra: str) -> str:
    """Return the command that installs an extra of manyworlds."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def install_hint(extra: str) -> str:
    """Return words for an error: the command that installs an extra, and that for a clone."""
    return f"`{install_command(extra)}`, or `pip install -e '.[{extra}]'` in a clone"


def own_version() -> str:
    """Return the installed version of this package; `0+unknown` for sources not installed.

    It is right even where PyPI's `manyworlds` has replaced or removed our `__init__.py`.
    """
    return installed_version(DISTRIBUTION) or "0+unknown"


def installed_version(package: str) -> str:
    """Return the version of a package, or an empty string if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
