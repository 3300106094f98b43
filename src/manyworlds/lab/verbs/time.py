"""Verbs of the world's time: pause, steps, speed, mode, reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from manyworlds.lab.pacing import FASTEST, SLOWEST
from manyworlds.lab.verbs.cameras import encode
from manyworlds.lab.verbs.fields import Choice, Field, Flag, Integer, Number, Values, VerbError
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_PERCENT = Number(
    unit="%",
    low=100.0 * SLOWEST,
    high=100.0 * FASTEST,
    infinite=True,
    text="speed of simulated time relative to real time",
)
_NO_CAMERAS: dict[str, object] = {}
_MODES = Choice(options=("live", "direct", "auto"), text="mode of the loop")


@verb(paused=Flag())
def set_paused(lab: LiveLab, paused: Annotated[bool, Flag(text="true to pause")]) -> Reply:
    """Pause the world, or let it run."""
    lab.loop.paused = paused
    return {"paused": paused}


@verb(
    step=Integer(text="number of physics steps so far"),
    cameras=Values(text="header and pixels of each image, as of capture_camera, by camera"),
)
def step(
    lab: LiveLab,
    n_steps: Annotated[int, Integer(low=1, high=1e9, text="number of steps")] = 1,
    include_cameras: Annotated[
        dict[str, object],
        Values(text="sync for an image of this step, or latest for the last one, by camera"),
    ] = _NO_CAMERAS,
) -> Reply:
    """Advance the world by some steps, paused or not, and wait for them."""
    for name, when in include_cameras.items():
        lab.camera(name)
        if when not in ("sync", "latest"):
            raise VerbError(
                "bad_value",
                f"step: include_cameras must be sync or latest for '{name}', got {when!r}.",
            )
    snapshot, images = lab.step(n_steps), {}
    for name, when in include_cameras.items():
        frame = lab.cameras.hub.newest(name) if when == "latest" else None
        images[name] = encode(frame or lab.camera(name).frame(snapshot=snapshot))
    return {"step": snapshot.step, "cameras": images}


@verb(ended_replay=Field(text="session of the replay that the reset ended; empty for none"))
def reset(lab: LiveLab) -> Reply:
    """Return to the initial state; clear all targets and a fault, and end a replay."""
    return {"ended_replay": lab.reset()}


@verb(percent=_PERCENT)
def set_sim_speed(lab: LiveLab, percent: Annotated[float, _PERCENT]) -> Reply:
    """Set the speed of simulated time."""
    lab.loop.speed = percent / 100.0
    return {"percent": 100.0 * lab.loop.speed}


@verb(previous_mode=_MODES, current_mode=_MODES)
def set_mode(lab: LiveLab, mode: Annotated[str, _MODES]) -> Reply:
    """Let the world advance by itself (`live`, also `auto`), or by `step` only (`direct`)."""
    before = lab.loop.mode
    lab.loop.mode = mode  # type: ignore[assignment]  # the field has checked it
    return {"previous_mode": before, "current_mode": lab.loop.mode}
