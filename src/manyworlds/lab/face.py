"""Face of a live world, the same in its own process and in a process that reads from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import mujoco

    from manyworlds.lab.snapshot import Snapshot
    from manyworlds.lab.verbs.registry import Reply


class LabFace(Protocol):
    """A live world as its readers see it: snapshots, the model, and verbs."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        ...

    @property
    def model(self) -> mujoco.MjModel:
        """The model, or a copy of it of the version `snapshot.model_version`."""
        ...

    def call(self, verb: str, **fields: object) -> Reply:
        """Carry out a verb, and return its reply once a snapshot shows its effect.

        Raises:
            VerbError: there is no such verb, a field is missing or wrong, or the lab refuses.
        """
        ...
