"""Search for the mirror images of bodies, joints, geoms and sites."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.sim.gravity import plain_gravity_direction
from manyworlds.spec.elements import name_of_element

PARITY = np.array([1.0, -1.0, 1.0])
"""Signs of a polar vector in its image at the xz plane; those of an axial vector are opposite."""
_GEOM = mujoco.mjtGeom
_JOINT = mujoco.mjtJoint
# Directions that are closed under reflection, shape [n, 3], and the index of each one's image.
_DIRECTIONS = np.array([d for d in product((-1.0, 0.0, 0.5, -0.5, 1.0), repeat=3) if any(d)])
_DIRECTIONS /= np.linalg.norm(_DIRECTIONS, axis=1, keepdims=True)
_IMAGE = np.linalg.norm(_DIRECTIONS[:, None] * PARITY - _DIRECTIONS[None], axis=2).argmin(axis=1)
_SIDES = {"left": "right", "l": "r", "fl": "fr", "rl": "rr", "bl": "br", "hl": "hr", "lf": "rf"}
_SIDES |= {"lh": "rh"}
_SWAP = {**{right: left for left, right in _SIDES.items()}, **_SIDES}
_SIDE = re.compile(r"left|right|(?<![a-z])(?:" + "|".join(_SWAP) + r")(?![a-z])")


class Deviation(NamedTuple):
    """Difference between the reflection of an element and another element."""

    what: str
    """Name of the property."""
    value: float
    unit: str
    fraction: float
    """Difference as a fraction of the robot's size or of the element's value."""


@dataclass(frozen=True)
class Found:
    """Mirror images by kind, each of shape [number of elements], and signs of joints."""

    ids: dict[str, np.ndarray]
    joint_sign: np.ndarray


class Reference:
    """A robot in the reference configuration, in a frame whose xz plane is that of symmetry."""

    def __init__(
        self, model: mujoco.MjModel, root: int, normal: Sequence[float], tolerance: float
    ) -> None:
        self.model = model
        self.root = root
        self.tolerance = tolerance
        self.asymmetry: dict[str, tuple[str, float]] = {}
        data = mujoco.MjData(model)
        data.qpos[:] = model.qpos0
        mujoco.mj_kinematics(model, data)
        turn = data.xmat[root].reshape(3, 3) @ _with_y_along(normal)

        def place(points: np.ndarray) -> np.ndarray:
            return (points - data.xpos[root]) @ turn

        def rotate(matrices: np.ndarray) -> np.ndarray:
            return turn.T @ matrices.reshape(-1, 3, 3)

        self.positions = place(data.xpos)
        self.matrices = rotate(data.xmat)
        self.centers = place(data.xipos)
        inertial = rotate(data.ximat)
        self.inertia = np.einsum("bij,bj,bkj->bik", inertial, model.body_inertia, inertial)
        self.anchors = place(data.xanchor)
        self.axes = data.xaxis @ turn
        self.geom_positions = place(data.geom_xpos)
        self.geom_matrices = rotate(data.geom_xmat)
        self.site_positions = place(data.site_xpos)
        self.site_matrices = rotate(data.site_xmat)
        inside = {root}
        for body in range(root + 1, model.nbody):  # parents come before their children
            if model.body_parentid[body] in inside:
                inside.add(body)
        self.bodies = sorted(inside)
        geoms = np.isin(model.geom_bodyid, self.bodies)
        points = np.concatenate([self.geom_positions[geoms], self.centers[self.bodies]])
        radius = model.geom_rbound[geoms].max(initial=0.0)
        self.size = float(max(np.ptp(points, axis=0).max(), radius)) or float(model.stat.extent)
        gravity = plain_gravity_direction(model.opt)
        if not self.floats:
            gravity = gravity @ turn
        if abs(gravity[1]) > 1e-9:
            raise ValueError(
                f"The gravity {model.opt.gravity.tolist()} m/s^2 is not in the plane of symmetry "
                f"of '{model.body(root).name}': mount the robot upright."
            )

    @property
    def floats(self) -> bool:
        """True if the root has a free joint."""
        joint = self.model.body_jntadr[self.root]
        return bool(joint >= 0 and _JOINT(self.model.jnt_type[joint]) == _JOINT.mjJNT_FREE)

    def length(self, what: str, difference: np.ndarray) -> Deviation:
        """Return the deviation of positions in m."""
        value = float(np.abs(difference).max())
        return Deviation(what, value, " m", value / self.size)

    def accept(self, kind: str, own: int, image: int, deviations: Sequence[Deviation]) -> None:
        """Record the deviations of a pair.

        Raises:
            ValueError: one is greater than the tolerance.
        """
        name = self.name(kind, own)
        other = self.name(kind, image)
        for found in deviations:
            if not found.fraction <= self.tolerance:
                raise ValueError(
                    f"The robot '{self.name('body', self.root)}' is not symmetric at its sagittal "
                    f"plane: the {found.what} of {kind} '{name}' deviates from the mirror image "
                    f"of '{other}' by {found.value:.4g}{found.unit} "
                    f"({100 * found.fraction:.3g} %), and the tolerance is "
                    f"{100 * self.tolerance:.3g} %: make the model symmetric, or do without its "
                    "symmetry."
                )
            key = f"{kind} {found.what}"
            if found.fraction > self.asymmetry.get(key, ("", 0.0))[1]:
                self.asymmetry[key] = name, found.fraction

    def name(self, kind: str, index: int) -> str:
        """Return the name of an element, or its kind and id if it has none."""
        return name_of_element(self.model, kind, index) or f"{kind} {index}"


def relative(
    what: str, value: ArrayLike, image: ArrayLike, scale: float | None = None
) -> Deviation:
    """Return the deviation of values as a fraction of their magnitude, or of `scale`."""
    value = np.asarray(value, dtype=float)
    image = np.asarray(image, dtype=float)
    if value.shape != image.shape:
        return Deviation(what, np.inf, "", np.inf)
    difference = float(np.abs(value - image).max(initial=0.0))
    if not difference:
        return Deviation(what, 0.0, "", 0.0)
    if scale is None:
        scale = max(float(np.abs(value).max()), float(np.abs(image).max()))
    return Deviation(what, difference, "", difference / scale)


def mirrored_range(bounds: np.ndarray, sign: float) -> np.ndarray:
    """Return the range of a coordinate's image, shape [2]."""
    if sign > 0:
        return bounds
    return -bounds[::-1]


