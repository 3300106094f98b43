"""Verbs of play: launches of bodies, events of contacts, sleep of bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.play.contact_events import ContactKind, ContactMoment
from manyworlds.lab.play.launcher import FASTEST, SLOWEST, LaunchPath
from manyworlds.lab.verbs.fields import (
    Body,
    Choice,
    Field,
    Flag,
    Integer,
    Listing,
    Number,
    Numbers,
    Texts,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, between_steps, verb
from manyworlds.lab.world.sleeping import put_to_sleep, wake

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_FreeBody = Annotated[str, Field(text="body with a free joint")]
_PATH = Choice(options=get_args(LaunchPath), text="straight at the target, or on a parabola")
_SPEED = Number(low=SLOWEST, high=FASTEST, unit="m/s", text="speed of a direct launch")
_ARC = Number(low=0.0, high=10.0, text="height of a ballistic path, divided by its length")
_AUTO = Flag(text="true to reset and launch again and again, after each delay")
_RESET = Flag(text="true to launch the body from where it was after a reset")
_LAUNCHES = Listing(text="body, target, path, speed, arc, delay, auto and reset of each")
_KIND = Choice(options=get_args(ContactKind), text="kind of the names")
_MOMENT = Choice(options=get_args(ContactMoment), text="events to report")
_Pattern = Annotated[str, Field(text="regular expression that matches whole names; no look-around")]
_AnyBody = Annotated[int | None, Body(text="body by name or id; all if left out")]


@verb(launches=_LAUNCHES)
def aim_launcher(
    lab: LiveLab,
    body: _FreeBody = "",
    target: Annotated[str, Field(text="body to aim at")] = "",
    point: Annotated[
        np.ndarray | None, Numbers(size=3, unit="m", text="point to aim at, without a target")
    ] = None,
    path: Annotated[LaunchPath, _PATH] = "direct",
    speed: Annotated[float, _SPEED] = 10.0,
    arc: Annotated[float, _ARC] = 0.3,
    delay: Annotated[float, Number(low=0.01, unit="s", text="time between launches")] = 2.0,
    auto: Annotated[bool, _AUTO] = False,
    reset: Annotated[bool, _RESET] = False,
) -> Reply:
    """Set how a body is launched; it replaces an earlier setting of the body."""
    aimed = target
    if not target:
        if point is None:
            raise VerbError("missing_field", "aim_launcher needs a target or a point.")
        aimed = point.tolist()
    between_steps(
        lab,
        lambda: lab.launcher.aim(
            body, aimed, path=path, speed=speed, arc=arc, delay=delay, auto=auto, reset=reset
        ),
    )
    return {"launches": lab.launcher.plain()}


@verb(velocities=Values(text="velocity of each launched body [m/s]"))
def fire_launcher(
    lab: LiveLab,
    body: _FreeBody = "",
    reset: Annotated[bool | None, Flag(text="true to put it back first")] = None,
) -> Reply:
    """Launch a body, or all that were aimed."""
    fired = lab.launcher.fire(body, reset=reset)
    return {"velocities": {name: velocity.tolist() for name, velocity in fired.items()}}


@verb(launches=_LAUNCHES)
def forget_launch(lab: LiveLab, body: _FreeBody) -> Reply:
    """Remove the settings of a body; its auto-fire ends."""
    between_steps(lab, lambda: lab.launcher.forget(body))
    return {"launches": lab.launcher.plain()}


@verb(reads=True, launches=_LAUNCHES, bodies=Texts(text="bodies that can be launched"))
def read_launcher(lab: LiveLab) -> Reply:
    """Return the settings of all launches, and the bodies that can be launched."""
    return {"launches": lab.launcher.plain(), "bodies": lab.launcher.bodies}


@verb(watch=Integer(text="number of the watch, for `unwatch_contacts`"))
def watch_contacts(
    lab: LiveLab,
    first: _Pattern = ".*",
    second: _Pattern = ".*",
    kind: Annotated[ContactKind, _KIND] = "body",
    moment: Annotated[ContactMoment, _MOMENT] = "both",
) -> Reply:
    """Write contacts between bodies or geoms into the log, as they begin and end."""
    return {"watch": lab.contacts.watch_for_client(first, second, kind, moment)}


@verb()
def unwatch_contacts(
    lab: LiveLab, watch: Annotated[int, Integer(low=0, text="number of the watch")]
) -> Reply:
    """End a watch of contacts."""
    lab.contacts.unwatch(watch)
    return {}


@verb(
    reads=True,
    events=Listing(text="number, event, time, first, second and kind of each, the newest last"),
    next=Integer(text="value of `since` for what comes after these"),
)
def read_contact_events(
    lab: LiveLab,
    since: Annotated[int, Integer(low=0, text="number of the first event to return")] = 0,
) -> Reply:
    """Return the log of contacts that began or ended; the last 500 are kept."""
    events = lab.contacts.plain_log(since)
    return {"events": events, "next": lab.contacts.count}


@verb(trees=Integer(text="number of kinematic trees that slept"))
def wake_bodies(lab: LiveLab, body: _AnyBody = None) -> Reply:
    """Wake a body that MuJoCo has put to sleep, with all that it touches."""
    slept = lab.loop.do(lambda model, data: wake(model, data, body or 0), edits_model=False)
    return {"trees": slept}


@verb(trees=Integer(text="number of kinematic trees that were stopped"))
def put_bodies_to_sleep(lab: LiveLab, body: _AnyBody = None) -> Reply:
    """Stop a body, so that it sleeps from the next step on if nothing moves it."""
    awake = lab.loop.do(lambda model, data: put_to_sleep(model, data, body or 0), edits_model=False)
    return {"trees": awake}
