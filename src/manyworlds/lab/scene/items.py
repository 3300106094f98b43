"""Items of a scene: what stands in its world, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import mujoco
import numpy as np

if TYPE_CHECKING:
    from manyworlds.lab.scene.sources import Source

Kind = Literal["robot", "body", "geom", "light", "camera", "site"]
ADDED_LIGHT = "light"
"""Source of the lights that the editor adds."""
_NAME = re.compile(r"[^\W_][\w.-]{0,63}")
_TOP: tuple[tuple[Kind, str], ...] = (
    ("body", "bodies"),
    ("geom", "geoms"),
    ("light", "lights"),
    ("camera", "cameras"),
    ("site", "sites"),
)


@dataclass(frozen=True, kw_only=True)
class ItemFacts:
    """Facts about an item that its elements do not tell."""

    id: str
    """Name for programs that stays when the item is renamed."""
    source: str = ""
    """Source of the item, for people."""
    fingerprint: str = ""
    """Hash of the source's model, by which `SceneEditor.apply` sees whether it changed."""
    origin: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    """Initial position [m] and orientation (wxyz) of the source's origin; None for the pose of the
    item's first element."""


@dataclass(frozen=True, kw_only=True)
class SceneItem:
    """A robot, a prop, or another thing in the world: all elements `NAME/...`, or one element."""

    name: str
    id: str
    """Name for programs that stays when the item is renamed."""
    kind: Kind
    source: str
    """Source of the item, for people; empty if it is not known."""
    prefix: str
    """Beginning of the names of its elements; empty if it is one element and its children."""
    bodies: tuple[str, ...]
    """Names of its bodies; empty for those without one."""
    roots: tuple[int, ...]
    """Ids of its bodies at the top of the world."""
    pos: tuple[float, ...]
    """Initial position of its origin [m]: that of its source, or its first element."""
    quat: tuple[float, ...]
    """Initial orientation of its origin (wxyz)."""


