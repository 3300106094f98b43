"""Verbs of saved states, recordings and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from manyworlds.lab.errors import VerbError
from manyworlds.lab.recording.replay import Binding
from manyworlds.lab.verbs.fields import (
    ENDED,
    Content,
    Field,
    Flag,
    Integer,
    Name,
    Number,
    Texts,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, between_steps, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_LABEL = Field(text="name of the saved state")
_State = Annotated[str, Name(of="state", text="name of the saved state")]
_CONVERTED = Field(text="what was not kept of a state of another model; empty if all was")
_Segment = Annotated[
    int, Integer(low=0, text="only segment to write, from 1; 0 writes all, to .mcap only")
]
_SESSION = Field(text="recording: Live, or a file of the folder")
_Session = Annotated[str, Field(text="recording: Live, or a file; the active one if empty")]
_File = Annotated[str, Field(text="name of a file of the folder; its suffix sets the format")]
_CONTENT = Content(text="content of the file")
_LENGTH = Number(low=0.0, unit="s", text="time that memory holds")
_SECONDS = Number(unit="s", text="time since the recording's first frame")
_RATE = Number(text="recorded seconds per simulated second; negative plays in reverse")


@verb(label=_LABEL, state_time=Number(unit="s", text="simulated time of the state"))
def capture_state(
    lab: LiveLab, label: Annotated[str, Field(text="name; a number if empty")] = ""
) -> Reply:
    """Save the present state; a state of the same name is replaced."""
    saved = lab.states.save(label)
    return {"label": saved.name, "state_time": saved.time}


@verb(label=_LABEL, converted=_CONVERTED, ended_replay=ENDED)
def restore_state(lab: LiveLab, label: _State) -> Reply:
    """Return to a saved state; clear a fault, and end a replay."""
    ended = lab.replay.active_session
    lab.states.restore(label)
    return {"label": label, "converted": lab.states[label].converted, "ended_replay": ended}


@verb(
    reads=True,
    labels=Texts(text="names of the saved states, the oldest first"),
    converted=Values(text="sentences about those converted from another model, by name"),
)
def list_states(lab: LiveLab) -> Reply:
    """Return the names of the saved states."""
    states = lab.states.items()
    converted = {name: saved.converted for name, saved in states if saved.converted}
    return {"labels": [name for name, _ in states], "converted": converted}


@verb(label=_LABEL)
def drop_state(lab: LiveLab, label: _State) -> Reply:
    """Delete a saved state."""
    lab.states.drop(label)
    return {"label": label}


@verb(reads=True, content=_CONTENT)
def export_state(lab: LiveLab, label: _State) -> Reply:
    """Return the content of a saved state's file."""
    return {"content": lab.states.pack(label)}


@verb(label=_LABEL, converted=_CONVERTED)
def import_state(
    lab: LiveLab,
    content: Annotated[bytes, _CONTENT],
    name: Annotated[str, Field(text="name of the file, for messages")] = "file",
    convert: Annotated[
        bool, Flag(text="true to convert a state of another model by name, not to refuse it")
    ] = False,
) -> Reply:
    """Add a saved state from a file's content."""
    saved = lab.states.unpack(content, name, convert=convert)
    return {"label": saved.name, "converted": saved.converted}


@verb(name=Field(text="name of the file; empty without one"))
def recording_start(
    lab: LiveLab,
    name: Annotated[str, Field(text="NAME.mcap; named by the date if empty")] = "",
    max_duration_s: Annotated[float | None, _LENGTH] = None,
    cameras: Annotated[
        list[str] | None, Texts(text="cameras whose images are written to the file, too")
    ] = None,
) -> Reply:
    """Start a recording: each physics step adds a frame."""
    lab.recorder.start(name, max_duration_s, cameras)
    return {"name": lab.recorder.path.name if lab.recorder.path else ""}


@verb(frame_count=Integer(text="frames in memory"), sim_duration_s=Number(unit="s"))
def recording_stop(lab: LiveLab) -> Reply:
    """End the recording and its file."""
    lab.recorder.stop()
    return {"frame_count": lab.recorder.num_frames, "sim_duration_s": lab.recorder.duration}


@verb()
def recording_clear(lab: LiveLab) -> Reply:
    """Delete the live session from memory; its file stays."""
    lab.recorder.clear()
    return {}


@verb(absolute_path=Field(text="path of the file"))
def recording_save(
    lab: LiveLab, path: _File, session: _Session = "", segment: _Segment = 0
) -> Reply:
    """Write a recording to the folder, in the format of the suffix."""
    return {"absolute_path": str(lab.recorder.save(path, session, segment).absolute())}


