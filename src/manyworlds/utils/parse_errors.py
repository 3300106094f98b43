"""Errors of tyro's parsing as sentences."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from manyworlds.utils.config import flatten, to_plain
from manyworlds.utils.usage import UsageError

try:
    from tyro import _errors as events  # private; without it, tyro prints errors in its own way
except ImportError:
    events = None

_KINDS = {
    "INT": "an integer",
    "FLOAT": "a number",
    "STR": "a text",
    "PATH": "a path",
    "{True,False}": "True or False",
}
"""Values by the names that tyro gives to their types."""
_ALIKE = 0.8  # least similarity of a suggested option
_NUMBERS = re.compile(r"[-+.,\d()\[\]e]*\d[-+.,\d()\[\]e]*")
_QUOTED = re.compile(r"'([^']*)'")
_OF_WRONG_TYPE = re.compile(r"Value (.*) \(type <class")
_EXAMPLE = re.compile(r'such as ("\{.*?\}")')


@contextlib.contextmanager
def parse_errors_as_sentences(*options: object) -> Iterator[None]:
    """Make tyro raise errors of the command line instead of printing them in a box.

    Args:
        options: dataclasses of options, or instances with their defaults, to suggest options from.

    Raises:
        UsageError: the command line is wrong.
    """
    if events is None:
        yield
        return

    def report(event: Any) -> None:
        text = _sentence(event, options)
        if text:
            see = " See" if text.endswith("?") else ": see"
            raise UsageError(f"{text}{see} `{event.prog} --help`.")

    with events.on_parse_error(report):
        yield


def _sentence(event: Any, options: Sequence[object]) -> str | None:
    """Return a sentence without its end; None for events that tyro may have in later versions."""
    assert events is not None
    if isinstance(event, events.UnrecognizedArgs):
        return _unknown(event.tokens, options)
    if isinstance(event, events.MissingArgs):
        needed = [_shown(missing.arg) for missing in event.missing_arguments]
        return f"{event.prog} needs {' and '.join(needed)}"
    if isinstance(event, events.MissingSubcommand):
        return f"{event.prog} needs {_either(event.subcommand_spec.parser_from_name)}"
    if isinstance(event, events.InvalidChoice):
        return f"{_name(event.argument)} takes {_kind(event.argument)}, got '{event.value}'"
    if isinstance(event, events.BadValue) and event.reason == "too_few_values":
        return f"{_name(event.argument)} needs a value, {_kind(event.argument)}"
    if isinstance(event, events.InstantiationFailure):
        message = " ".join(event.message.split())
        if event.argument is None:
            return message.rstrip(".")
        value = _OF_WRONG_TYPE.match(message) or _QUOTED.search(message)
        if value:
            return f"{_name(event.argument)} takes {_kind(event.argument)}, got '{value[1]}'"
        return f"{_name(event.argument)}: {message.rstrip('.')}"
    return None


def _unknown(tokens: list[str], options: Sequence[object]) -> str:
    """Return a text about the first option that does not exist, or the first argument too many."""
    unknown = next((token for token in tokens if token.startswith("-")), None)
    if unknown is None:
        remedy = ""
        if _NUMBERS.fullmatch(tokens[0]):
            seeds = " and seeds as in 1,2,3" if "--seeds" in _options(options) else ""
            remedy = f'; write several values of one option as in "(64, 64)"{seeds}'
        return f"The argument '{tokens[0]}' is one too many{remedy}"
    unknown = unknown.partition("=")[0].replace("_", "-")
    names = _options(options)
    alike = [name for name in names if _last(name) == _last(unknown)]
    close = difflib.get_close_matches(unknown, alike, cutoff=0.0) if alike else []
    close = close or difflib.get_close_matches(unknown, names, n=1, cutoff=_ALIKE)
    meant = f"; did you mean {_either(close)}?" if close else ""
    return f"There is no option {unknown}{meant}"


def _options(sources: Sequence[object]) -> list[str]:
    """Return the names of all options of dataclasses, or of instances and what they contain."""
    paths: list[str] = []
    for source in sources:
        if not isinstance(source, type):
            paths += flatten(to_plain(source))
        elif dataclasses.is_dataclass(source):
            paths += [field.name for field in dataclasses.fields(source)]
    return ["--" + path.replace("_", "-") for path in paths]


def _last(option: str) -> str:
    return option.lstrip("-").rpartition(".")[2]


def _name(argument: Any) -> str:
    if argument.is_positional():
        return str(argument.lowered.metavar)
    return argument.lowered.name_or_flags[0]


def _shown(argument: Any) -> str:
    if argument.is_positional():
        return _name(argument)
    return f"{_name(argument)} {argument.lowered.metavar}"


def _kind(argument: Any) -> str:
    """Return the values that an option takes, as text."""
    found = []
    for kind in str(argument.lowered.metavar).split("|"):
        if kind in _KINDS:
            found.append(_KINDS[kind])
        elif kind.startswith("{") and ":" in kind:
            example = _EXAMPLE.search(_help(argument))
            found.append(f"a dictionary such as {example[1] if example else kind}")
        elif (kind.startswith("{") and "," in kind) or kind == "{None}":
            found += [choice for choice in kind.strip("{}").split(",") if choice != "None"]
        elif "INT" in kind or "FLOAT" in kind:
            found.append(f"numbers as {kind}")
        else:
            found.append(kind.strip("{}") if kind.startswith("{") else kind)
    return _either(found)


def _help(argument: Any) -> str:
    """Return the help of an option, which tyro may make when it is needed."""
    text = argument.lowered.help
    return " ".join(str(text() if callable(text) else text).split())


def _either(choices: Iterable[str]) -> str:
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last
