"""Operations of sessions: greeting, catalogue, who drives, start and stop of the world."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Annotated, get_args

import mujoco

from manyworlds.lab.errors import VerbError, near
from manyworlds.lab.loop.shared_snapshots import pack_snapshot
from manyworlds.lab.server.messages import Encoding
from manyworlds.lab.server.observations import LEVELS, Level, mode_of
from manyworlds.lab.server.operations import (
    DRAWN,
    LOCAL,
    OPERATIONS,
    NotYetError,
    Request,
    add_verbs,
    operation,
)
from manyworlds.lab.server.roster import Member, Roster
from manyworlds.lab.server.runtime import controller_params
from manyworlds.lab.server.sessions import HEARTBEAT_S, Subscriber, label
from manyworlds.lab.verbs import describe_verbs as describe_all_verbs
from manyworlds.lab.verbs import find_verb
from manyworlds.lab.verbs.fields import (
    Anything,
    Choice,
    Content,
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
_BASE64_BYTES = 8 * 2**20  # largest model that is sent as text, too


class ModelFiles:
    """The model as files for clients, exported again when it has changed.

    An export takes seconds for a large model, and runs in a thread of its own.

    Args:
        waits: whether `update` waits for an export.
    """

    def __init__(self, waits: bool) -> None:
        self._waits = waits
        self._job: tuple[int, str, Future[PlainDict]] | None = None
        self._files: tuple[int, str, PlainDict] = -1, "", {}

    def update(self, request: Request) -> PlainDict:
        """Return the binary model, the XML, and the files that the XML refers to.

        Raises:
            NotYetError: the model is being exported.
            VerbError: the model cannot be exported, or clients could not tell its robots apart.
        """
        request.roster.check_names()
        details = request.roster.details
        version, scene = int(details["model_version"]), str(details["model_hash"])
        if self._files[0] == version:
            return self._files[2]
        if self._job is None or self._job[0] != version:
            before = self._files[2] if self._files[1] == scene else None
            self._job = version, scene, _start(lambda: _export(request, before))
        job = self._job[2]
        if not (self._waits or job.done()):
            raise NotYetError
        try:
            self._files = version, scene, job.result()
        finally:
            self._job = None
        return self._files[2]


def _start(export: Callable[[], PlainDict]) -> Future[PlainDict]:
    """Run an export in a thread that the end of the program does not wait for."""
    future: Future[PlainDict] = Future()

    def run() -> None:
        try:
            future.set_result(export())
        except Exception as error:  # for the caller of `update`
            future.set_exception(error)

    threading.Thread(target=run, name="manyworlds-export", daemon=True).start()
    return future


def _export(request: Request, before: PlainDict | None) -> PlainDict:
    """Return the files of the model; XML, which some models do not have, only of another scene."""
    if before is not None:
        return {**before, "mjb": request.verbs.export_model()["mjb"]}
    try:
        return {**request.verbs.export_model(sources=True), "mjcf_error": ""}
    except VerbError as error:  # XML cannot contain everything
        sources = {"mjcf": "", "files": {}, "mjcf_error": str(error)}
        return {"mjb": request.verbs.export_model()["mjb"], **sources}


def describe_manager(request: Request, files: PlainMap, assets: bool) -> PlainDict:
    """Return everything that a client needs to know about the world."""
    roster, mjb, cameras = request.roster, files["mjb"], request.server.camera_topics
    fresh = request.verbs.describe_world()["robots"]  # gains change without the model
    reply: PlainDict = {
        "mjb": mjb,
        "mjb_base64": _base64(mjb) if len(mjb) <= _BASE64_BYTES else None,
        "mjb_size": len(mjb),
        "mjcf": files["mjcf"],
        "mjcf_error": files["mjcf_error"],
        "mjcf_sha256": hashlib.sha256(files["mjcf"].encode()).hexdigest(),
        "articulations": [
            _articulation(roster, robot, fresh[robot.name], cameras(robot.name))
            for robot in roster.articulations
        ],
        "entities": {body.name: _entity(body) for body in roster.entities},
        "global_cameras": {},
    }
    if assets:
        reply |= {"mjcf_compiled": files["mjcf"], "vfs_assets": files["files"]}
    return reply


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _articulation(roster: Roster, robot: Member, details: PlainMap, cameras: PlainMap) -> PlainDict:
    model = roster.model
    reply: PlainDict = {
        "prefix": robot.name,
        "actor_id": robot.id,
        "default_control_mode": "ue_controller" if details.get("enabled") else "raw",
        "actuator_types": {
            name: _actuator_type(model, actuator)
            for name, actuator in zip(robot.control_names, robot.actuators.tolist(), strict=True)
        },
        "original_names": _original_names(roster, robot),
        "camera_topics": dict(cameras),
    }
    if details.get("gains"):
        params = controller_params(details["gains"])
        kinds = {True: "scalar", False: "per_joint"}
        schema = {
            name: {"type": kinds[name.startswith("default_")], "dtype": "float32", "min": 0}
            for name in params
        }
        reply["controller"] = {"kind": "pd", "params": params, "schema": schema}
    return reply


def _original_names(roster: Roster, robot: Member) -> dict[str, dict[str, str]]:
    """Return the names of a robot's elements in its own file, by those for clients."""
    model, begin = roster.model, robot.prefix
    live = {
        "joints": {j.name: model.joint(j.id).name for j in robot.joints},
        "sensors": {s.name: model.sensor(s.id).name for s in robot.sensors},
        "bodies": {b.name: model.body(b.id).name for b in robot.bodies},
    }
    names = {
        kind: {f"{robot.name}_{short}": name.removeprefix(begin) for short, name in found.items()}
        for kind, found in live.items()
    }
    controls = zip(robot.control_names, robot.controls, strict=True)
    names["actuators"] = {f"{robot.name}_{short}": name for short, name in controls}
    return names


