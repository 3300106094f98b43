"""Python files and modules that register tasks: the option `--load`, and what a run remembers.

A run keeps a copy of the file that registered its task, and commands for the run load this copy, so
that they do what the training did, even if the file was edited or deleted. A copy runs as if it lay
in the place of the file, so that it finds what lies beside it. It is run without a question only if
the user has trained with this content of this file, or has agreed to it: a run folder from
elsewhere may bring any program.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import json
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.errors import near_files
from manyworlds.utils.platforms import config_folder

if TYPE_CHECKING:
    from manyworlds.rl.run_folder import RunFolder


_MAX_EDITS = 12
"""Lines of a file's edits that are shown."""
LOADED: dict[str, bytes] = {}
"""Content that was run for each Python file of `--load` and of runs, by its absolute path."""


def load_modules(names: Sequence[str]) -> None:
    """Import modules by name, or by the path of a Python file.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: a module does not exist, or importing a file fails.
    """
    from manyworlds.tasks import list_tasks

    for name in names:
        path = Path(name)
        if path.suffix == ".py":
            before = list_tasks()
            _load_file(path, path)
            if list_tasks() == before and not registers_tasks(path):
                print(
                    f"note: '{path}' registers no task: call register_task(...) in it.",
                    file=sys.stderr,
                )
            continue
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"Cannot load module '{name}': {error}. Install it, or name a .py file."
            ) from None


def registers_tasks(path: Path) -> bool:
    """Return True if the text of a file calls what registers tasks, or robots of tasks."""
    return "register" in path.read_text(encoding="utf-8", errors="replace")


def load_task_of(run: RunFolder, *, from_file: bool = False) -> tuple[str, ...]:
    """Load what registered the task of a run in its training, unless the task is known already.

    Code with which the user has not trained yet needs an answer at the terminal.

    Args:
        run: the run.
        from_file: load the files as they are now, not the run's copies.

    Returns:
        What was loaded, as for `--load`.

    Raises:
        FileNotFoundError: a file does not exist any more.
        PermissionError: the user does not agree, or there is no terminal to ask at.
        ValueError: a module does not exist any more, or importing a file fails.
    """
    from manyworlds.tasks import list_tasks

    names = remembered(run)
    if not names or run.task in list_tasks():
        return ()
    sources = _sources(run, names, from_file)
    unknown = []
    for name in names:
        source = sources.get(name)
        is_copy = source is not None and str(source) != name
        content = source.read_bytes() if source is not None else b""
        if not is_trusted(name) or (is_copy and not is_trusted(content_key(content))):
            unknown.append(name)
    if unknown:
        shown = [str(sources.get(name, name)) for name in unknown]
        if not _user_agrees(run, shown):
            raise PermissionError(
                f"The run '{run.path}' loads its task from code with which you have not trained "
                f"yet: give {load_options(shown)} if you trust it."
            )
    for name in names:
        source = sources.get(name)
        if source is None:
            print(f"note: '{run.path}' loads its task from {name}.", file=sys.stderr)
            load_modules((name,))
            continue
        print(f"note: '{run.path}' loads its task from {source}.", file=sys.stderr)
        for line in _edits_since(Path(name), source):
            print(line, file=sys.stderr)
        _load_file(source, Path(name))
    trust(unknown)
    return names


def _sources(run: RunFolder, names: Sequence[str], from_file: bool) -> dict[str, Path]:
    """Return the file to run for each Python file of a run: the run's copy, or the file itself.

    Raises:
        FileNotFoundError: there is neither a copy nor the file.
    """
    copies = run.task_copies()
    sources = {}
    for name in names:
        if not name.endswith(".py"):
            continue
        copy = copies.get(name)
        if copy is not None and copy.is_file() and not from_file:
            sources[name] = copy
        elif Path(name).is_file():
            sources[name] = Path(name)
        else:
            raise FileNotFoundError(
                f"The task '{run.task}' of the run '{run.path}' was registered by '{name}', which "
                "does not exist any more: give --load FILE with the present path of the file."
            )
    return sources


