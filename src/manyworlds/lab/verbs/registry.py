"""Registry of verbs: everything that can be done to a live world, by name.

A verb is a function of a lab with typed fields. The page, Python programs and network protocols
call the same verbs, as methods (`LabVerbs`) or by name (`LabFace.call`); `describe_verbs` is their
catalogue.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_type_hints

from manyworlds.lab.errors import UnknownElementError, VerbError, near
from manyworlds.lab.loop.faults import FaultError
from manyworlds.lab.verb_methods import Reply
from manyworlds.lab.verbs.fields import Field, Integer, Number
from manyworlds.utils.extras import MissingExtraError

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_Call = Callable[..., Reply]
_T = TypeVar("_T")

_CODES: tuple[tuple[type[Exception], str], ...] = (
    (FaultError, "faulted"),
    (TimeoutError, "step_timeout"),
    (FileExistsError, "path_not_writable"),
    (OSError, "path_not_readable"),
    (MissingExtraError, "not_ready"),
    (RuntimeError, "not_ready"),
    (UnknownElementError, "unknown_element"),
    (KeyError, "bad_value"),
    (ValueError, "bad_value"),
)
"""Codes of the errors that the parts of a lab raise, by their types."""

ALWAYS: Mapping[str, Field] = {
    "frame_id": Integer(text="number of a snapshot that shows the effect on the world"),
    "time": Number(unit="s", text="simulated time of that snapshot"),
}
"""Fields of every reply."""


@dataclass(frozen=True)
class Verb:
    """One thing that can be done to a live world."""

    name: str
    call: _Call
    fields: Mapping[str, Field]
    defaults: Mapping[str, object]
    """Values of the fields that may be left out."""
    reply: Mapping[str, Field]
    """Fields of the reply, besides `ALWAYS`."""
    reads: bool = False
    """True if it only reads: observers may call it, and a client repeats it after a reconnect."""

    @property
    def text(self) -> str:
        """Meaning of the verb, in one sentence."""
        return (inspect.getdoc(self.call) or "").partition("\n")[0]

    def __call__(self, lab: LiveLab, fields: Mapping[str, object]) -> Reply:
        """Check the fields, do it, wait for its effect, and reply.

        Raises:
            VerbError: a field is missing, unknown or wrong, or the lab refuses.
        """
        values = self.check(lab, fields)
        try:
            reply = self.call(lab, **values)
        except VerbError:
            raise
        except tuple(kind for kind, _ in _CODES) as error:
            code = next(code for kind, code in _CODES if isinstance(error, kind))
            text = str(error)
            if isinstance(error, KeyError) and error.args:
                text = str(error.args[0])
            if isinstance(error, TimeoutError):
                text = f"{self.name} was not carried out in time: the physics thread is busy."
            raise VerbError(code, text or type(error).__name__) from error
        snapshot = lab.snapshot
        return reply | {"frame_id": snapshot.frame_id, "time": snapshot.time}

    def check(self, lab: LiveLab, fields: Mapping[str, object]) -> dict[str, object]:
        """Return all fields in their types.

        Raises:
            VerbError: a field is missing, unknown or wrong.
        """
        return check_fields(self.name, self.fields, self.defaults, fields, lab)

    def describe(self) -> dict[str, object]:
        """Return name, meaning, fields and reply as plain data."""
        fields = describe_fields(self.fields, self.defaults)
        reply = [{"name": name, **f.describe()} for name, f in {**self.reply, **ALWAYS}.items()]
        return {
            "name": self.name,
            "text": self.text,
            "reads": self.reads,
            "fields": fields,
            "reply": reply,
        }


VERBS: dict[str, Verb] = {}
"""All verbs, by name."""


def verb(*, reads: bool = False, **reply: Field) -> Callable[[_Call], _Call]:
    """Register a function of a lab as a verb of the same name.

    The function's parameters, `Annotated` with a `Field` each, are the fields of the verb; those
    with a default may be left out.

    Args:
        reads: whether it only reads, and changes neither the world nor a file.
        **reply: fields of the reply.
    """

    def register(call: _Call) -> _Call:
        fields, given = declared_fields(call)
        name = getattr(call, "__name__", "")
        VERBS[name] = Verb(name, call, fields, given, reply, reads)
        return call

    return register


def declared_fields(call: _Call) -> tuple[dict[str, Field], dict[str, object]]:
    """Return the fields that a function's parameters after the first declare, and the defaults."""
    # The annotation of the lab is not evaluated: its module imports this one.
    hints = get_type_hints(call, localns={"LiveLab": object}, include_extras=True)
    _, *parameters = inspect.signature(call).parameters.values()
    fields = {p.name: _field(hints[p.name]) for p in parameters}
    return fields, {p.name: p.default for p in parameters if p.default is not p.empty}


def check_fields(
    subject: str,
    declared: Mapping[str, Field],
    defaults: Mapping[str, object],
    given: Mapping[str, object],
    lab: object,
    *,
    strict: bool = True,
) -> dict[str, object]:
    """Return all fields in their types.

    Args:
        subject: name of what has the fields, for messages.
        declared: the fields.
        defaults: values of those that may be left out.
        given: values.
        lab: the world that knows names, as the fields expect it.
        strict: whether further values are an error; otherwise they are left out.

    Raises:
        VerbError: a field is missing, unknown or wrong.
    """
    for name in given:
        if strict and name not in declared:
            known = ", ".join(declared) or "none"
            raise VerbError(
                "bad_request",
                f"{subject} has no field '{name}'; fields: {known}{near(name, declared)}",
            )
    values = dict(defaults)
    for name, field in declared.items():
        if given.get(name) is None and name in values:
            continue  # left out, also in the way of protocols that send all fields
        if name not in given or (given[name] is None and not strict):
            meaning = f" ({field.text})" if field.text else ""
            raise VerbError("missing_field", f"{subject} needs '{name}'{meaning}.")
        try:
            values[name] = field.check(given[name], cast("LiveLab", lab))
        except VerbError as error:
            raise VerbError(error.code, f"{subject}: {name} {error}") from None
    return values


def describe_fields(
    fields: Mapping[str, Field], defaults: Mapping[str, object]
) -> list[dict[str, object]]:
    """Return fields as plain data."""
    described = []
    for name, field in fields.items():
        rest: Reply = {"required": True}
        if name in defaults:
            default = defaults[name]
            plain = list(default) if isinstance(default, tuple) else default
            rest = {"required": False, "default": plain}
        described.append({"name": name, **field.describe(), **rest})
    return described


def _field(hint: Any) -> Field:
    """Return the field of an annotation, also of one that allows None."""
    parts = get_args(hint)
    found = [part for part in parts if isinstance(part, Field)]
    if found:
        return found[0]
    return next(_field(part) for part in parts if get_args(part))


def between_steps(lab: LiveLab, change: Callable[[], _T]) -> _T:
    """Make a change that leaves the model as it is between two steps, and wait for its snapshot."""
    return lab.loop.do(lambda model, data: change(), edits_model=False)


def find_verb(name: str) -> Verb:
    """Return a verb.

    Raises:
        VerbError: there is none of this name.
    """
    if name not in VERBS:
        raise VerbError("unknown_op", f"There is no verb '{name}'{near(name, VERBS)}")
    return VERBS[name]


def describe_verbs() -> list[dict[str, object]]:
    """Return the catalogue of all verbs as plain data, sorted by name."""
    return [VERBS[name].describe() for name in sorted(VERBS)]
