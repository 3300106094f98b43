"""Verbs of the timeline: go back, step, continue from a moment, save."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from manyworlds.lab.facts import to_plain
from manyworlds.lab.moments.timeline_parts import describe
from manyworlds.lab.verbs.fields import Field, Flag, Integer, Number, Texts, Values
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_AGO = Number(low=0.0, unit="s", text="time before the newest moment")
_WORLD_TIME = Number(unit="s", text="simulated time of the moment that is shown")


def _shown(lab: LiveLab) -> Reply:
    return {"ago": lab.timeline.ago, "world_time": lab.timeline.world_time}


@verb(reads=True, timeline=Values(text="length, moment that is shown, and marks"))
def read_timeline(lab: LiveLab) -> Reply:
    """Return how far back the world can go, and what happened when."""
    return {"timeline": to_plain(describe(lab.timeline))}


@verb(ago=_AGO, world_time=_WORLD_TIME)
def timeline_seek(lab: LiveLab, ago: Annotated[float, _AGO]) -> Reply:
    """Pause, and show a moment of the past; the present is kept."""
    lab.timeline.seek(ago)
    return _shown(lab)


@verb(ago=_AGO, world_time=_WORLD_TIME)
def timeline_step(
    lab: LiveLab,
    n_frames: Annotated[int, Integer(text="moments to move; negative for earlier ones")] = -1,
) -> Reply:
    """Pause, and show an earlier or later moment; each step of the world is one."""
    lab.timeline.step_frames(n_frames)
    return _shown(lab)


@verb()
def timeline_leave(lab: LiveLab) -> Reply:
    """Return to the present, from which the world continues."""
    lab.timeline.leave()
    return {}


@verb(notes=Texts(text="sentences about controllers that do not continue exactly"))
def timeline_branch(
    lab: LiveLab,
    ago: Annotated[float | None, _AGO] = None,
    play: Annotated[bool | None, Flag(text="whether to play; as before, if left out")] = None,
) -> Reply:
    """Continue from the moment that is shown, or from another one; its future is kept once."""
    if ago is not None:
        lab.timeline.seek(ago)
    notes = lab.timeline.branch(play)
    return {"notes": list(notes)}


@verb()
def timeline_swap(lab: LiveLab) -> Reply:
    """Return to the future that the last branch left; the present takes its place."""
    lab.timeline.swap()
    return {}


@verb(absolute_path=Field(text="path of the file"), frame_count=Integer())
def timeline_save(
    lab: LiveLab,
    path: Annotated[str, Field(text="name of a file of the folder; its suffix sets the format")],
    seconds: Annotated[float, Number(low=0.001, unit="s", text="length of the recording")] = 60.0,
) -> Reply:
    """Write the last seconds as a recording, which was not started before."""
    recording = lab.timeline.recording(seconds)
    written = lab.recorder.write(path, recording, "timeline")
    count = sum(len(segment) for segment in recording.segments)
    return {"absolute_path": str(written.absolute()), "frame_count": count}
