"""Runs and checkpoints that a command line names."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.cli.errors import UsageError
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from manyworlds.cli.play_options import PlayOptions
    from manyworlds.cli.task_options import TrainOptions
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.run_folder import RunFolder


def play_env_cfg(task: str, run: RunFolder | None) -> ManagerBasedRlEnvCfg:
    """Return the environment for watching a task, with a run's changes to its training."""
    from manyworlds.tasks import load_env_cfg
    from manyworlds.utils.config import to_plain, update_from_plain

    cfg = load_env_cfg(task, play=True)
    if run is not None:
        used = run.env_params()
        for name in ("seed", "episode_length_s"):
            used.pop(name, None)
        used.get("scene", {}).pop("num_envs", None)
        update_from_plain(cfg, _with_changes(to_plain(cfg), used, to_plain(load_env_cfg(task))))
    return cfg


def differences_from_training(cfg: ManagerBasedRlEnvCfg, run: RunFolder) -> list[str]:
    """Return the settings in which an environment differs from that of a run, as text.

    The number of worlds, the seed and the view do not count.
    """
    from manyworlds.utils.config import to_plain

    return [
        line
        for line in _describe_differences(to_plain(cfg), run.env_params())
        if not line.startswith(("scene.num_envs:", "seed:", "viewer."))
    ]


def _describe_differences(here: Any, there: Any, path: str = "") -> Iterator[str]:
    """Yield a text for each entry in which nested dicts differ, and for each that one lacks."""
    if not (isinstance(here, dict) and isinstance(there, dict)):
        if here != there:
            yield f"{path}: {here}, in training {there}"
        return
    for key in dict.fromkeys((*there, *here)):
        inner = f"{path}.{key}".lstrip(".")
        if key in here and key in there:
            yield from _describe_differences(here[key], there[key], inner)
        else:
            yield f"{inner}: only {'here' if key in here else 'in training'}"


def evaluation_env_cfg(task: str, run: RunFolder) -> ManagerBasedRlEnvCfg:
    """Return the environment of a task as registered; texts that it leaves empty are the run's.

    Such a text is the file of a motion, without which the task cannot run.
    """
    from manyworlds.tasks import load_env_cfg
    from manyworlds.utils.config import flatten, to_plain, update_from_plain

    cfg = load_env_cfg(task)
    used, nested = flatten(run.env_params()), {}
    for path, value in flatten(to_plain(cfg)).items():
        if value == "" and used.get(path):
            *parents, name = path.split(".")
            entry = nested
            for parent in parents:
                entry = entry.setdefault(parent, {})
            entry[name] = used[path]
    return update_from_plain(cfg, nested)


def find_run(
    checkpoint: Path | None,
    log_root: Path,
    task: str | None,
    load_run: str = ".*",
    load_checkpoint: str = ".*",
) -> tuple[Path, RunFolder | None]:
    """Find a checkpoint and its run folder: the given one, or the newest of the task.

    Args:
        checkpoint: path of a checkpoint or a run folder, also relative to the log root or to the
            folder of an experiment in it; None for the newest run.
        log_root: folder of all runs.
        task: name of the task whose runs count; None for any.
        load_run: regular expression that the newest run's name must match as a whole.
        load_checkpoint: regular expression that the checkpoint's name must match as a whole.

    Raises:
        FileNotFoundError: the checkpoint does not exist, or the task has no run.
        ValueError: the run has no checkpoint yet.
    """
    from manyworlds.rl.run_folder import RunFolder

    if checkpoint is None:
        run = RunFolder.latest(log_root, task, load_run, load_checkpoint)
        return run.last_checkpoint(load_checkpoint), run
    for path in _places(checkpoint, log_root):
        if path.is_file():
            return path, RunFolder.of_checkpoint(path)
        if path.is_dir() and (run := RunFolder(path)).checkpoints():
            return run.last_checkpoint(), run
        if RunFolder(path).is_run():
            raise ValueError(
                f"The run '{path}' has no checkpoint yet: wait until its training writes one, or "
                "name another run."
            )
    raise FileNotFoundError(
        f"There is no checkpoint '{checkpoint}'.{runs_below(checkpoint)} Give the path of a .pt "
        f"file or of a run folder, or the name of a run in '{log_root}'."
    )


def names_run(text: str) -> bool:
    """Return True for the path of a run folder or of a checkpoint; tasks have no such names."""
    path = Path(text)
    return path.exists() and (len(path.parts) > 1 or path.suffix == ".pt")


