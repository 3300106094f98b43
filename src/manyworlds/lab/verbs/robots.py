"""Verbs of single robots: owner, targets, controller, commands, keyframes, pose sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, get_args

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.robots.control import PANEL
from manyworlds.lab.robots.controllers import PdController
from manyworlds.lab.robots.keyframes import Root
from manyworlds.lab.robots.sequence import PoseSequencer
from manyworlds.lab.robots.twist import read_twist, write_twist
from manyworlds.lab.verbs.fields import (
    ENDED,
    Choice,
    Field,
    Flag,
    Integer,
    Name,
    NumberMap,
    Numbers,
    Texts,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, between_steps, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_Robot = Annotated[str, Name(of="robot", text="robot with actuators")]
_Entity = Annotated[str, Name(of="entity", text="robot")]
_Keyframe = Annotated[str, Field(text="keyframe; the first one if empty")]
_OWNER = Field(text="client whose targets take effect")
_Owner = Annotated[str, _OWNER]
_LINEAR = Numbers(size=3, unit="m/s", text="velocity: forward, left, up")
_ANGULAR = Numbers(size=3, unit="rad/s", text="angular velocity: roll, pitch, yaw")
_ACTIONS = Integer(low=0, high=2**31 - 1, text="bit mask of the actions that are on")
_GAINS = NumberMap(text="values by joint or actuator")
_NONE: Mapping[str, float] = {}
_ROOT = Choice(options=get_args(Root), text="pose of a free root")


@verb(previous_owner=_OWNER, owner=_OWNER)
def take_robot(lab: LiveLab, robot: _Robot, owner: _Owner) -> Reply:
    """Make a client the owner of a robot; targets stay until the first write."""
    before = between_steps(lab, lambda: lab[robot].take(owner))
    return {"previous_owner": before, "owner": lab[robot].owner}


@verb(owner=_OWNER)
def release_robot(lab: LiveLab, robot: _Robot, owner: _Owner) -> Reply:
    """End the ownership of a client, if it owns the robot."""
    between_steps(lab, lambda: lab[robot].release(owner))
    return {"owner": lab[robot].owner}


@verb(
    accepted=Flag(text="false if another client owns the robot"),
    owner=_OWNER,
    command_number=Integer(text="number of the robot's present command"),
)
def set_targets(
    lab: LiveLab,
    robot: _Robot,
    targets: Annotated[dict[str, float], NumberMap(text="targets by actuator, in its unit")],
    owner: _Owner = PANEL,
) -> Reply:
    """Set targets of actuators; those of clients that do not own the robot are ignored."""
    control = lab[robot]

    def write() -> Reply:
        accepted = control.write(owner, targets)
        return {"accepted": accepted, "command_number": control.command.number}

    return {**between_steps(lab, write), "owner": control.owner}


@verb(accepted=Flag(text="false if another client owns the robot"), owner=_OWNER)
def reset_targets(lab: LiveLab, robot: _Robot, owner: _Owner = PANEL) -> Reply:
    """Set all targets of a robot to their initial values."""
    control = lab[robot]
    accepted = between_steps(lab, lambda: control.write(owner, control.neutral))
    return {"accepted": accepted, "owner": control.owner}


@verb(enabled=Flag())
def enable_controller(
    lab: LiveLab,
    robot: _Robot,
    enabled: Annotated[bool, Flag(text="false to pass targets to the actuators unchanged")],
) -> Reply:
    """Switch the controller of a robot on or off."""
    between_steps(lab, lambda: setattr(lab[robot], "enabled", enabled))
    return {"enabled": lab[robot].enabled}


@verb(values=Numbers(text="the new values"))
def set_command(
    lab: LiveLab,
    robot: _Robot,
    command: Annotated[str, Field(text="command term of the robot's policy")],
    values: Annotated[np.ndarray, Numbers(text="all of its values, in its units")],
) -> Reply:
    """Set a command of a robot's policy, such as its velocity."""
    known: dict[str, np.ndarray] = getattr(lab[robot].controller, "commands", {})
    if command not in known:
        raise KeyError(
            f"The controller of '{robot}' has no command '{command}'; it has "
            f"{', '.join(known) or 'none'}."
        )
    present = known[command]
    if values.size != present.size:
        raise VerbError(
            "dim_mismatch",
            f"The command '{command}' has {present.size} values, got {values.size}.",
        )

    between_steps(lab, lambda: np.copyto(present, values.reshape(present.shape)))
    return {"values": present.ravel().tolist()}


