"""Left-right mirror symmetry of a robot, found in its compiled model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.entity.mirror_actuation import (
    check_constraints,
    mirror_actuators,
    mirror_tendons,
)
from manyworlds.entity.mirror_search import PARITY, Reference, search
from manyworlds.spec.elements import name_of_element

REFLECTION = np.diag(PARITY)
"""Reflection at the xz plane, shape [3, 3]."""
_BALL = mujoco.mjtJoint.mjJNT_BALL
_FREE = mujoco.mjtJoint.mjJNT_FREE


@dataclass(frozen=True)
class MirrorTable:
    """Mirror image of each element of a robot at its sagittal plane.

    Each `<kind>_ids` has one entry per element of the model: the id of its mirror image, or -1 for
    elements of other objects and for sites and visual geoms without a mirror image. A mirror image
    of a floating robot's state is one at the world's xz plane.
    """

    model: mujoco.MjModel
    body: int
    """Id of the root body."""
    body_ids: np.ndarray
    joint_ids: np.ndarray
    geom_ids: np.ndarray
    site_ids: np.ndarray
    tendon_ids: np.ndarray
    actuator_ids: np.ndarray
    joint_sign: np.ndarray
    """Sign of each hinge or slide coordinate in its mirror image, shape [njnt]."""
    tendon_sign: np.ndarray
    """Sign of each tendon's length in its mirror image, shape [ntendon]."""
    actuator_sign: np.ndarray
    """Sign of each actuator's control, force and activation, shape [nactuator]."""
    body_frames: np.ndarray
    """Orientation of each mirror image's frame in the reflected frame of the body, which is
    left-handed, shape [nbody, 3, 3]."""
    site_offsets: np.ndarray
    """Distance of each site from the plane in the reference configuration, positive to the left
    [m], shape [nsite]."""
    asymmetry: dict[str, tuple[str, float]]
    """Largest deviation by property: the element, and the deviation as a fraction."""

    def mirror_qpos(self, qpos: np.ndarray) -> np.ndarray:
        """Return the mirror image of positions, shape [nq]; other objects keep theirs."""
        model = self.model
        mirrored = np.array(qpos, dtype=np.float64)
        for joint, image in self._joints():
            source, target = model.jnt_qposadr[[joint, image]]
            kind = mujoco.mjtJoint(model.jnt_type[joint])
            if kind == _FREE:
                mirrored[target : target + 3] = PARITY * qpos[source : source + 3]
                quat = qpos[source + 3 : source + 7]
                mirrored[target + 3 : target + 7] = _mirror_turn(quat, self._frame(joint))
            elif kind == _BALL:
                mirrored[target] = qpos[source]
                axis = qpos[source + 1 : source + 4]
                mirrored[target + 1 : target + 4] = -self._frame(joint).T @ axis
            else:
                mirrored[target] = self.joint_sign[joint] * qpos[source]
        return mirrored

    def mirror_qvel(self, qvel: np.ndarray) -> np.ndarray:
        """Return the mirror image of velocities, or of forces or accelerations, shape [nv]."""
        model = self.model
        mirrored = np.array(qvel, dtype=np.float64)
        for joint, image in self._joints():
            source, target = model.jnt_dofadr[[joint, image]]
            kind = mujoco.mjtJoint(model.jnt_type[joint])
            if kind == _FREE:
                mirrored[target : target + 3] = PARITY * qvel[source : source + 3]
                source = source + 3
                target = target + 3
            if kind in (_BALL, _FREE):
                turn = qvel[source : source + 3]
                mirrored[target : target + 3] = -self._frame(joint).T @ turn
            else:
                mirrored[target] = self.joint_sign[joint] * qvel[source]
        return mirrored

    def mirror_ctrl(self, ctrl: np.ndarray) -> np.ndarray:
        """Return the mirror image of controls, shape [nu]."""
        return self._mirror_actuators(ctrl, self.model.actuator_ctrladr, None)

    def mirror_act(self, act: np.ndarray) -> np.ndarray:
        """Return the mirror image of activations, shape [na]."""
        return self._mirror_actuators(act, self.model.actuator_actadr, self.model.actuator_actnum)

    def images(self, kind: str, ids: np.ndarray) -> np.ndarray:
        """Return the ids of the mirror images of some elements, shape [len(ids)].

        Args:
            kind: `body`, `joint`, `geom`, `site`, `tendon` or `actuator`.
            ids: ids in the model.

        Raises:
            ValueError: an element has no mirror image.
        """
        images = getattr(self, f"{kind}_ids")[ids]
        if (images < 0).any():
            lost = [name_of_element(self.model, kind, i) for i in np.asarray(ids)[images < 0]]
            raise ValueError(
                f"The {kind}s {lost} have no mirror image at the sagittal plane of "
                f"'{self.model.body(self.body).name}': move them, or leave them out."
            )
        return images

    def _joints(self) -> list[tuple[int, int]]:
        return [(joint, int(image)) for joint, image in enumerate(self.joint_ids) if image >= 0]

    def _frame(self, joint: int) -> np.ndarray:
        return self.body_frames[self.model.jnt_bodyid[joint]]

    def _mirror_actuators(
        self, values: np.ndarray, adr: np.ndarray, num: np.ndarray | None
    ) -> np.ndarray:
        mirrored = np.array(values, dtype=np.float64)
        for actuator, image in enumerate(self.actuator_ids):
            count = 1
            if num is not None:
                count = num[actuator]
            if image >= 0 and count:
                sign = self.actuator_sign[actuator]
                at = adr[actuator]
                mirrored[adr[image] : adr[image] + count] = sign * values[at : at + count]
        return mirrored


