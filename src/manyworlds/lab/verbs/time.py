"""Verbs of the world's time: pause, steps, speed, mode, reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError, near
from manyworlds.lab.loop.pacing import FASTEST, SLOWEST
from manyworlds.lab.robots.control import PANEL
from manyworlds.lab.robots.twist import read_inputs
from manyworlds.lab.verbs.cameras import encode
from manyworlds.lab.verbs.fields import (
    ENDED,
    NAMES,
    Body,
    Choice,
    Field,
    Flag,
    Integer,
    Number,
    Numbers,
    PlainDict,
    PlainMap,
    Values,
    check_actuators,
)
from manyworlds.lab.verbs.registry import Reply, verb
from manyworlds.spec.elements import qpos_width

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_PERCENT = Number(
    unit="%",
    low=100.0 * SLOWEST,
    high=100.0 * FASTEST,
    infinite=True,
    text="speed of simulated time relative to real time",
)
_MODES = Choice(options=("live", "direct", "puppet", "auto"), text="mode of the world")
_MODE = Choice(options=("live", "direct", "puppet"), text="mode of the world")
_STEPS = Integer(low=1, high=1e9, text="number of steps")
_STEP = Integer(text="number of physics steps so far")
_TARGETS = Values(text="targets by robot: a number for each actuator, or numbers by actuator")
_WRENCHES = Values(text="force and torque by body, six numbers [N, N m], in these steps only")
_QPOS = Values(text="positions by robot and joint")
_NONE: PlainMap = {}
_IMAGES = Values(text="sync for an image of this step, or latest for the last one, by camera")


@verb(paused=Flag())
def set_paused(lab: LiveLab, paused: Annotated[bool, Flag(text="true to pause")]) -> Reply:
    """Pause the world, or let it run."""
    lab.loop.paused = paused
    return {"paused": paused}


@verb(
    step=_STEP,
    ignored=Values(text="owner of each robot that took no targets"),
    cameras=Values(text="header and pixels of each image, as of capture_camera, by camera"),
    inputs=Values(text="twist and actions of each robot that is given any"),
)
def step(
    lab: LiveLab,
    n_steps: Annotated[int, _STEPS] = 1,
    targets: Annotated[PlainMap, _TARGETS] = _NONE,
    wrenches: Annotated[PlainMap, _WRENCHES] = _NONE,
    owner: Annotated[
        str, Field(text="owner that writes the targets; `net` for all clients")
    ] = PANEL,
    include_cameras: Annotated[PlainMap, _IMAGES] = _NONE,
) -> Reply:
    """Set targets and forces, advance by some steps, paused or not, and wait for them."""
    forces = {_body(body, lab): _six(body, force, lab) for body, force in wrenches.items()}
    robots = {_driven(lab, robot): value for robot, value in targets.items()}
    checked = {robot: lab[robot].check(value) for robot, value in robots.items()}
    _check_cameras(lab, include_cameras)
    ignored = {
        robot: lab[robot].owner
        for robot, value in checked.items()
        if not lab[robot].put(owner, *value)
    }
    if forces:
        _push(lab, forces)
    try:
        snapshot = lab.step(n_steps)
    finally:
        if forces:
            _push(lab, dict.fromkeys(forces, np.zeros(6)))
    images = {}
    for name, when in include_cameras.items():
        image = None
        if when == "latest":
            image = lab.cameras.newest(name)
        images[name] = encode(image or lab.cameras.render(name, snapshot=snapshot))
    return {
        "step": snapshot.step,
        "ignored": ignored,
        "cameras": images,
        "inputs": read_inputs(lab),
    }


def _check_cameras(lab: LiveLab, include_cameras: PlainMap) -> None:
    for name, when in include_cameras.items():
        lab.camera(name)
        if when not in ("sync", "latest"):
            raise VerbError(
                "bad_value",
                f"step: include_cameras must be sync or latest for '{name}', got {when!r}.",
            )


def _push(lab: LiveLab, forces: Mapping[int, np.ndarray]) -> None:
    def push(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        for body, force in forces.items():
            data.xfrc_applied[body] = force

    lab.loop.do(push, edits_model=False)


def _body(body: str, lab: LiveLab) -> int:
    try:
        return Body().check(body, lab)
    except VerbError as error:
        raise VerbError(error.code, f"step: the body of a wrench {error}") from None


def _six(body: str, force: object, lab: LiveLab) -> np.ndarray:
    try:
        return Numbers(size=6, unit="N, N m").check(force, lab)
    except VerbError as error:
        raise VerbError("bad_value", f"step: the wrench of '{body}' {error}") from None


def _driven(lab: LiveLab, robot: str) -> str:
    try:
        check_actuators(robot, lab)
    except VerbError as error:
        raise VerbError(error.code, f"step: a key of targets {error}") from None
    return _known(lab, "robot", robot)


def _known(lab: LiveLab, kind: str, name: str) -> str:
    known = list(NAMES[kind](lab))
    if name not in known:
        raise VerbError(
            f"unknown_{kind}",
            f"There is no {kind} '{name}' (there is {', '.join(known) or 'none'})"
            f"{near(name, known)}",
        )
    return name


@verb(step=_STEP, perturbation=Values(text="body, version and xfrc of a pull by the page"))
def show_state(
    lab: LiveLab,
    qpos: Annotated[np.ndarray, Numbers(text="positions of all joints")],
    qvel: Annotated[np.ndarray, Numbers(text="velocities of all joints")],
    state_time: Annotated[float, Number(unit="s", text="simulated time of the state")],
    ctrl: Annotated[np.ndarray | None, Numbers(text="all controls; left out, they stay")] = None,
) -> Reply:
    """Show a state in the mode `puppet`, and compute what follows from it."""
    fields: PlainDict = {"time": state_time, "qpos": qpos, "qvel": qvel}
    if ctrl is not None:
        fields["ctrl"] = ctrl
    try:
        snapshot = lab.modes.show(**fields)
    except ValueError as error:
        raise VerbError("dim_mismatch", str(error)) from error
    body = lab.perturbation.body
    force = snapshot.xfrc_applied[body].tolist()
    pull = {"body_id": body, "version": lab.perturbation.version, "xfrc": force}
    return {"step": snapshot.step, "perturbation": pull if body else {}}


@verb()
def forward(lab: LiveLab) -> Reply:
    """Compute all that follows from the present state, without a step."""

    def compute(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        warm = data.qacc_warmstart.copy()  # the next step is the same as without this
        mujoco.mj_forward(model, data)
        data.qacc_warmstart[:] = warm

    lab.loop.do(compute, edits_model=False)
    return {}


@verb(ended_replay=ENDED)
def reset(
    lab: LiveLab,
    keyframe_name: Annotated[str, Field(text="keyframe of the model to start from")] = "",
    seed: Annotated[
        int | None, Integer(low=0, high=2**32 - 1, text="seed of a task's environment")
    ] = None,
    qpos: Annotated[PlainMap, _QPOS] = _NONE,
) -> Reply:
    """Return to the initial state or a keyframe; clear targets and a fault, and end a replay."""
    key = _find_keyframe(lab, keyframe_name)
    places = _find_places(lab, qpos)

    def change(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        if key >= 0:
            mujoco.mj_resetDataKeyframe(model, data, key)
            for robot in lab.controls:
                robot.restore(data.ctrl[robot.actuators.ids])
        for place, value in places:
            data.qpos[place] = value
        mujoco.mj_forward(model, data)

    with lab.lock():  # no step comes between the reset and the changes
        if seed is not None and lab.environment is not None:
            lab.environment.env.seed(seed)
        ended = lab.reset()
        if key >= 0 or places:
            lab.loop.do(change, edits_model=False)
    return {"ended_replay": ended}


def _find_keyframe(lab: LiveLab, name: str) -> int:
    model = lab.model
    known = [model.key(key).name for key in range(model.nkey)]
    if name and name not in known:
        raise VerbError(
            "unknown_keyframe",
            f"There is no keyframe '{name}' (there is {', '.join(known) or 'none'})"
            f"{near(name, known)}",
        )
    return known.index(name) if name else -1


def _find_places(lab: LiveLab, qpos: PlainMap) -> list[tuple[slice, np.ndarray]]:
    """Return the places of joint positions, and their values."""
    places = []
    for robot, joints in qpos.items():
        prefix = lab.world.robots[_known(lab, "entity", robot)]
        for name, value in Values().check(joints, lab).items():
            joint = mujoco.mj_name2id(lab.model, mujoco.mjtObj.mjOBJ_JOINT, prefix + name)
            if joint < 0:
                raise VerbError("no_joints", f"'{robot}' has no joint '{name}'.")
            start = int(lab.model.jnt_qposadr[joint])
            place = slice(start, start + qpos_width(lab.model.jnt_type[joint]))
            values = Numbers().check(np.atleast_1d(value), lab)  # type: ignore[call-overload]
            if values.size != place.stop - place.start:
                raise VerbError(
                    "dim_mismatch",
                    f"The joint '{name}' of '{robot}' has {place.stop - place.start} positions, "
                    f"got {values.size}.",
                )
            places.append((place, values))
    return places


@verb(percent=_PERCENT)
def set_sim_speed(lab: LiveLab, percent: Annotated[float, _PERCENT]) -> Reply:
    """Set the speed of simulated time."""
    lab.loop.speed = percent / 100.0
    return {"percent": 100.0 * lab.loop.speed}


@verb(previous_mode=_MODE, current_mode=_MODE)
def set_mode(lab: LiveLab, mode: Annotated[str, _MODES]) -> Reply:
    """Let the world advance by itself (`live`, `auto`), by `step`, or by states (`puppet`)."""
    before = lab.modes.mode
    try:
        lab.modes.set(mode)  # type: ignore[arg-type]  # the field has checked it
    except RuntimeError as error:
        raise VerbError("mode_locked_by_server", str(error)) from error
    return {"previous_mode": before, "current_mode": lab.modes.mode}
