"""Verbs of `manyworlds.lab.verbs.timeline`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from manyworlds.lab.client.caller import Reply, VerbCaller


class TimelineVerbs(VerbCaller):
    """Verbs of a live world: timeline."""

    def read_timeline(self) -> Reply:
        """Return how far back the world can go, and what happened when.

        Returns:
            `timeline` (map, length, moment that is shown, and marks), `frame_id`, `time`.
        """
        return self.call("read_timeline")

    def timeline_seek(
        self,
        ago: float,
    ) -> Reply:
        """Pause, and show a moment of the past; the present is kept.

        Args:
            ago: time before the newest moment [s], from 0.

        Returns:
            `ago` (float, time before the newest moment), `world_time` (float, simulated time of the
            moment that is shown), `frame_id`, `time`.
        """
        return self.call("timeline_seek", ago=ago)

    def timeline_step(
        self,
        n_frames: int = -1,
    ) -> Reply:
        """Pause, and show an earlier or later moment; each step of the world is one.

        Args:
            n_frames: moments to move; negative for earlier ones.

        Returns:
            `ago` (float, time before the newest moment), `world_time` (float, simulated time of the
            moment that is shown), `frame_id`, `time`.
        """
        return self.call("timeline_step", n_frames=n_frames)

    def timeline_leave(self) -> Reply:
        """Return to the present, from which the world continues."""
        return self.call("timeline_leave")

    def timeline_branch(
        self,
        ago: float | None = None,
        play: bool | None = None,
    ) -> Reply:
        """Continue from the moment that is shown, or from another one; its future is kept once.

        Args:
            ago: time before the newest moment [s], from 0.
            play: whether to play; as before, if left out.

        Returns:
            `notes` (string[], sentences about controllers that do not continue exactly),
            `frame_id`, `time`.
        """
        return self.call("timeline_branch", ago=ago, play=play)

    def timeline_swap(self) -> Reply:
        """Return to the future that the last branch left; the present takes its place."""
        return self.call("timeline_swap")

    def timeline_save(
        self,
        path: str,
        seconds: float = 60.0,
    ) -> Reply:
        """Write the last seconds as a recording, which was not started before.

        Args:
            path: name of a file of the folder; its suffix sets the format.
            seconds: length of the recording [s], from 0.001.

        Returns:
            `absolute_path` (string, path of the file), `frame_count` (int), `frame_id`, `time`.
        """
        return self.call("timeline_save", path=path, seconds=seconds)
