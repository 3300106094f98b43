"""How the help writes the values of options: as one types them."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin

from tyro.conf import UsePythonSyntaxForLiteralCollections
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
)

VALUE_FORMS = ConstructorRegistry()
"""Rule of tyro: no `{None}|` before the kind of a value, and text in collections in double quotes,
so that the shell needs single quotes around them only."""

_asked: list[PrimitiveTypeInfo] = []


@VALUE_FORMS.primitive_rule
def value_form(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """Return the form of tyro with the help's words; None for all other types."""
    is_union = get_origin(info.type) in (Union, types.UnionType)
    is_collection = UsePythonSyntaxForLiteralCollections in info.markers
    if _asked or not (is_union or (is_collection and _is_sequence(info.type))):
        return None
    _asked.append(info)  # so that this rule is not asked again
    try:
        form = ConstructorRegistry.get_primitive_spec(info)
    finally:
        _asked.pop()
    if not isinstance(form, PrimitiveConstructorSpec):
        return None
    written = form.str_from_instance

    def typed(instance: Any) -> list[str]:
        if is_collection:
            return [_double_quoted(text) for text in written(instance)]
        return written(instance)

    metavar = form.metavar.replace("{None}|", "").replace("|{None}", "")
    return dataclasses.replace(form, metavar=metavar, str_from_instance=typed)


def _is_sequence(kind: Any) -> bool:
    """Return True for sequences without dictionaries, whose entries tyro makes options."""
    if get_origin(kind) not in (list, tuple):
        return False
    plain = (int, float, str, bool, ...)
    return all(
        part in plain or get_origin(part) is Literal or _is_sequence(part)
        for part in get_args(kind)
    )


def _double_quoted(text: str) -> str:
    if '"' in text:
        return text
    return text.replace("'", '"')
