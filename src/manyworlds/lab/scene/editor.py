"""Editor of the scene of a live world."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import mujoco
import numpy as np

from manyworlds.lab.errors import near
from manyworlds.lab.moments.history import Edit
from manyworlds.lab.scene.draft import Draft, ItemContent, compile_copy
from manyworlds.lab.scene.items import (
    ADDED_LIGHT,
    ItemBounds,
    ItemFacts,
    ItemRequest,
    Pose,
    SceneItem,
    TreeNode,
    compose,
    inverse,
    list_items,
    make_tree,
)
from manyworlds.lab.scene.kept_edits import carry_model_values
from manyworlds.lab.scene.moves import move_in_place, placed_start, show_spec
from manyworlds.lab.scene.places import GAP, Surroundings, bounds_of
from manyworlds.lab.scene.rebuild import StateRow, Transition, read_state
from manyworlds.lab.scene.scene_file import open_scene, save_scene
from manyworlds.lab.scene.sources import Source, load_source
from manyworlds.lab.world.world import CompileError, World
from manyworlds.spec.plausibility import doubtful_sizes
from manyworlds.validation.names import free_name

if TYPE_CHECKING:
    from manyworlds.entity import EntityCfg
    from manyworlds.lab.lab import LiveLab

MOST_COPIES = 1024
"""Largest number of copies of a grid."""
_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
_T = TypeVar("_T")
Vector = Sequence[float] | np.ndarray
"""Several numbers."""


class SceneEditor:
    """Adds, moves, renames and removes items of a live world, which keeps running.

    An edit changes a copy of the world's spec, compiles it outside of the physics thread, and
    rebuilds the lab: what was there before keeps its state by name. Moves only set values of the
    running model, so that the timeline goes on. If an edit fails, nothing has changed. Edits of
    several threads follow one another, and can be undone.

    A task's environment that steps the world stops with the first edit, because its
    batch is another world: plain MuJoCo steps it from then on. `notes` says so.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab = lab
        self.notes: tuple[str, ...] = ()
        """Sentences about what the last edit did besides what was asked."""
        self.selected = ""
        """Name of the selected item; empty for none."""

    @property
    def world(self) -> World:
        """The present world."""
        return self._lab.world

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model of the present world."""
        return self._lab.model

    @property
    def items(self) -> dict[str, SceneItem]:
        """Items of the world, by name."""
        world = self._lab.world
        return list_items(world.spec, world.model, world.items, world.robots)

    def __getitem__(self, name: str) -> SceneItem:
        """Return an item by its name.

        Raises:
            KeyError: there is none of this name.
        """
        items = self.items
        if name not in items:
            hint = near(name, items, f"; the scene has {', '.join(items) or 'none'}.")
            raise KeyError(f"There is no item '{name}'{hint}")
        return items[name]

    def tree(self, search: str = "") -> tuple[TreeNode, ...]:
        """Return items and bodies as a tree.

        Args:
            search: part of a name, in any case; empty for all.
        """
        return make_tree(self._lab.world.spec, self.items, search)

    def find(self, text: str = "", *, kind: str = "") -> list[SceneItem]:
        """Return the items with a text in their name, id or source, in any case.

        Args:
            text: the text; empty for all.
            kind: only items of this kind, as `robot`; empty for all.
        """
        words = text.lower()
        return [
            item
            for item in self.items.values()
            if words in f"{item.name} {item.id} {item.source}".lower() and kind in ("", item.kind)
        ]

    def select(self, name: str) -> None:
        """Select an item, which pages show; empty for none.

        Raises:
            KeyError: there is none of this name.
        """
        self.selected = self[name].name if name else ""

    def pose(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the present pose of an item's origin.

        An item whose base moves takes its origin along.

        Returns:
            Position [m], shape [3], and orientation (wxyz), shape [4].

        Raises:
            KeyError: there is none of this name.
        """
        item = self[name]
        model = self._lab.model
        snapshot = self._lab.snapshot
        origin = np.array(item.pos), np.array(item.quat)
        for found in item.roots[:1]:
            if len(snapshot.xpos) == model.nbody:
                start = model.body_pos[found], model.body_quat[found]
                now = snapshot.xpos[found], snapshot.xquat[found]
                return compose(compose(now, inverse(start)), origin)
        return origin

    def bounds(self, name: str) -> ItemBounds:
        """Return a box around an item as it is now, planes left out.

        Raises:
            KeyError: there is none of this name.
            ValueError: nothing of it has an extent.
        """
        return bounds_of(self._lab.model, self._lab.snapshot, self[name])

    def add(
        self,
        source: Source,
        name: str = "",
        pos: Vector | None = None,
        quat: Vector | None = None,
        id: str = "",
        near: Vector = (0.0, 0.0),
    ) -> SceneItem:
        """Add an item.

        Args:
            source: path of an MJCF, URDF or mesh file; name of an entity of the package, see
                `registered_names`; name of a robot of MuJoCo Menagerie; a spec; or a config.
            name: name of the item, which is the prefix `NAME/` of its elements; one that is free
                if empty.
            pos: position of the source's origin [m]; None for a free place on the ground.
            quat: orientation (wxyz); None for that of the world.
            id: name for programs that stays when the item is renamed; the name if empty.
            near: place along x and y [m] at which, or beside which along x, a free one is chosen.

        Returns:
            The new item.

        Raises:
            CompileError: the source cannot be read, or the new world does not compile.
            FileNotFoundError: there is no such file.
            OSError: a robot cannot be downloaded.
            ValueError: the name is taken, or not valid.
        """
        part, found = load_source(source)
        pose = _pose(pos, quat)
        turn = _IDENTITY if quat is None else _unit(quat)

        def change(draft: Draft) -> str:
            place = pose
            if pos is None:
                place = self._look(lambda around: around.place_of_new(part, turn, near))
            chosen = name or draft.free_name(found)
            draft.attach(part, chosen, id, place)
            draft.notes += part.notes
            return chosen

        return self[self.edit(lambda new: f"add {new}", change)]

    def add_prop(
        self,
        cfg: EntityCfg,
        name: str = "prop",
        pos: Vector | None = None,
        quat: Vector | None = None,
        id: str = "",
    ) -> SceneItem:
        """Add a prop by its config; a name that is taken gets a number. See `add`."""
        chosen = free_name(name, {*self.items, *self._lab.robots})
        return self.add(cfg, chosen, pos, quat, id)

    def add_light(
        self,
        name: str = "light",
        pos: Vector = (0.0, 0.0, 3.0),
        dir: Vector = (0.0, 0.0, -1.0),
        diffuse: Vector = (0.7, 0.7, 0.7),
        directional: bool = False,
    ) -> SceneItem:
        """Add a light to the world.

        Args:
            name: name of the light.
            pos: position [m].
            dir: direction of the light.
            diffuse: color, 0 to 1.
            directional: whether it shines from afar, like the sun.
        """
        kind = mujoco.mjtLightType
        light = kind.mjLIGHT_DIRECTIONAL if directional else kind.mjLIGHT_SPOT

        def change(draft: Draft) -> str:
            draft.check_free(name)
            draft.spec.worldbody.add_light(
                name=name, pos=[*pos], dir=[*dir], diffuse=[*diffuse], type=light, castshadow=True
            )
            draft.facts[name] = ItemFacts(id=name, source=ADDED_LIGHT)
            return name

        return self[self.edit(lambda new: f"add {new}", change)]

    def duplicate(
        self,
        item: str,
        name: str = "",
        pos: Vector | None = None,
        quat: Vector | None = None,
    ) -> SceneItem:
        """Add a copy of an item.

        Args:
            item: name of the item.
            name: name of the copy; one that is free if empty.
            pos: initial position of its origin [m]; None for a free place beside the item.
            quat: initial orientation (wxyz); None for that of the item.
        """
        if pos is None:
            found = self[item]
            origin = self.pose(item)[0]
            pos = self._look(lambda around: around.place_of_copy(found, origin))
        return self._copies(item, [np.asarray(pos, float)], quat, name)[0]

    def grid(
        self,
        item: str,
        rows: int,
        columns: int,
        spacing: tuple[float, float] | None = None,
    ) -> list[SceneItem]:
        """Add copies of an item, which form a grid with it along the axes of the world.

        Args:
            item: name of the item.
            rows: number of items along y.
            columns: number of items along x.
            spacing: distances along x and y [m]; None leaves a gap between items.

        Returns:
            The copies.

        Raises:
            ValueError: there would be no copy, or more than 1024 items.
        """
        if rows < 1 or columns < 1 or not 2 <= rows * columns <= MOST_COPIES:
            raise ValueError(
                f"A grid has 2 to {MOST_COPIES} items, got {rows} x {columns}: change its sizes."
            )
        if spacing is None:
            spacing = (self._width(item, 0) + GAP, self._width(item, 1) + GAP)
        start = np.array(self[item].pos)
        places = []
        for row in range(rows):
            for column in range(columns):
                offset = (column * spacing[0], row * spacing[1], 0.0)
                places.append(start + offset)
        return self._copies(item, places[1:], None, "")

    def move(
        self,
        name: str,
        pos: Vector | None = None,
        quat: Vector | None = None,
    ) -> SceneItem:
        """Move an item: its initial pose, and its present one if its base moves.

        Args:
            name: name of the item.
            pos: position of its origin [m]; None keeps the present one.
            quat: orientation (wxyz); None keeps the present one.
        """
        _pose(pos, quat)  # checks them
        place, turn = self.pose(name)
        if pos is not None:
            place = np.array(pos, float)
        if quat is not None:
            turn = _unit(quat)
        pose = (place, turn)
        self.edit(
            lambda _: f"move {name}", lambda draft: draft.move(name, pose), key=("move", name)
        )
        return self[name]

    def rename(self, name: str, new: str) -> SceneItem:
        """Give an item another name; its elements, its state and its id stay.

        Raises:
            KeyError: there is no such item.
            ValueError: the new name is taken, or not valid.
        """
        self.edit(lambda _: f"rename {name}", lambda draft: draft.rename(name, new))
        return self[new]

    def remove(self, name: str) -> None:
        """Remove an item, and all that refers to it; `undo` also restores its state.

        Raises:
            KeyError: there is no such item.
        """
        self.edit(lambda _: f"remove {name}", lambda draft: draft.remove(name))

    def apply(self, items: Iterable[ItemRequest]) -> list[str]:
        """Bring the world to what is requested, by id: add, move or replace items.

        A second call with the same requests does nothing. Other items stay.

        Returns:
            Sentences about what was done; empty if nothing was.

        Raises:
            ValueError: two requests have one id, or a name is taken.
        """
        requests = [dataclasses.replace(item, name=item.name or item.id) for item in items]
        ids = [request.id for request in requests]
        twice = sorted(id for id in ids if ids.count(id) > 1)
        if twice:
            raise ValueError(f"Several items have the id '{twice[0]}': give each its own.")
        parts = _load_parts([request.source for request in requests])
        with self._lab.history.edit():
            draft = Draft(self._lab.world)
            told = [_apply(draft, *pair) for pair in zip(requests, parts, strict=True)]
            done = [sentence for sentence in told if sentence]
            if done:
                self._commit(draft, "apply items")
        return done

    def save(self, path: str | Path) -> Path:
        """Write the scene to a folder: `scene.xml`, its assets, and names in `build.json`.

        MuJoCo alone can load `scene.xml`. The folder is complete at each moment: it is written
        aside and renamed. `notes` says, as a warning does, what the file cannot express.

        Returns:
            The folder.

        Raises:
            FileExistsError: the folder contains something else.
        """
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            folder = save_scene(self._lab.world, Path(path))
        self.notes = tuple(str(warning.message) for warning in found)
        for note in self.notes:
            warnings.warn(note, stacklevel=2)
        return folder

    def open(self, path: str | Path) -> None:
        """Replace the world by a scene file, a folder of `save` or any MJCF; can be undone.

        `notes` says what was left out of the file, and which of its sizes are doubtful.

        Raises:
            FileNotFoundError: there is no such file.
            CompileError: it does not compile.
        """
        world = open_scene(Path(path))
        notes = [*world.warnings, *doubtful_sizes(world.model)]
        with self._lab.history.edit():
            before = dataclasses.replace(self._lab.world)
            state = self._show(world, Transition(), notes)
            after = dataclasses.replace(world)
            self._record(f"open {Path(path).name}", before, after, Transition(), state)

    def undo(self) -> str:
        """Undo the last edit of the world, and return its label.

        Raises:
            RuntimeError: there is nothing to undo.
        """
        return self._lab.history.undo()

    def redo(self) -> str:
        """Redo the edit that was undone last, and return its label.

        Raises:
            RuntimeError: there is nothing to redo.
        """
        return self._lab.history.redo()

    def _copies(
        self,
        item: str,
        places: Sequence[np.ndarray],
        quat: Vector | None,
        name: str,
    ) -> list[SceneItem]:
        kept = np.array(self[item].quat) if quat is None else _unit(quat)

        def change(draft: Draft) -> list[str]:
            return draft.copies(item, [(place, kept) for place in places], name)

        names = self.edit(lambda _: f"copy {item}", change)
        items = self.items
        return [items[new] for new in names]

    def _width(self, item: str, axis: int) -> float:
        try:
            box = self.bounds(item)
        except ValueError:
            return 1.0
        return box.high[axis] - box.low[axis]

    def edit(
        self,
        label: Callable[[_T], str],
        change: Callable[[Draft], _T],
        key: Hashable = None,
    ) -> _T:
        """Change a draft of the world, compile it, and show it.

        Args:
            label: text of the edit, from the result of the change.
            change: changes the draft.
            key: edits with the same key that follow one another are undone as one.

        Returns:
            The result of the change.

        Raises:
            CompileError: the new world does not compile.
        """
        with self._lab.history.edit():
            draft = Draft(self._lab.world)
            result = change(draft)
            self._commit(draft, label(result), key)
        return result

    def _commit(self, draft: Draft, label: str, key: Hashable = None) -> None:
        """Show the world of a draft, and record how to return."""
        before = dataclasses.replace(draft.world)  # the running one may become another
        world = draft.finish()
        transition = draft.transition
        played = self._lab.replay.active_session
        state = None
        if draft.only_moves:
            world.start = placed_start(before, transition)
            state = move_in_place(self._lab, world, transition, label)
        in_place = state is not None
        if state is None:
            world.start = None
            lost = carry_model_values(before, world, transition.rename)
            state = self._show(world, transition, (*draft.notes, *lost))
        else:
            self.notes = tuple(draft.notes)
            if played:
                self.notes += (f"the replay of '{played}' ended",)
        after = dataclasses.replace(world)
        self._record(label, before, after, transition, state, key, in_place)

    def _look(self, find: Callable[[Surroundings], _T]) -> _T:
        """Return what a function finds around new items in the present state."""
        elements = self._lab.world.elements
        return self._lab.loop.do(
            lambda model, data: find(Surroundings(model, data, elements)), edits_model=False
        )

    def _record(
        self,
        label: str,
        before: World,
        after: World,
        transition: Transition,
        state: StateRow,
        key: Hashable = None,
        in_place: bool = False,
    ) -> None:
        """Record how to return from another world, which is shown, and to it.

        Args:
            label: text of the edit.
            before: the world before; not modified later on.
            after: the other world; not modified later on.
            transition: state that the edit has set.
            state: the state before.
            key: see `edit`.
            in_place: whether the running world has become the other one, by a move.
        """
        back = _backwards(transition, state)
        marks = (f"undo {label}", label) if in_place else ("", "")
        left: dict[str, StateRow | None] = {"before": state}

        def undo() -> None:
            left["after"] = self._show_again(before, _with(back, left.get("before")), marks[0])

        def redo() -> None:
            left["before"] = self._show_again(after, _with(transition, left.get("after")), marks[1])

        self._lab.history.record(Edit(label=label, undo=undo, redo=redo, key=key))

    def _show_again(self, world: World, transition: Transition, moved: str) -> StateRow | None:
        """Show a former world, from its spec: its model may have been changed since.

        Args:
            world: the former world.
            transition: state that is to be set.
            moved: text for the timeline, if the running world was moved; empty otherwise.

        Returns:
            The state that the lab had before; None if it has not changed.
        """
        lab = self._lab
        if moved and lab.edits.only_spec:
            show_spec(lab, world)
            return None
        fresh = dataclasses.replace(world, model=compile_copy(world.spec), shared=None)
        if moved:
            state = move_in_place(lab, fresh, transition, moved)
            if state is not None:
                self.notes = ()
                return state
        fresh.start = None
        lost = carry_model_values(lab.world, fresh, transition.rename)
        return self._show(fresh, transition, lost)

    def _show(self, world: World, transition: Transition, notes: Sequence[str]) -> StateRow:
        """Rebuild the lab; return the state that it had before."""
        lab = self._lab
        driven = lab.environment is not None
        controls = list(lab.controls)
        selected = self.items.get(self.selected)
        state = lab.loop.do(read_state, edits_model=False)
        result = lab.rebuild(world, keep_history=True, transition=transition)
        if not result:
            raise CompileError(result.error)
        gone = [r.name for r in controls if lab.controls.find(r.name) is None and r.owner]
        told = list(notes)
        told += [f"the robot '{name}' is gone, and what controlled it ended" for name in gone]
        if driven:
            told.append("the task's environment no longer steps the world")
        self.notes = (*told, *result.notes)
        self.selected = ""
        if selected is not None:
            same = (item.name for item in self.items.values() if item.id == selected.id)
            self.selected = next(same, "")
        return state


