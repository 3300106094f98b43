"""One regex dialect: full match, every pattern matches, no name twice."""

import pytest

from manyworlds.utils.string import resolve_expr, resolve_matching_names

NAMES = ("left_hip", "left_knee", "right_hip", "right_knee")


def test_selects_by_full_match_in_list_order():
    """Select whole names, ordered by position unless the patterns' order is asked for."""
    assert resolve_matching_names(".*_knee", NAMES) == ([1, 3], ["left_knee", "right_knee"])
    keys = ("right_.*", "left_hip")
    assert resolve_matching_names(keys, NAMES)[0] == [0, 2, 3]
    assert resolve_matching_names(keys, NAMES, preserve_order=True)[0] == [2, 3, 0]


def test_a_prefix_is_not_a_match():
    """Refuse a pattern that matches only the beginning of names, and name near matches."""
    with pytest.raises(ValueError, match=r"Not all regular expressions are matched.*left_kne'"):
        resolve_matching_names("left_kne", NAMES)
    with pytest.raises(ValueError, match="Did you mean 'left_knee'"):
        resolve_matching_names("left_kne", NAMES)


def test_a_name_matched_twice_is_an_error():
    """Refuse patterns that overlap."""
    with pytest.raises(ValueError, match=r"'left_hip' is matched by both 'left_.*' and '.*_hip'"):
        resolve_matching_names(("left_.*", ".*_hip"), NAMES)


def test_an_invalid_pattern_is_named():
    """Say which pattern is not a regular expression."""
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression"):
        resolve_matching_names("(", NAMES)


def test_a_table_of_values_takes_the_first_pattern_that_matches():
    """Look up values by the first matching pattern, else the default."""
    table = {"left_hip": 1.0, ".*_hip": 2.0}
    assert resolve_expr(table, NAMES, 0.0) == (1.0, 0.0, 2.0, 0.0)
    assert resolve_expr({".*": 3.0}, (), 0.0) == ()
    with pytest.raises(ValueError, match="Pattern 'elbow' matches none of"):
        resolve_expr({"elbow": 1.0}, NAMES)
