"""Parsing of command lines as the commands do it, without running the commands."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import tyro

from manyworlds.cli import task_fields
from manyworlds.cli.errors import UsageError
from manyworlds.cli.main import COMMANDS, load_command


class Parsing(NamedTuple):
    """Call of `tyro.cli`, with which a command parses its arguments."""

    options: Any
    """Dataclass of the options."""
    settings: dict[str, Any]
    """Other arguments of the call."""


class _ParsedError(Exception):
    """The whole command line is parsed."""


def parse_line(argv: list[str]) -> None:
    """Parse a command line, and stop where the command would run.

    Args:
        argv: the name of a command, and its arguments.

    Raises:
        UsageError: the command line is wrong.
    """
    name, *args = argv
    if name not in COMMANDS:
        raise UsageError(f"There is no command '{name}'.")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), _parsed(check=True):
            load_command(name).main(args)
    except SystemExit:
        text = " ".join(printed.getvalue().replace("│", " ").split())
        raise UsageError(text) from None


def parsings(argv: list[str]) -> list[Parsing]:
    """Return the calls of tyro for a command line without options, the last one for all of it.

    Args:
        argv: the name of a command, and what chooses its options, such as the name of a task.
    """
    name, *args = argv
    with _parsed(check=False) as found:
        load_command(name).main([*args, "--help"])
    return found


@contextlib.contextmanager
def _parsed(*, check: bool) -> Iterator[list[Parsing]]:
    """Record the calls of tyro, and stop at the one that parses the whole command line."""
    found: list[Parsing] = []
    parse = tyro.cli
    parse_fields = task_fields.parse_fields

    def stop_without_fields(config: Any, words: list[str], *rest: Any) -> Any:
        if not words:  # the command would run: tyro is not called for no fields
            raise _ParsedError
        return parse_fields(config, words, *rest)

    def record(kind: Any, **settings: Any) -> Any:
        found.append(Parsing(kind, settings))
        if settings.get("add_help") is False:
            return parse(kind, **settings)  # the command's own options; fields of a task follow
        if check:
            parse(kind, **{**settings, "return_unknown_args": False})
        raise _ParsedError

    def record_subcommand(commands: dict[str, Any], args: list[str], **settings: Any) -> Any:
        if not args or args[0] not in commands:
            raise UsageError(f"{settings['prog']} needs {' or '.join(commands)}.")
        settings |= {"prog": f"{settings['prog']} {args[0]}", "description": None}
        return record(commands[args[0]], args=args[1:], **settings)

    with (
        mock.patch.object(tyro, "cli", record),
        mock.patch.object(task_fields, "parse_fields", stop_without_fields),
        mock.patch.object(tyro.extras, "subcommand_cli_from_dict", record_subcommand),
        contextlib.suppress(_ParsedError),
    ):
        yield found