def assign(
    own: Sequence[int],
    others: Sequence[int],
    deviations: Callable[[int, int], Sequence[Deviation]],
    names: Callable[[int], str],
) -> dict[int, int]:
    """Assign to each element the one that is nearest to its mirror image.

    Elements that are equally near are decided by name, then by order. If `own` and `others` are
    the same elements, the images of images are the elements themselves.
    """
    same = list(own) == list(others)
    ranked = []
    for i, j in product(own, others):
        cost = max((d.fraction for d in deviations(i, j)), default=0.0)
        ranked.append((round(cost, 6), mirrored_name(names(i)) != names(j).lower(), i, j))
    images: dict[int, int] = {}
    taken: set[int] = set()
    for _, _, i, j in sorted(ranked):
        if i in images or j in taken:
            continue
        images[i] = j
        taken.add(j)
        if same:
            images[j] = i
            taken.add(i)
    return images


def mirrored_name(name: str) -> str:
    """Return a name in lower case with its sides exchanged."""
    return _SIDE.sub(lambda match: _SWAP[match[0]], name.lower())


def search(reference: Reference) -> Found:
    """Find the images of the bodies from the root on, with their joints, geoms and sites.

    Raises:
        ValueError: the robot is not symmetric.
    """
    model = reference.model
    counts = {"body": model.nbody, "joint": model.njnt, "geom": model.ngeom, "site": model.nsite}
    ids = {kind: np.full(count, -1) for kind, count in counts.items()}
    found = Found(ids, np.ones(model.njnt))
    pending = [(reference.root, reference.root)]
    while pending:
        own, image = pending.pop()
        found.ids["body"][own] = image
        found.ids["body"][image] = own
        reference.accept("body", own, image, _body(reference, own, image))
        _pair_joints(reference, found, own, image)
        _pair_geoms(reference, found, own, image)
        _pair_sites(reference, found, own, image)
        mine, theirs = (
            [int(b) for b in np.flatnonzero(model.body_parentid == parent) if b]
            for parent in (own, image)
        )
        images = assign(
            mine,
            theirs,
            lambda i, j: _body(reference, i, j),
            lambda i: reference.name("body", i),
        )
        pending += [(i, j) for i, j in images.items() if own != image or i <= j]
    return found


