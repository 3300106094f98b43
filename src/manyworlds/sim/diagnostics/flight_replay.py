"""Reading a flight record and replaying it in MuJoCo C to find where a world failed."""

from __future__ import annotations

import copy
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from manyworlds.sim.diagnostics.element_names import element_name
from manyworlds.sim.diagnostics.flight_recorder import FORMAT
from manyworlds.sim.diagnostics.status import WorldStatus, quiet_mujoco
from manyworlds.sim.fields.defaults import write_field
from manyworlds.utils.newton import avoid_sparse_newton

_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_INPUTS = ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
# Outputs of a step, in the order of computation.
_COMPUTED = (
    "xpos",
    "xquat",
    "cinert",
    "cvel",
    "qfrc_passive",
    "qfrc_bias",
    "actuator_force",
    "qfrc_actuator",
    "qacc_smooth",
    "qfrc_constraint",
    "qacc",
    "sensordata",
    "qvel",
    "qpos",
    "act",
)
# MuJoCo also considers these bad when they exceed mjMAXVAL.
_BOUNDED = {"qpos", "qvel", "qacc", "ctrl"}


@dataclass(frozen=True)
class FlightRecord:
    """Contents of a flight recorder's file; the arrays are named as in `FlightRecorder`."""

    metadata: dict[str, Any]
    model: mujoco.MjModel
    arrays: dict[str, np.ndarray]

    @classmethod
    def load(cls, path: Path) -> FlightRecord:
        """Read a file without executing any of its contents.

        Raises:
            OSError: there is no such file.
            ValueError: it is not a flight record, or it is incomplete.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
                arrays = {name: found[name] for name in found.files}
            metadata = json.loads(str(arrays.pop("metadata")))
            if metadata["format"] != FORMAT:
                raise ValueError(f"its format is '{metadata['format']}', not '{FORMAT}'")
            content = arrays.pop("model").tobytes()
            model = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": content})
            record = cls(metadata, model, arrays)
            record.check()
        except OSError:
            raise
        except (ValueError, KeyError, TypeError, EOFError, AttributeError) as error:
            raise _unreadable(path, error) from None
        except (zipfile.BadZipFile, zlib.error, mujoco.FatalError) as error:
            raise _unreadable(path, error) from None
        return record

    def check(self) -> None:
        """Check that the arrays fit the model and each other.

        Raises:
            KeyError: an array is missing.
            ValueError: an array has a wrong shape, or there are no calls.
        """
        a = self.arrays
        calls = len(a["nsubsteps"])
        worlds = len(a["worlds"])
        nstate = mujoco.mj_stateSize(self.model, _INTEGRATION)
        wanted = {
            "states": (calls, worlds, nstate),
            "last_states": (worlds, nstate),
            "begins": (worlds,),
            "status": (worlds,),
        }
        for name, shape in wanted.items():
            if a[name].shape != shape:
                raise ValueError(f"'{name}' has shape {a[name].shape}, expected {shape}")
        for name, rows in self._rows():
            if len(rows) != worlds:
                raise ValueError(f"'model.{name}' has {len(rows)} rows, expected {worlds}")
            changes = self._changes(name)
            if len({len(part) for part in changes}) != 1 or any(changes[0] >= calls):
                raise ValueError(f"the changes of '{name}' do not fit together")
        for entity, rows in self.metadata["variants"].items():
            if len(rows) != calls or any(len(row) != worlds for row in rows):
                raise ValueError(f"the variants of '{entity}' do not fit")
        if not calls or (a["begins"] >= calls).any() or (a["begins"] < 0).any():
            raise ValueError("it holds no calls")

    def model_of(self, index: int, call: int | None = None) -> mujoco.MjModel:
        """Return the model with the rows of the world at `index` of `worlds`.

        Args:
            index: position of the world among those recorded.
            call: position of the call in which the rows applied, from 0; None for the last.
        """
        model = copy.copy(self.model)
        for name, rows in self._rows():
            write_field(model, name, rows[index])
        if call is None:
            call = len(self.arrays["nsubsteps"]) - 1
        for earlier in range(call + 1):
            self.apply_changes(model, index, earlier)
        return model

    def apply_changes(self, model: mujoco.MjModel, index: int, call: int) -> None:
        """Write the rows that were changed just before a call into a world's model."""
        for name, _ in self._rows():
            calls, worlds, rows = self._changes(name)
            for change in np.flatnonzero((calls == call) & (worlds == index)):
                write_field(model, name, rows[change])

    def variants(self, index: int) -> Iterator[str]:
        """Yield a clause for each entity with variants: the variant that the world had."""
        first = self.metadata["first_call"]
        for entity, calls in self.metadata["variants"].items():
            names = [worlds[index] for worlds in calls][int(self.arrays["begins"][index]) :]
            since = first + len(calls) - len(names)
            text = f"{entity} was '{names[0]}'"
            last = names[0]
            for call, name in enumerate(names):
                if name != last:
                    text = f"{text}, from step call {since + call} on '{name}'"
                    last = name
            yield text

    def bad_model_values(self, index: int) -> Iterator[str]:
        """Yield a clause for each model value of a world that is not finite or absurdly large."""
        for name, rows in self._rows():
            calls, worlds, changed = self._changes(name)
            mine = worlds == index
            first = self.metadata["first_call"]
            since = ["", *(f" since step call {first + call}" for call in calls[mine])]
            for row, when in zip([rows[index], *changed[mine]], since, strict=True):
                where = _first_bad(row, bounded=True)
                if where is not None:
                    who = element_name(self.model, name, where)
                    yield f"model field {name} of {who} is {row.reshape(-1)[where]:g}{when}"
                    break

    def _rows(self) -> list[tuple[str, np.ndarray]]:
        prefix = "model."
        found = [(n, a) for n, a in self.arrays.items() if n.startswith(prefix)]
        return [(name.removeprefix(prefix), array) for name, array in found]

    def _changes(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return calls, indices of worlds, and new rows of a model field, in order of change."""
        if f"changed_calls.{name}" not in self.arrays:
            none = np.zeros(0, np.int64)
            return none, none, none
        calls, worlds = (self.arrays[f"changed_{part}.{name}"] for part in ("calls", "worlds"))
        return calls, worlds, self.arrays[f"changed_rows.{name}"]


def replay(record: FlightRecord, index: int) -> str:
    """Step a recorded world in MuJoCo C; report the first failure and its time in a sentence.

    Args:
        record: contents of the file.
        index: position of the world in `record.arrays["worlds"]`.
    """
    a = record.arrays
    first = record.metadata["first_call"]
    begins = int(a["begins"][index])
    calls = len(a["nsubsteps"])
    model = record.model_of(index, begins)
    data = mujoco.MjData(model)
    before = mujoco.MjData(model)
    with quiet_mujoco():
        for call in range(begins, calls):
            if call > begins:
                record.apply_changes(model, index, call)
            avoid_sparse_newton(model)
            mujoco.mj_setState(model, data, a["states"][call, index], _INTEGRATION)
            found = _bad_field(model, data, _INPUTS)
            if found:
                return f"{found} before step call {first + call}, written there from outside"
            for substep in range(int(a["nsubsteps"][call])):
                when = f"in step call {first + call}, substep {substep} (time {data.time:.6g} s)"
                mujoco.mj_copyData(before, model, data)
                try:
                    mujoco.mj_step(model, data)
                except mujoco.FatalError as error:
                    return f"MuJoCo raised {when}: {' '.join(str(error).split())}"
                found = _what_broke(model, before, data)
                if found:
                    return f"{found} {when}"
    bits = WorldStatus(int(a["status"][index]))
    return (
        f"nothing failed in MuJoCo C over {calls - begins} calls, though the "
        f"{record.metadata['engine']} engine reported {str(bits.name).lower()}"
    )


def _what_broke(model: mujoco.MjModel, before: mujoco.MjData, data: mujoco.MjData) -> str | None:
    """Describe the first value, in order of computation, that a step made bad; None if none."""
    dropped = {"contacts": mujoco.mjtWarning.mjWARN_CONTACTFULL}
    dropped["constraints"] = mujoco.mjtWarning.mjWARN_CNSTRFULL
    for what, kind in dropped.items():
        if data.warning[kind].number > 0:
            return f"{what} did not fit into the model's memory"
    if _bad_field(model, data, ("qpos", "qvel", "qacc", "act", "sensordata")) is None:
        return None
    mujoco.mj_forward(model, before)
    last = ("qvel", "qpos", "act")
    computed = tuple(field for field in _COMPUTED if field not in last)
    return _bad_field(model, before, computed) or _bad_field(model, data, (*last, "qacc"))


def _bad_field(model: mujoco.MjModel, data: mujoco.MjData, fields: tuple[str, ...]) -> str | None:
    for field in fields:
        values = getattr(data, field)
        where = _first_bad(values, field in _BOUNDED)
        if where is not None:
            return f"{field} of {element_name(model, field, where)} became {values.flat[where]:g}"
    return None


def _first_bad(values: np.ndarray, bounded: bool) -> int | None:
    if values.dtype.kind != "f":
        return None
    bad = ~np.isfinite(values.reshape(-1))
    if bounded:
        bad |= np.abs(values.reshape(-1)) > mujoco.mjMAXVAL
    if not bad.any():
        return None
    return int(bad.argmax())


def _unreadable(path: Path, error: Exception) -> ValueError:
    why = " ".join(str(error).split()).rstrip(".") or repr(error)
    if "allow_pickle" in why:  # NumPy's message about any file that is not an NPZ file
        why = "it is not an NPZ file"
    return ValueError(
        f"'{path}' is not a complete flight record: {why}. "
        "Give a nan_dump_*.npz file that the NaN guard wrote."
    )
