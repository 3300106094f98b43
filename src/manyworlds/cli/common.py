"""What several commands need: finding tasks, runs and policies that the user names."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from manyworlds.cli.options import PlayConfig, TrainConfig
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.run_folder import RunFolder

T = TypeVar("T")


class UsageError(ValueError):
    """The command line makes no sense."""

    exit_code = 2


def take_task(argv: list[str], command: str) -> tuple[str, list[str]]:
    """Split off the task, the first argument, after loading modules named with --load.

    Raises:
        UsageError: no task was named.
        KeyError: there is no such task.
    """
    from manyworlds.tasks import list_tasks, require_task

    argv = take_modules(argv)
    if argv and not argv[0].startswith("-"):
        require_task(argv[0])
        return argv[0], argv[1:]

    usage = f"usage: manyworlds {command} TASK [OPTIONS]\n\ntasks: {', '.join(list_tasks())}"
    if any(arg in ("-h", "--help") for arg in argv):
        print(f"{usage}\n\n`manyworlds {command} TASK --help` shows the options of a task.")
        if command == "play":
            print("`manyworlds play` takes the newest run; `manyworlds play --onnx FILE` runs an")
            print("exported policy in plain MuJoCo, see `manyworlds play --onnx --help`.")
        raise SystemExit(0)
    raise UsageError(f"Name a task: manyworlds {command} TASK; {usage.splitlines()[-1]}.")


def take_modules(argv: list[str]) -> list[str]:
    """Import what `--load FILE.py` or `--load module` names, and return the other arguments."""
    rest: list[str] = []
    names = iter(argv)
    for arg in names:
        if arg != "--load":
            rest.append(arg)
            continue
        name = next(names, None)
        if name is None:
            raise UsageError("--load needs the name of a module or the path of a Python file.")
        _load(name)
    return rest


def parse(config_type: type[T], default: Any, argv: list[str], command: str) -> T:
    """Parse the command line over a config, if there is one; every field of it is an option.

    Raises:
        UsageError: there is no such option, or it has no such value, or one is missing.
    """
    import tyro

    from manyworlds.utils.config import to_plain
    from manyworlds.validation.names import near_matches

    flags = (tyro.conf.AvoidSubcommands, tyro.conf.UsePythonSyntaxForLiteralCollections)
    with usage_errors(command):
        parsed, unknown = tyro.cli(
            config_type,
            default=default,
            args=argv,
            prog=f"manyworlds {command}",
            config=flags,
            return_unknown_args=True,
        )
    if unknown:
        name = unknown[0].partition("=")[0]
        near = near_matches(name, _options(to_plain(parsed), "--"))
        text = f"There is no option '{name}'" if name[:1] == "-" else f"'{name}' is one too many"
        raise UsageError(f"{text}.{near} `manyworlds {command} --help` lists all.")
    return parsed


@contextlib.contextmanager
def usage_errors(command: str) -> Iterator[None]:
    """Raise what tyro has to say about wrong usage, instead of letting it print a box and exit.

    Raises:
        UsageError: the usage is wrong.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            yield
    except SystemExit as stop:
        if not stop.code:
            raise
        raise UsageError(
            f"{_sentence(said.getvalue())}. `manyworlds {command} --help` lists all."
        ) from None
    sys.stderr.write(said.getvalue())


def _sentence(box: str) -> str:
    """What stands in the first section of a box that tyro drew, without the full stop."""
    # Where there is no UTF-8, a rule stands below the title and nothing at the sides.
    lines = re.sub(r"\x1b\[[\d;]*m", "", box).replace("│", " ").splitlines()[1:]
    is_rule = [not line.strip(" ─-╰╯") for line in lines]
    start = int(is_rule[0])
    end = is_rule.index(True, start) if True in is_rule[start:] else len(lines)
    text = " ".join(" ".join(lines[start:end]).split())
    if text.startswith("Missing from "):  # each argument, indented, and its help below it
        names = [line.strip() for line in lines[start:end] if re.match(r" {6}\S", line)]
        return f"Missing: {', '.join(names)}"
    text = text.partition(" Got errors:")[0].removeprefix("Error parsing ")
    # Collections are written as Python writes them (`UsePythonSyntaxForLiteralCollections`).
    wrong = re.search(
        r"Value (.+) \(type <.+>\) does not match expected type (typing\.)?(tuple|list|dict)\b"
        r"|Could not parse (.+) as Python literal",
        text,
        re.IGNORECASE,
    )
    if wrong:
        text = (
            f"{text[: wrong.start()]}{wrong[1] or wrong[4]} is no {(wrong[3] or 'value').lower()}: "
            'write it as in Python and quote it, as "(1, 2)", "[\'a\']" or "{\'a\': 1}"'
        )
    return text.removesuffix(".").removesuffix(". Expected 1 values")


