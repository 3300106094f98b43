"""How strictly input is checked, which a front end for another framework's programs may change."""

from __future__ import annotations

import warnings
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """Rules for input that means something else, or nothing, in other frameworks."""

    tables_match_prefixes: bool = False
    """True if patterns in tables of values, and of elements that a config edits, match the
    beginning of a name; False if they must match the whole name."""
    tolerates_doubts: bool = False
    """True to warn of input that has a meaning but is probably a mistake, such as a pattern that
    matches nothing; False to refuse it."""
    keeps_params: bool = False
    """True if `params` of terms of other packages stay as they are written; False if they get the
    selections that are defaults of the term's parameters, resolved."""


RULES: list[Rules] = [Rules()]
"""Rules in force: the last of the list."""


def refuse(message: str) -> None:
    """Refuse input that is probably a mistake, or warn of it where the rules tolerate doubts.

    Raises:
        ValueError: the rules tolerate none.
    """
    if not RULES[-1].tolerates_doubts:
        raise ValueError(message)
    warnings.warn(message, stacklevel=3)
