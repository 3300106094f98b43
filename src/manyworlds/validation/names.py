"""Selecting names by regular expression: one dialect, full match, everywhere.

A selection must use each pattern and take no name twice. In a table of values the first pattern
that matches a name gives its value.

Parts that were attached with a prefix are called `left/elbow`. A pattern that matches none of the
names matches the ends of names that follow a `/`, so that `elbow` finds `left/elbow`, unless two
names end in the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeVar, overload

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
    patterns = [keys] if isinstance(keys, str) else keys
    ids = list(_select(patterns, list_of_strings, preserve_order))
    return ids, [list_of_strings[i] for i in ids]


def resolve_matching_names_values(
    data: Mapping[str, V], list_of_strings: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str], list[V]]:
    """Select names by patterns, as `resolve_matching_names` does, each with its pattern's value.

    Returns:
        Positions in the list, the names at these positions, and their values.

    Raises:
        TypeError: `data` is not a dictionary.
        ValueError: a pattern matches nothing, or two patterns match the same name.
    """
    if not isinstance(data, Mapping):
        raise TypeError(
            f"Values by pattern must be a dictionary, got {type(data).__name__} {data!r}."
        )
    selected = _select(data, list_of_strings, preserve_order)
    names = [list_of_strings[i] for i in selected]
    return list(selected), names, [data[pattern] for pattern in selected.values()]


def filter_exp(exprs: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that patterns select, as `resolve_matching_names` does, in their order."""
    return tuple(resolve_matching_names(exprs, names)[1])


def _select(patterns: Iterable[str], names: Sequence[str], preserve_order: bool) -> dict[int, str]:
    """Return the pattern by position of each selected name."""
    selected: dict[int, str] = {}
    for pattern in patterns:
        hits = match_ids(pattern, names)
        if not hits:
            raise ValueError(
                "Not all regular expressions are matched: "
                f"'{pattern}' matches none of {list(names)}." + near_matches(pattern, names)
            )
        for i in hits:
            if i in selected:
                raise ValueError(
                    f"'{names[i]}' is matched by both '{selected[i]}' and "
                    f"'{pattern}': make the patterns exclude each other."
                )
            selected[i] = pattern
    return selected if preserve_order else dict(sorted(selected.items()))


@overload
def resolve_expr(
    pattern_map: Mapping[str, V], names: Sequence[str], default_val: V
) -> tuple[V, ...]: ...


@overload
def resolve_expr(
    pattern_map: Mapping[str, V], names: Sequence[str], default_val: V | None = None
) -> tuple[V | None, ...]: ...


def resolve_expr(
    pattern_map: Mapping[str, V], names: Sequence[str], default_val: V | None = None
) -> tuple[V | None, ...]:
    """Look up one value a name in a table of patterns; the first pattern that matches wins.

    Args:
        pattern_map: values by regular expression, which must match the whole name.
        names: the names to find values for.
        default_val: the value of names that no pattern matches.

    Raises:
        ValueError: a pattern other than '.*' matches none of the names, or an ambiguous one.
    """
    found: dict[int, V] = {}
    for pattern, value in pattern_map.items():
        hits = match_ids(pattern, names)
        if not hits and pattern != ".*":
            raise ValueError(
                f"Pattern '{pattern}' matches none of {list(names)}." + near_matches(pattern, names)
            )
        for i in hits:
            found.setdefault(i, value)
    return tuple(found.get(i, default_val) for i in range(len(names)))


def resolve_field(
    field: V | Mapping[str, V], names: Sequence[str], default_val: V | None = None
) -> tuple[V | None, ...]:
    """Give each name a value: from a table of patterns, see `resolve_expr`, or one for all."""
    if isinstance(field, Mapping):
        return resolve_expr(field, names, default_val)
    return (field,) * len(names)


def match_ids(pattern: str, names: Sequence[str]) -> list[int]:
    """Return the positions of the names that a regular expression matches.

    Those are names that it matches as a whole; if there are none, those of which it matches an end
    that follows a `/`, which must be the end of no other name.

    Raises:
        ValueError: it is not a regular expression, or an end that it matches is ambiguous.
    """
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as error:
        raise ValueError(f"'{pattern}' is not a regular expression: {error}.") from None
    if whole := [i for i, name in enumerate(names) if matches(name)]:
        return whole
    by_end: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        while "/" in name:
            name = name.partition("/")[2]
            if matches(name):
                by_end.setdefault(name, []).append(i)
    for end, ids in by_end.items():
        if len(ids) > 1:
            raise ValueError(
                f"'{pattern}' is ambiguous: '{end}' is the end of {[names[i] for i in ids]}. Write "
                f"the name that is meant, or '.*/{end}' for all."
            )
    return sorted({i for ids in by_end.values() for i in ids})


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
