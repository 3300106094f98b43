"""Verbs of a world of a running training: go back, compare futures, send something back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.verbs.fields import (
    Anything,
    Field,
    Flag,
    Integer,
    Listing,
    Number,
    Numbers,
    PlainMap,
    Texts,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.training.entered_world import EnteredWorld
    from manyworlds.live.edits import EnvironmentEdit

_EDITS = Texts(text="the edits, as the run folder has them; see `read_training` for their outcome")
_NAME = Field(text="name, as of an event or a case")
_FORCE = Numbers(size=3, unit="N", text="force in the world at the body's center of mass")
_TORQUE = Numbers(size=3, unit="N m", text="torque in the world")
_RANGE = Numbers(size=2, text="smallest and largest value")
_FOLLOW = Flag(
    text="true to repeat what happened until the world is disturbed; else the policy acts at once"
)
_NONE = (0.0, 0.0, 0.0)


@verb(
    reads=True,
    training=Values(text="task, run, env_id, step and iteration of the moment, and last push"),
    edits=Listing(text="edits that were sent from here, and what has become of them"),
    changes=Texts(text="fields of the model that were changed here"),
    checkpoints=Texts(text="names of the checkpoints of the run, the newest last"),
)
def read_training(lab: LiveLab) -> Reply:
    """Return the training that this world belongs to, and what was sent to it."""
    from manyworlds.lab.edits.field_changes import changes_of

    entered = _entered(lab)
    pushed = entered.pushed
    folder = entered.visitor.folder
    found = {
        "run": str(folder),
        "env_id": entered.env_id,
        "step": entered.step,
        "iteration": entered.iteration,
        "pushed": "" if pushed is None else pushed[1].text,
    }
    paths = sorted(folder.glob("model_*.pt"), key=lambda path: (len(path.name), path.name))
    return {
        "training": found,
        "edits": entered.outcomes(),
        "changes": [change.text for change in changes_of(lab)],
        "checkpoints": [path.name for path in paths],
    }


@verb(
    reads=True,
    episodes=Listing(text="env_id, step of the end, ended_by, length, episode_return and text"),
)
def read_worst_episodes(lab: LiveLab) -> Reply:
    """Return the worst episodes that the training remembers, the latest last."""
    return {"episodes": [dict(end) for end in _entered(lab).visitor.worst()]}


@verb(equal_steps=Integer(text="control steps made so far, equal to those of the training"))
def rewind_training(
    lab: LiveLab,
    seconds: Annotated[float, Number(low=0.0, unit="s", text="time before the end or the present")],
    env_id: Annotated[
        int | None, Integer(low=0, text="world of the training; this one if left out")
    ] = None,
    end: Annotated[
        int, Integer(text="step of the end of one of the worst episodes; -1: the present one")
    ] = -1,
    follow: Annotated[bool, _FOLLOW] = True,
) -> Reply:
    """Go back to a moment that the training remembers, and continue from there."""
    return {"equal_steps": _entered(lab).rewind(seconds, env_id, end, follow=follow).done}


@verb(push=Values(text="body, force, torque and duration_s"))
def push_training(
    lab: LiveLab,
    body: Annotated[str, Field(text="the body, `entity/body`")],
    force: Annotated[np.ndarray, _FORCE],
    torque: Annotated[np.ndarray, _TORQUE] = _NONE,  # type: ignore[assignment]
    duration_s: Annotated[float, Number(low=0.001, high=60.0, unit="s", text="duration")] = 0.1,
) -> Reply:
    """Push a body, and keep the push and the state before it, to be sent."""
    made = _entered(lab).push(body, _vector(force), _vector(torque), duration_s)
    return {"push": dict(vars(made))}


@verb(
    table=Field(text="both futures, as a table"),
    film=Field(text="path of the film; empty without one"),
)
def compare_futures(
    lab: LiveLab,
    seconds: Annotated[float, Number(low=0.02, high=60.0, unit="s", text="duration")] = 5.0,
    checkpoint: Annotated[
        str, Field(text="checkpoint for the second future; empty for the last push instead")
    ] = "",
    film: Annotated[bool, Flag(text="whether to draw a film of both, side by side")] = True,
) -> Reply:
    """Simulate two futures of the present moment: with another policy, or with the last push."""
    entered = _entered(lab)
    if "/" in checkpoint or "\\" in checkpoint:
        raise ValueError(f"'{checkpoint}' is no name of a checkpoint in the run folder.")
    push = None
    if not checkpoint:
        push = entered.last_push()[1]
    futures = entered.compare(seconds, checkpoint=checkpoint or None, push=push)
    path = ""
    if film:
        name = f"futures_{lab.snapshot.frame_id}"
        path = str(futures.save_film(lab.recorder.folder / name, format="gif").absolute())
    return {"table": str(futures), "film": path}


@verb(edits=_EDITS)
def send_start_state(
    lab: LiveLab,
    weight: Annotated[
        float, Number(low=0.0, text="frequency relative to the other states that were sent")
    ] = 1.0,
    share: Annotated[
        float, Number(low=0.0, high=1.0, text="share of episodes that begin in such a state")
    ] = 0.1,
) -> Reply:
    """Let a share of the training's episodes begin in the present state."""
    from manyworlds.live.edits import AddStartState

    entered = _entered(lab)
    state = entered.start_state()
    return _post(entered, AddStartState(state=state, weight=weight, share=share))


