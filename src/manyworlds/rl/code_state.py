"""State of the code that a run is trained with: commit, status and changes, as reported by git."""

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
    """Write a file for each repository that contains one of the places.

    Training does not need these files: if git is not installed, nothing is written.

    Args:
        folder: folder of the files `<name of the repository>.diff`, which hold git's output as
            bytes (changed files may have any encoding); created if necessary.
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


def read_code_state(folder: Path) -> dict[str, str]:
    """Read the commit of each repository that `write_code_state` wrote to a folder.

    Returns:
        Commits by the names of the repositories, with "-dirty" if files differed from the commit.
    """
    commits = {}
    for path in sorted(folder.glob("*.diff")):
        parts = path.read_bytes().split(b"--- git ", 3)
        found = dict(part.split(b" ---\n", 1) for part in parts[1:] if b" ---\n" in part)
        commit = found.get(b"commit", b"").strip().decode("ascii", "replace")
        if found.get(b"diff", b"").strip():
            commit += "-dirty"
        commits[path.stem] = commit
    return commits


def _git(place: Path, *words: str) -> bytes:
    """Return git's output in a folder; empty if git fails."""
    command = ["git", "-C", str(place), *words]
    try:
        run = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return b""
    if run.returncode != 0:
        return b""
    return run.stdout.rstrip(b"\n")
