"""Regular expressions that programs send, for names of a world's elements."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Sequence
from typing import Any

_MAX_LENGTH = 1000
_MAX_MEMORY = 2**22  # of one compiled expression [bytes]


def match_names(pattern: str, names: Sequence[str]) -> list[int]:
    """Return the indices of the names that a regular expression matches as a whole.

    RE2, of the extra 'net', matches in time that is linear in the name, so that no expression holds
    up the world; it supports neither look-around nor backreferences. Without that extra, no program
    is served, and Python's `re` is used.

    Raises:
        ValueError: it is no regular expression, or too long.
    """
    if len(pattern) > _MAX_LENGTH:
        raise ValueError(
            f"'{pattern[:40]}...' has {len(pattern)} characters, and a regular expression may have "
            f"{_MAX_LENGTH}."
        )
    compile, error_type = _engine()
    try:
        matches = compile(pattern).fullmatch
    except error_type as error:
        raise ValueError(f"'{pattern}' is no regular expression: {error}.") from error
    return [i for i, name in enumerate(names) if matches(name)]


@functools.cache
def _engine() -> tuple[Any, type[Exception]]:
    """Return the function that compiles an expression, and the type of its errors."""
    try:
        re2: Any = importlib.import_module("re2")
    except ImportError:
        return re.compile, re.error
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    return functools.partial(re2.compile, options=options), re2.error
