"""Labels of learning curves."""

from manyworlds.rl.curves import _labels


def test_labels_of_edits_that_are_close_share_a_place():
    """Number lines by themselves, or together where their numbers would overlap."""
    assert _labels([], 0.0) == []
    assert _labels([(1, 5.0)], 1.0) == [(5.0, "1")]
    numbered = [(1, 2.0), (2, 4.0), (3, 4.0), (4, 4.5), (6, 5.1)]
    assert _labels(numbered, 1.0) == [(2.0, "1"), (4.5, "2-4"), (5.1, "6")]
