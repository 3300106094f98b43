"""Verbs of `manyworlds.lab.verbs.drawing`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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

    def draw_shape(
        self,
        name: str,
        kind: Literal["marker", "line", "box", "axes", "arrow", "text"],
        points: ArrayLike,
        size: ArrayLike | None = None,
        quat: ArrayLike | None = None,
        color: ArrayLike | None = None,
        text: str = "",
        ttl: float | None = None,
    ) -> Reply:
        """Draw a marker, line, box, axes, arrow or text into the view of the page.

        Args:
            name: name of the shape; one of the same name is replaced.
            kind: kind of the shape.
            points: 3 numbers for the center, each point of a line, or both ends [m].
            size: side lengths of a box, or one size [m].
            quat: orientation [wxyz].
            color: red, green and blue, 0 to 1.
            text: text at the first point.
            ttl: time until it vanishes; never if left out [s], from 0.
        """
        return self.call(
            "draw_shape",
            name=name,
            kind=kind,
            points=points,
            size=size,
            quat=quat,
            color=color,
            text=text,
            ttl=ttl,
        )

    def clear_drawings(
        self,
        name: str = "",
    ) -> Reply:
        """Remove a shape from the view, or all of them.

        Args:
            name: name of the shape; all if left out.
        """
        return self.call("clear_drawings", name=name)

    def read_drawings(self) -> Reply:
        """Return the shapes that programs draw into the view.

        Returns:
            `shapes` (map, kind, points, size, quat, color and text of each shape, by name),
            `frame_id`, `time`.
        """
        return self.call("read_drawings")
