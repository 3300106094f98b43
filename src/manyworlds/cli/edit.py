"""`manyworlds edit [RUN]`: change a running training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import RUNS, LogRoot, RunningTraining, parse
from manyworlds.cli.runs import running_training


@dataclass(kw_only=True)
class EditOptions:
    """Change a value of a running training, or list the edits of a run.

    The training must have been started with `--enter` or `--view`. It applies edits in order after
    its current iteration, and appends them to `edits.jsonl` in its run folder.
    """

    run: RunningTraining = ""
    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Value of a term as PATH=VALUE, such as rewards.upright.weight=2.5."""
    file: Path | None = None
    """JSON file with one edit, in the format of "edit" in a line of `edits.jsonl`."""
    log_root: LogRoot = RUNS


def main(argv: list[str]) -> int:
    """Run `manyworlds edit`."""
    cfg = parse(EditOptions, argv, "edit")
    values = [_parsed(text) for text in cfg.set]
    plain = None
    if cfg.file is not None:
        try:
            plain = json.loads(cfg.file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(
                f"'{cfg.file}' is not JSON ({error}): write one edit in the format of "
                '"edit" in a line of `edits.jsonl`.'
            ) from None
    folder = running_training(cfg.run, cfg.log_root).path
    from manyworlds.lab.training import Visitor
    from manyworlds.live.edits import SetValue, edit_from_plain
    from manyworlds.rl.progress import read_edits

    edits = [SetValue(path=path, value=value) for path, value in values]
    if plain is not None:
        edits = [*edits, edit_from_plain(plain)]
    if not edits:
        records = read_edits(folder)
        for record in records:
            print(f"after iteration {record.after}, {record.time}: {record.text}")
        if not records:
            print(f"'{folder}' has no edits.")
        return 0
    visitor = Visitor(folder)
    for edit in edits:
        record = visitor.send(edit)
        print(f"after iteration {record.after}: {record.text}")
    return 0


def _parsed(text: str) -> tuple[str, object]:
    """Return path and value of PATH=VALUE, where the value is as in JSON or Python, or a text."""
    path, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"'{text}' sets nothing: write PATH=VALUE.")
    plain = value.strip().replace("(", "[").replace(")", "]")
    try:
        return path.strip(), json.loads(plain)
    except ValueError:
        return path.strip(), value.strip()
