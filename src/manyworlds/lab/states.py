"""Saved states of a world, which are restored exactly."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from manyworlds.lab.physics_loop import PhysicsLoop, WorldEdit
from manyworlds.lab.world import STATE
from manyworlds.utils.files import write_atomic

_META = ("name", "time", "model_hash", "memory")
_ARRAYS = ("state", "sensordata", "driver")
_NO_DRIVER = np.zeros(0, np.uint8)
_NAME = re.compile(r"[\w][\w .-]{0,99}")


@dataclass(frozen=True, eq=False)
class SavedState:
    """State of a world from which MuJoCo continues bit for bit."""

    name: str
    time: float
    """Simulated time [s]."""
    state: np.ndarray
    """`mjSTATE_INTEGRATION`."""
    sensordata: np.ndarray
    """Sensor values, shape [nsensordata]; those of accelerations lag the state by one step."""
    targets: dict[str, np.ndarray]
    """Targets of each robot, by name."""
    model_hash: str
    """Hash of the model that the state belongs to."""
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The `law` of each robot by its name, and the law's internal `state`, as plain data."""
    driver: np.ndarray = field(default_factory=_NO_DRIVER.copy)
    """Memory of a task's environment that drives the world, uint8, shape [num_bytes]."""


class SavedStates:
    """Saves and restores the states of one world.

    Args:
        loop: loop of the world.
        model_hash: hash of the loop's model.
    """

    def __init__(self, loop: PhysicsLoop, model_hash: str) -> None:
        self._loop = loop
        self._hash = model_hash
        self._states: dict[str, SavedState] = {}
        self.before_restore: WorldEdit = lambda model, data: None
        """Called by `restore` in the physics thread, before the state changes."""

    @property
    def names(self) -> list[str]:
        """Names of the saved states, the oldest first."""
        return list(self._states)

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
        saved: SavedState = self._loop.do(
            lambda model, data: self.capture(name, model, data), edits_model=False
        )
        self._states[name] = saved
        return saved

    def restore(self, name: str) -> None:
        """Return to a saved state; clear a fault, and end a replay.

        Raises:
            KeyError: there is none of this name.
        """
        saved = self[name]

        def put(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self.before_restore(model, data)
            self.put(saved, model, data)

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

    def read(self, path: Path) -> SavedState:
        """Read a state that `write` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no saved state, or one of another model.
        """
        return self.unpack(path.read_bytes(), str(path))

    def pack(self, name: str) -> bytes:
        """Return the content of a saved state's file."""
        saved = self[name]
        meta = {key: getattr(saved, key) for key in _META}
        arrays = {key: getattr(saved, key) for key in _ARRAYS}
        buffer = io.BytesIO()
        targets = {f"target:{robot}": values for robot, values in saved.targets.items()}
        np.savez(buffer, allow_pickle=False, meta=json.dumps(meta), **arrays, **targets)
        return buffer.getvalue()

    def unpack(self, content: bytes, file: str) -> SavedState:
        """Add the saved state that `pack` returned.

        Args:
            content: content of a file.
            file: name of the file, for messages.

        Raises:
            ValueError: it is no saved state, or one of another model.
        """
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                meta = json.loads(str(archive["meta"]))
                arrays = {key: archive[key] for key in _ARRAYS if key in archive.files}
                targets = {
                    key.removeprefix("target:"): archive[key]
                    for key in archive.files
                    if key.startswith("target:")
                }
            saved = SavedState(targets=targets, **arrays, **{key: meta[key] for key in _META})
            if not _NAME.fullmatch(saved.name):
                raise ValueError(f"its name is '{saved.name}'")
        except Exception as error:
            raise ValueError(f"'{file}' is no saved state: {error}.") from error
        if saved.model_hash != self._hash:
            raise ValueError(
                f"'{file}' is a state of another model ({saved.model_hash[:12]}, this one is "
                f"{self._hash[:12]}): open the model that it was saved from."
            )
        present: SavedState = self._loop.do(
            lambda model, data: self.capture("", model, data), edits_model=False
        )
        if _shapes(saved) != _shapes(present):
            raise ValueError(f"'{file}' is no saved state: its arrays are of other sizes.")
        self._states[saved.name] = saved
        return saved

    def capture(self, name: str, model: mujoco.MjModel, data: mujoco.MjData) -> SavedState:
        """Return a copy of the present state without saving it; runs in the physics thread."""
        state = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, state, STATE)
        robots = list(self._loop.controls)
        targets = {robot.name: robot.command.targets for robot in robots}
        memory = {
            robot.name: {"law": robot.controller.name, "state": robot.controller.state_dict()}
            for robot in robots
        }
        sensordata = data.sensordata.copy()
        driver = self._loop.drivers.with_memory
        kept = _NO_DRIVER if driver is None else np.frombuffer(driver.memory(), np.uint8)
        return SavedState(
            name, float(data.time), state, sensordata, targets, self._hash, memory, kept
        )

    def put(self, saved: SavedState, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Return to a state; runs in the physics thread."""
        self._loop.clear_fault()
        driver = self._loop.drivers.with_memory
        if driver is not None and saved.driver.size:
            driver.recall(saved.driver.tobytes(), model)
        mujoco.mj_setState(model, data, saved.state, STATE)
        # Compute derived fields for readers before the next step. This would change the solver's
        # warm start, which is part of the state and is set again.
        mujoco.mj_forward(model, data)
        mujoco.mj_setState(model, data, saved.state, STATE)
        data.sensordata[:] = saved.sensordata
        for name, targets in saved.targets.items():
            robot, memory = self._loop.controls[name], saved.memory[name]
            robot.restore(targets)
            robot.controller.reset()
            if robot.controller.name == memory["law"]:
                robot.controller.load_state_dict(memory["state"])


def _shapes(saved: SavedState) -> tuple[object, ...]:
    targets = {robot: values.shape for robot, values in saved.targets.items()}
    return saved.state.shape, saved.sensordata.shape, targets, set(saved.memory)


def _free_number(taken: dict[str, SavedState]) -> str:
    return next(str(i) for i in range(1, len(taken) + 2) if str(i) not in taken)
