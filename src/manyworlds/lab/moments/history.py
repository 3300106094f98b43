"""Undo and redo of edits of a world."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace

LIMIT = 200
_TOGETHER_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Edit that was made, and can be undone and redone."""

    label: str
    """Name of the edit for people, as 'move cup'."""
    undo: Callable[[], object]
    """Restores what was there before."""
    redo: Callable[[], object]
    """Makes the edit again."""
    key: Hashable = None
    """Edits of the same key that follow each other within a second, as those of a gizmo that is
    dragged, are undone together; None keeps an edit alone."""
    time: float = 0.0
    """Time of the last of them [s]."""


EditLists = tuple[tuple[Edit, ...], tuple[Edit, ...]]
"""Edits that are done, and those that were undone, of a moment."""


@dataclass(frozen=True)
class EditStep:
    """Edit that was made, undone or redone."""

    back: Callable[[], object]
    """Reverts it."""
    forth: Callable[[], object]
    """Repeats it."""
    before: EditLists
    after: EditLists


class EditHistory:
    """Edits of a world in their order.

    Args:
        limit: number of edits that can be undone; the oldest ones are forgotten.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.lock = threading.RLock()
        """Held while an edit is made, undone or redone, so that edits follow one another."""
        self.before_edit: Callable[[], None] = lambda: None
        """Called before each edit, undo and redo, by the thread that asks for it."""
        self.on_step: Callable[[EditStep], None] = lambda step: None
        """Called after each edit, undo and redo."""
        self._limit = limit
        self._done: list[Edit] = []
        self._undone: list[Edit] = []

    @contextlib.contextmanager
    def edit(self) -> Iterator[None]:
        """Hold the lock for an edit, after what must come before one."""
        with self.lock:
            self.before_edit()
            yield

    @property
    def lists(self) -> EditLists:
        """All edits; set to return to those of another moment."""
        with self.lock:
            return tuple(self._done), tuple(self._undone)

    @lists.setter
    def lists(self, lists: EditLists) -> None:
        with self.lock:
            self._done, self._undone = map(list, lists)

    def record(self, edit: Edit) -> None:
        """Add an edit that was just made; what was undone before can no longer be redone."""
        with self.lock:
            before = self.lists
            kept = replace(edit, time=time.monotonic())
            if self._done and not self._undone and edit.key is not None:
                last = self._done[-1]
                if last.key == edit.key and kept.time - last.time <= _TOGETHER_S:
                    kept = replace(kept, undo=last.undo)
                    self._done.pop()
            self._done.append(kept)
            del self._done[: -self._limit]
            self._undone.clear()
            self.on_step(EditStep(edit.undo, edit.redo, before, self.lists))

    def undo(self) -> str:
        """Undo the last edit, and return its label.

        Raises:
            RuntimeError: there is nothing to undo.
        """
        with self.edit():
            if not self._done:
                raise RuntimeError("There is nothing to undo.")
            before = self.lists
            edit = self._done[-1]
            edit.undo()  # if it fails, the edit stays
            self._undone.append(self._done.pop())
            self.on_step(EditStep(edit.redo, edit.undo, before, self.lists))
            return edit.label

    def redo(self) -> str:
        """Redo the edit that was undone last, and return its label.

        Raises:
            RuntimeError: there is nothing to redo.
        """
        with self.edit():
            if not self._undone:
                raise RuntimeError("There is nothing to redo.")
            before = self.lists
            edit = self._undone[-1]
            edit.redo()
            self._done.append(self._undone.pop())
            self.on_step(EditStep(edit.undo, edit.redo, before, self.lists))
            return edit.label

    def clear(self) -> None:
        """Forget all edits: the world was replaced by another one."""
        with self.lock:
            self._done.clear()
            self._undone.clear()

    @property
    def done(self) -> tuple[str, ...]:
        """Labels of the edits that can be undone, the oldest first."""
        with self.lock:
            return tuple(edit.label for edit in self._done)

    @property
    def undone(self) -> tuple[str, ...]:
        """Labels of the edits that can be redone, the next one last."""
        with self.lock:
            return tuple(edit.label for edit in self._undone)
