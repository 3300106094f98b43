"""The state of the code that a run was trained with: commit, status and changes, as git tells."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from manyworlds.utils.files import write_atomic

_QUESTIONS = {
    b"git commit": ("rev-parse", "HEAD"),
    b"git status": ("status",),
    b"git diff": ("diff", "HEAD"),
}


def write_code_state(folder: Path, places: Iterable[Path]) -> list[Path]:
    """Write a file for each repository that one of the places lies in.

    A run does not need it: where git is not installed, nothing is written.

    Args:
        folder: where `<name of the repository>.diff` is written, in the bytes that git gives
            (changed files may be in any encoding); made if it is needed.
        places: folders. Those outside of repositories, or in one without a commit, are left out.

    Returns:
        The files written.
    """
    files = []
    for top in dict.fromkeys(_git(place, "rev-parse", "--show-toplevel") for place in places):
        if not top:
            continue
        repository = Path(os.fsdecode(top))
        answers = {title: _git(repository, *words) for title, words in _QUESTIONS.items()}
        if answers[b"git commit"]:
            files.append(folder / f"{repository.name}.diff")
            parts = (b"--- %b ---\n%b\n" % part for part in answers.items())
            write_atomic(files[-1], b"\n".join(parts))
    return files


def _git(place: Path, *words: str) -> bytes:
    """What git says in a folder; empty if it says that it cannot."""
    command = ["git", "-C", str(place), *words]
    try:
        run = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return b""
    return run.stdout.rstrip(b"\n") if run.returncode == 0 else b""
