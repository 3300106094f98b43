"""Verbs of `manyworlds.lab.verbs.drawing`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class DrawingVerbs(VerbCaller):
    """Verbs of a live world: drawing."""

    def read_captures(
        self,
        kinds: Sequence[str],
    ) -> Reply:
        """Return arrays that no snapshot has: contacts, tendons, joints, groups of bodies.

        Args:
            kinds: some of contacts, tendons, groups, joints.

        Returns:
            `captures` (map, arrays by kind and name, of one moment), `frame_id`, `time`.
        """
        return self.call("read_captures", kinds=kinds)

    def set_recording_view(
        self,
        view: ArrayLike,
    ) -> Reply:
        """Set the view that frames of recordings get from now on.

        Args:
            view: position [m], pitch, yaw and roll [degrees] of the camera.

        Returns:
            `view` (float[], position [m], pitch, yaw and roll [degrees] of the camera), `frame_id`,
            `time`.
        """
        return self.call("set_recording_view", view=view)
