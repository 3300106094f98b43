"""Operations that clients request: rows that map the protocol's names onto verbs.

An operation is a verb under its own name, or a function with typed fields that calls verbs and
translates names. All are in `OPERATIONS`; `meta` and `docs/lab_protocol.md` are made from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.robots.control import NET
from manyworlds.lab.server.observations import mode_of
from manyworlds.lab.server.roster import Roster
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

EDITOR = frozenset(
    {
        *("import_xml", "create_level", "load_level", "save_level"),
        *("current_level", "ensure_manager", "destroy_asset", "snapshot"),
        *("duplicate_actor", "actor_hierarchy", "spawn_actor", "spawn_grid"),
        *("spawn_light", "destroy_actor", "set_actor_transform", "find_actors"),
        *("list_actors", "list_blueprints", "get_actor_bounds", "select_actor"),
        *("add_quick_convert", "remove_quick_convert", "draw_marker", "draw_line"),
        *("draw_box", "draw_axes", "draw_arrow", "clear_markers"),
        *("set_overlay_text", "set_camera", "get_camera", "frame_actor"),
        *("set_viewport_mode", "track_actor", "untrack"),
    }
)
"""Operations of URLab that edit scenes; a lab has verbs of other names for that."""


class NotYetError(VerbError):
    """Error of a request whose answer is being prepared: the same request has it a little later."""

    def __init__(self) -> None:
        super().__init__(
            "not_ready", "The model is being exported for clients: ask again in some seconds."
        )


@dataclass
class Request:
    """One request of a client, and all that an operation may use to answer it."""

    server: Dispatcher
    face: LabFace
    session: Session

    @functools.cached_property
    def roster(self) -> Roster:
        """Members of the world, for operations of URLab; verbs of the lab do not need them."""
        return self.server.refresh()

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

    @property
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


OPERATIONS: dict[str, ClientOperation] = {}
"""All operations, by name."""

_Call = TypeVar("_Call", bound=Callable[..., Reply])


def operation(
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
        OPERATIONS[name] = ClientOperation(
            name, text, fields, defaults, told, call, writes, namespace, category
        )
        return call

    return register


def pass_to_verb(
    name: str,
    verb: str = "",
    fields: Mapping[str, str] | None = None,
    reply: Mapping[str, str] | None = None,
    echo: Sequence[str] = (),
    namespace: str = "runtime",
    **convert: Callable[[Request, object], object],
) -> None:
    """Register an operation that is a verb with other names of fields.

    Args:
        name: name of the operation.
        verb: name of the verb; the same by default.
        fields: names of the verb's fields by those of the operation; the same by default.
        reply: names of the verb's reply fields by those of the operation; the same by default.
        echo: fields of the operation that the reply repeats.
        namespace: group of the operation.
        **convert: functions that turn values of the operation's fields into those of the verb.
    """
    source = VERBS[verb or name]
    fields = {field: field for field in source.fields} if fields is None else fields
    told = {field: field for field in source.reply} if reply is None else reply
    back = {old: new for new, old in fields.items()}
    declared = {new: source.fields[old] for new, old in fields.items()}

    def call(request: Request, given: Mapping[str, object]) -> Reply:
        values = {
            fields[key]: convert[key](request, value) if key in convert else value
            for key, value in given.items()
            if key in fields and value is not None
        }
        answer = request.call(source.name, **values)
        repeated = {key: given.get(key) for key in echo}
        return repeated | {new: answer[old] for new, old in told.items()}

    OPERATIONS[name] = ClientOperation(
        name=name,
        text=source.text,
        fields=declared,
        defaults={back[old]: v for old, v in source.defaults.items() if old in back},
        reply={key: declared[key] for key in echo}
        | {new: {**source.reply, **ALWAYS}[old] for new, old in told.items()},
        call=call,
        writes=not source.reads,
        namespace=namespace,
        verb=source.name,
    )


def add_verbs() -> None:
    """Register all verbs under their own names, except where the protocol has an operation."""
    for name, verb in VERBS.items():
        if name not in OPERATIONS and name not in LOCAL:
            OPERATIONS[name] = ClientOperation(
                name=name,
                text=verb.text,
                fields=verb.fields,
                defaults={**verb.defaults, **({"owner": NET} if "owner" in verb.fields else {})},
                reply={**verb.reply, **ALWAYS},
                call=_caller(name),
                writes=not verb.reads,
                namespace="lab",
                verb=name,
            )


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
