"""Worlds that a publisher can serve: a lab in this or another process, or a program's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import numpy as np

from manyworlds.lab.face import LabFace
from manyworlds.plugins.urlab.client_model import export_model

Names = Literal["lab", "clients"]
"""Whose names the elements of a model have."""


@dataclass(frozen=True, eq=False)
class WorldPose:
    """State of a world at one moment: a snapshot of a lab has these fields, too."""

    frame_id: int
    """Number of the moment."""
    time: float
    """Simulated time [s]."""
    model_version: int
    """Number of changes of the model."""
    xpos: np.ndarray
    """Positions of all bodies [m], shape (nbody, 3)."""
    xquat: np.ndarray
    """Orientations of all bodies (wxyz), shape (nbody, 4)."""
    qpos: np.ndarray
    """Generalized positions, shape (nq,)."""
    qvel: np.ndarray
    """Generalized velocities, shape (nv,)."""


class PublishedWorld(Protocol):
    """World that a publisher serves; one thread calls it."""

    @property
    def scene(self) -> str:
        """Name of the world, for people."""
        ...

    @property
    def refusal(self) -> str:
        """Reason why nothing can be pushed, in one sentence; empty if everything can."""
        ...

    @property
    def ngeom(self) -> int:
        """Number of geoms."""
        ...

    @property
    def robots(self) -> Mapping[str, str]:
        """Prefix of the elements of each robot in the model, by the robot's name."""
        ...

    @property
    def has_state(self) -> bool:
        """True if poses have controls and sensors, as snapshots of a lab do."""
        ...

    def pose(self) -> WorldPose:
        """Return the newest state: the same object until there is another one."""
        ...

    def model(self, names: Names = "clients") -> bytes:
        """Return the present model in MuJoCo's binary format.

        Args:
            names: whose names the elements have: `robot/hip` of the lab, or `robot_hip` of URLab's
                clients.

        Raises:
            VerbError: these clients could not tell the robots apart.
        """
        ...

    def push(self, body: int, force: np.ndarray, torque: np.ndarray) -> None:
        """Add a force [N] and a torque [N m] on a body for the next step."""
        ...

    def drag(
        self, body: int, localpos: np.ndarray, target: np.ndarray | None, quat: np.ndarray | None
    ) -> None:
        """Pull a point of a body, and turn the body; see `Perturbation.drag`."""
        ...

    def release(self) -> None:
        """Stop dragging."""
        ...


class PublishedLab:
    """A live lab.

    Args:
        face: the lab, in this process or in another one.
    """

    refusal = ""
    has_state = True

    def __init__(self, face: LabFace) -> None:
        self.face = face

    @property
    def scene(self) -> str:
        """Names of the robots, or else of the model."""
        model = self.face.model
        return ", ".join(self.face.robots) or model.names[: model.names.index(b"\0")].decode()

    @property
    def ngeom(self) -> int:
        """Number of geoms."""
        return int(self.face.model.ngeom)

    @property
    def robots(self) -> Mapping[str, str]:
        """Prefix of the elements of each robot in the model, by the robot's name."""
        return dict(self.face.robots)

    def pose(self) -> WorldPose:
        """Return the newest snapshot."""
        self.face.sync_model()  # after a rebuild, the snapshots are those of the new world
        return cast("WorldPose", self.face.snapshot)

    def model(self, names: Names = "clients") -> bytes:
        """Return the present model in MuJoCo's binary format; see `PublishedWorld.model`."""
        if names == "clients":
            return cast("bytes", export_model(self.face.verbs)["mjb"])
        return self.face.verbs.export_model()["mjb"]

    def push(self, body: int, force: np.ndarray, torque: np.ndarray) -> None:
        """Add a force and a torque on a body for the next step."""
        self.face.verbs.push_body(body=body, force=force, torque=torque)

    def drag(
        self, body: int, localpos: np.ndarray, target: np.ndarray | None, quat: np.ndarray | None
    ) -> None:
        """Pull a point of a body, and turn the body."""
        self.face.verbs.drag_body(body=body, localpos=localpos, target=target, quat=quat)

    def release(self) -> None:
        """Stop dragging."""
        self.face.verbs.release_body()
