"""Operations on a running world: steps, states, controls, recordings."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, cast

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.robots.control import NET, PANEL
from manyworlds.lab.server.operations import ClientOperation, Request, mode_of
from manyworlds.lab.verbs import VERBS
from manyworlds.lab.verbs.fields import (
    Anything,
    Choice,
    Field,
    Flag,
    Integer,
    Listing,
    Number,
    NumberMap,
    Numbers,
    PlainDict,
    PlainMap,
    Values,
)
from manyworlds.lab.verbs.registry import ALWAYS, Reply
from manyworlds.lab.world.options import read_flag
from manyworlds.plugins.urlab import client_model
from manyworlds.plugins.urlab.clients import OPERATIONS, clients_of, roster_of
from manyworlds.plugins.urlab.control_inbox import GAINS
from manyworlds.plugins.urlab.images import Wishes, read_wishes, take_images
from manyworlds.plugins.urlab.observations import LEVELS, Level, clocks, observe, robot_inputs
from manyworlds.plugins.urlab.roster import Member, Roster
from manyworlds.validation.names import free_name

_operation = OPERATIONS.operation
_CAMERAS = "true, or by camera: sync (of this step) or latest, perhaps with a kind: `sync depth`"
_ROBOTS = Values(text="fields by robot")
_LEVEL = Choice(options=LEVELS, text="amount of data in replies, from now on")
_STEPS = Integer(high=100_000, text="number of steps; below 1 is 1")
_ROBOT = Field(text="robot")
_STATE_REPLY: dict[str, Field] = {
    "time": Number(unit="s", text="simulated time"),
    "step": Integer(text="number of physics steps so far"),
    "sim_time": Values(text="simulated time as sec and nsec"),
    "wall_time": Values(text="time of the clock as sec and nsec"),
    "server_time": Number(unit="s", text="time of the clock"),
    "frame_id": Integer(text="number of the snapshot"),
    "mode": Field(text="mode of the world"),
}
_ALL_ROBOTS: dict[str, Field] = {"per_articulation": Values(text="state of each robot")}
_ALL = {**_STATE_REPLY, **_ALL_ROBOTS, "entities": Values(text="state of each loose body")}
_NAMES = Choice(
    options=("clients", "lab"),
    text="names in the model: `robot_hip` as old protocols have it, or the lab's `robot/hip`",
)
_CLAMPED = VERBS["set_sim_speed"].fields["percent"]
_DEFAULT_GAINS = {"default_kp": 100.0, "default_kv": 5.0, "default_torque_limit": 200.0}
_FLAGS = ("enable_multiccd", "enable_sleep")
_NUM_THREADS = "num_worker_threads"
_OWN_OPTIONS: dict[str, Field] = {
    **dict.fromkeys(_FLAGS, Flag()),
    _NUM_THREADS: VERBS["set_threads"].fields["num_threads"],
}
"""Options of the protocol that are none of `mjOption`."""
_OPTIONS = tuple(
    name for name in dir(mujoco.MjModel.from_xml_string("<mujoco/>").opt) if name[0] != "_"
)


@_operation(
    reply=_ALL,
    cameras=Values(text="size, dtype, frame_id, time, pose and pixels of each camera asked for"),
    ignored=Values(text="owner of each robot that took no targets"),
)
def step(
    request: Request,
    n_steps: Annotated[int, _STEPS] = 1,
    observations: Annotated[Level | None, _LEVEL] = None,
    include_cameras: Annotated[object, Anything(text=_CAMERAS)] = None,
    per_articulation: Annotated[PlainMap | None, _ROBOTS] = None,
    mode: Annotated[str | None, Field(text="`puppet` to show the state that follows")] = None,
    time: Annotated[float | None, Number(unit="s", text="simulated time, for puppet")] = None,
    qpos: Annotated[np.ndarray | None, Numbers(text="all positions, for puppet")] = None,
    qvel: Annotated[np.ndarray | None, Numbers(text="all velocities, for puppet")] = None,
    ctrl: Annotated[np.ndarray | None, Numbers(text="all controls, for puppet")] = None,
) -> Reply:
    """Set controls and forces, and step (direct), show a state (puppet), or read (live)."""
    if observations is not None:
        clients_of(request.server).levels[request.session] = observations
    cameras = read_wishes(request, include_cameras)
    present = mode_of(request.face.snapshot)
    if mode is None:
        request.check_mode("step", present)
    if mode == "puppet" or present == "puppet":
        state = {"qpos": qpos, "qvel": qvel, "state_time": time, "ctrl": ctrl}
        return _show(request, present, cameras, **state)
    if mode not in (None, present):
        raise VerbError("bad_mode", f"step: the mode is '{present}', not '{mode}'; see set_mode.")
    targets, wrenches = _read_robots(request, per_articulation or {})
    if present == "live":
        ignored = {}
        for robot, values in targets.items():
            answer = request.verbs.set_targets(robot=robot, targets=values, owner=NET)
            if not answer["accepted"]:
                ignored[robot] = answer["owner"]
        return _state(request, cameras, ignored=ignored)
    answer = request.verbs.step(
        n_steps=max(n_steps, 1), targets=targets, wrenches=wrenches, owner=NET
    )
    return _state(request, cameras, answer["inputs"], ignored=answer["ignored"])


def _show(request: Request, present: str, cameras: Wishes, **fields: Any) -> Reply:
    if present != "puppet":
        raise VerbError("bad_mode", f"step: the mode is '{present}', not 'puppet'; see set_mode.")
    for name in ("qpos", "qvel"):
        if fields[name] is None:
            raise VerbError("missing_field", f"step needs '{name}' in the mode 'puppet'.")
    if fields["state_time"] is None:
        fields["state_time"] = request.face.snapshot.time
    answer = request.verbs.show_state(**fields)
    more: PlainDict = {"ignored": {}}
    if answer["perturbation"]:
        more["perturbation"] = answer["perturbation"]
    return _state(request, cameras, **more)


def _state(
    request: Request,
    cameras: Wishes | None = None,
    inputs: PlainMap | None = None,
    **more: object,
) -> PlainDict:
    """Return the present state; without `inputs` of the robots, those of the facts."""
    clients = clients_of(request.server)
    level = clients.levels.get(request.session, "standard")
    roster = clients.refresh()  # the world may have been rebuilt since the request came
    snapshot = request.face.snapshot
    if cameras is not None:
        more["cameras"] = take_images(request, cameras, snapshot)
    if inputs is None:
        inputs = {}
        if level != "minimal":
            inputs = robot_inputs(request.face.facts)
    return {**observe(roster, snapshot, level, inputs), **more}


def _read_robots(
    request: Request, robots: PlainMap
) -> tuple[dict[str, dict[str, float]], dict[str, np.ndarray]]:
    """Return targets by robot and wrenches by body; switch control laws on or off."""
    targets = {}
    wrenches = {}
    modes = {}
    for name, fields in robots.items():
        robot = roster_of(request).articulation(name)
        fields = _check(f"step: per_articulation of '{name}'", Values(), fields)
        values = _read_targets(robot, fields)
        if values:
            targets[name] = values
        pushed = _check(f"step: xfrc_applied of '{name}'", Values(), fields.get("xfrc_applied", {}))
        for body, wrench in pushed.items():
            known = {element.name: element.id for element in robot.bodies}
            short = robot.to_short(body, known)
            if short not in known:
                raise VerbError("unknown_body", f"step: '{name}' has no body '{body}'.")
            wrenches[roster_of(request).names.live["body"][known[short]]] = wrench
        mode = fields.get("control_mode")
        if mode not in (None, "raw", "ue_controller"):
            raise VerbError(
                "bad_value", f"step: control_mode must be raw or ue_controller, got {mode!r}."
            )
        if mode is not None and robot.controls:  # clients send one for passive robots, too
            modes[name] = mode == "ue_controller"
    for name, enabled in modes.items():
        request.verbs.enable_controller(robot=name, enabled=enabled)
    return targets, wrenches


def _check(subject: str, field: Field, value: object) -> Any:
    """Return a value inside a field in its type."""
    try:
        return field.check(value, cast("Any", None))
    except VerbError as error:
        raise VerbError(error.code, f"{subject} {error}") from None


def _read_targets(robot: Member, fields: PlainMap) -> dict[str, float]:
    ctrl = fields.get("ctrl")
    named = fields.get("ctrl_map") or {}
    targets: dict[str, float] = {}
    if ctrl is not None:
        values = _check(f"step: ctrl of '{robot.name}'", Numbers(), ctrl)
        if values.size != len(robot.controls):
            raise VerbError(
                "dim_mismatch",
                f"step: '{robot.name}' has {len(robot.controls)} controls, got {values.size}.",
            )
        targets = dict(zip(robot.controls, values.tolist(), strict=True))
    known = {}
    if named:
        known = dict(zip(robot.control_names, robot.controls, strict=True))
    for name, value in _check(f"step: ctrl_map of '{robot.name}'", NumberMap(), named).items():
        short = robot.to_short(name, known)
        targets[known.get(short) or short] = value
    return targets


@_operation(reply=_ALL)
def reset(
    request: Request,
    keyframe_name: Annotated[str | None, Field(text="keyframe to start from")] = None,
    seed: Annotated[int | None, Integer(text="seed of a task's environment")] = None,
    per_articulation_qpos: Annotated[PlainMap | None, _ROBOTS] = None,
) -> Reply:
    """Return to the initial state or a keyframe, then set joint positions of robots."""
    name = ""
    if keyframe_name:
        name = roster_of(request).to_live("key", keyframe_name)
    qpos: dict[str, PlainDict] = {}
    for robot, joints in (per_articulation_qpos or {}).items():
        member = roster_of(request).articulation(robot)
        values = _check(f"reset: positions of '{robot}'", Values(), joints)
        qpos[robot] = {_live_joint(member, joint): v for joint, v in values.items()}
    request.verbs.reset(keyframe_name=name, seed=seed, qpos=qpos)
    return _state(request)


def _live_joint(robot: Member, name: str) -> str:
    known = {joint.name: joint.live for joint in robot.joints}
    short = robot.to_short(name, known)
    if short not in known:
        raise VerbError("no_joints", f"reset: '{robot.name}' has no joint '{name}'.")
    live = known[short]
    if not live:
        raise VerbError(
            "no_joints",
            f"reset: the joint '{name}' of '{robot.name}' has no name in its model: use set_qpos.",
        )
    return live.removeprefix(robot.prefix)


@_operation(reply=_STATE_REPLY | _ALL_ROBOTS)
def forward(request: Request) -> Reply:
    """Compute all that follows from the present state, without a step."""
    request.verbs.forward()
    state = _state(request)
    del state["entities"]
    return state


@_operation(previous_mode=Field(text="mode before"), current_mode=Field(text="mode now"))
def set_mode(
    request: Request, mode: Annotated[str, Field(text="live, streaming, direct, puppet or auto")]
) -> Reply:
    """Let the world advance by itself (live), by `step` (direct), or show states (puppet)."""
    known = {"streaming": "live", "freerun": "live", "stepped": "direct", "statepushed": "puppet"}
    chosen = known.get(mode, mode)
    if chosen not in ("live", "direct", "puppet", "auto"):
        raise VerbError(
            "bad_mode", f"set_mode: mode must be live, direct, puppet or auto, got {mode!r}."
        )
    answer = request.verbs.set_mode(mode=chosen)
    return {key: answer[key] for key in ("previous_mode", "current_mode")}


@_operation(
    source=Field(text="source"),
    scope=Field(text="global or articulation"),
    articulation=Field(text="robot; none for all"),
)
def set_control_source(
    request: Request,
    source: Annotated[
        str, Choice(options=("zmq", "ui"), text="the network, or the sliders of the page")
    ],
    articulation: Annotated[
        str | None, Field(text="robot; without it, all that were not set by themselves")
    ] = None,
) -> Reply:
    """Choose who controls a robot, or all robots."""
    own = clients_of(request.server).control_sources
    if articulation is not None:
        robots = [roster_of(request).articulation(articulation).name]
        own[articulation] = source
    else:
        robots = [r.name for r in roster_of(request).articulations if r.name not in own]
    owner = NET if source == "zmq" else PANEL
    for robot in robots:
        if roster_of(request).members[robot].controls:
            request.verbs.take_robot(robot=robot, owner=owner)
    scope = "global" if articulation is None else "articulation"
    return {"source": source, "scope": scope, "articulation": articulation}


@_operation(
    target=Field(text="robot or loose body"),
    actor_name=Field(text="its name"),
    actor_id=Field(text="id of its first body"),
    qpos=Numbers(text="the positions"),
    free_base_shortcut=Flag(text="true if only the free base was set"),
)
def set_qpos(
    request: Request,
    target: Annotated[str, Field(text="robot or loose body, by name or id")],
    qpos: Annotated[np.ndarray, Numbers(text="positions of its joints, or of its free base")],
    target_by: Annotated[
        str, Choice(options=("actor_name", "actor_id"), text="meaning of `target`")
    ] = "actor_name",
    still: Annotated[bool, Flag(text="true to set the velocities to zero")] = False,
) -> Reply:
    """Move a robot or a loose body."""
    names = {}
    for member in _all(roster_of(request)):
        key = str(member.id) if target_by == "actor_id" else member.name
        names[key] = member
    if target not in names:
        raise VerbError(
            "unknown_articulation",
            f"set_qpos: there is no {target_by} '{target}' ({', '.join(names)}).",
        )
    member = names[target]
    answer = request.verbs.set_qpos(target=member.name, qpos=qpos, still=still)
    return {
        "target": target,
        "actor_name": member.name,
        "actor_id": str(member.id),
        "qpos": qpos,
        "free_base_shortcut": answer["free_base_shortcut"],
    }


def _all(roster: Roster) -> list[Member]:
    return [member for member in roster.members.values() if member.name in roster.details["robots"]]


@_operation(writes=False, keyframes=Listing(text="name, time and state of each"))
def list_keyframes(request: Request) -> Reply:
    """Return the keyframes of the model."""
    roster = roster_of(request)
    model = roster.model
    names = roster.names.wire["key"]
    fields = ("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat")
    keyframes = []
    for key, name in enumerate(names):
        values = {field: getattr(model, _KEY[field])[key].ravel() for field in fields}
        keyframes.append({"name": name, "time": float(model.key_time[key]), **values})
    return {"keyframes": keyframes}


_KEY = {
    "qpos": "key_qpos",
    "qvel": "key_qvel",
    "ctrl": "key_ctrl",
    "mocap_pos": "key_mpos",
    "mocap_quat": "key_mquat",
}


@_operation(
    writes=False,
    n_contacts=Integer(text="number of contacts that match"),
    truncated=Flag(text="true if not all of them are in the reply"),
    contacts=Listing(text="geoms, bodies, position, normal, distance and force of each"),
)
def get_contacts(
    request: Request,
    max_contacts: Annotated[int, Integer(low=0, high=100_000, text="most to return")] = 64,
    filter: Annotated[
        PlainMap | None,
        Values(text="names: body1, body2, geom1, geom2, in any order, or subtree"),
    ] = None,
) -> Reply:
    """Return the contacts of the present state; forces are in the frame of the contact."""
    roster = roster_of(request)
    wanted = {}
    for key, name in (filter or {}).items():
        if isinstance(name, str):
            kind = "geom" if key.startswith("geom") else "body"
            wanted[key] = roster.to_live(kind, name)
    answer = request.verbs.get_contacts(max_contacts=max_contacts, filter=wanted)
    for contact in answer["contacts"]:
        for key in ("geom1", "geom2", "body1", "body2"):
            contact[key] = roster.to_wire(key[:4], contact[key])
    return {key: answer[key] for key in ("n_contacts", "truncated", "contacts")}


@_operation(articulation=Field(text="robot"), params=Values(text="all gains"))
def configure_controller(
    request: Request,
    articulation: Annotated[str, _ROBOT],
    params: Annotated[
        PlainMap,
        Values(text="kp, kv, torque_limit by joint; default_kp and so on for all others"),
    ],
) -> Reply:
    """Change gains of a robot's PD law, and switch it on; those that are not named stay."""
    robot = roster_of(request).articulation(articulation)
    fields: dict[str, dict[str, float]] = {"rest": {}}
    for key, value in params.items():
        kind = GAINS.get(key.removeprefix("default_"))
        try:
            if kind is None:
                raise VerbError("bad_value", f"configure_controller: there is no gain '{key}'.")
            if key.startswith("default_"):
                fields["rest"][kind] = _check(f"configure_controller: {key}", Number(low=0), value)
            else:
                gains = _check(f"configure_controller: {key}", NumberMap(), value)
                fields[kind] = {robot.to_gain(name): v for name, v in gains.items()}
        except VerbError as error:
            raise VerbError("controller_schema_violation", str(error)) from None
    answer = request.verbs.set_gains(robot=robot.name, **fields)
    return {"articulation": robot.name, "params": controller_params(answer["gains"])}


