"""Operations of sessions: greeting, catalogue, who drives, verbs and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

import mujoco

from manyworlds.lab.errors import VerbError, near
from manyworlds.lab.loop.shared_snapshots import pack_snapshot
from manyworlds.lab.server.messages import Encoding
from manyworlds.lab.server.operations import (
    DRAWN,
    LOCAL,
    OPERATIONS,
    Request,
    operation,
)
from manyworlds.lab.server.sessions import HEARTBEAT_S, Subscriber, label
from manyworlds.lab.verbs import describe_verbs as describe_all_verbs
from manyworlds.lab.verbs import find_verb
from manyworlds.lab.verbs.fields import (
    Choice,
    Field,
    Flag,
    Integer,
    Listing,
    Number,
    PlainDict,
    PlainMap,
    Texts,
    Values,
)
from manyworlds.lab.verbs.registry import Reply
from manyworlds.utils.extras import own_version

if TYPE_CHECKING:
    from manyworlds.lab.server.dispatcher import Dispatcher

PROTOCOL = 1
"""Version of the additions to the protocol."""
SNAPSHOT_OF = "version of the model whose layout the client knows, or -1; asks for a snapshot"


ROLE = Choice(options=("driver", "observer", "takeover"), text="drive if nobody does; watch; drive")
"""Part that a client asks for."""


@operation(
    "session",
    writes=False,
    category="no_manager",
    session_id=Field(text="id to send with each further request"),
    server=Field(text="name and version of this program"),
    protocol=Integer(text="version of this program's additions"),
    ports=Values(text="ports of this server by their use"),
    mujoco_version=Field(),
    mujoco_version_int=Integer(),
    lab_id=Field(text="id of the lab; requests that repeat it are refused by any other lab"),
    manager_present=Flag(text="false while no world is loaded"),
    driver=Flag(text="true if this client drives"),
)
def hello(
    request: Request,
    encoding: Annotated[
        Encoding, Choice(options=get_args(Encoding), text="format of replies")
    ] = "msgpack",
    client: Annotated[str, Field(text="name of the client, for people")] = "",
    heartbeats: Annotated[
        bool, Flag(text="true to end the session after 2 s without a message")
    ] = False,
    role: Annotated[str | None, ROLE] = None,
) -> Reply:
    """Begin a session."""
    open_session(request, encoding, client, heartbeats, role)
    return greet(request.server, request)


def open_session(
    request: Request, encoding: Encoding, client: str, heartbeats: bool, role: str | None
) -> None:
    """Add the session of a request; see `hello`."""
    session = request.session
    session.encoding = encoding
    session.name = client
    session.heartbeats = heartbeats
    drives = {"observer": False, "takeover": True}.get(role or "")
    request.server.sessions.open(session, drives)


def greet(server: Dispatcher, request: Request) -> PlainDict:
    """Return the part of `hello` that is about the session and the server."""
    return {
        "session_id": request.session.id,
        "server": f"manyworlds/{own_version()}",
        "protocol": PROTOCOL,
        "ports": {port["use"]: port["port"] for port in server.ports()},
        "mujoco_version": mujoco.mj_versionString(),
        "mujoco_version_int": mujoco.mj_version(),
        "lab_id": server.lab_id,
        "manager_present": server.face is not None,
        "driver": server.sessions.driver is request.session,
    }


@operation(
    "session",
    writes=False,
    category="no_manager",
    ops=Listing(text="operations"),
    units=Values(text="conventions of all messages"),
)
def meta(request: Request) -> Reply:
    """Return the catalogue of all operations."""
    known = request.server.operations
    return {"ops": [known[name].describe() for name in sorted(known)], "units": UNITS}


UNITS = {
    "quaternions": "w, x, y, z; x, y, z, w in base_state",
    "lengths": "m",
    "angles": "rad",
    "times": "s",
    "forces": "N, N m",
    "depth": "m",
    "byte_order": "little-endian",
}


TOPICS = ("state/full", "events")
"""Topics of messages to subscribers: states, and what happens."""


@operation("session", writes=False, category="no_manager", topics=Texts(text="the topics"))
def subscribe(
    request: Request,
    topics: Annotated[list[str], Texts(text="state/full, events; none to receive nothing")],
    rate: Annotated[
        float, Number(low=0.1, high=1000.0, unit="1/s", text="most states per second")
    ] = 30.0,
) -> Reply:
    """Receive these topics from now on over this WebSocket, and no others."""
    peer = request.session.peer
    if not isinstance(peer, Subscriber):
        raise VerbError(
            "wrong_transport",
            "subscribe: only a WebSocket receives what it did not ask for: connect to its port, or "
            "to that of the states.",
        )
    for topic in topics:
        if topic not in TOPICS:
            known = ", ".join(TOPICS)
            raise VerbError(
                "bad_value",
                f"subscribe: a topic is one of {known}, got '{topic[:80]}'"
                f"{near(topic[:80], TOPICS)}",
            )
    peer.subscribe(topics, rate)
    return {"topics": topics}


@operation("session", writes=False, category="no_manager", driver=Flag(text="true if it drives"))
def heartbeat(request: Request) -> Reply:
    """Keep a session with heartbeats alive."""
    return {"driver": request.server.sessions.driver is request.session}


@operation("session", writes=False, category="no_manager", previous=Field(text="who drove before"))
def take_driver(request: Request) -> Reply:
    """Drive; the client that drove observes from now on."""
    before = request.server.sessions.driver
    request.server.sessions.take(request.session)
    return {"previous": "" if before is None else label(before)}


@operation("session", category="no_manager")
def release_driver(request: Request) -> Reply:
    """Stop driving, and observe."""
    request.server.sessions.release(request.session, "it released the world")
    request.session.lost = ""
    return {}


@operation(
    "session",
    writes=False,
    category="no_manager",
    sessions=Listing(text="name, role, encoding of each client"),
    events=Listing(text="sentences about who drove"),
    counters=Values(text="number of requests by operation and by error code"),
    ports=Listing(text="use, number, state, error and number of messages of each port"),
    heartbeat_s=Number(unit="s", text="silence that ends a session with heartbeats"),
)
def network_status(request: Request) -> Reply:
    """Return who is connected, and the counters of the server."""
    server = request.server
    driver = server.sessions.driver
    sessions = [session.describe(drives=session is driver) for session in server.sessions]
    events = [{"text": text} for text in server.sessions.events]
    counters = {"ops": dict(server.requests), "errors": dict(server.errors)}
    return {
        "sessions": sessions,
        "events": events,
        "counters": counters,
        "ports": server.ports(),
        "heartbeat_s": HEARTBEAT_S,
    }


@operation(
    "lab",
    writes=False,
    result=Values(text="reply of the verb"),
    snapshot=Values(text="the newest snapshot, if `snapshot_of` is given"),
)
def call_verb(
    request: Request,
    verb: Annotated[str, Field(text="verb of the lab, with names of the lab")],
    fields: Annotated[PlainMap | None, Values(text="fields of the verb")] = None,
    snapshot_of: Annotated[int | None, Integer(text=SNAPSHOT_OF)] = None,
) -> Reply:
    """Carry out any verb of the lab, exactly as `LiveLab.call` does."""
    found = find_verb(verb)
    if found.name in LOCAL:
        raise VerbError(
            "path_not_readable",
            f"{verb} reads any file of the lab's machine: call it in the lab's own process.",
        )
    if not found.reads:
        request.server.require_driver(request.session, verb)
    if found.name in DRAWN:
        result = request.server.operations[found.name].answer(request, fields or {})
    else:
        result = request.call_as_network(verb, fields or {})
    if snapshot_of is None:
        return {"result": result}
    request.face.sync_model()  # the world may have been rebuilt since the request came
    return {"result": result, "snapshot": pack_snapshot(request.face.snapshot, snapshot_of)}


@operation("lab", writes=False, snapshot=Values(text="all of the newest snapshot"))
def read_snapshot(
    request: Request, snapshot_of: Annotated[int, Integer(text=SNAPSHOT_OF)] = -1
) -> Reply:
    """Return the newest snapshot; its layout, too, if it is not that of `snapshot_of`."""
    return {"snapshot": pack_snapshot(request.face.snapshot, snapshot_of)}


@operation("lab", writes=False, category="no_manager", verbs=Listing(text="catalogue of verbs"))
def describe_verbs(request: Request) -> Reply:
    """Return the catalogue of the lab's verbs."""
    return {"verbs": describe_all_verbs()}


@operation("session", writes=False, category="no_manager")
def close_session(request: Request) -> Reply:
    """End the session; if it drives, the world is left as after the loss of a driver."""
    request.server.sessions.close(request.session, "it left")
    return {}


OPERATIONS.add_verbs()
