"""Articulations that are built in a live world, one body, joint, geom or actuator at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import mujoco
import numpy as np

from manyworlds.lab.errors import near
from manyworlds.lab.scene.draft import Draft
from manyworlds.lab.scene.items import ItemFacts, check_name
from manyworlds.spec.convex import CoacdCfg, convex_pieces

if TYPE_CHECKING:
    from manyworlds.lab.scene.editor import SceneEditor

JointKind = Literal["hinge", "slide", "ball", "free"]
"""Kinds of joints."""
ShapeKind = Literal["box", "sphere", "capsule", "cylinder", "ellipsoid"]
"""Kinds of geoms."""
ActuatorKind = Literal["position", "velocity", "motor"]
"""Kinds of actuators, as in MJCF."""
ElementKind = Literal["body", "joint", "geom", "actuator"]
"""Kinds of elements that can be built."""

BUILT = "built in the lab"
"""Source of the items that are built."""
_COLLIDING_GROUP = 3  # of geoms that collide and are not drawn, by convention
_PIECE = "_piece_"
_COLLISION = (
    "contype",
    "conaffinity",
    "condim",
    "priority",
    "friction",
    "margin",
    "gap",
    "solref",
    "solimp",
    "solmix",
)
"""Attributes of a geom that its convex pieces take over."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Geom of a built body."""

    kind: ShapeKind = "box"
    size: Sequence[float] | np.ndarray = (0.05, 0.05, 0.05)
    """Sizes as in MJCF [m], shape [3]; those that the shape does not have are 0."""
    pos: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0)
    """Position in the body [m]."""
    quat: Sequence[float] | np.ndarray = (1.0, 0.0, 0.0, 0.0)
    """Orientation in the body (wxyz)."""
    mass: float = 0.0
    """Mass [kg]; 0 for the density of water."""


def add_body(
    editor: SceneEditor,
    name: str,
    parent: str,
    pos: Sequence[float] | np.ndarray,
    quat: Sequence[float] | np.ndarray,
    shape: Shape,
) -> str:
    """Add a body with a geom to a body; without one, to the world as a new item.

    Args:
        editor: editor of the scene.
        name: name of the body, without the prefix of its item, or name of the new item, whose
            first body is `NAME/base`.
        parent: name of the body that it is fixed to; empty for the world.
        pos: position in the parent [m].
        quat: orientation in the parent (wxyz).
        shape: its geom, which has its name.

    Returns:
        The name of the body.

    Raises:
        KeyError: there is no such parent.
        ValueError: the name is taken, or not valid.
        CompileError: the new world does not compile.
    """

    def change(draft: Draft) -> str:
        if parent:
            above = _find(draft, "body", parent)
            full = _new_name(draft, "body", above.name, name)
        else:
            draft.check_free(name)
            above = draft.spec.worldbody
            full = f"{name}/base"
            origin = tuple(map(float, pos)), tuple(map(float, quat))
            draft.facts[name] = ItemFacts(id=name, source=BUILT, origin=origin)
        body = above.add_body(name=full, pos=list(pos), quat=list(quat))
        _add_geom(body, full, shape)
        return full

    return editor.edit(lambda full: f"add {full}", change)


def add_geom(editor: SceneEditor, body: str, name: str, shape: Shape) -> str:
    """Add a geom to a body; see `add_body`."""

    def change(draft: Draft) -> str:
        found = _find(draft, "body", body)
        full = _new_name(draft, "geom", found.name, name)
        _add_geom(found, full, shape)
        return full

    return editor.edit(lambda full: f"add {full}", change)