def controller_params(gains: Mapping[str, Mapping[str, float]]) -> PlainDict:
    """Return the gains of a PD law under the protocol's names."""
    params: PlainDict = {}
    for name, kind in GAINS.items():
        params[name] = {joint: values[kind] for joint, values in gains.items()}
    return params | _DEFAULT_GAINS


@_operation(options=Values(text="all options, by name"))
def set_sim_options(
    request: Request,
    options: Annotated[
        PlainMap,
        Values(
            text="values by their names in mjOption, integrator, cone, solver and jacobian also as "
            "in MJCF; and enable_multiccd, enable_sleep, num_worker_threads"
        ),
    ],
) -> Reply:
    """Change options of MuJoCo from the next step on, all or none."""
    own = {
        name: _check(f"set_sim_options: {name}", field, options[name])
        for name, field in _OWN_OPTIONS.items()
        if name in options
    }
    request.verbs.set_sim_options(options={k: v for k, v in options.items() if k not in own})
    for name, value in own.items():
        if name == _NUM_THREADS:
            request.verbs.set_threads(num_threads=value)
        else:
            request.verbs.set_sim_flag(flag=name.removeprefix("enable_"), on=value)
    opt = clients_of(request.server).refresh().model.opt
    threads = request.verbs.read_sim_options()["num_threads"]
    return {
        "options": {
            **{name: np.asarray(getattr(opt, name)).tolist() for name in _OPTIONS},
            **{name: read_flag(opt, name.removeprefix("enable_")) for name in _FLAGS},
            _NUM_THREADS: threads,
            "max_worker_threads": os.cpu_count() or 1,
            **{name: value for name, value in options.items() if isinstance(value, str)},
        }
    }


