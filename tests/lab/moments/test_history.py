"""Undo and redo of edits."""

from __future__ import annotations

import pytest

from manyworlds.lab.moments.history import Edit, EditHistory


class Value:
    """A number, and a history of its changes."""

    def __init__(self, limit: int = 100) -> None:
        self.now, self.history = 0, EditHistory(limit)

    def set(self, new: int, key: str | None = None) -> None:
        """Set the number."""
        old, self.now = self.now, new
        put = self._put
        edit = Edit(label=f"set {new}", undo=lambda: put(old), redo=lambda: put(new), key=key)
        self.history.record(edit)

    def _put(self, value: int) -> None:
        self.now = value


def test_edits_are_undone_and_made_again_in_their_order():
    """Undo two of three edits, redo one, and edit: what was undone cannot come back."""
    value = Value()
    for number in (1, 2, 3):
        value.set(number)
    assert (value.history.undo(), value.history.undo(), value.now) == ("set 3", "set 2", 1)
    assert (value.history.redo(), value.now) == ("set 2", 2)
    assert value.history.done == ("set 1", "set 2") and value.history.undone == ("set 3",)
    value.set(9)
    assert not value.history.undone
    with pytest.raises(RuntimeError, match="nothing to redo"):
        value.history.redo()


def test_a_drag_is_undone_at_once():
    """Edits of one key that follow each other are one edit, but not if another one is between."""
    value = Value()
    for number in (1, 2, 3):
        value.set(number, "cup")
    value.set(4, "table")
    value.set(5, "cup")
    assert value.history.done == ("set 3", "set 4", "set 5")
    value.history.undo()
    value.history.undo()
    assert value.now == 3
    value.history.undo()
    assert value.now == 0
    value.history.redo()
    assert value.now == 3


def test_an_edit_that_cannot_be_undone_stays():
    """Fail to undo: the edit can be tried again."""
    history = EditHistory()

    def fail() -> None:
        raise ValueError("the world does not compile")

    history.record(Edit(label="remove", undo=fail, redo=fail))
    for _ in range(2):
        with pytest.raises(ValueError, match="does not compile"):
            history.undo()
    assert history.done == ("remove",)


def test_the_oldest_edits_are_forgotten():
    """Make more edits than the limit, then clear."""
    value = Value(limit=2)
    for number in (1, 2, 3):
        value.set(number)
    assert value.history.done == ("set 2", "set 3")
    value.history.clear()
    with pytest.raises(RuntimeError, match="nothing to undo"):
        value.history.undo()
