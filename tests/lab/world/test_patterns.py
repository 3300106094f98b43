"""Regular expressions that programs send."""

from __future__ import annotations

import re
import sys

import pytest

from manyworlds.lab.world import patterns
from manyworlds.lab.world.patterns import match_names

NAMES = ["go/hip", "go/knee", "box", ""]


@pytest.fixture(params=["re2", "re"])
def engine(request, monkeypatch):
    """RE2, and Python's own expressions where it is not installed."""
    if request.param == "re":
        monkeypatch.setitem(sys.modules, "re2", None)
    else:
        pytest.importorskip("re2", reason="needs google-re2, of the extra 'net'")
    patterns._engine.cache_clear()
    yield request.param
    patterns._engine.cache_clear()


@pytest.mark.parametrize(
    "pattern", ["go/.*", "box|go/knee", ".*", "hip", r"go/\w+", "(go/)?hip", ""]
)
def test_names_are_matched_as_a_whole(engine, pattern):
    """Match by both engines as Python does."""
    expected = [i for i, name in enumerate(NAMES) if re.fullmatch(pattern, name)]
    assert match_names(pattern, NAMES) == expected


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a" * 1001])
def test_what_is_no_expression_is_refused(engine, pattern):
    """Give expressions that are wrong or too long."""
    with pytest.raises(ValueError, match="regular expression"):
        match_names(pattern, NAMES)


def test_no_expression_takes_long():
    """Match what takes Python centuries: an expression that backtracks, against a long name."""
    pytest.importorskip("re2", reason="needs google-re2, of the extra 'net'")
    patterns._engine.cache_clear()
    assert match_names("(a+)+b", ["a" * 500]) == []
    assert match_names("(a|a)*", ["a" * 500]) == [0]