def add_joint(
    editor: SceneEditor,
    body: str,
    name: str,
    kind: JointKind,
    axis: Sequence[float] | np.ndarray,
    range: Sequence[float] | np.ndarray,
    damping: float,
) -> str:
    """Add a joint between a body and its parent.

    Args:
        editor: editor of the scene.
        body: name of the body.
        name: name of the joint, without the prefix of its item.
        kind: kind of joint.
        axis: axis of a hinge or slide in the body.
        range: limits [rad or m]; twice the same for none.
        damping: damping [N m s/rad or N s/m].

    Returns:
        The name of the joint.
    """

    def change(draft: Draft) -> str:
        found = _find(draft, "body", body)
        full = _new_name(draft, "joint", found.name, name)
        joint = found.add_joint(
            name=full, type=getattr(mujoco.mjtJoint, f"mjJNT_{kind.upper()}"), axis=list(axis)
        )
        if kind != "free":
            joint.damping[0] = damping
        low, high = range
        if low != high:
            joint.limited = mujoco.mjtLimited.mjLIMITED_TRUE
            scale = 1.0
            if draft.spec.compiler.degree and kind != "slide":
                scale = 180.0 / np.pi  # the compiler of this world expects degrees
            joint.range = np.array([scale * low, scale * high])
        return full

    return editor.edit(lambda full: f"add {full}", change)


def add_actuator(
    editor: SceneEditor, joint: str, name: str, kind: ActuatorKind, gain: float, limit: float
) -> str:
    """Add an actuator to a joint; its item is a robot from then on.

    Args:
        editor: editor of the scene.
        joint: name of the joint.
        name: name of the actuator, without the prefix of its item; that of the joint if empty.
        kind: kind of actuator: `position` is critically damped.
        gain: stiffness [N m/rad or N/m], damping [N m s/rad or N s/m], or gear.
        limit: largest effort [N m or N]; 0 for none.

    Returns:
        The name of the actuator.
    """

    def change(draft: Draft) -> str:
        found = _find(draft, "joint", joint)
        short = name or found.name.rpartition("/")[2]
        full = _new_name(draft, "actuator", found.name, short)
        actuator = draft.spec.add_actuator(
            name=full, target=found.name, trntype=mujoco.mjtTrn.mjTRN_JOINT
        )
        if kind == "position":
            actuator.set_to_position(kp=gain, dampratio=1.0)
        elif kind == "velocity":
            actuator.set_to_velocity(kv=gain)
        else:
            actuator.set_to_motor()
            actuator.gear[0] = gain
        if limit:
            actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
            actuator.forcerange = np.array([-limit, limit])
        item = full.partition("/")[0]
        if item in draft.facts and f"{item}/" not in draft.robots.values():
            draft.robots[item] = f"{item}/"
            draft.sources[item] = draft.facts[item].source
        return full

    return editor.edit(lambda full: f"add {full}", change)


def remove_element(editor: SceneEditor, kind: ElementKind, name: str) -> None:
    """Remove an element of an item, and what refers to it; a body with all that is below it.

    Raises:
        KeyError: there is no such element.
        ValueError: it is the last body of its item, which can be removed as a whole.
    """

    def change(draft: Draft) -> None:
        element = _find(draft, kind, name)
        if kind == "body" and element.parent.name == "world":
            item = name.partition("/")[0]
            raise ValueError(f"'{name}' is the base of its item: remove the item '{item}'.")
        draft.spec.delete(element)

    editor.edit(lambda _: f"remove {name}", change)


