"""Atomic writing of files, and loading of checkpoints and assets."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from manyworlds.utils.extras import require_extra
from manyworlds.utils.platforms import replace_path
from manyworlds.validation.rules import refuse


@contextlib.contextmanager
def atomic_path(path: Path, mode: int = 0o644) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds.

    A block that raises leaves no temporary file, and an existing file at `path` unchanged.

    Raises:
        OSError: the file cannot be written; the message names `path`.
    """
    path = Path(path)
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        start = f".{path.stem}."
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=start, suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        with _writing(path, temporary):
            yield temporary
            temporary.chmod(mode)
            replace_path(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Check that a file or folder can be made, before long work whose result it is.

    Raises:
        OSError: its folder cannot be written; the message names `path`.
    """
    folder = Path(path).absolute().parent
    there = next(place for place in (folder, *folder.parents) if place.exists())
    with _writing(path), tempfile.TemporaryFile(dir=there):
        pass


@contextlib.contextmanager
def _writing(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Let errors of writing name what was to be written, and a remedy.

    Args:
        path: the wanted file or folder.
        temporary: file that is written in its place; errors about other files stay as they are.
            None if there are no others.
    """
    try:
        yield
    except OSError as error:
        others = temporary is not None and error.filename is not None
        if error.errno is not None and not (others and str(temporary) not in str(error.filename)):
            error.strerror = (
                f"Cannot write '{path}' ({error.strerror}): choose a place in a folder that you "
                "can write, on a disk with space"
            )
            error.filename = error.filename2 = None
        raise


def write_atomic(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file atomically, with the given permissions."""
    with atomic_path(path, mode) as temporary:
        if isinstance(content, str):
            content = content.encode()
        temporary.write_bytes(content)


def get_checkpoint_path(
    log_path: Path, run_dir: str = ".*", checkpoint: str = ".*", sort_alpha: bool = True
) -> Path:
    """Return the last checkpoint of the last run in a folder of runs.

    Args:
        log_path: the folder.
        run_dir: regular expression that must match the whole name of a run.
        checkpoint: likewise for checkpoints, whose numbers are compared by value.
        sort_alpha: select the last run by name instead of by modification time.

    Raises:
        ValueError: there is no such folder, run or checkpoint.
    """
    log_path = Path(log_path)
    if not log_path.is_dir():
        raise ValueError(f"There is no folder '{log_path}' with runs.")
    runs = [p for p in log_path.iterdir() if p.is_dir() and re.fullmatch(run_dir, p.name)]
    if not runs:
        raise ValueError(f"No runs present in '{log_path}' match '{run_dir}'.")
    run = max(runs, key=lambda path: path.name if sort_alpha else path.stat().st_mtime)
    files = [p for p in run.iterdir() if p.is_file() and re.fullmatch(checkpoint, p.name)]
    if not files:
        raise ValueError(f"No checkpoints in '{run}' match '{checkpoint}'.")
    return max(files, key=lambda path: re.sub(r"\d+", lambda m: m[0].zfill(15), path.name))


def get_wandb_checkpoint_path(
    log_path: Path, run_path: Path | str, checkpoint_name: str | None = None
) -> tuple[Path, bool]:
    """Download a checkpoint of a Weights & Biases run, unless it is already present.

    Args:
        log_path: the folder with the subfolder `wandb_checkpoints` for the files.
        run_path: `entity/project/run id`.
        checkpoint_name: name such as `model_100.pt`; None selects that of the last iteration.

    Returns:
        Path of the file, and whether it was already present.

    Raises:
        MissingExtraError: the extra 'wandb' is not installed.
        ValueError: the run has no such checkpoint.
    """
    run = require_extra("wandb", "wandb").Api().run(str(run_path))
    found: dict[str, int] = {}
    for file in run.files():
        match = re.fullmatch(r"model_(\d+)\.pt", file.name)
        if match:
            found[file.name] = int(match[1])
    name = checkpoint_name or max(found, key=lambda name: found[name], default="")
    if name not in found:
        raise ValueError(
            f"The W&B run '{run_path}' has no checkpoint '{name or 'model_*.pt'}': it has "
            f"{', '.join(found) or 'none'}."
        )
    folder = Path(log_path) / "wandb_checkpoints" / Path(run_path).name
    cached = (folder / name).is_file()
    if cached:
        return folder / name, cached
    folder.mkdir(parents=True, exist_ok=True)
    run.file(name).download(root=str(folder), replace=True)
    return folder / name, cached


def update_assets(assets: dict[str, bytes], path: Path, meshdir: str | None = None) -> None:
    """Add the files of a folder and of its subfolders to the assets of a spec.

    Args:
        assets: file contents by their names in the spec; extended in place.
        path: the folder.
        meshdir: the spec's `meshdir`, which prefixes the names.

    Raises:
        ValueError: there is no such folder.
    """
    path = Path(path)
    if not path.is_dir():
        refuse(f"There is no folder '{path}' with assets.")
    for file in sorted(path.rglob("*")):
        if file.is_file():
            assets[Path(meshdir or "", file.relative_to(path)).as_posix()] = file.read_bytes()
