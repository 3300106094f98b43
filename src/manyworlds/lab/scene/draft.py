"""Draft of a changed world: edits of a copy of its spec, and what they do to its state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import mujoco
import numpy as np

from manyworlds.lab.errors import near
from manyworlds.lab.scene.items import (
    ItemFacts,
    Kind,
    Pose,
    TopElements,
    check_name,
    compose,
    element_id,
    element_pose,
    inverse,
    top_elements,
)
from manyworlds.lab.scene.rebuild import Transition
from manyworlds.lab.world.model_facts import INITIAL_KEYFRAME, hash_model, robot_of
from manyworlds.lab.world.world import CompileError, World
from manyworlds.spec.compiler_settings import adopt_settings
from manyworlds.spec.edits import non_default_option_fields
from manyworlds.spec.elements import qpos_width
from manyworlds.spec.references import copy_spec, name_keyframes
from manyworlds.spec.renaming import rename_elements
from manyworlds.utils.mujoco_messages import MujocoWarnings
from manyworlds.validation.names import free_name

if TYPE_CHECKING:
    from manyworlds.entity import Entity

_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
_QUAT = mujoco.mjtOrientation.mjORIENTATION_QUAT
_ASSETS = (
    ("meshes", (("geoms", "meshname"),)),
    ("hfields", (("geoms", "hfieldname"),)),
    (
        "materials",
        tuple((kind, "material") for kind in ("geoms", "sites", "tendons", "skins", "flexes")),
    ),
    ("textures", (("materials", "textures"), ("lights", "texture"))),
)
"""Kinds of assets, and where they are referred to; materials are before the textures they use."""


@dataclass(frozen=True, kw_only=True)
class ItemContent:
    """Content of an item that can be attached: a spec, and the state that its config gives."""

    spec: mujoco.MjSpec
    has_actuators: bool
    source: str
    fingerprint: str
    qpos: dict[str, list[float]]
    """Initial positions of joints that differ from the model's own, by name."""
    ctrl: dict[str, float]
    """Initial controls, by name of the actuator."""
    model: mujoco.MjModel | None = None
    """The compiled spec, from which its size is known; None for copies of items."""
    notes: tuple[str, ...] = ()
    """Sentences about what was left out or assumed when it was read."""

    @classmethod
    def of_entity(cls, entity: Entity, source: str, model: mujoco.MjModel) -> ItemContent:
        """Return the content of an entity."""
        actuators = [actuator.name for actuator in entity.spec.actuators]
        ctrl = dict(zip(actuators, entity.initial_ctrl(), strict=False))
        qpos = {name: list(map(float, row)) for name, row in entity.initial_qpos().items()}
        return cls(
            spec=entity.spec,
            has_actuators=bool(actuators),
            source=source,
            fingerprint=hash_model(model),
            qpos=qpos,
            ctrl=ctrl,
            model=model,
        )


