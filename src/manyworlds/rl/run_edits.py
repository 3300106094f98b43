"""Edits of a training: applied between iterations, and recorded in the run folder."""

from __future__ import annotations

import collections
import datetime
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.live.edits import EnvironmentEdit, edit_from_plain, edit_log
from manyworlds.rl import distributed

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

FILE_NAME = "edits.jsonl"
"""Name of the file of a run with a line for each edit."""


@dataclass(frozen=True)
class EditRecord:
    """Edit that a training has applied."""

    after: int
    """Iterations that were done before it."""
    time: str
    """Date and time in ISO 8601."""
    edit: Mapping[str, Any]
    """The edit as plain data; see `edit_from_plain`."""
    text: str
    """The edit in one line."""


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
        record = None if self.record is None else asdict(self.record)
        return {"done": self.done, "record": record, "refusal": self.refusal}

    def finish(self, record: EditRecord | None, refusal: str = "") -> None:
        """Set the result."""
        self.record = record
        self.refusal = refusal
        self._done.set()


class RunEdits:
    """Edits of a training: those that are sent, and recorded ones of a run that is repeated.

    All processes of a distributed training apply the same edits after the same iteration. An edit
    that one of them refuses is taken back in all.

    Args:
        env: the environment of this process.
        device: device on which processes exchange data.
    """

    def __init__(self, env: ManagerBasedRlEnv, device: str = "cpu") -> None:
        self._log = edit_log(env)
        self._device = device
        self._sent: collections.deque[SentEdit] = collections.deque()
        self._due: list[EditRecord] = []
        self._folder: Path | None = None
        self.records: list[EditRecord] = []
        """Applied edits, in their order."""
        self.on_applied: Callable[[EditRecord], None] | None = None
        """Called after each edit that was applied."""

    def open(
        self, folder: Path | None, recorded: Sequence[EditRecord], done: int, *, repeat: bool = True
    ) -> None:
        """Begin a run.

        Args:
            folder: run folder that gets the file `FILE_NAME`; None in all processes but one.
            recorded: edits of the run that is continued or repeated.
            done: iterations done; edits before are in the environment.
            repeat: whether to apply the recorded edits that follow, after the same iterations.
        """
        self._folder = folder
        self.records = [record for record in recorded if record.after <= done]
        self._due = [record for record in recorded if record.after > done and repeat]
        if folder is not None and self.records:
            write_edits(folder, self.records, "w")

    def send(self, edit: EnvironmentEdit | Mapping[str, object]) -> SentEdit:
        """Let the training apply an edit after its present iteration; from any thread.

        Raises:
            ValueError: it is no edit.
        """
        sent = SentEdit(edit if isinstance(edit, EnvironmentEdit) else edit_from_plain(edit))
        self._sent.append(sent)
        return sent

    def apply(self, done: int) -> None:
        """Apply the edits that are due, first recorded ones; all processes call this together.

        Args:
            done: iterations done.
        """
        due = [record for record in self._due if record.after <= done]
        self._due = [record for record in self._due if record.after > done]
        mine: list[SentEdit] = []
        while self._sent:
            mine.append(self._sent.popleft())
        plain = [*(dict(record.edit) for record in due), *(sent.edit.plain() for sent in mine)]
        waiting = [*([None] * len(due)), *mine]
        for i, edit in enumerate(distributed.share(plain)):
            record, refusal = self._apply(edit, done)
            if i < len(waiting) and (sent := waiting[i]) is not None:
                sent.finish(record, refusal)
            elif refusal and self._folder is not None:
                raise ValueError(f"An edit of the run that is repeated does not fit: {refusal}")

    def _apply(self, plain: Mapping[str, Any], done: int) -> tuple[EditRecord | None, str]:
        refusal = ""
        undo = None
        edit = edit_from_plain(plain)
        try:
            undo = self._log.apply(edit)
        except ValueError as error:
            refusal = str(error)
        if distributed.any_rank(bool(refusal), self._device):
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


def write_edits(run: Path, records: Sequence[EditRecord], mode: str) -> None:
    """Write a line for each edit immediately, so that it is kept if the run fails."""
    with (run / FILE_NAME).open(mode) as file:
        file.write("".join(json.dumps(asdict(record)) + "\n" for record in records))


def check_has_edits(run: Path | None) -> None:
    """Check that a run, if one is given, has recorded edits.

    Raises:
        FileNotFoundError: it has none.
    """
    if run is not None and not (run / FILE_NAME).is_file():
        raise FileNotFoundError(
            f"There is no '{run / FILE_NAME}': give the folder of a run that was edited."
        )


def read_edits(run: Path) -> list[EditRecord]:
    """Read the edits of a run; none if it has no such file.

    An incomplete last line, of a run that was killed, is left out.

    Raises:
        ValueError: a line is no record of an edit.
    """
    path = run / FILE_NAME
    if not path.is_file():
        return []
    records = []
    for number, line in enumerate(path.read_text().splitlines(keepends=True), 1):
        if not line.endswith("\n"):
            break
        try:
            record = EditRecord(**json.loads(line))
            edit_from_plain(record.edit)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"Line {number} of '{path}' is no record of an edit ({error}): another version of "
                "manyworlds wrote it, or it was edited; remove the line."
            ) from None
        records.append(record)
    return records
