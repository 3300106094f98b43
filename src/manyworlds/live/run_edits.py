"""Edits of a training: applied between iterations, and recorded in the run folder."""

from __future__ import annotations

import collections
import datetime
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.live.edits import EnvironmentEdit, edit_from_plain, edit_log
from manyworlds.rl import distributed
from manyworlds.rl.progress import EditRecord, write_edits

if TYPE_CHECKING:
    from manyworlds.rl.runner import OnPolicyRunner


class SentEdit:
    """Edit on its way to a training, which applies or refuses it after its present iteration.

    Args:
        edit: the edit.
    """

    def __init__(self, edit: EnvironmentEdit) -> None:
        self.edit = edit
        self.record: EditRecord | None = None
        """Record of the applied edit; None before, or if it was refused."""
        self.refusal = ""
        """Reason why it was refused; empty if it was not."""
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """True if the edit was applied or refused."""
        return self._done.is_set()

    def wait(self, timeout_s: float | None = None) -> EditRecord:
        """Wait until the edit is applied, and return its record.

        Raises:
            TimeoutError: the training has not come to the end of an iteration in time.
            ValueError: the edit is refused; the message has the reason.
        """
        if not self._done.wait(timeout_s):
            raise TimeoutError(
                f"The training has not finished its iteration in {timeout_s:g} s: the edit "
                f"'{self.edit.text}' still waits."
            )
        if self.record is None:
            raise ValueError(self.refusal)
        return self.record

    def describe(self) -> dict[str, object]:
        """Return what has become of the edit, as plain data."""
        described: dict[str, object] = {"done": self.done, "record": None, "refusal": self.refusal}
        if self.record is not None:
            described["record"] = asdict(self.record)
        return described

    def finish(self, record: EditRecord | None, refusal: str = "") -> None:
        """Set the result."""
        self.record = record
        self.refusal = refusal
        self._done.set()


class RunEdits:
    """Edits of a training: those that are sent, and recorded ones of a run that is repeated.

    All processes of a distributed training apply the same edits after the same iteration. An edit
    that one of them refuses is undone in all.

    Args:
        runner: the runner, before it loads a checkpoint, whose environment may have edits.
        recorded: edits of the run that is continued or repeated.
        repeat: whether to apply those that were made after more iterations than the runner has
            done, after the same iterations.
    """

    def __init__(
        self, runner: OnPolicyRunner, recorded: Sequence[EditRecord] = (), *, repeat: bool = True
    ) -> None:
        self._runner = runner
        self._log = edit_log(runner.env.unwrapped)
        self._recorded = recorded
        self._repeat = repeat
        self._sent: collections.deque[SentEdit] = collections.deque()
        self._due: list[EditRecord] = []
        self._folder: Path | None = None
        self.records: list[EditRecord] = []
        """Applied edits, in their order."""
        self.on_applied: Callable[[EditRecord], None] | None = None
        """Called after each edit that was applied."""
        runner.between_iterations.append(self._apply_due)

    def open(self, run: Path) -> None:
        """Record the edits in a run folder, and repeat those that are due; in one process only."""
        done = self._runner.current_learning_iteration
        self._folder = run
        self.records = [record for record in self._recorded if record.after <= done]
        if self._repeat:
            self._due = [record for record in self._recorded if record.after > done]
        if self.records:
            write_edits(run, self.records, "w")

    def send(self, edit: EnvironmentEdit | Mapping[str, object]) -> SentEdit:
        """Let the training apply an edit after its present iteration; from any thread.

        Raises:
            ValueError: it is no edit.
        """
        if not isinstance(edit, EnvironmentEdit):
            edit = edit_from_plain(edit)
        sent = SentEdit(edit)
        self._sent.append(sent)
        return sent

    def _apply_due(self, done: int) -> None:
        """Apply the edits that are due, first recorded ones; all processes call this together.

        Args:
            done: iterations done.
        """
        due = [record for record in self._due if record.after <= done]
        self._due = [record for record in self._due if record.after > done]
        repeated = [SentEdit(edit_from_plain(record.edit)) for record in due]
        waiting = list(repeated)
        while self._sent:
            waiting.append(self._sent.popleft())
        plain = [sent.edit.plain() for sent in waiting]
        for i, edit in enumerate(distributed.share(plain)):
            record, refusal = self._apply(edit_from_plain(edit), done)
            if i < len(waiting):  # in the process that has them
                waiting[i].finish(record, refusal)
        for sent in repeated:
            if sent.refusal:
                raise ValueError(
                    f"An edit of the run that is repeated does not fit: {sent.refusal}"
                )

    def _apply(self, edit: EnvironmentEdit, done: int) -> tuple[EditRecord | None, str]:
        """Apply an edit in all processes or in none; return its record, or why it is refused."""
        refusal = ""
        undo = None
        try:
            undo = self._log.apply(edit)
        except ValueError as error:
            refusal = str(error)
        if distributed.any_rank(bool(refusal), self._runner.learner_device):
            if undo is not None:
                undo()
            return None, refusal or f"The edit '{edit.text}' is refused by another process."
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        record = EditRecord(done, now, edit.plain(), edit.text)
        self.records.append(record)
        if self._folder is not None:
            write_edits(self._folder, [record], "a")
        if self.on_applied is not None:
            self.on_applied(record)
        return record, ""