class Draft:
    """Edits of a world that is not changed; `finish` compiles the changed one.

    Args:
        world: the present world.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.spec = world.spec.copy()
        self.facts = dict(world.items)
        self.robots = dict(world.robots)
        self.sources = dict(world.sources)
        self.transition = Transition()
        self.notes: list[str] = []
        """Sentences about what the edit did besides what was asked."""
        self._calls: set[str] = set()
        self._taken = set(top_elements(self.spec))
        self._former: Callable[[str], str] = str
        self._qpos: dict[str, list[float]] = {}
        self._ctrl: dict[str, float] = {}

    @property
    def only_moves(self) -> bool:
        """True if items were moved, and nothing else was done."""
        return self._calls == {"move"}

    def free_name(self, name: str) -> str:
        """Return the first of `name`, `name_1` ... that an item may have."""
        taken = {*self._taken, *self.robots}
        found = free_name(name, taken)
        while self._has_classes(found):
            taken.add(found)
            found = free_name(name, taken)
        return found

    def _has_classes(self, name: str) -> bool:
        """Return True if default classes have this prefix: renamed items keep their classes."""
        return self.spec.find_default(f"{name}/main") is not None

    def find(self, name: str) -> TopElements:
        """Return the elements of an item.

        Raises:
            KeyError: there is none of this name.
        """
        items = top_elements(self.spec)
        if name not in items:
            hint = near(name, items, f"; the scene has {', '.join(items) or 'none'}.")
            raise KeyError(f"There is no item '{name}'{hint}")
        return items[name]

    def check_free(self, name: str, id: str = "") -> None:
        """Check that a new item may have a name and an id.

        Raises:
            ValueError: it is taken, or no valid name.
        """
        check_name(name)
        ids = {fact.id: item for item, fact in self.facts.items()}
        if name in self._taken or name in self.robots:
            raise ValueError(f"The scene has an item '{name}': choose another name.")
        if self._has_classes(name):
            raise ValueError(
                f"The default classes of a renamed item still begin with '{name}/': choose another "
                "name."
            )
        if id and (id in ids or id in self._taken):
            raise ValueError(
                f"The id '{id}' is that of the item '{ids.get(id, id)}': choose another one."
            )

    def attach(self, part: ItemContent, name: str, id: str, pose: Pose | None) -> None:
        """Attach the content of an item under a free name; the part's spec is used up."""
        self._calls.add("attach")
        self.check_free(name, id)
        spec = part.spec
        fields = non_default_option_fields(spec.option)
        if fields:
            self.notes.append(
                f"'{name}' sets <option> {', '.join(fields)}: the world keeps its own"
            )
        # With equal options, MuJoCo has no conflict of which each later compilation would warn.
        for option in {*fields, *non_default_option_fields(self.spec.option)}:
            setattr(spec.option, option, getattr(self.spec.option, option))
        adopt_settings(spec, self.spec)
        # By their names, a robot's bodies and actuators belong to it.
        _name_all(spec.bodies[1:], "body")
        _name_all(spec.actuators, "actuator")
        for kind in ("geom", "site"):
            _name_all(getattr(spec.worldbody, f"{kind}s"), kind)
        _name_all(spec.worldbody.cameras, "camera")
        _name_all(spec.worldbody.lights, "light")
        _name_all([t for t in spec.textures if t.name or not t.file], "texture")
        name_keyframes(spec)
        spec.memory = self.spec.memory = max(spec.memory, self.spec.memory)
        frame = self.spec.worldbody.add_frame()
        if pose is None:
            pose = (np.zeros(3), _IDENTITY)
        frame.pos, frame.quat = pose
        with MujocoWarnings(lambda text: self.notes.append(" ".join(text.split()))):
            self.spec.attach(spec, prefix=f"{name}/", frame=frame)
        self._taken.add(name)
        self.facts[name] = ItemFacts(
            id=id or name,
            source=part.source,
            fingerprint=part.fingerprint,
            origin=_plain(pose),
        )
        if part.has_actuators:
            self.robots[name] = f"{name}/"
            self.sources[name] = part.source
        self._qpos |= {f"{name}/{joint}": qpos for joint, qpos in part.qpos.items()}
        self._ctrl |= {f"{name}/{actuator}": ctrl for actuator, ctrl in part.ctrl.items()}

    def remove(self, name: str) -> None:
        """Remove an item, and all that refers to it."""
        self._calls.add("remove")
        item = self.find(name)
        had_actuators, had_bodies = self._owners()
        for _, element, _ in item.elements:
            self.spec.delete(element)
        if item.prefix:
            self._remove_rest(item.prefix)
        self._release_targets()
        self._remove_skins()
        self._taken.discard(name)
        self.facts.pop(name, None)
        # What is left without its actuators, or without bodies, is no robot any more.
        have_actuators, have_bodies = self._owners()
        for robot in (had_actuators - have_actuators) | (had_bodies - have_bodies):
            del self.robots[robot]
            self.sources.pop(robot, None)

    def _owners(self) -> tuple[set[str], set[str]]:
        """Return the robots that have actuators, and those that have bodies."""
        top = {body.id for body in self.spec.worldbody.bodies}
        # To a robot without a prefix, props that were added do not belong, though all names match.
        props = tuple(f"{name}/" for name in self._taken if f"{name}/" not in self.robots.values())
        named = [
            body
            for body in self.spec.bodies[1:]
            if (body.name or body.id in top) and not body.name.startswith(props)
        ]
        have_actuators = {robot_of(actuator.name, self.robots) for actuator in self.spec.actuators}
        have_bodies = {robot_of(body.name, self.robots) for body in named}
        robots = set(self.robots)
        return robots & have_actuators, robots & have_bodies

    def _remove_rest(self, prefix: str) -> None:
        """Delete elements of a prefix outside of the tree of bodies, and assets nothing uses."""
        spec = self.spec
        for kind in ("keys", "tendons", "actuators", "sensors", "equalities", "excludes", "pairs"):
            _delete(spec, [e for e in getattr(spec, kind) if e.name.startswith(prefix)])
        for kind in ("numerics", "texts", "tuples", "skins", "flexes"):
            _delete(spec, [e for e in getattr(spec, kind) if e.name.startswith(prefix)])
        for kind, users in _ASSETS:
            used: set[str] = set()
            for elements, field in users:
                for element in getattr(spec, elements):
                    value = getattr(element, field)
                    if isinstance(value, str):
                        used.add(value)
                    else:
                        used.update(value)
            assets = [a for a in getattr(spec, kind) if a.name.startswith(prefix)]
            _delete(spec, [asset for asset in assets if asset.name not in used])
        default = spec.find_default(f"{prefix}main")
        if default is not None:
            spec.delete(default)

    def _release_targets(self) -> None:
        """Let lights and cameras whose target is gone look where they are turned to."""
        spec = self.spec
        bodies = {body.name for body in spec.bodies}
        for kind in ("light", "camera"):
            for element in getattr(spec, f"{kind}s"):
                if element.targetbody and element.targetbody not in bodies:
                    self.notes.append(
                        f"the {kind} '{element.name}' looked at '{element.targetbody}', which is "
                        "gone: it keeps its own direction"
                    )
                    element.targetbody = ""
                    element.mode = mujoco.mjtCamLight.mjCAMLIGHT_FIXED

    def _remove_skins(self) -> None:
        """Remove skins whose bodies are gone; those of files name them only when compiled."""
        model = self.world.model
        bodies = {body.name for body in self.spec.bodies}
        for skin in list(self.spec.skins):
            found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SKIN, self._former(skin.name))
            if found < 0:
                continue
            start, count = int(model.skin_boneadr[found]), int(model.skin_bonenum[found])
            bones = model.skin_bonebodyid[start : start + count]
            if not bodies & {model.body(bone).name for bone in bones}:
                self.spec.delete(skin)

    def rename(self, old: str, new: str) -> None:
        """Rename an item, and its elements if it has a prefix."""
        self._calls.add("rename")
        item = self.find(old)
        self.check_free(new)
        if item.prefix:
            change = functools.partial(_renamed, item.prefix, f"{new}/")
            undo = functools.partial(_renamed, f"{new}/", item.prefix)
        else:
            element = item.elements[0][1]
            if not element.name:
                element.name = old
            change = functools.partial(_exchanged, element.name, new)
            undo = functools.partial(_exchanged, new, element.name)
        rename_elements(self.spec, change)
        facts = self.facts.pop(old, ItemFacts(id=old))
        self.facts[new] = facts
        self._taken.discard(old)
        self._taken.add(new)
        rename = self.transition.rename
        former = self._former
        self.transition = replace(self.transition, rename=lambda name: change(rename(name)))
        self._former = lambda name: former(undo(name))
        for robot, prefix in list(self.robots.items()):
            if prefix and prefix == item.prefix:
                robots = self.robots
                self.robots = {}
                for other in robots:  # in their order
                    if other == robot:
                        self.robots[new] = f"{new}/"
                    else:
                        self.robots[other] = robots[other]
                self.sources[new] = self.sources.pop(robot, "")
                renamed = {**self.transition.renamed_robots, new: robot}
                self.transition = replace(self.transition, renamed_robots=renamed)

    def extract(self, name: str) -> mujoco.MjSpec:
        """Return a copy of an item alone; its elements have no prefix."""
        alone = Draft(replace(self.world, spec=self.spec))
        origin = inverse(self.origin(name))
        for key in list(alone.spec.keys):
            alone.spec.delete(key)
        spec = alone.spec
        items = top_elements(alone.spec)
        prefix = items.pop(name).prefix
        for other in items.values():
            _delete(spec, [element for _, element, _ in other.elements])
        for other in items.values():
            if other.prefix:
                alone._remove_rest(other.prefix)
        alone._release_targets()
        alone._remove_skins()
        for kind, _ in _ASSETS:
            _delete(spec, [a for a in getattr(spec, kind) if not _is_used(spec, kind, a)])
        for kind in ("numerics", "texts", "tuples"):  # without a prefix they are the world's
            own = [e for e in getattr(spec, kind) if prefix and e.name.startswith(prefix)]
            _delete(spec, [e for e in getattr(spec, kind) if e not in own])
        default = mujoco.MjSpec()
        for option in non_default_option_fields(spec.option):
            setattr(spec.option, option, getattr(default.option, option))
        if prefix:
            rename_elements(spec, lambda name: name.removeprefix(prefix))
        for _, element, _ in alone._find_all():
            frame = spec.worldbody.add_frame()
            frame.pos, frame.quat = compose(origin, _frame_pose(element.frame))
            element.set_frame(frame)
        return spec

    def origin(self, name: str) -> Pose:
        """Return the initial pose of an item's origin."""
        facts = self.facts.get(name)
        if facts is not None and facts.origin is not None:
            return np.array(facts.origin[0]), np.array(facts.origin[1])
        kind, element, place = self.find(name).elements[0]
        return element_pose(self.world.model, kind, self._former(element.name), place)

    def copies(self, name: str, poses: Sequence[Pose], new: str = "") -> list[str]:
        """Attach copies of an item whose origins have poses; return their names."""
        alone = self.extract(name)
        robot = self.find(name).prefix in self.robots.values()
        facts = self.facts.get(name, ItemFacts(id=name))
        made: list[str] = []
        values = self._initial(name, alone)
        for pose in poses:
            chosen = new or self.free_name(name)
            part = ItemContent(
                spec=alone.copy(),
                has_actuators=bool(len(alone.actuators)) and robot,
                source=facts.source,
                fingerprint=facts.fingerprint,
                qpos=values[0],
                ctrl=values[1],
            )
            self.attach(part, chosen, "", pose)
            made.append(chosen)
        self.spec.dedup_assets()
        return made

    def _initial(
        self, name: str, alone: mujoco.MjSpec
    ) -> tuple[dict[str, list[float]], dict[str, float]]:
        """Return positions and controls of an item in the initial keyframe, without its prefix."""
        model = self.world.model
        prefix = self.find(name).prefix
        key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, INITIAL_KEYFRAME)
        if key < 0:
            return {}, {}
        qpos = {}
        ctrl = {}
        for joint in alone.joints:
            found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, prefix + joint.name)
            if joint.name and found >= 0:
                start = int(model.jnt_qposadr[found])
                row = model.key_qpos[key, start : start + qpos_width(model.jnt_type[found])]
                qpos[joint.name] = row.tolist()
        for actuator in alone.actuators:
            found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_ACTUATOR, prefix + actuator.name)
            if actuator.name and found >= 0:
                ctrl[actuator.name] = float(model.key_ctrl[key, model.actuator_ctrladr[found]])
        return qpos, ctrl

    def _find_all(self) -> list[tuple[str, Any, int]]:
        """Return kind, element and place of all elements at the top of the world."""
        found = []
        for top in top_elements(self.spec).values():
            found += top.elements
        return found

    def move(self, name: str, pose: Pose) -> None:
        """Move an item as a whole, so that its origin has a pose; and its present state."""
        self._calls.add("move")
        item = self.find(name)
        model = self.world.model
        delta = compose(pose, inverse(self.origin(name)))
        for kind, element, place in item.elements:
            frame = _frame_pose(element.frame)
            if kind in ("geom", "site") and np.isfinite(element.fromto).all():
                self._resolve_ends(kind, element, place, frame)
            _move_element(kind, element, compose(compose(inverse(frame), delta), frame))
        facts = self.facts.get(name)
        if facts is not None and facts.origin is not None:
            self.facts[name] = replace(facts, origin=_plain(pose))
        for kind, element, place in item.elements:
            if kind == "body":
                before = element_pose(model, kind, self._former(element.name), place)
                self._place(element, compose(delta, before))

    def _resolve_ends(self, kind: Kind, element: Any, place: int, frame: Pose) -> None:
        """Give an element that is written by its two ends a pose and a size, as MuJoCo does."""
        model = self.world.model
        name = self._former(element.name)
        element.size = getattr(model, f"{kind}_size")[element_id(model, kind, name, place)].copy()
        pose = compose(inverse(frame), element_pose(model, kind, name, place))
        element.fromto = np.full(6, np.nan)
        element.pos, element.quat = pose
        element.alt.type = _QUAT

    def _place(self, body: Any, pose: Pose) -> None:
        """Note the pose of a body that can be moved in its state."""
        values = np.concatenate(pose)
        placed = dict(self.transition.placed)
        for number, joint in enumerate(body.joints):
            if joint.type == mujoco.mjtJoint.mjJNT_FREE:
                name = joint.name or f"{body.name}:{number}"
                placed["qpos", name] = values
                placed["qvel", name] = np.zeros(6)
                self._qpos[name] = values.tolist()
        if body.mocap:
            placed["mocap_pos", body.name], placed["mocap_quat", body.name] = pose
        self.transition = replace(self.transition, placed=placed)

    def finish(self) -> World:
        """Compile the changed world.

        Raises:
            CompileError: it does not compile.
        """
        spec = self.spec
        before = self.world
        if self._qpos and spec.key(INITIAL_KEYFRAME) is None and self._differs():
            spec.add_key(name=INITIAL_KEYFRAME)
        model = _compile_with_memory(spec)
        key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, INITIAL_KEYFRAME)
        if key >= 0 and (self._qpos or self._ctrl):
            self._write_key(model, key)
            document = spec.key(INITIAL_KEYFRAME)
            document.qpos = model.key_qpos[key]
            document.qvel = model.key_qvel[key]
            document.ctrl = model.key_ctrl[key]
            document.act = model.key_act[key]
            document.mpos = model.key_mpos[key].ravel()
            document.mquat = model.key_mquat[key].ravel()
        return World(
            spec=spec,
            model=model,
            robots=self.robots,
            sources=self.sources,
            option_sources=before.option_sources,
            items=self.facts,
        )

    def _differs(self) -> bool:
        """Return True if an initial state is not that of the model without a keyframe."""
        joints = {joint.name: joint for joint in self.spec.joints}
        free = mujoco.mjtJoint.mjJNT_FREE
        ball = mujoco.mjtJoint.mjJNT_BALL
        for name, qpos in self._qpos.items():
            joint = joints.get(name)
            if joint is None or joint.type == free:
                continue
            neutral = [1.0, 0.0, 0.0, 0.0] if joint.type == ball else [joint.ref]
            if not np.array_equal(neutral, qpos):
                return True
        return any(self._ctrl.values())

    def _write_key(self, model: mujoco.MjModel, key: int) -> None:
        for name, qpos in self._qpos.items():
            joint = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
            if joint >= 0:
                start = model.jnt_qposadr[joint]
                row = np.array(qpos)
                if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
                    body = model.jnt_bodyid[joint]
                    row = np.concatenate([model.body_pos[body], model.body_quat[body]])
                model.key_qpos[key, start : start + len(row)] = row
        for name, ctrl in self._ctrl.items():
            actuator = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_ACTUATOR, name)
            if actuator >= 0:
                model.key_ctrl[key, model.actuator_ctrladr[actuator]] = ctrl


