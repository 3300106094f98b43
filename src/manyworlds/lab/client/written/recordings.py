"""Verbs of `manyworlds.lab.verbs.recordings`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence

from manyworlds.lab.client.caller import Reply, VerbCaller


class RecordingsVerbs(VerbCaller):
    """Verbs of a live world: recordings."""

    def capture_state(
        self,
        label: str = "",
    ) -> Reply:
        """Save the present state; a state of the same name is replaced.

        Args:
            label: name; a number if empty.

        Returns:
            `label` (string, name of the saved state), `state_time` (float, simulated time of the
            state), `frame_id`, `time`.
        """
        return self.call("capture_state", label=label)

    def restore_state(
        self,
        label: str,
    ) -> Reply:
        """Return to a saved state; clear a fault, and end a replay.

        Args:
            label: name of the saved state.

        Returns:
            `label` (string, name of the saved state), `converted` (string, what was not kept of a
            state of another model; empty if all was), `ended_replay` (string, session of the replay
            that this ended; empty for none), `frame_id`, `time`.
        """
        return self.call("restore_state", label=label)

    def list_states(self) -> Reply:
        """Return the names of the saved states.

        Returns:
            `labels` (string[], names of the saved states, the oldest first), `converted` (map,
            sentences about those converted from another model, by name), `frame_id`, `time`.
        """
        return self.call("list_states")

    def drop_state(
        self,
        label: str,
    ) -> Reply:
        """Delete a saved state.

        Args:
            label: name of the saved state.

        Returns:
            `label` (string, name of the saved state), `frame_id`, `time`.
        """
        return self.call("drop_state", label=label)

    def export_state(
        self,
        label: str,
    ) -> Reply:
        """Return the content of a saved state's file.

        Args:
            label: name of the saved state.

        Returns:
            `content` (bytes, content of the file), `frame_id`, `time`.
        """
        return self.call("export_state", label=label)

    def import_state(
        self,
        content: bytes,
        name: str = "file",
        convert: bool = False,
    ) -> Reply:
        """Add a saved state from a file's content.

        Args:
            content: content of the file.
            name: name of the file, for messages.
            convert: true to convert a state of another model by name, not to refuse it.

        Returns:
            `label` (string, name of the saved state), `converted` (string, what was not kept of a
            state of another model; empty if all was), `frame_id`, `time`.
        """
        return self.call("import_state", content=content, name=name, convert=convert)

    def recording_start(
        self,
        name: str = "",
        max_duration_s: float | None = None,
        cameras: Sequence[str] | None = None,
    ) -> Reply:
        """Start a recording: each physics step adds a frame.

        Args:
            name: NAME.mcap; named by the date if empty.
            max_duration_s: time that memory holds [s], from 0.
            cameras: cameras whose images are written to the file, too.

        Returns:
            `name` (string, name of the file; empty without one), `frame_id`, `time`.
        """
        return self.call(
            "recording_start", name=name, max_duration_s=max_duration_s, cameras=cameras
        )

    def recording_stop(self) -> Reply:
        """End the recording and its file.

        Returns:
            `frame_count` (int, frames in memory), `sim_duration_s` (float), `frame_id`, `time`.
        """
        return self.call("recording_stop")

    def recording_clear(self) -> Reply:
        """Delete the live session from memory; its file stays."""
        return self.call("recording_clear")

    def recording_save(
        self,
        path: str,
        session: str = "",
        segment: int = 0,
    ) -> Reply:
        """Write a recording to the folder, in the format of the suffix.

        Args:
            path: name of a file of the folder; its suffix sets the format.
            session: recording: Live, or a file; the active one if empty.
            segment: only segment to write, from 1; 0 writes all, to .mcap only, from 0.

        Returns:
            `absolute_path` (string, path of the file), `frame_id`, `time`.
        """
        return self.call("recording_save", path=path, session=session, segment=segment)

    def recording_export(
        self,
        path: str,
        session: str = "",
        segment: int = 0,
    ) -> Reply:
        """Write a recording to the folder, and return the content of the file.

        Args:
            path: name of a file of the folder; its suffix sets the format.
            session: recording: Live, or a file; the active one if empty.
            segment: only segment to write, from 1; 0 writes all, to .mcap only, from 0.

        Returns:
            `content` (bytes, content of the file), `frame_id`, `time`.
        """
        return self.call("recording_export", path=path, session=session, segment=segment)

    def recording_import(
        self,
        path: str,
        content: bytes,
    ) -> Reply:
        """Add a recording from a file's content to the folder, and make it the active one.

        Args:
            path: name of a file of the folder; its suffix sets the format.
            content: content of the file.

        Returns:
            `name` (string, recording: Live, or a file of the folder), `frame_id`, `time`.
        """
        return self.call("recording_import", path=path, content=content)

    def replay_load(
        self,
        path: str,
    ) -> Reply:
        """Read a recording of the folder, and make it the active one.

        Args:
            path: name of a file of the folder; its suffix sets the format.

        Returns:
            `name` (string, recording: Live, or a file of the folder), `frame_id`, `time`.
        """
        return self.call("replay_load", path=path)

    def replay_list_sessions(self) -> Reply:
        """Return the names of the recordings: the live one, then files.

        Returns:
            `sessions` (string[], names of the recordings), `frame_id`, `time`.
        """
        return self.call("replay_list_sessions")

    def replay_set_active(
        self,
        name: str,
    ) -> Reply:
        """Choose the recording that is played or saved by default.

        Args:
            name: recording: Live, or a file of the folder.

        Returns:
            `active_session` (string, recording: Live, or a file of the folder), `frame_id`, `time`.
        """
        return self.call("replay_set_active", name=name)

    def replay_start(
        self,
        session: str = "",
        restore: bool = True,
    ) -> Reply:
        """Play a recording in place of physics.

        Args:
            session: recording: Live, or a file; the active one if empty.
            restore: true to return to the present state at the end.

        Returns:
            `active_session` (string, recording: Live, or a file of the folder), `total_frames`
            (int), `report` (string, recorded joints, and the joints that they move), `frame_id`,
            `time`.
        """
        return self.call("replay_start", session=session, restore=restore)

    def replay_stop(self) -> Reply:
        """End the replay."""
        return self.call("replay_stop")

    def replay_play(self) -> Reply:
        """Continue the replay; from the beginning if it was at the end.

        Returns:
            `playing` (bool), `frame_id`, `time`.
        """
        return self.call("replay_play")

    def replay_pause(self) -> Reply:
        """Stay at the frame that is shown.

        Returns:
            `playing` (bool), `frame_id`, `time`.
        """
        return self.call("replay_pause")

    def replay_seek(
        self,
        replay_time: float,
    ) -> Reply:
        """Show a moment of the recording; times outside it show its first or last frame.

        Args:
            replay_time: time since the recording's first frame [s].

        Returns:
            `replay_time` (float, time since the recording's first frame), `frame_id`, `time`.
        """
        return self.call("replay_seek", replay_time=replay_time)

    def replay_step_frames(
        self,
        n_frames: int = 1,
    ) -> Reply:
        """Pause the replay, and show a later or earlier frame.

        Args:
            n_frames: frames to move; negative for earlier ones.

        Returns:
            `replay_time` (float, time since the recording's first frame), `frame_id`, `time`.
        """
        return self.call("replay_step_frames", n_frames=n_frames)

    def set_replay(
        self,
        rate: float | None = None,
        loop: bool | None = None,
    ) -> Reply:
        """Set how recordings are played; what is left out stays.

        Args:
            rate: recorded seconds per simulated second; negative plays in reverse.
            loop: true to restart after the last frame.

        Returns:
            `rate` (float, recorded seconds per simulated second; negative plays in reverse), `loop`
            (bool), `frame_id`, `time`.
        """
        return self.call("set_replay", rate=rate, loop=loop)

    def set_replay_role(
        self,
        robot: str,
        enabled: bool = True,
        relative: bool | None = None,
    ) -> Reply:
        """Set the role of a robot in the next replays.

        Args:
            robot: robot.
            enabled: false to leave the robot out of replays.
            relative: true to place the first frame at the robot's initial pose.

        Returns:
            `enabled` (bool), `frame_id`, `time`.
        """
        return self.call("set_replay_role", robot=robot, enabled=enabled, relative=relative)