@_operation("recording", name=Field(text="name of the file"), max_duration_s=Number(unit="s"))
def recording_start(
    request: Request,
    name: Annotated[
        str | None, Field(text="name of the file, with a number if it is taken; else the date")
    ] = None,
    max_duration_s: Annotated[
        float | None, Number(low=0.0, unit="s", text="time that memory holds")
    ] = None,
) -> Reply:
    """Start a recording: each physics step adds a frame."""
    if request.verbs.read_status()["recording"]["is_recording"]:
        raise VerbError("recording_already_active", "recording_start: a recording runs already.")
    file = ""
    if name:
        known = {PurePath(session).stem for session in _sessions(request)}
        file = f"{free_name(name.removesuffix('.mcap'), known)}.mcap"
    answer = request.verbs.recording_start(name=file, max_duration_s=max_duration_s)
    return {"name": answer["name"], "max_duration_s": max_duration_s}


def _sessions(request: Request) -> list[str]:
    return request.verbs.replay_list_sessions()["sessions"]


def _file_name(path: str) -> str:
    """Return the name of a file of the folder of recordings, whose path clients may give."""
    return PurePath(path.replace("\\", "/")).name


@_operation(
    "recording",
    name=Field(text="name of the recording"),
    frame_count=Integer(text="frames in memory"),
    sim_duration_s=Number(unit="s"),
)
def recording_stop(request: Request) -> Reply:
    """End the recording and its file."""
    recording = request.verbs.read_status()["recording"]
    if not recording["is_recording"]:
        raise VerbError("recording_not_active", "recording_stop: nothing is recorded.")
    answer = request.verbs.recording_stop()
    counts = {key: answer[key] for key in ("frame_count", "sim_duration_s")}
    return {"name": recording["file"] or "Live", **counts}


