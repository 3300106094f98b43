"""Captures of a world for overlays, which are copied only while an overlay is on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import mujoco
import numpy as np


@dataclass(frozen=True, eq=False)
class CapturedContacts:
    """Captured contacts of the last step."""

    name: ClassVar[str] = "contacts"
    positions: np.ndarray
    """Contact points [m], shape (n, 3)."""
    normals: np.ndarray
    """Normals from the first geom to the second, shape (n, 3)."""
    forces: np.ndarray
    """Forces in the world frame, friction included [N], shape (n, 3)."""

    @property
    def along_normals(self) -> np.ndarray:
        """Components of the forces along the normals [N], shape (n, 3)."""
        return (self.forces * self.normals).sum(axis=1, keepdims=True) * self.normals


@dataclass(frozen=True, eq=False)
class CapturedTendons:
    """Captured paths of all tendons, as straight segments."""

    name: ClassVar[str] = "tendons"
    points: np.ndarray
    """Ends of the segments [m], shape (n, 2, 3)."""
    ids: np.ndarray
    """Id of the tendon of each segment, shape (n,)."""


@dataclass(frozen=True, eq=False)
class CapturedGroups:
    """Captured islands and sleep states of bodies."""

    name: ClassVar[str] = "groups"
    island: np.ndarray
    """Constraint island of each body, shape (nbody,); -1 for none."""
    awake: np.ndarray
    """True for each body that is awake, shape (nbody,)."""


@dataclass(frozen=True, eq=False)
class CapturedJoints:
    """Captured joint axes in the world."""

    name: ClassVar[str] = "joints"
    anchors: np.ndarray
    """Anchors of the joints [m], shape (njnt, 3)."""
    axes: np.ndarray
    """Axes of the joints, shape (njnt, 3)."""


def _contacts(model: mujoco.MjModel, data: mujoco.MjData) -> CapturedContacts:
    """Copy positions, normals and forces of the contacts."""
    count = data.ncon
    forces = np.zeros((count, 3))
    six = np.zeros(6)
    frames = np.array(data.contact.frame).reshape(count, 3, 3)
    for i in range(count):
        mujoco.mj_contactForce(model, data, i, six)
        forces[i] = six[:3] @ frames[i]
    return CapturedContacts(np.array(data.contact.pos).reshape(count, 3), frames[:, 0], forces)


def _tendons(model: mujoco.MjModel, data: mujoco.MjData) -> CapturedTendons:
    """Copy the segments of the tendons' paths."""
    points = []
    ids = []
    wraps = np.array(data.wrap_xpos).reshape(-1, 3)
    objects = np.array(data.wrap_obj).ravel()
    for tendon in range(model.ntendon):
        start = int(data.ten_wrapadr[tendon])
        count = int(data.ten_wrapnum[tendon])
        for i in range(start, start + count - 1):
            if objects[i] != -2 and objects[i + 1] != -2:  # -2 is a pulley, where a tendon branches
                points.append(wraps[i : i + 2])
                ids.append(tendon)
    return CapturedTendons(np.array(points).reshape(-1, 2, 3), np.array(ids, int))


def _groups(model: mujoco.MjModel, data: mujoco.MjData) -> CapturedGroups:
    """Copy the island of each body, and which bodies are awake."""
    tree = model.body_treeid
    island = np.full(model.nbody, -1)
    asleep = np.zeros(model.nbody, bool)
    if model.ntree:
        asleep = (tree >= 0) & (data.tree_asleep[tree] >= 0)
        if data.nisland:  # MuJoCo finds islands only where there are constraints
            island = np.where(tree >= 0, data.tree_island[tree], -1)
    return CapturedGroups(island, ~asleep)


def _joints(model: mujoco.MjModel, data: mujoco.MjData) -> CapturedJoints:
    """Copy anchors and axes of the joints."""
    return CapturedJoints(data.xanchor.copy(), data.xaxis.copy())


Capture = CapturedContacts | CapturedTendons | CapturedGroups | CapturedJoints

CAPTURES: dict[type[Capture], Callable[[mujoco.MjModel, mujoco.MjData], Capture]] = {
    CapturedContacts: _contacts,
    CapturedTendons: _tendons,
    CapturedGroups: _groups,
    CapturedJoints: _joints,
}
"""Capture functions by type; they run in the thread that steps."""


def capture(
    model: mujoco.MjModel, data: mujoco.MjData, kinds: Iterable[type[Capture]]
) -> dict[type[Capture], Capture]:
    """Return captures of the given types."""
    return {kind: CAPTURES[kind](model, data) for kind in kinds}