@verb(content=_CONTENT)
def recording_export(
    lab: LiveLab, path: _File, session: _Session = "", segment: _Segment = 0
) -> Reply:
    """Write a recording to the folder, and return the content of the file."""
    return {"content": lab.recorder.save(path, session, segment).read_bytes()}


@verb(name=_SESSION)
def recording_import(lab: LiveLab, path: _File, content: Annotated[bytes, _CONTENT]) -> Reply:
    """Add a recording from a file's content to the folder, and make it the active one."""
    lab.recorder.active = name = lab.recorder.add(path, content).name
    return {"name": name}


@verb(name=_SESSION)
def replay_load(lab: LiveLab, path: _File) -> Reply:
    """Read a recording of the folder, and make it the active one."""
    lab.recorder.load(path)
    lab.recorder.active = path
    return {"name": path}


@verb(reads=True, sessions=Texts(text="names of the recordings"))
def replay_list_sessions(lab: LiveLab) -> Reply:
    """Return the names of the recordings: the live one, then files."""
    return {"sessions": lab.recorder.sessions}


@verb(active_session=_SESSION)
def replay_set_active(lab: LiveLab, name: Annotated[str, _SESSION]) -> Reply:
    """Choose the recording that is played or saved by default."""
    lab.recorder.active = name
    return {"active_session": name}


@verb(
    active_session=_SESSION,
    total_frames=Integer(),
    report=Field(text="recorded joints, and the joints that they move"),
)
def replay_start(
    lab: LiveLab,
    session: _Session = "",
    restore: Annotated[bool, Flag(text="true to return to the present state at the end")] = True,
) -> Reply:
    """Play a recording in place of physics."""
    report = lab.replay.start(session, restore)
    return {
        "active_session": lab.replay.session,
        "total_frames": lab.replay.num_frames,
        "report": str(report),
    }


@verb()
def replay_stop(
    lab: LiveLab,
    restore: Annotated[
        bool, Flag(text="false to continue from the frame that is shown, not from the state before")
    ] = True,
) -> Reply:
    """End the replay."""
    lab.replay.stop(restore)
    return {}


@verb(playing=Flag())
def replay_play(lab: LiveLab) -> Reply:
    """Continue the replay; from the beginning if it was at the end."""
    lab.replay.play()
    return {"playing": lab.replay.playing}


@verb(playing=Flag())
def replay_pause(lab: LiveLab) -> Reply:
    """Stay at the frame that is shown."""
    lab.replay.pause()
    return {"playing": lab.replay.playing}


@verb(replay_time=_SECONDS)
def replay_seek(lab: LiveLab, replay_time: Annotated[float, _SECONDS]) -> Reply:
    """Show a moment of the recording; times outside it show its first or last frame."""
    lab.replay.seek(replay_time)
    return {"replay_time": lab.replay.time}


@verb(replay_time=_SECONDS)
def replay_step_frames(
    lab: LiveLab,
    n_frames: Annotated[int, Integer(text="frames to move; negative for earlier ones")] = 1,
) -> Reply:
    """Pause the replay, and show a later or earlier frame."""
    lab.replay.step_frames(n_frames)
    return {"replay_time": lab.replay.time}


@verb(rate=_RATE, loop=Flag())
def set_replay(
    lab: LiveLab,
    rate: Annotated[float | None, _RATE] = None,
    loop: Annotated[bool | None, Flag(text="true to restart after the last frame")] = None,
) -> Reply:
    """Set how recordings are played; what is left out stays."""
    if rate == 0.0:
        raise VerbError("bad_value", "set_replay: rate must not be 0; replay_pause stops playback.")

    def change() -> None:
        if rate is not None:
            lab.replay.rate = rate
        if loop is not None:
            lab.replay.loop = loop

    between_steps(lab, change)
    return {"rate": lab.replay.rate, "loop": lab.replay.loop}


@verb(enabled=Flag())
def set_replay_role(
    lab: LiveLab,
    robot: Annotated[str, Name(of="entity", text="robot")],
    enabled: Annotated[bool, Flag(text="false to leave the robot out of replays")] = True,
    relative: Annotated[
        bool | None, Flag(text="true to place the first frame at the robot's initial pose")
    ] = None,
) -> Reply:
    """Set the role of a robot in the next replays."""
    lab.replay.bindings[robot] = Binding(enabled, relative)
    return {"enabled": enabled}
