"""Verbs of `manyworlds.lab.verbs.model_edits`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class ModelEditsVerbs(VerbCaller):
    """Verbs of a live world: model_edits."""

    def set_model(
        self,
        element: str,
        field: str,
        value: object,
    ) -> Reply:
        """Change a field of an element from the next step on, in the spec, too.

        Args:
            element: element as KIND:NAME, with the id for a name if it has none: body:cup.
            field: field as in MJCF or in the compiled model: mass.
            value: number, list of numbers, or name.

        Returns:
            `element` (string, element as KIND:NAME, with the id for a name if it has none:
            body:cup), `value` (any, the new value), `model_version` (int, number of changes of the
            model), `frame_id`, `time`.
        """
        return self.call("set_model", element=element, field=field, value=value)

    def reset_model(
        self,
        element: str,
        field: str = "",
    ) -> Reply:
        """Set a field of an element, or all of them, to what the model had before all edits.

        Args:
            element: element as KIND:NAME, with the id for a name if it has none: body:cup.
            field: field; all of them if empty.

        Returns:
            `fields` (string[], fields that were set), `frame_id`, `time`.
        """
        return self.call("reset_model", element=element, field=field)

    def read_element(
        self,
        element: str,
    ) -> Reply:
        """Return the fields of an element that can change, and their values in the compiled model.

        Args:
            element: element as KIND:NAME, with the id for a name if it has none: body:cup.

        Returns:
            `element` (string, element as KIND:NAME, with the id for a name if it has none:
            body:cup), `type` (string, kind of the joint, geom, actuator ... as in the model's
            file), `fields` (map[], name, value, model_value, unit, bounds, choices, consequence of
            each), `frame_id`, `time`.
        """
        return self.call("read_element", element=element)

    def read_names(
        self,
        kind: Literal[
            "",
            "body",
            "joint",
            "geom",
            "site",
            "camera",
            "light",
            "tendon",
            "actuator",
            "sensor",
            "material",
            "equality",
        ] = "",
    ) -> Reply:
        """Return the names of elements in this world beside those in the robots' own files.

        Args:
            kind: kind of element; all if empty.

        Returns:
            `names` (map[], kind, name, robot, original name, source of each element), `frame_id`,
            `time`.
        """
        return self.call("read_names", kind=kind)

    def set_joint_qpos(
        self,
        joint: str,
        qpos: ArrayLike,
        still: bool = False,
    ) -> Reply:
        """Set the positions of one joint; quaternions are normalized.

        Args:
            joint: joint by its name, or its id if it has none.
            qpos: 1 value of a hinge or slide, 4 of a ball, 7 of a free joint.
            still: true to set its velocities to zero.

        Returns:
            `joint` (string, full name of the joint), `qpos` (float[], its positions), `frame_id`,
            `time`.
        """
        return self.call("set_joint_qpos", joint=joint, qpos=qpos, still=still)
