"""Verbs of `manyworlds.lab.verbs.history`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from manyworlds.lab.client.caller import Reply, VerbCaller


class HistoryVerbs(VerbCaller):
    """Verbs of a live world: history."""

    def undo(self) -> Reply:
        """Undo the last edit of the world.

        Returns:
            `label` (string, name of the edit), `frame_id`, `time`.
        """
        return self.call("undo")

    def redo(self) -> Reply:
        """Redo the edit that was undone last.

        Returns:
            `label` (string, name of the edit), `frame_id`, `time`.
        """
        return self.call("redo")