@_operation("recording", absolute_path=Field(text="path of the file"))
def recording_save(
    request: Request,
    path: Annotated[
        str | None,
        Field(text="name of the file, whose suffix sets the format; folders are cut off"),
    ] = None,
) -> Reply:
    """Write the active recording to the folder of recordings."""
    try:
        answer = request.verbs.recording_save(path=_file_name(path or "recording.json"))
    except VerbError as error:
        raise VerbError("path_not_writable", str(error)) from error
    return {"absolute_path": answer["absolute_path"]}


@_operation("replay", name=Field(text="name of the recording"))
def replay_load(
    request: Request,
    path: Annotated[str, Field(text="name or path of a file of the folder of recordings")],
) -> Reply:
    """Read a recording of the folder, and make it the active one."""
    try:
        return {"name": request.verbs.replay_load(path=_file_name(path))["name"]}
    except VerbError as error:
        raise VerbError("path_not_readable", str(error)) from error


@_operation("replay", name=Field(text="name of the recording"))
def replay_set_active(
    request: Request, name: Annotated[str, Field(text="name of the recording")]
) -> Reply:
    """Choose the recording that is played or saved by default."""
    known = _sessions(request)
    if name not in known:
        raise VerbError(
            "replay_session_not_found",
            f"replay_set_active: there is no recording '{name}' ({', '.join(known)}).",
        )
    return {"name": request.verbs.replay_set_active(name=name)["active_session"]}


