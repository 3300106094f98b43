"""Operations that describe the world to URLab's clients, and start and stop it."""

from __future__ import annotations

import base64
import hashlib
from typing import Annotated, get_args

import mujoco

from manyworlds.lab.server import operations
from manyworlds.lab.server.messages import Encoding
from manyworlds.lab.server.operations import NotYetError, Request, mode_of
from manyworlds.lab.server.session_operations import ROLE, greet, open_session
from manyworlds.lab.verbs.fields import (
    Anything,
    Choice,
    Content,
    Field,
    Flag,
    Listing,
    Number,
    PlainDict,
    PlainMap,
    Values,
)
from manyworlds.lab.verbs.registry import Reply
from manyworlds.plugins.urlab.clients import OPERATIONS, clients_of, roster_of
from manyworlds.plugins.urlab.observations import LEVELS, Level
from manyworlds.plugins.urlab.operations import controller_params
from manyworlds.plugins.urlab.roster import Member, Roster

_BASE64_BYTES = 8 * 2**20  # largest model that is sent as text, too


_OWN = operations.OPERATIONS["hello"].reply
_HELLO: dict[str, Field] = {
    "session_id": _OWN["session_id"],
    "urlab_version": Field(text="version of the protocol that old clients know"),
    **_OWN,
    "mode": Field(text="mode of the world"),
    "mjb": Content(text="model in MuJoCo's binary format, with `_` after the robot in names"),
    "mjcf": Field(text="XML of the scene, with the same names; empty if XML cannot contain it"),
    "articulations": Listing(text="robots"),
    "entities": Values(text="loose bodies by name"),
}


@OPERATIONS.operation("session", writes=False, category="no_manager", reply=_HELLO)
def hello(
    request: Request,
    observations: Annotated[Level, Choice(options=LEVELS, text="amount of data")] = "standard",
    encoding: Annotated[
        Encoding, Choice(options=get_args(Encoding), text="format of replies")
    ] = "msgpack",
    include_assets: Annotated[bool, Flag(text="true to receive the files of the scene")] = False,
    include_model: Annotated[bool, Flag(text="false to leave out all about the world")] = True,
    client_version: Annotated[object, Anything(text="version of the client")] = None,
    client: Annotated[str, Field(text="name of the client, for people")] = "",
    heartbeats: Annotated[
        bool, Flag(text="true to end the session after 2 s without a message")
    ] = False,
    role: Annotated[str | None, ROLE] = None,
) -> Reply:
    """Begin a session, and describe the world."""
    clients_of(request.server).levels[request.session] = observations
    described = {}
    if include_model:
        described = _describe(request, include_assets)
    open_session(request, encoding, client, heartbeats, role)
    return _greet(request) | described


def _greet(request: Request) -> PlainDict:
    reply = greet(request.server, request)
    return {"session_id": reply["session_id"], "urlab_version": "urlab/0.1", **reply}


def _describe(request: Request, assets: bool = False) -> PlainDict:
    """Return the part of `hello` that is about the world; there may be none."""
    server = request.server
    if server.face is None:
        return {"articulations": []}
    files = clients_of(server).files.update(request, roster_of(request))
    about = {"shm_session_dir": "", "mode": mode_of(request.face.snapshot)}
    return about | _describe_manager(request, files, assets)


def _describe_manager(request: Request, files: PlainMap, assets: bool) -> PlainDict:
    """Return everything that a client needs to know about the world."""
    roster = roster_of(request)
    mjb = files["mjb"]
    cameras = clients_of(request.server).camera_topics
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
        "actor_id": str(robot.id),
        "default_control_mode": "ue_controller" if details.get("enabled") else "raw",
        "actuator_types": {
            name: _actuator_type(model, actuator)
            for name, actuator in zip(robot.control_names, robot.actuators.tolist(), strict=True)
        },
        "original_names": _original_names(robot),
        "camera_topics": dict(cameras),
    }
    if details.get("gains"):
        params = controller_params(details["gains"])
        schema = {}
        for name in params:
            kind = "scalar" if name.startswith("default_") else "per_joint"
            schema[name] = {"type": kind, "dtype": "float32", "min": 0}
        reply["controller"] = {"kind": "pd", "params": params, "schema": schema}
    return reply


def _original_names(robot: Member) -> dict[str, dict[str, str]]:
    """Return the names of a robot's elements in its own file, by those for clients."""
    names = {}
    for kind, parts in (
        ("joints", robot.joints),
        ("sensors", robot.sensors),
        ("bodies", robot.bodies),
    ):
        names[kind] = {
            f"{robot.name}_{part.name}": part.live.removeprefix(robot.prefix) for part in parts
        }
    controls = zip(robot.control_names, robot.controls, strict=True)
    names["actuators"] = {f"{robot.name}_{short}": name for short, name in controls}
    return names


def _entity(body: Member) -> PlainDict:
    assert body.free is not None
    return {
        "id": body.id,
        "actor_id": str(body.id),
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


@OPERATIONS.operation(
    "sim",
    category="no_manager",
    state=Field(text="ready"),
    compile_error=Field(text="empty"),
    handshake_payload=Values(text="reply of `hello`"),
)
def begin_pie(
    request: Request,
    timeout_s: Annotated[
        float, Number(low=0.0, high=600.0, unit="s", text="longest wait for a world that loads")
    ] = 30.0,
    level_path: Annotated[object, Anything(text="not needed")] = None,
) -> Reply:
    """Wait until the world is loaded, and let it run if it is paused."""
    if request.server.face is None:
        raise NotYetError(f"begin_pie: no world was loaded within {timeout_s:g} s.", timeout_s)
    request.verbs.set_paused(paused=False)
    try:
        about = _greet(request) | _describe(request)
    except NotYetError as error:
        raise NotYetError(str(error), timeout_s) from None
    payload = {"op": "hello_ok", **about}
    return {"state": "ready", "compile_error": "", "handshake_payload": payload}


@OPERATIONS.operation("sim")
def stop_pie(request: Request) -> Reply:
    """Pause the world."""
    request.verbs.set_paused(paused=True)
    return {}


@OPERATIONS.operation(
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
