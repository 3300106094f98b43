"""Edits of a world on its timeline: where it continues from before them, they are taken back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manyworlds.lab.moments.history import EditLists, EditStep

if TYPE_CHECKING:
    from manyworlds.lab.edits.model_edits import Originals
    from manyworlds.lab.lab import LiveLab


@dataclass(frozen=True)
class TimedStep:
    """Edit that was made, undone or redone, with the compiled values of edited fields around it."""

    step: EditStep
    before: Originals
    after: Originals


TimedSteps = Iterable[tuple[int, TimedStep]]
"""Such edits with the first frame after each, in their order."""


class TimedEdits:
    """Keeps the edits of a lab on its timeline, and reverts and repeats them.

    Only the spec and the lists of edits are changed: the timeline itself has the model's values, to
    the bit. An edit while a moment of the past is shown first continues from there.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab = lab
        self._originals = lab.edits.originals
        self.lock = lab.history.lock
        """Held while edits and the timeline change."""
        lab.history.on_step = self._keep
        lab.history.before_edit = self._begin

    def take_back(self, steps: TimedSteps) -> None:
        """Revert edits, the last one first."""
        with self._lab.edits.of_spec_only():
            for _, timed in reversed(list(steps)):
                timed.step.back()
                self._set(timed.step.before, timed.before)

    def make_again(self, steps: TimedSteps) -> None:
        """Repeat edits that `take_back` reverted."""
        with self._lab.edits.of_spec_only():
            for _, timed in steps:
                timed.step.forth()
                self._set(timed.step.after, timed.after)

    def _set(self, lists: EditLists, originals: Originals) -> None:
        self._lab.history.lists = lists
        self._lab.edits.originals = self._originals = originals

    def _begin(self) -> None:
        if self._lab.timeline.is_active:
            self._lab.timeline.branch(play=False)

    def _keep(self, step: EditStep) -> None:
        before, self._originals = self._originals, self._lab.edits.originals
        self._lab.timeline.keep_edit(TimedStep(step, before, self._originals))