def decompose_mesh(
    editor: SceneEditor, geom: str, cfg: CoacdCfg, report: Callable[[float], None]
) -> int:
    """Let approximately convex pieces of a geom's mesh collide in its place.

    The geom is drawn as before, and keeps its mass.

    Args:
        editor: editor of the scene.
        geom: name of the geom.
        cfg: settings of the decomposition, which takes seconds to minutes.
        report: called with the share that is done.

    Returns:
        The number of pieces.

    Raises:
        KeyError: there is no such geom.
        ValueError: it has no mesh, or does not collide.
    """
    model = editor.model
    found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, geom)
    if found < 0:
        _find(Draft(editor.world), "geom", geom)  # raises
    if model.geom_type[found] != mujoco.mjtGeom.mjGEOM_MESH:
        raise ValueError(f"'{geom}' has no mesh: only meshes are divided.")
    if not (model.geom_contype[found] or model.geom_conaffinity[found]):
        raise ValueError(f"'{geom}' does not collide: choose a geom that does.")
    mesh = int(model.geom_dataid[found])
    first = int(model.mesh_vertadr[mesh])
    vertices = model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])].copy()
    first = int(model.mesh_faceadr[mesh])
    faces = model.mesh_face[first : first + int(model.mesh_facenum[mesh])].copy()
    pieces = convex_pieces(vertices, faces, cfg, report)
    # MuJoCo has moved the mesh to its center of mass: this is the pose of these vertices.
    pose = {"pos": model.geom_pos[found].copy(), "quat": model.geom_quat[found].copy()}

    def change(draft: Draft) -> None:
        element = _find(draft, "geom", geom)
        values = {name: _copy(getattr(element, name)) for name in _COLLISION}
        for i, (corners, triangles) in enumerate(pieces):
            full = f"{geom}{_PIECE}{i}"
            draft.spec.add_mesh(
                name=full, uservert=corners.ravel().tolist(), userface=triangles.ravel().tolist()
            )
            element.parent.add_geom(
                name=full,
                type=mujoco.mjtGeom.mjGEOM_MESH,
                meshname=full,
                mass=0.0,
                group=_COLLIDING_GROUP,
                **pose,
                **values,
            )
        element.contype = 0
        element.conaffinity = 0

    editor.edit(lambda _: f"decompose {geom}", change)
    return len(pieces)


def remove_decomposition(editor: SceneEditor, geom: str) -> None:
    """Remove the convex pieces of a geom, which collides by itself again.

    Raises:
        KeyError: there is no such geom.
        ValueError: it has no pieces.
    """

    def change(draft: Draft) -> None:
        element = _find(draft, "geom", geom)
        spec = draft.spec
        start = f"{geom}{_PIECE}"
        pieces = [piece for piece in spec.geoms if piece.name.startswith(start)]
        if not pieces:
            raise ValueError(f"'{geom}' has no convex pieces: decompose_mesh makes them.")
        element.contype = pieces[0].contype
        element.conaffinity = pieces[0].conaffinity
        meshes = [spec.mesh(piece.meshname) for piece in pieces]
        for made in (*pieces, *meshes):
            spec.delete(made)

    editor.edit(lambda _: f"remove the decomposition of {geom}", change)


def _add_geom(body: Any, name: str, shape: Shape) -> None:
    geom = body.add_geom(
        name=name,
        type=getattr(mujoco.mjtGeom, f"mjGEOM_{shape.kind.upper()}"),
        size=shape.size,
        pos=shape.pos,
        quat=shape.quat,
    )
    if shape.mass:
        geom.mass = shape.mass


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()  # a view of memory that moves with the next element
    return value


def _find(draft: Draft, kind: ElementKind, name: str) -> Any:
    """Return an element of a draft's spec by its name.

    Raises:
        KeyError: there is none.
    """
    element = getattr(draft.spec, kind)(name)
    if element is None or (kind == "body" and name == "world"):
        plural = "bodies" if kind == "body" else f"{kind}s"
        known = [other.name for other in getattr(draft.spec, plural) if other.name]
        hint = near(name, known, ": read_item_tree lists the bodies.")
        raise KeyError(f"There is no {kind} '{name}'{hint}")
    return element


def _new_name(draft: Draft, kind: ElementKind, beside: str, name: str) -> str:
    """Return the full name of a new element in the item of another one.

    Raises:
        ValueError: it is taken, or not valid.
    """
    item, slash, _ = beside.partition("/")
    full = check_name(name)
    if slash:
        full = f"{item}/{name}"
    if getattr(draft.spec, kind)(full) is not None:
        raise ValueError(f"There is a {kind} '{full}' already: choose another name.")
    return full
