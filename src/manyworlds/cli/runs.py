"""The task and the run that a command line means."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.errors import UsageError
from manyworlds.cli.task_files import load_options, load_task_of, remembered
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from manyworlds.cli.options import TaskOptions
    from manyworlds.cli.play import PlayOptions
    from manyworlds.cli.train import TrainOptions
    from manyworlds.rl.run_folder import RunFolder


_MAX_DIFFERENCES = 12
"""Settings that are named."""


@dataclass(frozen=True)
class FoundRun:
    """Run, or checkpoint in no run folder, that a command line means."""

    name: str
    """Its name on the command line; empty for the newest run."""
    folder: RunFolder | None
    """Run folder; None for a checkpoint in no run folder."""
    checkpoint: Path | None
    """Named checkpoint, or else the last one of the run; None if the run has none yet."""

    def need_folder(self) -> RunFolder:
        """Return the run folder.

        Raises:
            FileNotFoundError: there is none.
        """
        if self.folder is None:
            raise FileNotFoundError(
                f"There is no run '{self.name}': the file is in no run folder. Name a checkpoint "
                "in a run folder, or the folder."
            )
        return self.folder

    def need_checkpoint(self) -> Path:
        """Return the checkpoint.

        Raises:
            ValueError: there is none.
        """
        if self.checkpoint is None:
            raise ValueError(
                f"The run '{self.need_folder().path}' has no checkpoint yet: wait until its "
                "training writes one, or name another run."
            )
        return self.checkpoint

    def need_task(self) -> str:
        """Return the name of the task.

        Raises:
            FileNotFoundError: there is no run folder.
            ValueError: the run folder records no task.
        """
        folder = self.need_folder()
        if folder.task is None:
            raise ValueError(
                f"'{folder.path / 'params' / 'run.yaml'}' names no task: name another run."
            )
        return folder.task


def find_run(
    name: str | Path | None,
    log_root: Path,
    task: str | None = None,
    *,
    load_run: str = ".*",
    load_checkpoint: str = ".*",
) -> FoundRun:
    """Find the run that a command line means.

    Args:
        name: path of a run folder, of a checkpoint, or of an exported policy, also relative to the
            folder of all runs or to the folder of an experiment in it; or a task, for its newest
            run; None, or an empty text, for the newest run of `task`.
        log_root: folder of all runs.
        task: name of the task whose newest run is taken; None takes that of any task.
        load_run: regular expression that the newest run's name must match as a whole.
        load_checkpoint: regular expression that its checkpoint's name must match as a whole.

    Raises:
        FileNotFoundError: there is no such run, or none with a checkpoint to take the newest of.
    """
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.tasks import list_tasks

    if not name:
        newest = RunFolder.latest(log_root, task, load_run, load_checkpoint)
        return FoundRun("", newest, newest.last_checkpoint(load_checkpoint))
    text = str(name)
    # Relative to this folder, to that of all runs, and to that of each experiment.
    for place in (Path(), log_root, *sorted(log_root.glob("*"))):
        path = place / name
        if path.is_file():
            return FoundRun(text, RunFolder.of_checkpoint(path), path)
        if not path.name:  # "." keeps the name of its folder
            path = path.resolve()
        folder = RunFolder(path)
        last = next(reversed(folder.checkpoints()), None)
        if folder.is_run():
            return FoundRun(text, folder, last)
        if last is not None:
            return FoundRun(text, None, last)
    try:
        newest = RunFolder.latest(log_root, text)
    except FileNotFoundError:
        if text in list_tasks():
            raise
    else:
        return FoundRun(text, newest, newest.last_checkpoint())
    kind = "run"
    if text.endswith(".pt"):
        kind = "checkpoint"
    raise FileNotFoundError(
        f"There is no {kind} '{name}'.{near_matches(text, list_tasks())}{runs_below(Path(name))} "
        f"Give the path of a run folder or of a checkpoint in one, the name of a run in "
        f"'{log_root}', or a task that was trained there."
    )


def find_task(options: TaskOptions, command: str, *, has_trained: bool = True) -> str:
    """Return the name of a command line's task, after loading what registers it.

    Args:
        options: the options. Without a task, it is that of the run; a path of a run or of a
            checkpoint in the place of the task becomes `checkpoint`. If the task is not known, what
            the run remembers becomes `load`.
        command: name of the command.
        has_trained: whether the command uses a run of the task.

    Raises:
        UsageError: several tasks are named, or a path beside `checkpoint`.
        KeyError: the task does not exist.
        FileNotFoundError: the run does not exist, or the file that registers its task.
        PermissionError: the user does not let the run load its task.
        ValueError: the checkpoint is in no run folder, so that its task is not known.
    """
    from manyworlds.tasks.registry import require_task, task_of_robot

    if len(options.task) > 1:
        raise UsageError(f"Name one task, not {len(options.task)}: {' '.join(options.task)}.")
    task = "".join(options.task)
    path = Path(task)
    is_checkpoint = path.exists() and (len(path.parts) > 1 or path.suffix == ".pt")
    if has_trained and options.checkpoint is None and is_checkpoint:
        options.checkpoint = path
        task = ""
    if "/" in task or "\\" in task:
        raise UsageError(
            f"'{task}' is no task: name the task, and a run or a policy with --checkpoint."
        )
    if not task:
        found = find_run(options.checkpoint, options.log_root)
        if found.folder is None:
            raise ValueError(
                f"'{found.checkpoint}' is in no run folder: name its task, manyworlds {command} "
                f"TASK --checkpoint {found.checkpoint}."
            )
        options.load = options.load or load_task_of(found.folder, from_file=_from_file(options))
        return require_task(found.need_task())
    if options.robot:
        return task_of_robot(task, options.robot)
    try:
        return require_task(task)
    except KeyError:
        # A run of the task may remember the file that registers it.
        try:
            run = find_run(options.checkpoint, options.log_root, task).folder
        except FileNotFoundError:
            run = None
        if run is None or run.task != task or not remembered(run):
            raise
        if not has_trained:
            raise KeyError(
                f"There is no task '{task}': the run '{run.path}' was trained with "
                f"{load_options(remembered(run))}; repeat this option to begin a new run."
            ) from None
        options.load = load_task_of(run, from_file=_from_file(options))
        return require_task(task)


def _from_file(options: TaskOptions) -> bool:
    """Return True if the options have `--from-file`, and it is given."""
    return bool(vars(options).get("from_file"))


def tell_differences(run: RunFolder | None, task: str, *, from_file: bool) -> None:
    """Print the settings in which a run differs from its task as registered now, if there are any.

    Args:
        run: the run; None for a checkpoint in no run folder.
        task: name of the task that is used.
        from_file: whether the task's settings apply, not the run's.
    """
    from manyworlds.tasks.run_configs import differences_from_task

    if run is None or run.task != task:
        return
    try:
        lines = differences_from_task(run)
    except (OSError, ValueError, KeyError, TypeError):  # of an incomplete run folder
        return
    if not lines:
        return
    applies = "the run's apply; --from-file takes those of the task"
    if from_file:
        applies = "those of the task apply"
    count = f"{len(lines)} settings"
    if len(lines) == 1:
        count = "1 setting"
    shown = [f"note: '{run.path}' differs from the task '{task}' in {count}; {applies}:"]
    shown += [f"  {line}" for line in lines[:_MAX_DIFFERENCES]]
    if len(lines) > _MAX_DIFFERENCES:
        shown.append(f"  and {len(lines) - _MAX_DIFFERENCES} more")
    print("\n".join(shown), file=sys.stderr)


def running_training(name: str, log_root: Path) -> RunFolder:
    """Return the run folder of a running training.

    Args:
        name: see `find_run`; empty for the newest training that can be entered.
        log_root: folder of all runs.

    Raises:
        FileNotFoundError: there is no such run, or no training that can be entered.
    """
    from manyworlds.rl.run_folder import RunFolder

    if name:
        return find_run(name, log_root).need_folder()
    found = []
    if any(log_root.glob("*/*")):  # the import takes a second
        from manyworlds.lab.training import running_trainings

        found = running_trainings(log_root)
    if not found:
        raise FileNotFoundError(
            f"No training that can be entered runs in '{log_root}': start one with `manyworlds "
            "train TASK --enter` (with --remember to also look back), or name another place with "
            "--log-root."
        )
    return RunFolder(found[0])


def downloaded_checkpoint(options: TrainOptions | PlayOptions) -> FoundRun:
    """Download the checkpoint of Weights & Biases that options name.

    Raises:
        UsageError: the options name a second checkpoint.
        ValueError: the checkpoint does not exist.
    """
    from manyworlds.utils.files import get_wandb_checkpoint_path

    if options.checkpoint is not None:
        raise UsageError("Give either --wandb-run-path or --checkpoint, not both.")
    assert options.wandb_run_path is not None
    name = options.wandb_checkpoint_name
    path, _ = get_wandb_checkpoint_path(options.log_root, options.wandb_run_path, name)
    return FoundRun(options.wandb_run_path, None, path)


def runs_below(folder: Path) -> str:
    """Return a sentence that names the newest run in a folder of runs; empty if it has none."""
    files = [*folder.glob("*/params/run.yaml"), *folder.glob("*/*/params/run.yaml")]
    if not files:
        return ""
    newest = max(files, key=lambda file: file.stat().st_mtime).parents[1]
    return f" That is a folder of runs: name one of them, such as '{newest}'."
