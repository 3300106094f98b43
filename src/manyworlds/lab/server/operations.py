"""Operations that clients request.

An operation is a verb under its own name, or a function with typed fields. Those of the lab's own
protocol are in `OPERATIONS`; plugins of a server add theirs. `meta` and `docs/lab_protocol.md` are
made from them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.robots.control import NET
from manyworlds.lab.verb_methods import LabVerbs
from manyworlds.lab.verbs import VERBS
from manyworlds.lab.verbs.fields import Field, FilePath, PlainDict
from manyworlds.lab.verbs.registry import (
    ALWAYS,
    Reply,
    check_fields,
    declared_fields,
    describe_fields,
)

if TYPE_CHECKING:
    from manyworlds.lab.server.dispatcher import Dispatcher
    from manyworlds.lab.server.sessions import Session

Category = Literal["manager_required", "no_manager", "editor_only"]

DRAWN = frozenset({"capture_camera"})
"""Verbs that the server carries out itself, because drawing would delay the lab's process."""
STEPS = frozenset({"step", "step_task"})
"""Verbs that do something else in another mode."""
_OF_REQUESTS = ("op", "session_id", "lab_id")
LOCAL = frozenset(
    name
    for name, verb in VERBS.items()
    if any(isinstance(field, FilePath) for field in verb.fields.values())
)
"""Verbs that name any file of the lab's machine, which are for programs in its process only."""


class NotYetError(VerbError):
    """Error of a request whose answer is being prepared: the same request has it a little later.

    Args:
        text: the reason, for clients that do not wait.
        patience_s: longest wait since the request came [s]; None for that of its socket.
    """

    def __init__(self, text: str, patience_s: float | None = None) -> None:
        super().__init__("not_ready", text)
        self.patience_s = patience_s


@dataclass
class Request:
    """One request of a client, and all that an operation may use to answer it."""

    server: Dispatcher
    face: LabFace
    session: Session
    kept: dict[str, Any] = field(default_factory=dict)
    """What plugins keep until the request is answered."""

    @functools.cached_property
    def verbs(self) -> LabVerbs:
        """Verbs of the lab, for this client; see `call`."""
        return LabVerbs(self.call)

    def call(self, verb: str, **fields: object) -> PlainDict:
        """Carry out a verb of the lab; the end of the session undoes a change of the mode."""
        answer = dict(self.face.call(verb, **fields))
        if verb == "set_mode":
            self.session.mode_before = self.session.mode_before or str(answer["previous_mode"])
            self.session.mode = str(answer["current_mode"])
        return answer

    def call_as_network(self, verb: str, given: Mapping[str, object]) -> PlainDict:
        """Carry out a verb with the fields of a request.

        Raises:
            VerbError: the lab refuses, or the verb makes steps, and the mode is not the client's.
        """
        if verb in STEPS:
            self.check_mode(verb, mode_of(self.face.snapshot))
        return self.call(verb, **as_network(verb, given))

    def check_mode(self, name: str, present: str) -> None:
        """Check that the world is in the mode in which the client drives it.

        Raises:
            VerbError: the mode was changed by somebody else, as by the page.
        """
        known = self.session.mode
        if known not in ("", present):
            raise VerbError(
                "bad_mode",
                f"{name}: this client drives in the mode '{known}', and somebody else has changed "
                f"it to '{present}': set_mode chooses one.",
            )


@dataclass(frozen=True)
class ClientOperation:
    """One thing that a client can request."""

    name: str
    text: str
    fields: Mapping[str, Field]
    defaults: Mapping[str, object]
    """Values of the fields that may be left out."""
    reply: Mapping[str, Field]
    call: Callable[..., Reply]
    writes: bool = True
    """True if only the client that drives may request it."""
    namespace: str = "runtime"
    category: Category = "manager_required"
    verb: str = ""
    """Verb whose name and fields it has; empty for operations of their own."""

    @functools.cached_property
    def required(self) -> list[str]:
        """Names of the fields that may not be left out."""
        return [name for name in self.fields if name not in self.defaults]

    def check_present(self, given: Mapping[str, object]) -> None:
        """Check that no required field is left out.

        Raises:
            VerbError: one is.
        """
        for name in self.required:
            if given.get(name) is None:
                text = self.fields[name].text
                meaning = f" ({text})" if text else ""
                raise VerbError("missing_field", f"{self.name} needs '{name}'{meaning}.")

    def answer(self, request: Request, given: Mapping[str, object]) -> Reply:
        """Carry it out.

        Raises:
            VerbError: a field is wrong, or the lab refuses.
        """
        if self.verb:
            return self.call(request, given)
        values = check_fields(self.name, self.fields, self.defaults, given, None, strict=False)
        return self.call(request, **values)

    def describe(self) -> dict[str, object]:
        """Return everything about it as plain data, as `meta` does."""
        reply = [f"{name}:{field.type}" for name, field in self.reply.items()]
        return {
            "name": self.name,
            "category": self.category,
            "namespace": self.namespace,
            "required_fields": self.required,
            "reply_fields": reply,
            "text": self.text,
            "fields": describe_fields(self.fields, self.defaults),
            "reply": describe_fields(self.reply, {}),
            "observers": not self.writes,
        }


_Call = TypeVar("_Call", bound=Callable[..., Reply])


class Registry(dict[str, ClientOperation]):
    """Operations by name."""

    def operation(
        self,
        namespace: str = "runtime",
        *,
        writes: bool = True,
        category: Category = "manager_required",
        reply: Mapping[str, Field] | None = None,
        **replies: Field,
    ) -> Callable[[_Call], _Call]:
        """Register a function of a request as an operation of the same name.

        Args:
            namespace: group of the operation, under which clients offer it.
            writes: whether only the client that drives may request it.
            category: whether it needs a world.
            reply: fields of the reply, besides `op`.
            **replies: further ones.
        """

        def register(call: _Call) -> _Call:
            fields, defaults = declared_fields(call)
            told = {**(reply or {}), **replies}
            name = getattr(call, "__name__", "").removesuffix("_")
            text = (call.__doc__ or "").partition("\n")[0]
            self[name] = ClientOperation(
                name, text, fields, defaults, told, call, writes, namespace, category
            )
            return call

        return register

    def add_verbs(self) -> None:
        """Register all verbs under their own names, except where there is an operation."""
        for name, verb in VERBS.items():
            if name in self or name in LOCAL:
                continue
            defaults = dict(verb.defaults)
            if "owner" in verb.fields:
                defaults["owner"] = NET
            self[name] = ClientOperation(
                name=name,
                text=verb.text,
                fields=verb.fields,
                defaults=defaults,
                reply={**verb.reply, **ALWAYS},
                call=_caller(name),
                writes=not verb.reads,
                namespace="lab",
                verb=name,
            )


OPERATIONS = Registry()
"""Operations of the lab's own protocol, by name."""
operation = OPERATIONS.operation


def _caller(verb: str) -> Callable[..., Reply]:
    def call(request: Request, given: Mapping[str, object]) -> Reply:
        return request.call_as_network(verb, given)

    return call


def as_network(verb: str, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a verb with the network as the client that writes targets."""
    values = {key: value for key, value in fields.items() if key not in _OF_REQUESTS}
    declared = VERBS[verb]
    if "owner" in declared.fields and (values.get("owner") is None or "owner" in declared.defaults):
        values["owner"] = NET
    return values


def mode_of(snapshot: Snapshot) -> str:
    """Return the mode of the world: `live`, `direct` or `puppet`."""
    return "puppet" if snapshot.stepper == "puppet" else snapshot.mode
