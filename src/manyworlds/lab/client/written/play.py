"""Verbs of `manyworlds.lab.verbs.play`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class PlayVerbs(VerbCaller):
    """Verbs of a live world: play."""

    def aim_launcher(
        self,
        body: str = "",
        target: str = "",
        point: ArrayLike | None = None,
        path: Literal["direct", "ballistic"] = "direct",
        speed: float = 10.0,
        arc: float = 0.3,
        delay: float = 2.0,
        auto: bool = False,
        reset: bool = False,
    ) -> Reply:
        """Set how a body is launched; it replaces an earlier setting of the body.

        Args:
            body: body with a free joint.
            target: body to aim at.
            point: point to aim at, without a target [m].
            path: direct, or on a parabola.
            speed: if direct [m/s], from 0.1, to 100.
            arc: height by distance, from 0, to 10.
            delay: time between launches [s], from 0.01.
            auto: true to reset and launch again and again.
            reset: true to put the body back before each launch.

        Returns:
            `launches` (map[], body, target, path, speed, arc, delay, auto and reset of each),
            `frame_id`, `time`.
        """
        return self.call(
            "aim_launcher",
            body=body,
            target=target,
            point=point,
            path=path,
            speed=speed,
            arc=arc,
            delay=delay,
            auto=auto,
            reset=reset,
        )

    def fire_launcher(
        self,
        body: str = "",
        reset: bool | None = None,
    ) -> Reply:
        """Launch a body, or all that were aimed.

        Args:
            body: body with a free joint.
            reset: true to put it back first.

        Returns:
            `velocities` (map, velocity of each launched body [m/s]), `frame_id`, `time`.
        """
        return self.call("fire_launcher", body=body, reset=reset)

    def forget_launch(
        self,
        body: str,
    ) -> Reply:
        """Remove the settings of a body; its auto-fire ends.

        Args:
            body: body with a free joint.

        Returns:
            `launches` (map[], body, target, path, speed, arc, delay, auto and reset of each),
            `frame_id`, `time`.
        """
        return self.call("forget_launch", body=body)

    def read_launcher(self) -> Reply:
        """Return the settings of all launches, and the bodies that can be launched.

        Returns:
            `launches` (map[], body, target, path, speed, arc, delay, auto and reset of each),
            `bodies` (string[], bodies that can be launched), `frame_id`, `time`.
        """
        return self.call("read_launcher")

    def watch_contacts(
        self,
        first: str = ".*",
        second: str = ".*",
        kind: Literal["body", "geom"] = "body",
        moment: Literal["begin", "end", "both"] = "both",
    ) -> Reply:
        """Write contacts between bodies or geoms into the log, as they begin and end.

        Args:
            first: regular expression that matches whole names.
            second: regular expression that matches whole names.
            kind: kind of the names.
            moment: events to report.

        Returns:
            `watch` (int, number of the watch, for `unwatch_contacts`), `frame_id`, `time`.
        """
        return self.call("watch_contacts", first=first, second=second, kind=kind, moment=moment)

    def unwatch_contacts(
        self,
        watch: int,
    ) -> Reply:
        """End a watch of contacts.

        Args:
            watch: number of the watch, from 0.
        """
        return self.call("unwatch_contacts", watch=watch)

    def read_contact_events(
        self,
        since: int = 0,
    ) -> Reply:
        """Return the log of contacts that began or ended; the last 500 are kept.

        Args:
            since: number of the first event to return, from 0.

        Returns:
            `events` (map[], number, event, time, first, second and kind of each, the newest last),
            `next` (int, value of `since` for what comes after these), `frame_id`, `time`.
        """
        return self.call("read_contact_events", since=since)

    def wake_bodies(
        self,
        body: str | int | None = None,
    ) -> Reply:
        """Wake a body that MuJoCo has put to sleep, with all that it touches.

        Args:
            body: body by name or id; all if left out.

        Returns:
            `trees` (int, number of kinematic trees that slept), `frame_id`, `time`.
        """
        return self.call("wake_bodies", body=body)

    def put_bodies_to_sleep(
        self,
        body: str | int | None = None,
    ) -> Reply:
        """Stop a body, so that it sleeps from the next step on if nothing moves it.

        Args:
            body: body by name or id; all if left out.

        Returns:
            `trees` (int, number of kinematic trees that were stopped), `frame_id`, `time`.
        """
        return self.call("put_bodies_to_sleep", body=body)