@_operation("replay", active_session=Field(text="recording"), total_frames=Integer())
def replay_start(
    request: Request,
    loop: Annotated[bool | None, Flag(text="true to restart after the last frame")] = None,
) -> Reply:
    """Play the active recording in place of physics, in any mode."""
    if loop is not None:
        request.verbs.set_replay(loop=loop)
    answer = request.verbs.replay_start()
    return {key: answer[key] for key in ("active_session", "total_frames")}


@_operation(time=Number(unit="s", text="simulated time"), step=Integer(text="physics steps so far"))
def restore_state(
    request: Request, snapshot_id: Annotated[str, Field(text="id from `capture_state`")]
) -> Reply:
    """Return to a saved state; clear a fault, and end a replay."""
    request.verbs.restore_state(label=snapshot_id)
    request.face.sync_model()  # the world may have been rebuilt since the request came
    state = clocks(request.face.snapshot)
    return {"time": state["time"], "step": state["step"]}


def _clamp(request: Request, value: object) -> object:
    number = _check("set_sim_speed: percent", Number(infinite=True), value)
    bounds = cast("Number", _CLAMPED)
    if math.isinf(number):
        return number
    return min(max(number, bounds.low), bounds.high)


def _body(request: Request, value: object) -> object:
    if isinstance(value, str):
        return roster_of(request).to_live("body", value)
    return value


