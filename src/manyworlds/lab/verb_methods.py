"""Verbs of a live world as methods.

`verb_methods.pyi` declares them for editors, with types, units and meanings; `tools/write_verbs.py`
writes it from the registry of verbs. Order and defaults of fields are read from there, too, so that
programs that call a lab do not import its parts.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Reply = dict[str, Any]
"""Reply of a verb that is called by its name: plain data, bytes and arrays."""


@dataclass(frozen=True)
class DeclaredVerb:
    """Verb as `verb_methods.pyi` declares it."""

    signature: inspect.Signature
    text: str
    reads: bool
    """True if it only reads."""


@functools.cache
def declared_verbs() -> Mapping[str, DeclaredVerb]:
    """Return all verbs that `verb_methods.pyi` declares, by name."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    found = {}
    for declared in stub.body:
        if not isinstance(declared, ast.ClassDef) or declared.name != "LabVerbs":
            continue
        for method in declared.body:
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                text = ast.get_docstring(method) or ""
                reads = bool(method.decorator_list)  # the only decorator is `_reads`
                found[method.name] = DeclaredVerb(_signature(method), text, reads)
    return found


def only_reads(verb: str) -> bool:
    """Return True if a verb only reads, so that it may be called again after a lost connection."""
    declared = declared_verbs().get(verb)
    return declared is not None and declared.reads


def _signature(method: ast.FunctionDef) -> inspect.Signature:
    """Return the signature without `self`."""
    declared = method.args.args[1:]
    num_required = len(declared) - len(method.args.defaults)
    parameters = []
    for position, argument in enumerate(declared):
        default = inspect.Parameter.empty
        if position >= num_required:
            default = ast.literal_eval(method.args.defaults[position - num_required])
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(argument.arg, kind, default=default))
    return inspect.Signature(parameters)


class LabVerbs:
    """All verbs of a live world, as methods of the same names.

    Args:
        call: carries out a verb by its name and fields.
    """

    def __init__(self, call: Callable[..., Mapping[str, Any]]) -> None:
        self._call_verb = call

    def __getattr__(self, name: str) -> Callable[..., Mapping[str, Any]]:
        """Return a verb as a method."""
        verb = None
        if not name.startswith("_"):
            verb = declared_verbs().get(name)
        if verb is None:
            return super().__getattribute__(name)  # raises, for a property its own error

        def method(*values: object, **fields: object) -> Mapping[str, Any]:
            try:
                given = verb.signature.bind(*values, **fields)
            except TypeError as error:
                known = ", ".join(verb.signature.parameters) or "none"
                raise TypeError(f"{name}: {error}; fields: {known}.") from None
            return self._call_verb(name, **given.arguments)

        method.__name__ = name
        method.__qualname__ = f"LabVerbs.{name}"
        method.__doc__ = verb.text
        method.__signature__ = verb.signature  # type: ignore[attr-defined]
        return method

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *declared_verbs()]
