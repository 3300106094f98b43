"""Verbs that undo and repeat edits of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.lab.verbs.fields import Field
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_LABEL = Field(text="name of the edit")


@verb(label=_LABEL)
def undo(lab: LiveLab) -> Reply:
    """Undo the last edit of the world."""
    return {"label": lab.history.undo()}


@verb(label=_LABEL)
def redo(lab: LiveLab) -> Reply:
    """Redo the edit that was undone last."""
    return {"label": lab.history.redo()}