def _with(transition: Transition, left: StateRow | None) -> Transition:
    """Return a transition that remembers a state, too."""
    remembered = () if left is None else (left,)
    return dataclasses.replace(transition, remembered=remembered)


def _load_parts(sources: Sequence[Source]) -> list[ItemContent]:
    """Read sources, each once; return a content of its own for each."""
    loaded: dict[Hashable, ItemContent] = {}
    parts = []
    for source in sources:
        key = str(source) if isinstance(source, str | Path) else id(source)
        if key not in loaded:
            loaded[key] = load_source(source)[0]
        parts.append(dataclasses.replace(loaded[key], spec=loaded[key].spec.copy()))
    return parts


def _backwards(transition: Transition, before: StateRow) -> Transition:
    """Return the transition that undoes another one.

    Args:
        transition: the other one.
        before: columns and values of the state before it.
    """
    columns, row = before
    back = {}
    for elements in columns.index.values():
        back |= {transition.rename(name): name for name in elements}
    placed = {}
    for part, name in transition.placed:
        former = back.get(name, name)
        if former in columns.index.get(part, {}):
            start, width = columns.index[part][former]
            placed[part, former] = row[start : start + width].copy()
    robots = {old: new for new, old in transition.renamed_robots.items()}
    return Transition(
        placed=placed, rename=lambda name: back.get(name, name), renamed_robots=robots
    )


