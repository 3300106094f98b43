"""Saved states of a world, which are restored exactly."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.loop.controls import RobotControls
from manyworlds.lab.loop.physics_loop import PhysicsLoop, WorldEdit
from manyworlds.lab.moments.moment import NO_TASK_MEMORY, Moment, WorldState
from manyworlds.lab.moments.recording import (
    Recording,
    carry_values,
    index_from_plain,
    state_columns,
)
from manyworlds.lab.world.model_facts import STATE
from manyworlds.utils.files import write_atomic

if TYPE_CHECKING:
    from manyworlds.lab.world.world import World

_META = ("name", "memory", "actuators", "converted")
_ARRAYS = ("state", "sensordata", "task_memory")
_COLUMNS = ("index", "joint_types", "model_hash")
_NO_MEMORY: dict[str, Any] = {"law": "", "state": {}}
_NAME = re.compile(r"[\w][\w .-]{0,99}")
_MAX_BYTES = 64 * 2**20  # of a saved state; those of large worlds have one megabyte


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedState(WorldState):
    """State of a world from which MuJoCo continues bit for bit."""

    name: str
    columns: Recording
    """Columns of `state` by name, types of the joints, and the hash of the model it belongs to."""
    actuators: Mapping[str, list[str]] = field(default_factory=dict)
    """Names of the actuators that `targets` are of, by robot."""
    converted: str = ""
    """Sentence about what was not kept when the state was converted from another model; empty for a
    state of this model."""

    @property
    def model_hash(self) -> str:
        """Hash of the model that the state belongs to."""
        return self.columns.model_hash


class SavedStates:
    """Saves and restores the states of one world.

    Args:
        loop: loop of the world.
        world: the world.
    """

    def __init__(self, loop: PhysicsLoop, world: World) -> None:
        self._loop = loop
        self._world = world
        self._columns = state_columns(world.model, world.model_hash)
        self._states: dict[str, SavedState] = {}
        self.before_restore: WorldEdit = lambda model, data: None
        """Called by `restore` in the physics thread, before the state changes."""

    @property
    def model_hash(self) -> str:
        """Hash of the model that new states belong to."""
        return self._columns.model_hash

    @property
    def names(self) -> list[str]:
        """Names of the saved states, the oldest first."""
        return list(self._states)

    def items(self) -> list[tuple[str, SavedState]]:
        """Return the saved states with their names, the oldest first."""
        return list(self._states.items())

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self.names)

    def __getitem__(self, name: str) -> SavedState:
        """Return a saved state.

        Raises:
            KeyError: there is none of this name.
        """
        if name not in self._states:
            raise KeyError(
                f"There is no saved state '{name}'; saved: {', '.join(self._states) or 'none'}."
            )
        return self._states[name]

    def save(self, name: str = "") -> SavedState:
        """Save the present state; a state of the same name is replaced.

        Args:
            name: name of the state; by default a number.

        Raises:
            ValueError: the name has characters that file names may not have.
        """
        name = name or _free_number(self._states)
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"'{name}' is no valid name of a state: use letters, digits, spaces, dots, hyphens."
            )
        moment: Moment = self._loop.do(
            lambda model, data: Moment.capture(self._loop, model, data), edits_model=False
        )
        self._states[name] = saved = SavedState(
            name=name,
            state=moment.state,
            sensordata=moment.sensordata,
            targets=moment.targets,
            memory=moment.memory,
            task_memory=moment.task_memory,
            columns=self._columns,
            actuators={robot.name: list(robot.actuators.names) for robot in self._loop.controls},
        )
        return saved

    def restore(self, name: str) -> None:
        """Return to a saved state; clear a fault, and end a replay.

        Raises:
            KeyError: there is none of this name.
        """
        saved = self[name]

        def put(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self.before_restore(model, data)
            saved.put_state(self._loop, model, data)

        self._loop.do(put, edits_model=False)

    def drop(self, name: str) -> None:
        """Delete a saved state.

        Raises:
            KeyError: there is none of this name.
        """
        del self._states[self[name].name]

    def write(self, name: str, folder: Path) -> Path:
        """Write a saved state into a folder as `NAME.npz`."""
        path = folder / f"{self[name].name}.npz"
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(path, self.pack(name))
        return path

    def read(self, path: Path, *, convert: bool = False) -> SavedState:
        """Read a state that `write` wrote; see `unpack`.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no saved state, or one of another model.
        """
        return self.unpack(path.read_bytes(), str(path), convert=convert)

    def pack(self, name: str) -> bytes:
        """Return the content of a saved state's file."""
        saved = self[name]
        columns = {key: getattr(saved.columns, key) for key in _COLUMNS}
        meta = {key: getattr(saved, key) for key in _META} | columns
        arrays = {key: getattr(saved, key) for key in _ARRAYS}
        buffer = io.BytesIO()
        targets = {f"target:{robot}": values for robot, values in saved.targets.items()}
        np.savez(buffer, allow_pickle=False, meta=json.dumps(meta), **arrays, **targets)
        return buffer.getvalue()

    def unpack(self, content: bytes, file: str, *, convert: bool = False) -> SavedState:
        """Add the saved state that `pack` returned.

        Args:
            content: content of a file.
            file: name of the file, for messages.
            convert: whether a state of another model is converted by name, see `convert`, and not
                refused.

        Raises:
            ValueError: it is no saved state, or one of another model.
        """
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                size = sum(entry.file_size for entry in archive.zip.infolist())
                if size > _MAX_BYTES:
                    raise ValueError(
                        f"it has {size / 2**20:.0f} MiB unpacked, and {_MAX_BYTES // 2**20} are "
                        "allowed"
                    )
                meta = json.loads(str(archive["meta"]))
                arrays = {key: archive[key] for key in _ARRAYS if key in archive.files}
                if "driver" in archive.files:  # the name of `task_memory` in older files
                    arrays["task_memory"] = archive["driver"]
                targets = {
                    key.removeprefix("target:"): archive[key]
                    for key in archive.files
                    if key.startswith("target:")
                }
            columns = _columns(meta, len(arrays["state"]))
            known = {key: meta[key] for key in _META if key in meta}
            saved = SavedState(targets=targets, columns=columns, **arrays, **known)
            if not _NAME.fullmatch(saved.name):
                raise ValueError(f"its name is '{saved.name}'")
        except Exception as error:
            raise ValueError(f"'{file}' is no saved state: {error}.") from error
        if saved.model_hash != self._columns.model_hash:
            if not convert or not saved.columns.index:
                remedy = " or convert it by name" * bool(saved.columns.index)
                raise ValueError(
                    f"'{file}' is a state of another model ({saved.model_hash[:12]}, this one is "
                    f"{self._columns.model_hash[:12]}): open the model that it was saved "
                    f"from{remedy}."
                )
            self._states[saved.name] = saved = self.convert(saved, self._loop.controls)
            return saved
        present: Moment = self._loop.do(
            lambda model, data: Moment.capture(self._loop, model, data), edits_model=False
        )
        if _shapes(saved) != _shapes(present):
            raise ValueError(f"'{file}' is no saved state: its arrays are of other sizes.")
        self._states[saved.name] = saved
        return saved

    def adopt(self, others: SavedStates, controls: RobotControls) -> None:
        """Take over the states of a world that this one replaces, converted by name.

        Args:
            others: states of the other world.
            controls: controls of this world's robots.
        """
        same = others._columns.model_hash == self._columns.model_hash
        for name, saved in others.items():
            if not same:
                saved = self.convert(saved, controls)
            self._states[name] = saved

    def convert(self, saved: SavedState, controls: RobotControls) -> SavedState:
        """Return a state of another model as one of this model.

        The time, joints of the same name and type, activations and controls of actuators, targets
        and mocap bodies keep their values; all others have those of the initial state. A control
        law continues from its initial state unless the robot has the same actuators.

        Args:
            saved: the state.
            controls: controls of this world's robots.
        """
        model = self._world.model
        data = self._world.new_data()
        columns = self._columns
        state = np.empty(columns.values.shape[1])
        mujoco.mj_getState(model, data, state, STATE)
        kept = carry_values(saved.state, saved.columns, state, columns)
        state[0] = saved.time
        mujoco.mj_setState(model, data, state, STATE)
        mujoco.mj_forward(model, data)
        fresh = {}
        memory = {}
        actuators = {}
        forgot = []
        for robot in controls:
            names = actuators[robot.name] = list(robot.actuators.names)
            old = saved.actuators.get(robot.name, [])
            told = dict(zip(old, np.ravel(saved.targets.get(robot.name, ())), strict=False))
            neutral = zip(names, robot.neutral, strict=True)
            fresh[robot.name] = np.array([told.get(name, value) for name, value in neutral])
            memory[robot.name] = _NO_MEMORY
            if old == names and robot.name in saved.memory:
                memory[robot.name] = saved.memory[robot.name]
            if old and old != names:
                forgot.append(robot.name)
        parts = {
            "in the initial state": [name for name in columns.joint_types if name not in kept],
            "not kept": [n for n in saved.columns.joint_types if n not in kept],
            "targets in part and controller from the start": forgot,
            "robots that are not here": [n for n in saved.actuators if n not in actuators],
        }
        lost = "".join(f"; {what}: {', '.join(names)}" for what, names in parts.items() if names)
        return replace(
            saved,
            state=state,
            sensordata=data.sensordata.copy(),
            targets=fresh,
            actuators=actuators,
            memory=memory,
            columns=columns,
            task_memory=NO_TASK_MEMORY,
            converted=f"converted from model {saved.model_hash[:12]}: {len(kept)} joints kept"
            + lost,
        )


def _shapes(saved: WorldState) -> tuple[object, ...]:
    targets = {robot: values.shape for robot, values in saved.targets.items()}
    return saved.state.shape, saved.sensordata.shape, targets, set(saved.memory)


def _columns(meta: dict[str, Any], width: int) -> Recording:
    """Return the columns that a file describes; none if it is from before they were written.

    Raises:
        ValueError: an element lies outside of the state.
    """
    index = index_from_plain(meta.get("index", {}), width)
    types = {str(name): str(kind) for name, kind in meta.get("joint_types", {}).items()}
    empty = np.empty((0, width))
    return Recording(np.empty(0), empty, index, types, str(meta["model_hash"]))


def _free_number(taken: dict[str, SavedState]) -> str:
    return next(str(i) for i in range(1, len(taken) + 2) if str(i) not in taken)