@verb(edits=_EDITS)
def send_disturbance(
    lab: LiveLab,
    name: Annotated[str, _NAME],
    pause_s: Annotated[np.ndarray, _RANGE] = (2.0, 6.0),  # type: ignore[assignment]
    scale: Annotated[np.ndarray, _RANGE] = (1.0, 1.0),  # type: ignore[assignment]
    any_direction: Annotated[bool, Flag(text="turn each push about the vertical")] = False,
) -> Reply:
    """Let the last push happen in all worlds of the training, after random pauses."""
    from manyworlds.live.edits import AddDisturbance

    entered = _entered(lab)
    push = entered.last_push()[1]
    bounds = (_pair(pause_s), _pair(scale))
    return _post(entered, AddDisturbance.of(push, name, *bounds, any_direction))


@verb(edits=_EDITS)
def send_case(
    lab: LiveLab,
    name: Annotated[str, _NAME],
    seconds: Annotated[float, Number(low=0.02, unit="s", text="duration of the case")] = 5.0,
    with_push: Annotated[bool, Flag(text="begin before the last push, and repeat it")] = False,
) -> Reply:
    """Test each checkpoint from now on in the present moment, or with the last push."""
    from manyworlds.live.edits import AddCase

    entered = _entered(lab)
    if with_push:
        state, push = entered.last_push()
    else:
        state = entered.start_state()
        push = None
    return _post(entered, AddCase(name=name, state=state, push=push, seconds=seconds))


@verb(edits=_EDITS)
def send_randomization(
    lab: LiveLab,
    preview: Annotated[bool, Flag(text="return the edits only, without sending them")] = False,
) -> Reply:
    """Let worlds of the training have values up to those of the fields that were changed here."""
    entered = _entered(lab)
    edits = entered.randomization()
    if preview:
        return {"edits": [edit.text for edit in edits]}
    return _post(entered, *edits)


@verb(edits=_EDITS)
def send_value(
    lab: LiveLab,
    path: Annotated[str, Field(text="path of a value of the task: `rewards.upright.weight` ...")],
    value: Annotated[object, Anything(text="the value, of the type of the present one")],
) -> Reply:
    """Set a weight, a parameter, a range or a stage of a curriculum in the training."""
    from manyworlds.live.edits import SetValue

    return _post(_entered(lab), SetValue(path=path, value=value))


@verb(edits=_EDITS)
def send_edit(
    lab: LiveLab,
    edit: Annotated[PlainMap, Values(text="kind and fields of an edit; see `edit_from_plain`")],
) -> Reply:
    """Send an edit of any kind to the training."""
    from manyworlds.live.edits import edit_from_plain

    return _post(_entered(lab), edit_from_plain(edit))


def _post(entered: EnteredWorld, *edits: EnvironmentEdit) -> Reply:
    """Send edits, which the training applies after its present iteration."""
    for edit in edits:
        entered.post(edit)
    return {"edits": [edit.text for edit in edits]}


def _vector(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = np.asarray(values, float).tolist()
    return x, y, z


def _pair(values: np.ndarray) -> tuple[float, float]:
    low, high = np.asarray(values, float).tolist()
    return low, high


def _entered(lab: LiveLab) -> EnteredWorld:
    if lab.entered is None:
        raise VerbError(
            "not_ready",
            "this world belongs to no running training: enter one by `manyworlds lab --attach`, or "
            "by the button 'Walk in' of its page.",
        )
    return lab.entered
