"""Verbs of the environment that drives a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.task.task_steps import plain_details
from manyworlds.lab.verbs.fields import (
    Anything,
    Field,
    Flag,
    Integer,
    Number,
    Numbers,
    Texts,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.task.env_stepper import EnvironmentStepper

_OBSERVATIONS = Values(text="float32 arrays by group and, in some groups, by term")
_LOG = Values(text="values about finished episodes")
_TERM = Field(text="name of a command term of the task")


@verb()
def steer_command(
    lab: LiveLab,
    term: Annotated[str, _TERM],
    values: Annotated[
        np.ndarray | None, Numbers(text="values; left out, the task samples it again")
    ] = None,
) -> Reply:
    """Hold a command of the environment's task at values."""
    _environment(lab).steer(term, None if values is None else values.tolist())
    return {}


@verb()
def seek_motion(
    lab: LiveLab,
    term: Annotated[str, _TERM],
    frame: Annotated[int, Integer(low=0, text="frame of the motion")],
) -> Reply:
    """Set the robot to a frame of the motion that a command of the task plays."""
    _environment(lab).seek(term, frame)
    return {}


@verb(
    reads=True,
    name=Field(text="name of the task of a training that was entered; empty for others"),
    differences=Texts(text="differences between its settings and those of training"),
    step_dt=Number(unit="s", text="duration of a control step"),
    decimation=Integer(text="physics steps in a control step"),
    most_rewards=Integer(text="number of reward terms for which a bar chart is of use"),
    steered=Values(text="bounds of the values of each command that can be set, by name"),
    motions=Values(text="number of frames of each motion that can be sought, by name"),
    own_widgets=Texts(text="command terms with widgets of their own"),
    observations=Values(text="shape of each observation, by group and, in some groups, by term"),
    num_actions=Integer(text="number of values of an action"),
    terrain_cells=Values(text="number of `levels` and `columns` of generated terrain, if any"),
    entered=Flag(text="true if the world is one of a running training"),
)
def read_task(lab: LiveLab) -> Reply:
    """Return what stays the same about the environment's task."""
    described = _environment(lab).describe_task()
    name = "" if lab.entered is None else lab.entered.task
    return described | {"name": name, "entered": lab.entered is not None}


@verb(
    reads=True,
    report=Values(text="the last control step: rewards, metrics, commands, ends of episodes"),
    frames=Values(text="present frame of each motion, by name"),
    auto_reset=Flag(text="true if the end of an episode resets the world"),
    substep=Integer(text="physics steps since the control step began"),
    terrain_cell=Values(text="present `level` and `column` on generated terrain"),
)
def read_task_report(lab: LiveLab) -> Reply:
    """Return the results of the environment's last control step."""
    stepper = _environment(lab)
    return {
        "report": dict(vars(stepper.report)),
        "frames": stepper.motion_frames(),
        "auto_reset": stepper.auto_reset,
        "substep": stepper.substep,
        "terrain_cell": stepper.terrain_cell(),
    }


@verb(
    reads=True,
    episode_time=Number(unit="s", text="time since the episode began"),
    observations=Values(text="what the policy sees, by `group/term`"),
    action=Values(text="unprocessed actions, by term"),
    deviation=Values(text="their standard deviation while learning, by term; empty if not known"),
    value=Anything(text="sum of discounted rewards that the critic expects; null without a critic"),
    nearness=Values(text="share of the way to each termination whose measure is known"),
)
def read_task_details(lab: LiveLab) -> Reply:
    """Return what the environment's last control step was like, for people."""
    stepper = _environment(lab)
    with lab.lock():
        return plain_details(stepper)


@verb()
def set_terrain_cell(
    lab: LiveLab,
    level: Annotated[int, Integer(low=0, text="row of the cell, a level of difficulty")],
    column: Annotated[int, Integer(low=0, text="column of the cell")],
) -> Reply:
    """Move the world to another cell of generated terrain; all free bodies move along."""
    stepper = _environment(lab)
    lab.loop.do(lambda model, data: stepper.move_to_cell(model, data, level, column))
    return {}


@verb(observations=_OBSERVATIONS, log=_LOG)
def reset_task(
    lab: LiveLab,
    seed: Annotated[
        int | None, Integer(low=0, high=2**32 - 1, text="seed of all random numbers from now on")
    ] = None,
) -> Reply:
    """Start a new episode of the environment's task, and return its observations."""
    stepper = _environment(lab)
    with lab.lock():  # nothing else draws random numbers in between
        return stepper.restart(seed, lab.reset)


@verb(
    observations=_OBSERVATIONS,
    reward=Number(text="sum of all reward terms"),
    terminated=Flag(text="true if the episode ended"),
    truncated=Flag(text="true if the time of the episode is over"),
    final_observations=Values(text="those of the ended episode, if its end reset the world"),
    log=_LOG,
)
def step_task(
    lab: LiveLab,
    action: Annotated[np.ndarray, Numbers(text="action in place of that of a policy")],
) -> Reply:
    """Make one control step of the environment's task, in the mode `direct`."""
    stepper = _environment(lab)
    if lab.modes.mode != "direct":
        raise VerbError(
            "bad_mode", f"step_task: the mode is '{lab.modes.mode}', not 'direct'; see set_mode."
        )
    try:
        return dict(stepper.step_with(action, lab.step))
    except ValueError as error:
        raise VerbError("dim_mismatch", f"step_task: {error}") from error


@verb(
    reads=True,
    shapes=Values(text="arrays with a row for each shape, and labels; see `pack_shapes`"),
)
def read_debug_shapes(lab: LiveLab) -> Reply:
    """Return the debug shapes of the environment's task: goals, commands, sensors ..."""
    return {"shapes": _environment(lab).debug_shapes()}


@verb(on=Flag())
def set_auto_reset(
    lab: LiveLab, on: Annotated[bool, Flag(text="true to reset at the end of an episode")]
) -> Reply:
    """Let the end of an episode reset the world, or be shown only."""
    _environment(lab).auto_reset = on
    return {"on": on}


def _environment(lab: LiveLab) -> EnvironmentStepper:
    if lab.environment is None:
        raise VerbError(
            "not_ready",
            "no environment steps this world: open it by its task with --stepper environment, or "
            "by LiveLab.driven_by.",
        )
    return lab.environment
