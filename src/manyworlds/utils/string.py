"""Selecting names by regular expression: one dialect, full match, everywhere."""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeVar

V = TypeVar("V")


def resolve_matching_names(
    keys: str | Sequence[str], list_of_strings: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str]]:
    """Select names by patterns that must match the whole name.

    Args:
        keys: one or more regular expressions.
        list_of_strings: the names to select from.
        preserve_order: order the result by pattern instead of by position in the list.

    Returns:
        Positions in the list, and the names at these positions.

    Raises:
        ValueError: a pattern matches nothing, or two patterns match the same name.
    """
    patterns = [keys] if isinstance(keys, str) else list(keys)
    matched_by: dict[int, str] = {}
    order: list[int] = []
    for pattern in patterns:
        hits = [i for i, name in enumerate(list_of_strings) if _matches(pattern, name)]
        if not hits:
            raise ValueError(
                "Not all regular expressions are matched: "
                f"'{pattern}' matches none of {list(list_of_strings)}."
                + near_matches(pattern, list_of_strings)
            )
        for i in hits:
            if i in matched_by:
                raise ValueError(
                    f"'{list_of_strings[i]}' is matched by both '{matched_by[i]}' and "
                    f"'{pattern}': make the patterns exclude each other."
                )
            matched_by[i] = pattern
        order += hits
    ids = order if preserve_order else sorted(order)
    return ids, [list_of_strings[i] for i in ids]


def resolve_expr(
    pattern_map: Mapping[str, V], names: Sequence[str], default_val: V | None = None
) -> tuple[V | None, ...]:
    """Look up one value a name in a table of patterns; the first pattern that matches wins.

    Args:
        pattern_map: values by regular expression, which must match the whole name.
        names: the names to find values for.
        default_val: the value of names that no pattern matches.

    Raises:
        ValueError: a pattern other than '.*' matches none of the names.
    """
    for pattern in pattern_map:
        if pattern != ".*" and not any(_matches(pattern, name) for name in names):
            raise ValueError(
                f"Pattern '{pattern}' matches none of {list(names)}." + near_matches(pattern, names)
            )
    return tuple(
        next((v for pattern, v in pattern_map.items() if _matches(pattern, name)), default_val)
        for name in names
    )


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error as error:
        raise ValueError(f"'{pattern}' is not a regular expression: {error}.") from None


def near_matches(name: str, names: Iterable[str]) -> str:
    """Return ' Did you mean ...?' for a misspelt name, or an empty string."""
    close = difflib.get_close_matches(name, sorted({*names} - {name}), n=3)
    return f" Did you mean {', '.join(map(repr, close))}?" if close else ""


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: `name`, or `name_1`, `name_2` ..."""
    candidate, i = name, 1
    while candidate in taken:
        candidate, i = f"{name}_{i}", i + 1
    return candidate