def _robot(request: Request, value: object) -> object:
    return roster_of(request).articulation(value).name


def _pass_to_verb(
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
    if fields is None:
        fields = {field: field for field in source.fields}
    if reply is None:
        reply = {field: field for field in source.reply}
    back = {old: new for new, old in fields.items()}
    declared = {new: source.fields[old] for new, old in fields.items()}

    def call(request: Request, given: Mapping[str, object]) -> Reply:
        values = {}
        for key, value in given.items():
            if key not in fields or value is None:
                continue
            if key in convert:
                value = convert[key](request, value)
            values[fields[key]] = value
        answer = request.call(source.name, **values)
        repeated = {key: given.get(key) for key in echo}
        return repeated | {new: answer[old] for new, old in reply.items()}

    OPERATIONS[name] = ClientOperation(
        name=name,
        text=source.text,
        fields=declared,
        defaults={back[old]: v for old, v in source.defaults.items() if old in back},
        reply={key: declared[key] for key in echo}
        | {new: {**source.reply, **ALWAYS}[old] for new, old in reply.items()},
        call=call,
        writes=not source.reads,
        namespace=namespace,
        verb=source.name,
    )


@_operation("lab", writes=False, reply={**VERBS["export_model"].reply, **ALWAYS})
def export_model(
    request: Request,
    sources: Annotated[bool, Flag(text="true to include the XML and its files")] = False,
    names: Annotated[str, _NAMES] = "clients",
) -> Reply:
    """Return the model as files."""
    if names == "clients":
        return client_model.export_model(request.verbs, sources)
    return dict(request.verbs.export_model(sources=sources))


_POSE = {"body": "body", "pos": "pos", "quat": "quat"}
_PLACE = {"pos": "pos", "quat": "quat"}
_TWIST = {"articulation": "robot", "linear": "linear", "angular": "angular"}

_pass_to_verb("set_paused", reply={"paused": "paused"})
_pass_to_verb("set_sim_speed", reply={"percent": "percent"}, percent=_clamp)
_pass_to_verb("set_mocap_pose", fields=_POSE, reply=_PLACE, echo=("body",), body=_body)
_pass_to_verb("read_mocap_pose", fields={"body": "body"}, reply=_PLACE, echo=("body",), body=_body)
_pass_to_verb(
    "set_twist",
    fields=_TWIST,
    reply={"linear": "linear", "angular": "angular"},
    echo=("articulation",),
    articulation=_robot,
)
_pass_to_verb("recording_clear", reply={}, namespace="recording")
_pass_to_verb("replay_list_sessions", reply={"sessions": "sessions"}, namespace="replay")
_pass_to_verb("replay_stop", reply={}, namespace="replay")
_pass_to_verb(
    "capture_state",
    fields={"label": "label"},
    reply={"snapshot_id": "label", "label": "label", "time": "state_time"},
)
_pass_to_verb("list_states", reply={"snapshots": "labels"})
_pass_to_verb("drop_state", fields={"snapshot_id": "label"}, reply={"snapshot_id": "label"})