def _edits_since(file: Path, copy: Path) -> list[str]:
    """Return lines about the edits of a file since a training copied it; none if there are none."""
    if file == copy or not file.is_file():
        return []
    there = copy.read_text(encoding="utf-8", errors="replace").splitlines()
    here = file.read_text(encoding="utf-8", errors="replace").splitlines()
    edits = [
        f"  {line}"
        for line in difflib.unified_diff(there, here, lineterm="", n=0)
        if line[:1] in "+-" and not line.startswith(("---", "+++"))
    ]
    if not edits:
        return []
    head = (
        f"note: '{file}' was edited since this training, whose copy applies; --from-file takes the "
        "file as it is now. Its edits:"
    )
    shown = [head, *edits[:_MAX_EDITS]]
    if len(edits) > _MAX_EDITS:
        shown.append(f"  and {len(edits) - _MAX_EDITS} more lines")
    return shown


def trust(names: Sequence[str]) -> None:
    """Let runs load files, by absolute paths, and modules from now on without a question.

    Copies of a file are trusted if they have the content that was run. A warning says so if the
    user's folder cannot be written.
    """
    wanted = [*names, *(content_key(LOADED[name]) for name in names if name in LOADED)]
    new = [name for name in wanted if not is_trusted(name)]
    if not new:
        return
    path = _trusted_names()
    lines = "".join(f"{json.dumps(name)}\n" for name in new)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(lines)  # at once: several trainings may start together
    except OSError as error:
        warnings.warn(
            f"'{path}' cannot be written, so that commands for runs of this task ask before they "
            f"load it: {error}.",
            stacklevel=2,
        )


def is_trusted(name: str) -> bool:
    """Return True for a file or a module that `trust` has recorded."""
    try:
        lines = _trusted_names().read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return json.dumps(name) in lines  # quoted: a path may contain line breaks


def content_key(content: bytes) -> str:
    """Return the name under which `trust` records the content of a file."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def load_options(names: Sequence[str]) -> str:
    """Return the options that name files and modules on a command line."""
    return " ".join(f"--load {shlex.quote(name)}" for name in names)


def _trusted_names() -> Path:
    return config_folder() / "trusted_task_files"


def _user_agrees(run: RunFolder, names: Sequence[str]) -> bool:
    """Ask whether a run may load its task; without a terminal to ask at, it may not."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    # `repr` shows control characters, with which a name could hide the question.
    print(
        f"The run '{run.path}' loads its task from {', '.join(map(repr, names))}, with which you "
        "have not trained yet. Run this code? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def remembered(run: RunFolder) -> tuple[str, ...]:
    """Return the files and modules that registered the task of a run in its training.

    Relative paths and files in the run folder itself do not count, because a training records
    neither.
    """
    names: list[str] = []
    for name in run.loaded():
        path = Path(name)
        inside = path.resolve().is_relative_to(run.path.resolve())
        if path.suffix != ".py" or (path.is_absolute() and not inside):
            names.append(name)
    return tuple(names)


def absolute(names: Sequence[str]) -> tuple[str, ...]:
    """Return values of `--load` that mean the same from another folder."""
    found: list[str] = []
    for name in names:
        if name.endswith(".py"):
            name = str(Path(name).resolve())
        found.append(name)
    return tuple(found)


def _load_file(path: Path, original: Path) -> None:
    """Import a Python file.

    Args:
        path: the file.
        original: file that it is a copy of, or itself; names the module.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file '{path}' to load tasks from.{near_files(path)} Give --load the path "
            "of a Python file."
        )
    content = path.read_bytes()
    module_name = _module_name(original)
    spec = importlib.util.spec_from_file_location(module_name, original)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    LOADED[str(original.resolve())] = content
    try:
        exec(compile(content, str(path), "exec"), vars(module))  # as `import` does
    except Exception as error:
        del sys.modules[module_name]
        where = ""
        for frame in traceback.extract_tb(error.__traceback__):
            if Path(frame.filename).resolve() == path.resolve():
                where = f", line {frame.lineno}"
        raise ValueError(
            f"Cannot load tasks from '{path}'{where}: {type(error).__name__}: {error}"
        ) from error


def _module_name(path: Path) -> str:
    """Return the name by which `import` finds a file, or one of its own if that one is taken.

    Exported policies name functions by module, and programs import the file to provide them. But a
    file called random.py must not replace the standard module.
    """
    if path.stem.isidentifier():
        found = module_file(path.stem)
        if found is None or found.resolve() == path.resolve():
            return path.stem
    return f"manyworlds_loaded_{path.stem}"


def module_file(name: str) -> Path | None:
    """Return the file of the module that `import` finds by a name without dots.

    Returns:
        The file; for modules without one, such as `sys`, what Python says instead; None if there is
        no module, or only a folder without `__init__.py`.
    """
    if name in sys.modules:
        return Path(getattr(sys.modules[name], "__file__", None) or name)
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin)