def mirror_table(
    model: mujoco.MjModel,
    body: str | int | None = None,
    normal: Sequence[float] = (0.0, 1.0, 0.0),
    tolerance: float = 0.02,
) -> MirrorTable:
    """Find the mirror image of each element of a robot at the sagittal plane of its root body.

    Images are found by geometry in the model's reference configuration `qpos0`: inertia, joint
    axes and ranges, shapes of colliding geoms, and parameters; names only decide between elements
    that are equally near. Bit masks of contacts and visual geoms need not be symmetric.

    Args:
        model: the model.
        body: root body of the robot, by name or id; None for the only body of the world that moves.
        normal: direction to the left in the root's frame, normal to the plane of symmetry.
        tolerance: largest deviation from symmetry, as a fraction of the robot's size for positions,
            and of the element's own value otherwise.

    Raises:
        ValueError: the robot is not symmetric, or there is no single robot.
    """
    reference = Reference(model, _root(model, body), normal, tolerance)
    found = search(reference)
    tendons = mirror_tendons(reference, found)
    actuators = mirror_actuators(reference, found, tendons)
    check_constraints(reference, found, tendons)
    matrices = reference.matrices
    frames = np.zeros((model.nbody, 3, 3))
    for own, image in enumerate(found.ids["body"]):
        if image >= 0:
            frames[own] = (REFLECTION @ matrices[own]).T @ matrices[image]
    return MirrorTable(
        model=model,
        body=reference.root,
        **{f"{kind}_ids": ids for kind, ids in found.ids.items()},
        tendon_ids=tendons.ids,
        actuator_ids=actuators.ids,
        joint_sign=found.joint_sign,
        tendon_sign=tendons.sign,
        actuator_sign=actuators.sign,
        body_frames=frames,
        site_offsets=reference.site_positions[:, 1],
        asymmetry=reference.asymmetry,
    )


def _mirror_turn(quat: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Return the mirror image of a body's orientation in the world, as a quaternion, shape [4].

    A reflection is a half turn about its normal, followed by an inversion, and inversions cancel.
    """
    first = np.zeros(4)
    turned = np.zeros(4)
    result = np.zeros(4)
    mujoco.mju_mat2Quat(first, -frame.ravel())
    mujoco.mju_mulQuat(turned, np.ascontiguousarray(quat, dtype=np.float64), first)
    mujoco.mju_mulQuat(result, np.array([0.0, 0.0, 1.0, 0.0]), turned)
    if first[2] >= 0:  # upright robots keep their sign
        return -result
    return result


def _root(model: mujoco.MjModel, body: str | int | None) -> int:
    if body is not None:
        return int(model.body(body).id)
    roots = [
        i
        for i in range(1, model.nbody)
        if model.body_parentid[i] == 0 and model.body_dofnum[model.body_rootid == i].any()
    ]
    if len(roots) != 1:
        names = [model.body(i).name for i in roots]
        raise ValueError(
            f"The model has {len(roots)} bodies that move relative to the world, {names}: name "
            "the root of the robot as `body`."
        )
    return roots[0]
