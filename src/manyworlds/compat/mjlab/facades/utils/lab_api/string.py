"""Names of code and of configuration entries."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Callable

from manyworlds.validation.names import resolve_matching_names, resolve_matching_names_values

__all__ = [
    "callable_to_string",
    "is_lambda_expression",
    "resolve_matching_names",
    "resolve_matching_names_values",
    "string_to_callable",
    "string_to_slice",
    "to_camel_case",
    "to_snake_case",
]


def to_camel_case(snake_str: str, to: str = "cC") -> str:
    """Turn snake_case into camelCase ('cC') or CamelCase ('CC').

    Raises:
        ValueError: there is no such convention.
    """
    if to not in ("cC", "CC"):
        raise ValueError(f"There is no convention '{to}': use 'cC' or 'CC'.")
    first, *rest = snake_str.split("_")
    if to == "CC":
        first = first.capitalize()
    return first + "".join(word.capitalize() for word in rest)


def to_snake_case(camel_str: str) -> str:
    """Turn camelCase into snake_case; a run of capitals is one word."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", camel_str).lower()


def string_to_slice(s: str) -> slice:
    """Read a slice back from its text, 'slice(start, stop, step)' of integers and None.

    Raises:
        ValueError: the text is none.
    """
    number = r"\s*(None|[+-]?\d+)\s*"
    match = re.fullmatch(rf"slice\({number},{number},{number}\)", s.strip())
    if match is None:
        raise ValueError(f"'{s}' is not a slice: write 'slice(start, stop, step)'.")
    return slice(*(None if part == "None" else int(part) for part in match.groups()))


def is_lambda_expression(name: str) -> bool:
    """Return True if a text is the code of a lambda."""
    try:
        return isinstance(ast.parse(name.strip(), mode="eval").body, ast.Lambda)
    except (SyntaxError, ValueError):
        return False


def callable_to_string(value: Callable[..., object]) -> str:
    """Name a function or class so that `string_to_callable` finds it: 'module:name'.

    Raises:
        ValueError: it is not callable, or not to be found by a name.
    """
    name = getattr(value, "__qualname__", "<unnamed>")
    if not callable(value) or "<" in name:
        raise ValueError(
            f"{value!r} cannot be found by its name: give a function or class of a module."
        )
    return f"{value.__module__}:{name}"


def string_to_callable(name: str) -> Callable[..., object]:
    """Find a function or class by its name, 'module:name'; the module is imported.

    Raises:
        AttributeError: the module has nothing of that name.
        ValueError: the text is not such a name, there is no such module, or it names no callable.
    """
    if is_lambda_expression(name) or not re.fullmatch(r"[\w.]+:[\w.]+", name):
        raise ValueError(
            f"'{name}' does not name a function: write 'module:name'; code in a text never runs."
        )
    module, _, path = name.partition(":")
    try:
        found = functools.reduce(getattr, path.split("."), importlib.import_module(module))
    except ImportError as error:
        raise ValueError(f"'{name}' cannot be found: {error}.") from error
    if not callable(found):
        raise ValueError(f"'{name}' is not callable, but {type(found).__name__}.")
    return found
