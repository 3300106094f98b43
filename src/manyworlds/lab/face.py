"""Face of a live world: the part of a lab that readers need, in any process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import mujoco

    from manyworlds.lab.facts import LabFacts
    from manyworlds.lab.loop.snapshot import Snapshot
    from manyworlds.lab.verb_methods import LabVerbs


@runtime_checkable
class LabFace(Protocol):
    """A live world: its snapshots, its facts, its model, and its verbs.

    `LiveLab` is one; `RemoteLab` is one in another process, which reads snapshots from shared
    memory. Pages, network servers and clients use only this, so that they work in both.
    """

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot of the world; it is never older than the reply of a `call`."""
        ...

    @property
    def facts(self) -> LabFacts:
        """The state that snapshots do not contain: owners, targets, recording, failures ...

        It is never older than the reply of a `call`, but for verbs that programs call many times a
        second (`step`, `set_targets`, `drive` ...). What changes otherwise is in it within 0.1 s.
        """
        ...

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model, for reading.

        Changes of its values appear in place, at the latest with the next `sync_model`. A rebuild
        of the world replaces the object.
        """
        ...

    @property
    def robots(self) -> Mapping[str, str]:
        """Prefix of the elements of each robot in the model, by the robot's name."""
        ...

    @property
    def verbs(self) -> LabVerbs:
        """The verbs, as methods."""
        ...

    def call(self, verb: str, **fields: object) -> dict[str, object]:
        """Carry out a verb by its name, as protocols do, and wait for its effect.

        Args:
            verb: name of the verb.
            **fields: its fields: plain data, bytes and arrays.

        Returns:
            The fields of the reply, also plain data, bytes and arrays.

        Raises:
            VerbError: there is no such verb, a field is missing or wrong, or the lab refuses; its
                `code` is the kind of the error.
        """
        ...

    def describe_verbs(self) -> list[dict[str, object]]:
        """Return the catalogue of the verbs as plain data; see `manyworlds.lab.verbs`."""
        ...

    def sync_model(self) -> None:
        """Bring the values of `model` up to the `model_version` of the newest snapshot."""
        ...