def _compile_with_memory(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Compile a copy of a spec, whose items' `<size memory>` counts if MuJoCo would take less.

    What is enough for one item may be too little for the whole.
    """
    asked = spec.memory
    spec.memory = -1
    model = compile_copy(spec)
    if asked > model.narena:
        spec.memory = asked
        model = compile_copy(spec)
    return model


def compile_copy(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Compile a copy of a spec, which then needs no memory for meshes, and is copied at once.

    Raises:
        CompileError: it does not compile.
    """
    try:
        return cast("mujoco.MjModel", copy_spec(spec).compile())
    except ValueError as error:
        raise CompileError(" ".join(str(error).split())) from error


def _frame_pose(frame: Any) -> Pose:
    """Return the pose of a frame in the world; that of the world for None."""
    pose = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    while frame is not None:
        pose = compose((np.array(frame.pos), _orientation(frame)), pose)
        frame = frame.frame
    return pose


def _orientation(element: Any) -> np.ndarray:
    """Return the orientation of an element in its frame (wxyz), in whatever way it is given."""
    if element.alt.type == _QUAT:
        return np.array(element.quat)
    resolve: Any = mujoco.MjSpec.resolve_orientation
    compiler = element.compiler
    return np.array(
        resolve(degree=bool(compiler.degree), sequence=compiler.eulerseq, orientation=element.alt)
    )


def _move_element(kind: Kind, element: Any, change: Pose) -> None:
    """Move an element in its frame, where it stays: MJCF files keep its place among others."""
    if kind == "light":
        element.dir = compose(change, (np.array(element.dir), _IDENTITY))[0] - change[0]
        element.pos = compose(change, (np.array(element.pos), _IDENTITY))[0]
    else:
        element.pos, turn = compose(change, (np.array(element.pos), _orientation(element)))
        element.alt.type = _QUAT
        element.quat = turn


def _plain(pose: Pose) -> tuple[tuple[float, ...], tuple[float, ...]]:
    pos, quat = pose
    return tuple(map(float, pos)), tuple(map(float, quat))


def _renamed(old: str, new: str, name: str) -> str:
    """Return a name with another prefix, if it has the old one."""
    if not name.startswith(old):
        return name
    return new + name.removeprefix(old)


def _exchanged(old: str, new: str, name: str) -> str:
    """Return the new name for the old one, and for those of its parts."""
    if name != old and not name.startswith(f"{old}:"):
        return name
    return new + name.removeprefix(old)


def _name_all(elements: Any, kind: str) -> None:
    taken = {element.name for element in elements}
    for number, element in enumerate(elements):
        if not element.name:
            name = kind
            if kind in taken:
                name = free_name(f"{kind}_{number}", taken)
            element.name = name
            taken.add(element.name)


def _delete(spec: mujoco.MjSpec, elements: list[Any]) -> None:
    for element in elements:
        spec.delete(element)


def _is_used(spec: mujoco.MjSpec, kind: str, asset: Any) -> bool:
    users = dict(_ASSETS)[kind]
    for elements, field in users:
        for element in getattr(spec, elements):
            value = getattr(element, field)
            if asset.name == value or (not isinstance(value, str) and asset.name in set(value)):
                return True
    return False
