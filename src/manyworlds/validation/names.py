"""Selection of names by regular expressions that must match the whole name.

In a selection, every pattern must match a name, and no name may match twice. In a table of values
by pattern, the first pattern that matches a name determines its value; `Rules` may let patterns in
tables match beginnings of names, and only warn of those that match none.

Elements that were attached with a prefix have names such as `left/elbow`. A pattern that matches
no whole name is matched against the part that follows a `/`, so that `elbow` finds `left/elbow`,
unless several names end in the same way.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeVar, overload

from manyworlds.validation.rules import RULES, refuse

V = TypeVar("V")
_LETTERS = 3  # letters of a name for one that may be wrong
_MISTAKES = 3  # most letters that may be wrong


def resolve_matching_names(
    keys: str | Sequence[str], list_of_strings: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str]]:
    """Select names by patterns that must match the whole name.

    Args:
        keys: one or several regular expressions.
        list_of_strings: the names to select from.
        preserve_order: order the result by pattern instead of by position in the list.

    Returns:
        Indices into the list, and the names at these indices.

    Raises:
        ValueError: a pattern matches nothing, or two patterns match the same name.
    """
    if isinstance(keys, str):
        keys = [keys]
    ids = list(_select(keys, list_of_strings, preserve_order))
    return ids, [list_of_strings[i] for i in ids]


def resolve_matching_names_values(
    data: Mapping[str, V], list_of_strings: Sequence[str], preserve_order: bool = False
) -> tuple[list[int], list[str], list[V]]:
    """Select names by patterns, as `resolve_matching_names` does, each with its pattern's value.

    Returns:
        Indices into the list, the names at these indices, and their values.

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
    """Return the names that match any of some patterns, in their order; see `filter_ids`."""
    return tuple(names[i] for i in filter_ids(exprs, names))


def filter_ids(exprs: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the indices of the names that match any of some patterns.

    Raises:
        ValueError: a pattern matches none of the names, or is ambiguous.
    """
    found: set[int] = set()
    for pattern in exprs:
        hits = _match_in_table(pattern, names)
        if not hits:
            refuse(_no_match(pattern, names))
        found.update(hits)
    return sorted(found)


def _select(patterns: Iterable[str], names: Sequence[str], preserve_order: bool) -> dict[int, str]:
    """Return the pattern of each selected name, by the name's index."""
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
    if preserve_order:
        return selected
    return dict(sorted(selected.items()))


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
    """Look up the value of each name in a table of patterns; the first match wins.

    Args:
        pattern_map: values by regular expression.
        names: the names to look up.
        default_val: value of names without a matching pattern.

    Raises:
        ValueError: a pattern other than '.*' matches none of the names, or is ambiguous.
    """
    found: dict[int, V] = {}
    for pattern, value in pattern_map.items():
        hits = _match_in_table(pattern, names)
        if not hits and pattern != ".*":
            refuse(_no_match(pattern, names))
        for i in hits:
            found.setdefault(i, value)
    return tuple(found.get(i, default_val) for i in range(len(names)))


def resolve_field(
    field: V | Mapping[str, V], names: Sequence[str], default_val: V | None = None
) -> tuple[V | None, ...]:
    """Return one value per name: from a table of patterns, see `resolve_expr`, or one for all."""
    if isinstance(field, Mapping):
        return resolve_expr(field, names, default_val)
    return (field,) * len(names)


def _match_in_table(pattern: str, names: Sequence[str]) -> list[int]:
    """Return the indices of the names that a pattern of a table matches, as the rules say."""
    if RULES[-1].tables_match_prefixes:
        matches = re.compile(pattern).match
        found = [i for i, name in enumerate(names) if matches(name)]
        if found:
            return found
    return match_ids(pattern, names)


def _no_match(pattern: str, names: Sequence[str]) -> str:
    return f"Pattern '{pattern}' matches none of {list(names)}." + near_matches(pattern, names)


def match_ids(pattern: str, names: Sequence[str]) -> list[int]:
    """Return the indices of the names that a regular expression matches.

    These are the names that it matches as a whole. If there are none, they are the names whose part
    after a `/` it matches; that part must be the end of no other name.

    Raises:
        ValueError: it is not a regular expression, or it matches an ambiguous name.
    """
    whole = match_whole(pattern, names)
    if whole:
        return whole
    matches = re.compile(pattern).fullmatch
    by_end: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        while "/" in name:
            name = name.partition("/")[2]
            if matches(name):
                by_end.setdefault(name, []).append(i)
    for end, ids in by_end.items():
        if len(ids) > 1:
            raise ValueError(
                f"'{pattern}' is ambiguous: '{end}' is the end of {[names[i] for i in ids]}. Give "
                f"the whole name, or '.*/{end}' for all."
            )
    return sorted({i for ids in by_end.values() for i in ids})


def match_whole(pattern: str, names: Sequence[str]) -> list[int]:
    """Return the indices of the names that a regular expression matches as a whole.

    Raises:
        ValueError: it is not a regular expression.
    """
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as error:
        raise ValueError(f"'{pattern}' is not a regular expression: {error}.") from None
    return [i for i, name in enumerate(names) if matches(name)]


def near_matches(name: str, names: Iterable[str]) -> str:
    """Return ' Did you mean ...?' for a misspelled name, or an empty string."""
    close = near_names(name, names)
    if not close:
        return ""
    return f" Did you mean {', '.join(map(repr, close))}?"


def near_names(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that a wrong one may stand for, the most similar first.

    Such a name differs by one letter of three, and by three at most, or it has all words of the
    wrong one, or their beginnings, in their order. Upper and lower case, and hyphens and
    underscores, are alike.

    Args:
        name: the wrong name.
        names: those that exist.
        most: largest number of names.
    """
    wrong = _plain(name)
    likeness = difflib.SequenceMatcher(b=wrong)
    found: list[tuple[float, str]] = []
    for known in {*names} - {name}:
        right = _plain(known)
        if _has_words(right, wrong) or _differs_little(wrong, right):
            likeness.set_seq1(right)
            found.append((-likeness.ratio(), known))
    return [known for _, known in sorted(found)[:most]]


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _has_words(right: str, wrong: str) -> bool:
    """Return True if words of a name begin with those of another one, in their order."""
    words = iter(re.split(r"[\W_]+", right))
    return len(wrong) > 1 and all(
        any(word.startswith(part) for word in words) for part in re.split(r"[\W_]+", wrong)
    )


def _differs_little(wrong: str, right: str) -> bool:
    allowed = min(len(wrong) // _LETTERS, _MISTAKES)
    return abs(len(wrong) - len(right)) <= allowed and _num_mistakes(wrong, right) <= allowed


def _num_mistakes(wrong: str, right: str) -> int:
    """Return how many letters to insert, leave out, replace, or swap with the next one."""
    before = []
    last = []
    row = list(range(len(right) + 1))
    for i, letter in enumerate(wrong, 1):
        before = last
        last = row
        row = [i]
        for j, other in enumerate(right, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == right[j - 2] and wrong[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
    return row[-1]


def free_name(name: str, taken: Container[str]) -> str:
    """Return the first of `name`, `name_1`, `name_2`, ... that is not taken."""
    candidate = name
    i = 1
    while candidate in taken:
        candidate = f"{name}_{i}"
        i = i + 1
    return candidate