def _apply(draft: Draft, request: ItemRequest, part: ItemContent) -> str:
    """Bring one item to what is requested; return a sentence about it, empty for nothing."""
    known = next((name for name, facts in draft.facts.items() if facts.id == request.id), "")
    pose = _pose(request.pos, request.quat)
    if not known:
        draft.attach(part, request.name, request.id, pose)
        return f"added '{request.name}'"
    if draft.facts[known].fingerprint != part.fingerprint:
        if pose is None:
            pose = draft.origin(known)
        draft.remove(known)
        draft.attach(part, request.name, request.id, pose)
        return f"replaced '{request.name}'"
    done = []
    if known != request.name:
        draft.rename(known, request.name)
        done.append(f"renamed '{known}' to '{request.name}'")
    if pose is not None:
        present = np.concatenate(draft.origin(request.name))
        if not np.allclose(present, np.concatenate(pose), atol=1e-9):
            draft.move(request.name, pose)
            done.append(f"moved '{request.name}'")
    return ", ".join(done)


def _pose(pos: Vector | None, quat: Vector | None) -> Pose | None:
    """Return a pose from numbers that a user gives; None if there are none."""
    if pos is None and quat is None:
        return None
    place = np.zeros(3)
    if pos is not None:
        place = np.array(pos, float)
    if place.shape != (3,) or not (np.abs(place) <= mujoco.mjMAXVAL).all():
        raise ValueError(
            f"pos must be 3 finite numbers [m], up to MuJoCo's limit of {mujoco.mjMAXVAL:.0e}, "
            f"got {pos}."
        )
    return place, _IDENTITY if quat is None else _unit(quat)


def _unit(quat: Vector) -> np.ndarray:
    """Return a quaternion of length 1."""
    values = np.array(quat, float)
    length = float(np.linalg.norm(values))
    if values.shape != (4,) or not np.isfinite(length) or length < 1e-9:
        raise ValueError(f"quat must be 4 finite numbers (wxyz), not all 0, got {quat}.")
    return values / length