def play_env_cfg(task: str, run: RunFolder | None) -> ManagerBasedRlEnvCfg:
    """The environment for watching a task, with what a run changed of its training environment."""
    from manyworlds.tasks import load_env_cfg
    from manyworlds.utils.config import to_plain, update_from_plain

    cfg = load_env_cfg(task, play=True)
    if run is not None:
        changed = _difference(run.env_params(), to_plain(load_env_cfg(task)))
        for name in ("seed", "episode_length_s"):
            changed.pop(name, None)
        changed.get("scene", {}).pop("num_envs", None)
        update_from_plain(cfg, changed)
    return cfg


def find_run(
    checkpoint: Path | None,
    log_root: Path,
    task: str | None,
    load_run: str = ".*",
    load_checkpoint: str = ".*",
) -> tuple[Path, RunFolder | None]:
    """Find a checkpoint and its run folder: the one named, or the newest of the task.

    Args:
        checkpoint: a file, a run folder, or either as it is called in the log root or in one of
            its experiments; None for the newest run.
        log_root: where run folders are.
        task: whose runs count; None for any.
        load_run: regular expression that the newest run's name must match as a whole.
        load_checkpoint: regular expression that the checkpoint's name must match as a whole.

    Raises:
        FileNotFoundError: there is no such checkpoint, or no run of the task.
    """
    from manyworlds.rl.run_folder import RunFolder

    if checkpoint is None:
        run = RunFolder.latest(log_root, task, load_run, load_checkpoint)
        return run.last_checkpoint(load_checkpoint), run
    for folder in (Path(), log_root, *sorted(log_root.glob("*"))):
        path = folder / checkpoint
        if path.is_file():
            return path, RunFolder.of_checkpoint(path)
        if path.is_dir() and (run := RunFolder(path)).checkpoints():
            return run.last_checkpoint(), run
    raise FileNotFoundError(
        f"There is no checkpoint '{checkpoint}': give the path of a .pt file or of a run folder, "
        f"or the name of a run in '{log_root}'."
    )


def download_checkpoint(cfg: TrainConfig | PlayConfig) -> Path:
    """Get the checkpoint of Weights & Biases that options name.

    Raises:
        ValueError: there is no such checkpoint, or another one is named, too.
    """
    from manyworlds.utils.files import get_wandb_checkpoint_path

    if cfg.checkpoint is not None:
        raise UsageError("Give either --wandb-run-path or --checkpoint, not both.")
    assert cfg.wandb_run_path is not None
    name = cfg.wandb_checkpoint_name
    return get_wandb_checkpoint_path(cfg.log_root, cfg.wandb_run_path, name)[0]


def _options(plain: Any, prefix: str) -> Iterator[str]:
    """Names of the options that set the entries of nested dicts."""
    for key, value in plain.items():
        name = f"{prefix}{key.replace('_', '-')}"
        yield name
        if isinstance(value, dict):
            yield from _options(value, f"{name}.")


def _difference(new: Any, old: Any) -> Any:
    """The entries of nested dicts in which `new` differs from `old`."""
    if not (isinstance(new, dict) and isinstance(old, dict)):
        return new
    return {
        key: _difference(new[key], old[key]) for key in new if key in old and new[key] != old[key]
    }


def _load(name: str) -> None:
    path = Path(name)
    if path.suffix != ".py":
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"Cannot load module '{name}': {error}. Install it, or name a .py file."
            ) from None
        return
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}' to load tasks from.")
    # A name of its own, so that a file called random.py does not replace the standard module.
    module_name = f"manyworlds_loaded_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        frames = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if Path(f.filename).resolve() == path.resolve()
        ]
        line = f", line {frames[-1].lineno}" if frames else ""
        raise ValueError(
            f"Cannot load tasks from '{path}'{line}: {type(error).__name__}: {error}"
        ) from error
