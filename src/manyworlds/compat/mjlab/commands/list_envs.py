"""The command `list-envs` as a function."""

from __future__ import annotations

import sys

from manyworlds.cli import list as command


def list_environments(keyword: str | None = None) -> None:
    """Print the names of the tasks that contain a text; None prints all."""
    words = []
    if keyword is not None:
        words = [keyword]
    command.main(words)


def main() -> None:
    """Run the command with the arguments of the process, `KEYWORD` or `--keyword KEYWORD`."""
    from manyworlds.compat.mjlab.names import run_command

    arguments = [text.removeprefix("--keyword=") for text in sys.argv[1:] if text != "--keyword"]
    run_command("list", arguments)