@dataclass(frozen=True, kw_only=True)
class TreeNode:
    """Item or body in the tree of a scene."""

    name: str
    kind: str
    children: tuple[TreeNode, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ItemBounds:
    """Box around an item in its present state, along the axes of the world [m]."""

    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ItemRequest:
    """Item that `SceneEditor.apply` adds, moves or replaces."""

    id: str
    source: Source
    name: str = ""
    """Name of the item; its id if empty."""
    pos: tuple[float, float, float] | None = None
    """Initial position [m]; None keeps that of the source."""
    quat: tuple[float, float, float, float] | None = None
    """Initial orientation (wxyz); None keeps that of the source."""


@dataclass(eq=False)
class TopElements:
    """Elements at the top of a spec's world that belong to one item."""

    kind: Kind
    prefix: str = ""
    elements: list[tuple[Kind, Any, int]] = field(default_factory=list)
    """Kind, element, and place among the top elements of this kind."""


def check_name(name: str) -> str:
    """Return a name that items may have.

    Raises:
        ValueError: it has characters that names may not have.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"'{name}' is no valid name of an item: begin with a letter or digit, and use at most "
            "64 letters, digits, dots, hyphens and underscores."
        )
    return name


def top_elements(spec: mujoco.MjSpec) -> dict[str, TopElements]:
    """Return the elements at the top of a spec's world by the name of their item."""
    found: dict[str, TopElements] = {}
    for kind, children in _TOP:
        for place, element in enumerate(getattr(spec.worldbody, children)):
            prefix, slash, _ = element.name.partition("/")
            name = element.name or f"{kind}_{place}"
            if slash:
                name = prefix
            item = found.get(name)
            if item is not None and not (slash and item.prefix):
                name = f"{kind}:{name}"  # two elements of different kinds have one name
                item = None
            if item is None:
                item = found[name] = TopElements(kind, f"{prefix}/" if slash else "")
            item.elements.append((kind, element, place))
    return found


def list_items(
    spec: mujoco.MjSpec,
    model: mujoco.MjModel,
    facts: Mapping[str, ItemFacts],
    robots: Mapping[str, str],
) -> dict[str, SceneItem]:
    """Return the items of a world by name.

    Args:
        spec: spec of the world.
        model: the compiled model.
        facts: what is known about items, by name.
        robots: prefix of the elements of each robot, by the robot's name.
    """
    items = {}
    for name, top in top_elements(spec).items():
        known = facts.get(name, ItemFacts(id=name))
        pos, quat = origin_of(model, top, known)
        bodies: list[str] = []
        roots = []
        for kind, element, place in top.elements:
            if kind == "body":
                bodies += _names_below(element)
                found = element_id(model, kind, element.name, place)
                if found > 0:
                    roots.append(found)
        is_robot = top.prefix and top.prefix in robots.values()
        items[name] = SceneItem(
            name=name,
            id=known.id,
            kind="robot" if is_robot else top.kind,
            source=known.source,
            prefix=top.prefix,
            bodies=tuple(bodies),
            roots=tuple(roots),
            pos=tuple(pos.tolist()),
            quat=tuple(quat.tolist()),
        )
    return items


def make_tree(
    spec: mujoco.MjSpec, items: Mapping[str, SceneItem], search: str = ""
) -> tuple[TreeNode, ...]:
    """Return the items and their bodies as a tree.

    Args:
        spec: spec of the world.
        items: its items.
        search: part of a name, in any case; items and bodies with such a name, and what they are
            in, are in the tree. Empty for all.
    """
    words = search.lower()
    nodes = []
    for name, top in top_elements(spec).items():
        roots = (_node(e, words) for kind, e, _ in top.elements if kind == "body" and top.prefix)
        if not top.prefix and top.kind == "body":
            roots = (_node(child, words) for child in top.elements[0][1].bodies)
        children = tuple(node for node in roots if node is not None)
        if children or words in name.lower():
            nodes.append(TreeNode(name=name, kind=items[name].kind, children=children))
    return tuple(nodes)


def origin_of(model: mujoco.MjModel, item: TopElements, facts: ItemFacts | None) -> Pose:
    """Return the initial pose of an item's origin.

    Args:
        model: the compiled model.
        item: elements of the item.
        facts: what else is known about it.
    """
    if facts is not None and facts.origin is not None:
        pos, quat = facts.origin
        return np.array(pos), np.array(quat)
    kind, element, place = item.elements[0]
    return element_pose(model, kind, element.name, place)


def element_pose(
    model: mujoco.MjModel, kind: Kind, name: str, place: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the initial pose of an element at the top of the world.

    Args:
        model: the compiled model.
        kind: kind of the element.
        name: its name; empty for none.
        place: its place among the elements of this kind at the top of the world.

    Returns:
        Position [m], shape [3], and orientation (wxyz), shape [4].
    """
    found = element_id(model, kind, name, place)
    if found < 0:
        return np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    if kind == "light":
        return model.light_pos[found].copy(), _quat_to(model.light_dir[found])
    field = _ABBR[kind]
    pos = getattr(model, f"{field}_pos")[found].copy()
    quat = getattr(model, f"{field}_quat")[found].copy()
    if kind == "geom" and model.geom_type[found] == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[found]
        # MuJoCo moves meshes to their centers of mass.
        pos, quat = compose((pos, quat), inverse((model.mesh_pos[mesh], model.mesh_quat[mesh])))
    return pos, quat


def element_id(model: mujoco.MjModel, kind: Kind, name: str, place: int) -> int:
    """Return the id of an element at the top of the world by name, or by place; -1 for none."""
    if name:
        return mujoco.mj_name2id(model, _OBJECTS[kind], name)
    if kind == "body":
        ids = np.flatnonzero(model.body_parentid[1:] == 0) + 1
    else:
        ids = np.flatnonzero(getattr(model, f"{_ABBR[kind]}_bodyid") == 0)
    return int(ids[place]) if place < len(ids) else -1


Pose = tuple[np.ndarray, np.ndarray]
"""Position [m], shape [3], and quaternion (wxyz), shape [4]."""


def compose(a: Pose, b: Pose) -> Pose:
    """Return the pose of `b` relative to `a`, in the frame that `a` is in."""
    pos, quat = np.empty(3), np.empty(4)
    mujoco.mju_mulPose(pos, quat, *a, *b)
    return pos, quat


def inverse(a: Pose) -> Pose:
    """Return the inverse of a pose."""
    pos, quat = np.empty(3), np.empty(4)
    mujoco.mju_negPose(pos, quat, *a)
    return pos, quat


_OBJECTS = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "light": mujoco.mjtObj.mjOBJ_LIGHT,
    "camera": mujoco.mjtObj.mjOBJ_CAMERA,
    "site": mujoco.mjtObj.mjOBJ_SITE,
}
_ABBR = {"body": "body", "geom": "geom", "light": "light", "camera": "cam", "site": "site"}


def _quat_to(direction: np.ndarray) -> np.ndarray:
    """Return an orientation whose negative z axis has a direction."""
    quat = np.empty(4)
    mujoco.mju_quatZ2Vec(quat, -direction)
    return quat


def _names_below(body: Any) -> list[str]:
    """Return the names of a body and of all below it."""
    names = [body.name]
    for child in body.bodies:
        names += _names_below(child)
    return names


def _node(body: Any, words: str) -> TreeNode | None:
    nodes = (_node(child, words) for child in body.bodies)
    children = tuple(node for node in nodes if node is not None)
    if not children and words not in body.name.lower():
        return None
    return TreeNode(name=body.name, kind="body", children=children)
