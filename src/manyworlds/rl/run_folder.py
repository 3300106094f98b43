"""Folder of a training run: its contents, and the search for runs.

A folder is a run when it has its complete configuration, `params`. Each file in it is written
atomically. Only `progress.jsonl` grows, by a line per iteration.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from manyworlds.utils.config import dump_yaml, load_yaml
from manyworlds.utils.platforms import replace_path

_CHECKPOINT = re.compile(r"model_(\d+)\.pt")


class RunOrigin(TypedDict, total=False):
    """Facts about the start of a run, as far as its folder records them."""

    task: str
    command: str | None
    """Command line; None if the run was started from Python."""
    load: list[str]
    """Python files, as absolute paths, and modules that registered the task."""
    init: str
    """Checkpoint whose networks the training began with."""
    started: str
    """Date and time in ISO 8601."""
    device: str
    machine: dict[str, object]
    versions: dict[str, str]


@dataclass(frozen=True)
class RunFolder:
    """Training run on disk."""

    path: Path

    @classmethod
    def reserve(cls, root: Path, experiment: str, run_name: str) -> RunFolder:
        """Make an empty folder `root/experiment/<time>[_<run_name>]`.

        Args:
            root: folder of the experiments' folders.
            experiment: name of the experiment's folder.
            run_name: suffix of the folder's name.

        Raises:
            OSError: the folder cannot be made.
            ValueError: a name would make a folder outside of `root`.
        """
        for name in (experiment, f"x{run_name}"):
            if not name or Path(name).name != name or name.startswith("."):
                raise ValueError(
                    f"experiment_name '{experiment}' and run_name '{run_name}' must be plain "
                    "folder names: leave out slashes and leading dots."
                )
        parent = root / experiment
        try:
            parent.mkdir(parents=True, exist_ok=True)
            path = _free_name(parent, run_name)
            path.mkdir()
        except OSError as error:
            raise OSError(
                f"Cannot write a run folder in '{parent}': {error.strerror or error}. "
                "Choose another place with --log-root."
            ) from None
        return cls(path)

    def begin(
        self,
        task: str,
        env_cfg: object,
        rl_cfg: object,
        origin: RunOrigin | None = None,
        task_files: Mapping[str, bytes] | None = None,
    ) -> RunFolder:
        """Write the configuration, completely or not at all; return the run.

        Args:
            task: name of the task.
            env_cfg: the environment.
            rl_cfg: the learner.
            origin: other facts about the start of the run.
            task_files: contents of the Python files that registered the task, by their names in
                `origin["load"]`; the run keeps copies.
        """
        with tempfile.TemporaryDirectory(dir=self.path, prefix=".new_") as folder:
            new = RunFolder(Path(folder))
            dump_yaml(new.path / "params" / "env.yaml", env_cfg)
            dump_yaml(new.path / "params" / "agent.yaml", rl_cfg)
            dump_yaml(new.path / "params" / "run.yaml", {"task": task, **(origin or {})})
            for name, copy in new.task_copies().items():
                if task_files is not None and name in task_files:
                    copy.parent.mkdir(exist_ok=True)
                    copy.write_bytes(task_files[name])
            for part in sorted(new.path.iterdir(), reverse=True):  # `params` is last
                replace_path(part, self.path / part.name)
        return self

    def remove_unless_begun(self) -> None:
        """Remove a reserved folder without a run, and that of its experiment if it is empty."""
        if not (self.path / "params").exists():
            shutil.rmtree(self.path)
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()

    @classmethod
    def latest(
        cls, root: Path, task: str | None = None, load_run: str = ".*", load_checkpoint: str = ".*"
    ) -> RunFolder:
        """Return the newest run that has a checkpoint, of one task or of any.

        Args:
            root: folder of the experiments' folders.
            task: name of the task; None for any.
            load_run: regular expression that the run's name must match as a whole.
            load_checkpoint: regular expression that a checkpoint's name must match as a whole.

        Raises:
            FileNotFoundError: no run matches.
        """
        runs = []
        for params in root.glob("*/*/params/run.yaml"):
            run = cls(params.parent.parent)
            name = run.path.name
            if name.startswith(".") or not re.fullmatch(load_run, name):
                continue
            if not run.checkpoints(load_checkpoint):
                continue
            if run.task is not None and task in (None, run.task):
                runs.append(run)
        if not runs:
            what = ""
            if task:
                what = f" of task '{task}'"
            if (load_run, load_checkpoint) not in ((".*", ".*"), (".*", r"model_.*.pt")):
                what += f" with load_run='{load_run}', load_checkpoint='{load_checkpoint}'"
            raise FileNotFoundError(
                f"There is no trained run{what} in '{root}': train one with `manyworlds train "
                f"{task or 'TASK'}`, or name another place with --log-root."
            )
        return max(runs, key=lambda run: run.last_checkpoint(load_checkpoint).stat().st_mtime)

    @classmethod
    def of_checkpoint(cls, checkpoint: Path) -> RunFolder | None:
        """Return the run folder that contains a checkpoint; None if the checkpoint is elsewhere."""
        folder = checkpoint.resolve().parent
        if folder.parent.name == "buckets":  # a policy that was exported for one of them
            folder = folder.parent.parent
        run = cls(folder)
        if not run.is_run():
            return None
        return run

    def is_run(self) -> bool:
        """Return True if the folder is one that a training has written."""
        return (self.path / "params" / "run.yaml").is_file()

    @property
    def task(self) -> str | None:
        """Name of the trained task; None if the folder does not record it."""
        return self.origin().get("task")

    def origin(self) -> RunOrigin:
        """Task, command, versions and machine of the run, as far as the folder records them."""
        try:
            origin = load_yaml(self.path / "params" / "run.yaml")
        except (OSError, ValueError):
            return {}
        if not isinstance(origin, dict):
            return {}
        return cast("RunOrigin", origin)

    def loaded(self) -> tuple[str, ...]:
        """Return the files and modules that registered the task, as the folder records them."""
        recorded = self.origin().get("load")
        if not isinstance(recorded, list):  # a run of an earlier version, or from Python
            return ()
        return tuple(map(str, recorded))

    def task_copies(self) -> dict[str, Path]:
        """Return the places of the run's copies of its task's files, by the names of the files.

        Runs of earlier versions have no copies.
        """
        files = [name for name in self.loaded() if name.endswith(".py")]
        copies = {}
        for number, name in enumerate(files):
            file_name = Path(name).name
            if [Path(other).name for other in files].count(file_name) > 1:
                file_name = f"{number}_{file_name}"
            copies[name] = self.path / "task" / file_name
        return copies

    def env_params(self) -> Any:
        """The environment's configuration as plain data."""
        return load_yaml(self.path / "params" / "env.yaml")

    def agent_params(self) -> Any:
        """The learner's configuration as plain data."""
        return load_yaml(self.path / "params" / "agent.yaml")

    def checkpoints(self, pattern: str = ".*") -> list[Path]:
        """Return checkpoints by iteration, if a regular expression matches their whole name."""
        found = {}
        for path in self.path.glob("*.pt"):
            match = _CHECKPOINT.fullmatch(path.name)
            if match and re.fullmatch(pattern, path.name):
                found[path] = int(match[1])
        return sorted(found, key=lambda path: found[path])

    def last_checkpoint(self, pattern: str = ".*") -> Path:
        """Return the checkpoint of the last iteration among those whose name matches.

        Raises:
            FileNotFoundError: there is none.
        """
        found = self.checkpoints(pattern)
        if not found:
            raise FileNotFoundError(
                f"There is no checkpoint in '{self.path}' whose name matches '{pattern}': give the "
                "folder of a run that has one."
            )
        return found[-1]


def _free_name(parent: Path, run_name: str) -> Path:
    base = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    if run_name:
        base += f"_{run_name}"
    candidates = [parent / base, *(parent / f"{base}_{os.getpid()}_{i}" for i in range(1000))]
    return next(path for path in candidates if not path.exists())