def _with_y_along(normal: Sequence[float]) -> np.ndarray:
    """Return a rotation that turns the y axis to a direction, shape [3, 3]."""
    y = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    across = np.eye(3)[np.abs(y).argmin()]
    if abs(y[1]) == 1.0:
        across = y[1] * np.eye(3)[2]
    x = np.cross(y, across)
    x /= np.linalg.norm(x)
    return np.stack([x, y, np.cross(x, y)], axis=1)


def _body(reference: Reference, own: int, image: int) -> list[Deviation]:
    model = reference.model
    differences = [
        reference.length(
            "position", reference.positions[own] * PARITY - reference.positions[image]
        ),
        relative("mass", model.body_mass[own], model.body_mass[image]),
        relative("gravcomp", model.body_gravcomp[own], model.body_gravcomp[image]),
    ]
    for what, counts in (
        ("number of children", np.bincount(model.body_parentid[1:], minlength=model.nbody)),
        ("number of joints", model.body_jntnum),
    ):
        if counts[own] != counts[image]:
            differences.append(
                Deviation(what, abs(int(counts[own]) - int(counts[image])), "", np.inf)
            )
    if model.body_mass[own] > 0:
        center = reference.centers[own] * PARITY - reference.centers[image]
        differences.append(reference.length("center of mass", center))
        inertia = reference.inertia[own] * np.outer(PARITY, PARITY)
        # The inertia of small bodies matters less than how their mass is placed in the robot.
        scale = np.linalg.norm(inertia) + model.body_mass[own] * (0.1 * reference.size) ** 2
        differences.append(relative("inertia", inertia, reference.inertia[image], float(scale)))
    if model.body_jntnum[own] == model.body_jntnum[image]:
        start, other = model.body_jntadr[[own, image]]
        for k in range(model.body_jntnum[own]):
            differences += _joint(reference, start + k, other + k)[0]
    return differences


def _joint(reference: Reference, own: int, image: int) -> tuple[list[Deviation], float]:
    """Return the deviations of a pair of joints, and the sign of the coordinate's image."""
    model = reference.model
    kind = _JOINT(model.jnt_type[own])
    if model.jnt_type[own] != model.jnt_type[image]:
        return [Deviation("joint type", 1.0, "", np.inf)], 1.0
    sign = 1.0
    anchor = reference.anchors[own] * PARITY - reference.anchors[image]
    differences: list[Deviation] = []
    if kind != _JOINT.mjJNT_SLIDE:
        differences.append(reference.length("joint anchor", anchor))
    if kind in (_JOINT.mjJNT_HINGE, _JOINT.mjJNT_SLIDE):
        axis = reference.axes[own] * PARITY
        span = reference.size
        if kind == _JOINT.mjJNT_HINGE:
            axis = -axis
            span = 1.0
        sign = 1.0 if axis @ reference.axes[image] >= 0 else -1.0
        angle = float(np.linalg.norm(sign * axis - reference.axes[image]))
        differences.append(Deviation("joint axis", angle, " rad", angle))
        for what, field, adr in (
            ("reference position", model.qpos0, model.jnt_qposadr),
            ("spring's rest position", model.qpos_spring, model.jnt_qposadr),
        ):
            differences.append(relative(what, sign * field[adr[own]], field[adr[image]], span))
    # Of the joint: limits, then parameters; of its degrees of freedom: the same parameters.
    for what, flags, field in (
        ("range", model.jnt_limited, model.jnt_range),
        ("actuator force range", model.jnt_actfrclimited, model.jnt_actfrcrange),
    ):
        if flags[own] != flags[image]:
            differences.append(Deviation(f"{what} (limited or not)", 1.0, "", np.inf))
        elif flags[own]:
            differences.append(relative(what, mirrored_range(field[own], sign), field[image]))
    for field in ("stiffness", "stiffnesspoly", "margin", "solref", "solimp"):
        values = getattr(model, f"jnt_{field}")
        differences.append(relative(f"joint {field}", values[own], values[image]))
    dof, other = model.jnt_dofadr[[own, image]]
    for field in ("armature", "damping", "dampingpoly", "frictionloss"):
        values = getattr(model, f"dof_{field}")
        differences.append(relative(f"joint {field}", values[dof], values[other]))
    return differences, sign