def trained_run(checkpoint: Path | None, log_root: Path, command: str) -> tuple[RunFolder, str]:
    """Return the run that a command names instead of a task, and the name of its task.

    Args:
        checkpoint: see `find_run`.
        log_root: folder of all runs.
        command: name of the command.

    Raises:
        FileNotFoundError: the checkpoint does not exist, or there is no run.
        ValueError: the checkpoint is in no run folder, so its task is unknown.
    """
    found, run = find_run(checkpoint, log_root, None)
    if run is None or run.task is None:
        raise ValueError(
            f"'{found}' is in no run folder: name its task, manyworlds {command} TASK "
            f"--checkpoint {found}."
        )
    return run, run.task


def named_run(name: str | None, log_root: Path) -> tuple[RunFolder, Path | None]:
    """Find a run by name, also one that has no checkpoint yet.

    Args:
        name: path of a run folder or of a checkpoint in one, also relative to the log root or to
            the folder of an experiment in it; or a task, for its newest run; None for the newest
            run of any task.
        log_root: folder of all runs.

    Returns:
        The run's folder, and the given checkpoint or the run's last one, if it has one.

    Raises:
        FileNotFoundError: there is no such run.
    """
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.tasks import list_tasks

    for path in () if name is None else _places(Path(name), log_root):
        if path.suffix == ".pt" and path.is_file() and (run := RunFolder.of_checkpoint(path)):
            return run, path
        if RunFolder(path).is_run():
            return (run := RunFolder(path.resolve())), (run.checkpoints() or [None])[-1]
    if name is None or name in list_tasks() or newest_run(log_root, name) is not None:
        run = RunFolder.latest(log_root, name)
        return run, run.last_checkpoint()
    raise FileNotFoundError(
        f"There is no run '{name}'.{near_matches(name, list_tasks())}{runs_below(Path(name))} "
        f"Give the path of a run folder or of a checkpoint in one, the name of a run in "
        f"'{log_root}', or a task that was trained there (with --load FILE if your own file "
        "registers it)."
    )


def runs_below(folder: Path) -> str:
    """Return a sentence that names the newest run in a folder of runs; empty if it has none."""
    files = [*folder.glob("*/params/run.yaml"), *folder.glob("*/*/params/run.yaml")]
    if not files:
        return ""
    newest = max(files, key=lambda file: file.stat().st_mtime).parents[1]
    return f" That is a folder of runs: name one of them, such as '{newest}'."


def newest_run(log_root: Path, task: str | None = None) -> RunFolder | None:
    """Return the newest run that has a checkpoint, of one task or of any; None if there is none."""
    from manyworlds.rl.run_folder import RunFolder

    with contextlib.suppress(FileNotFoundError):
        return RunFolder.latest(log_root, task)
    return None


@contextlib.contextmanager
def naming_load(run: RunFolder | None) -> Iterator[None]:
    """Say with which `--load` a run was trained, if an error is that its task does not exist.

    Raises:
        KeyError: the task does not exist.
    """
    from manyworlds.tasks import list_tasks

    try:
        yield
    except KeyError:
        command = "" if run is None else run.origin().get("command") or ""
        load = load_options(shlex.split(command))
        if run is None or run.task in list_tasks() or not load:
            raise
        raise KeyError(
            f"There is no task '{run.task}': the run '{run.path}' was trained with{load}; repeat "
            "this option, with the path of the file from here."
        ) from None


def load_values(words: Sequence[str]) -> list[str]:
    """Return the values of the options `--load` among the words of a command."""
    given = [after for word, after in pairwise(words) if word == "--load"]
    return given + [word.partition("=")[2] for word in words if word.startswith("--load=")]


def load_options(words: Sequence[str]) -> str:
    """Return the options `--load` of a command as text, each with a space before it."""
    return "".join(f" --load {shlex.quote(value)}" for value in load_values(words))


def _places(path: Path, log_root: Path) -> Iterator[Path]:
    """Yield a path relative to this folder, to the log root, and to each experiment's folder."""
    for folder in (Path(), log_root, *sorted(log_root.glob("*"))):
        yield folder / path


def download_checkpoint(options: TrainOptions | PlayOptions) -> Path:
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
    return get_wandb_checkpoint_path(options.log_root, options.wandb_run_path, name)[0]


def _with_changes(shown: Any, new: Any, old: Any) -> Any:
    """Return nested dicts with the values that changed from `old` to `new`; add no entry."""
    if new == old:
        return shown
    if not (isinstance(new, dict) and isinstance(old, dict)):
        return new
    if not isinstance(shown, dict):  # a term that playback turns off
        return shown
    return {
        key: _with_changes(value, new[key], old[key]) if key in new and key in old else value
        for key, value in shown.items()
    }