def _entity(body: Member) -> PlainDict:
    assert body.free is not None
    return {
        "id": body.id,
        "has_free_base": True,
        "free_joint": body.free.name,
        "free_joint_id": body.free.id,
        "qpos_offset": body.free.start,
        "qvel_offset": body.free.dof,
    }


def _actuator_type(model: mujoco.MjModel, actuator: int) -> str:
    """Return the shortcut of MJCF that an actuator corresponds to."""
    gain, bias = model.actuator_gaintype[actuator], model.actuator_biastype[actuator]
    if gain == mujoco.mjtGain.mjGAIN_MUSCLE:
        return "muscle"
    if model.actuator_trntype[actuator] == mujoco.mjtTrn.mjTRN_BODY:
        return "adhesion"
    kp, kv = model.actuator_biasprm[actuator][1:3]
    if bias == mujoco.mjtBias.mjBIAS_AFFINE and kp:
        integrates = model.actuator_dyntype[actuator] == mujoco.mjtDyn.mjDYN_INTEGRATOR
        return "intvelocity" if integrates else "position"
    if bias == mujoco.mjtBias.mjBIAS_AFFINE and kv:
        return "velocity"
    if gain == mujoco.mjtGain.mjGAIN_AFFINE:
        return "damper"
    if model.actuator_dyntype[actuator] == mujoco.mjtDyn.mjDYN_FILTER:
        return "cylinder"
    return "motor"


@operation(
    "session",
    writes=False,
    category="no_manager",
    session_id=Field(text="id to send with each further request"),
    urlab_version=Field(text="version of the protocol that old clients know"),
    server=Field(text="name and version of this program"),
    protocol=Integer(text="version of this program's additions"),
    ports=Values(text="ports of this server by their use"),
    mujoco_version=Field(),
    mujoco_version_int=Integer(),
    lab_id=Field(text="id of the lab; requests that repeat it are refused by any other lab"),
    manager_present=Flag(text="false while no world is loaded"),
    driver=Flag(text="true if this client drives"),
    mode=Field(text="mode of the world"),
    mjb=Content(text="model in MuJoCo's binary format, with `_` after the robot in names"),
    mjcf=Field(text="XML of the scene, with the same names; empty if XML cannot contain it"),
    articulations=Listing(text="robots"),
    entities=Values(text="loose bodies by name"),
)
def hello(
    request: Request,
    observations: Annotated[Level, Choice(options=LEVELS, text="amount of data")] = "standard",
    encoding: Annotated[
        str, Choice(options=get_args(Encoding), text="format of replies")
    ] = "msgpack",
    include_assets: Annotated[bool, Flag(text="true to receive the files of the scene")] = False,
    include_model: Annotated[bool, Flag(text="false to leave out all about the world")] = True,
    client_version: Annotated[object, Anything(text="version of the client")] = None,
    client: Annotated[str, Field(text="name of the client, for people")] = "",
    heartbeats: Annotated[
        bool, Flag(text="true to end the session after 2 s without a message")
    ] = False,
    role: Annotated[
        str | None,
        Choice(
            options=("driver", "observer", "takeover"), text="drive if nobody does; watch; drive"
        ),
    ] = None,
) -> Reply:
    """Begin a session, and describe the world."""
    session = request.session
    session.observations, session.encoding = observations, encoding  # type: ignore[assignment]
    session.name, session.heartbeats = client, heartbeats
    drives = {"observer": False, "takeover": True}.get(role or "")
    described = describe(request.server, request, include_assets) if include_model else {}
    request.server.sessions.open(session, drives)
    return greet(request.server, request) | described


def describe(server: Dispatcher, request: Request, assets: bool = False) -> PlainDict:
    """Return the part of `hello` that is about the world; there may be none."""
    if server.face is None:
        return {"articulations": []}
    files = server.files.update(request)
    about = {"shm_session_dir": "", "mode": mode_of(request.face.snapshot)}
    return about | describe_manager(request, files, assets)


def greet(server: Dispatcher, request: Request) -> PlainDict:
    """Return the part of `hello` that is about the session and the server."""
    return {
        "session_id": request.session.id,
        "urlab_version": "urlab/0.1",
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
    return {"ops": [OPERATIONS[name].describe() for name in sorted(OPERATIONS)], "units": UNITS}


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
    return {"previous": label(before) if before is not None else ""}


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
        result = OPERATIONS[found.name].answer(request, fields or {})
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


@operation(
    "sim",
    state=Field(text="ready"),
    compile_error=Field(text="empty"),
    handshake_payload=Values(text="reply of `hello`"),
)
def begin_pie(
    request: Request,
    timeout_s: Annotated[object, Anything(text="not needed: the world is there already")] = None,
    level_path: Annotated[object, Anything(text="not needed")] = None,
) -> Reply:
    """Let the world run if it is paused."""
    request.verbs.set_paused(paused=False)
    about = greet(request.server, request) | describe(request.server, request)
    payload = {"op": "hello_ok", **about}
    return {"state": "ready", "compile_error": "", "handshake_payload": payload}


@operation("sim")
def stop_pie(request: Request) -> Reply:
    """Pause the world."""
    request.verbs.set_paused(paused=True)
    return {}


@operation(
    "sim",
    writes=False,
    state=Field(text="ready, or off while paused"),
    compile_error=Field(text="reason why the world stopped"),
    sim_time=Number(unit="s", text="simulated time"),
)
def pie_status(request: Request) -> Reply:
    """Return whether the world runs."""
    snapshot = request.face.snapshot
    return {
        "state": "off" if snapshot.paused else "ready",
        "compile_error": snapshot.fault,
        "sim_time": snapshot.time,
    }


add_verbs()