def _pair_joints(reference: Reference, found: Found, own: int, image: int) -> None:
    model = reference.model
    for k in range(model.body_jntnum[own]):
        joint = model.body_jntadr[own] + k
        other = model.body_jntadr[image] + k
        found.ids["joint"][joint] = other
        found.ids["joint"][other] = joint
        found.joint_sign[[joint, other]] = _joint(reference, joint, other)[1]


def _pair_geoms(reference: Reference, found: Found, own: int, image: int) -> None:
    model = reference.model
    collides = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    shapes: dict[int, np.ndarray] = {}

    def shape(geom: int) -> np.ndarray:
        if geom not in shapes:
            shapes[geom] = _support(reference, geom)
        return shapes[geom]

    def deviations(i: int, j: int) -> list[Deviation]:
        if model.geom_type[i] != model.geom_type[j]:
            return [Deviation("type", 1.0, "", np.inf)]
        differences = [reference.length("shape", shape(i) - shape(j)[_IMAGE])]
        if collides[i]:
            fields = ("friction", "condim", "priority", "solmix", "solref", "solimp", "margin")
            for field in (*fields, "gap"):
                values = getattr(model, f"geom_{field}")
                differences.append(relative(field, values[i], values[j]))
        return differences

    for required in (True, False):
        mine, theirs = (
            [int(g) for g in np.flatnonzero((model.geom_bodyid == body) & (collides == required))]
            for body in (own, image)
        )
        _pair(reference, found, "geom", (own, image), (mine, theirs), deviations, required)


def _pair_sites(reference: Reference, found: Found, own: int, image: int) -> None:
    points = reference.site_positions
    mine, theirs = (
        [int(s) for s in np.flatnonzero(reference.model.site_bodyid == body)]
        for body in (own, image)
    )

    def deviations(i: int, j: int) -> list[Deviation]:
        return [reference.length("position", points[i] * PARITY - points[j])]

    _pair(reference, found, "site", (own, image), (mine, theirs), deviations, False)


def _pair(
    reference: Reference,
    found: Found,
    kind: str,
    bodies: tuple[int, int],
    elements: tuple[list[int], list[int]],
    deviations: Callable[[int, int], list[Deviation]],
    required: bool,
) -> None:
    """Store the images of the elements of a pair of bodies."""
    mine, theirs = elements
    if required and len(mine) != len(theirs):
        first, second = (f"'{reference.name('body', body)}'" for body in bodies)
        raise ValueError(
            f"The robot '{reference.name('body', reference.root)}' is not symmetric at its "
            f"sagittal plane: body {first} has {len(mine)} colliding {kind}s, and its mirror image "
            f"{second} has {len(theirs)}: make the model symmetric, or do without its symmetry."
        )
    for i, j in assign(mine, theirs, deviations, lambda i: reference.name(kind, i)).items():
        differences = deviations(i, j)
        if required:
            reference.accept(kind, i, j, differences)
        elif max(d.fraction for d in differences) > reference.tolerance:
            continue
        found.ids[kind][i] = j
        found.ids[kind][j] = i


def _support(reference: Reference, geom: int) -> np.ndarray:
    """Return the extent of a geom's convex hull along `_DIRECTIONS` [m], shape [n]."""
    model = reference.model
    local = _DIRECTIONS @ reference.geom_matrices[geom]
    x, y, z = model.geom_size[geom]
    radial = np.linalg.norm(local[:, :2], axis=1)
    match _GEOM(model.geom_type[geom]):
        case _GEOM.mjGEOM_SPHERE:
            extent = np.full(len(local), x)
        case _GEOM.mjGEOM_CAPSULE:
            extent = x + y * np.abs(local[:, 2])
        case _GEOM.mjGEOM_CYLINDER:
            extent = x * radial + y * np.abs(local[:, 2])
        case _GEOM.mjGEOM_ELLIPSOID:
            extent = np.linalg.norm(local * (x, y, z), axis=1)
        case _GEOM.mjGEOM_MESH | _GEOM.mjGEOM_SDF:
            mesh = model.geom_dataid[geom]
            start = model.mesh_vertadr[mesh]
            count = model.mesh_vertnum[mesh]
            extent = (local @ model.mesh_vert[start : start + count].T).max(axis=1)
        case _:  # a box; height fields and planes are fixed to the world
            extent = np.abs(local) @ (x, y, z)
    return _DIRECTIONS @ reference.geom_positions[geom] + extent