@verb(linear=_LINEAR, angular=_ANGULAR)
def set_twist(
    lab: LiveLab,
    robot: _Robot,
    linear: Annotated[np.ndarray | None, _LINEAR] = None,
    angular: Annotated[np.ndarray | None, _ANGULAR] = None,
) -> Reply:
    """Set the velocity command of a robot: forward, left and yaw; what is left out stays."""
    present = read_twist(lab, lab[robot])
    if not present:
        raise VerbError("no_twist_controller", f"Nothing that controls '{robot}' takes a velocity.")
    forward, left, yaw = present
    if linear is not None:
        forward, left = linear[:2].tolist()
    if angular is not None:
        yaw = float(angular[2])
    write_twist(lab, lab[robot], np.array([forward, left, yaw]))
    return {"linear": [forward, left, 0.0], "angular": [0.0, 0.0, yaw]}


@verb(actions=_ACTIONS)
def set_actions(lab: LiveLab, robot: _Robot, actions: Annotated[int, _ACTIONS]) -> Reply:
    """Switch actions of a robot on or off, which are published for other programs."""
    between_steps(lab, lambda: setattr(lab[robot], "actions", actions))
    return {"actions": lab[robot].actions}


@verb(gains=Values(text="`kp`, `kd` and `limit` of each actuator, by name"))
def set_gains(
    lab: LiveLab,
    robot: _Robot,
    kp: Annotated[Mapping[str, float], _GAINS] = _NONE,
    kd: Annotated[Mapping[str, float], _GAINS] = _NONE,
    limit: Annotated[Mapping[str, float], _GAINS] = _NONE,
    rest: Annotated[Mapping[str, float], NumberMap(text="values of all others, by kind")] = _NONE,
) -> Reply:
    """Change gains of a robot's PD law, and switch it on; those that are not named stay."""
    law = lab[robot].controller.base
    if not isinstance(law, PdController):
        raise VerbError("no_controller", f"'{robot}' has no PD law, but '{law.name}'.")
    named = {"kp": kp, "kd": kd, "limit": limit}
    gains = {}
    for kind, value in rest.items():
        if kind not in named:
            raise VerbError(
                "controller_schema_violation", f"A PD law has kp, kd and limit, not '{kind}'."
            )
        gains[kind] = dict.fromkeys(law.actuator_names, value)

    def change() -> None:
        try:
            law.set_gains(**gains)
            law.set_gains(**named)
        except (KeyError, ValueError) as error:
            raise VerbError("controller_schema_violation", str(error.args[0])) from error
        lab[robot].enabled = True

    between_steps(lab, change)
    return {"gains": law.gains}


@verb(poses=Texts(text="names of its poses"))
def play_sequence(
    lab: LiveLab,
    robot: _Robot,
    sequence: Annotated[str, Field(text="pose sequence of `find_presets`")],
) -> Reply:
    """Move a robot through a pose sequence."""
    played = between_steps(lab, lambda: lab.run_sequence(sequence, robot))
    return {"poses": [pose.name for pose in played.poses]}


@verb(owner=_OWNER)
def stop_sequence(lab: LiveLab, robot: _Robot) -> Reply:
    """Return a robot to the owner that it had before its pose sequence; its targets stay."""
    law = lab[robot].controller
    if isinstance(law, PoseSequencer):
        between_steps(lab, law.stop)
    return {"owner": lab[robot].owner}


@verb(reads=True, keyframes=Texts(text="names, those of the robot first"))
def list_keyframes(lab: LiveLab, robot: _Entity) -> Reply:
    """Return the names of the keyframes for a robot."""
    return {"keyframes": lab.keyframes.names(robot)}


@verb(ended_replay=ENDED)
def apply_keyframe(
    lab: LiveLab,
    robot: _Entity,
    keyframe_name: _Keyframe = "",
    root: Annotated[Root, _ROOT] = "keep",
) -> Reply:
    """Set the positions and velocities of one robot to a keyframe; end a replay."""
    ended = lab.replay.active_session
    lab.keyframes.reset(robot, keyframe_name, root)
    return {"ended_replay": ended}


@verb(ended_replay=ENDED)
def hold_keyframe(lab: LiveLab, robot: _Entity, keyframe_name: _Keyframe = "") -> Reply:
    """Keep the joints of a robot, except a free root, at a keyframe; end a replay."""
    ended = lab.replay.active_session
    between_steps(lab, lambda: lab.keyframes.hold(robot, keyframe_name))
    return {"ended_replay": ended}


@verb()
def stop_hold(lab: LiveLab, robot: _Entity) -> Reply:
    """Stop holding a robot; the previous owner owns it again."""
    between_steps(lab, lambda: lab.keyframes.stop_hold(robot))
    return {}
