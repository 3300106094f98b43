"""Reading a flight record and replaying it in plain MuJoCo C, to find where a world went bad."""

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

from manyworlds.sim.element_names import element_name
from manyworlds.sim.flight_recorder import FORMAT
from manyworlds.sim.status import WorldStatus, quiet_mujoco

_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_INPUTS = ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
# What a step computes, in the order in which it does so.
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
# MuJoCo calls these bad when they are beyond mjMAXVAL, too.
_BOUNDED = {"qpos", "qvel", "qacc", "ctrl"}


@dataclass(frozen=True)
class FlightRecord:
    """What a file of the flight recorder holds; arrays as `FlightRecorder` names them."""

    metadata: dict[str, Any]
    model: mujoco.MjModel
    arrays: dict[str, np.ndarray]

    @classmethod
    def load(cls, path: Path) -> FlightRecord:
        """Read a file; nothing in it is executed.

        Raises:
            OSError: there is no such file.
            ValueError: it is no flight record, or not a whole one.
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
        """Raise ValueError or KeyError unless the arrays fit the model and each other."""
        a = self.arrays
        calls, worlds = len(a["nsubsteps"]), len(a["worlds"])
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
        for name, _ in self._rows():
            if len(a[f"model.{name}"]) != worlds:
                raise ValueError(
                    f"'model.{name}' has {len(a[f'model.{name}'])} rows, expected {worlds}"
                )
        if not calls or (a["begins"] >= calls).any() or (a["begins"] < 0).any():
            raise ValueError("it holds no calls")

    def model_of(self, index: int) -> mujoco.MjModel:
        """The model with the rows of the world at `index` of `worlds`."""
        model = copy.copy(self.model)
        for name, rows in self._rows():
            target = getattr(model, name).reshape(-1)
            row = rows[index].reshape(-1)
            target[: row.size] = row
        return model

    def bad_model_values(self, index: int) -> Iterator[str]:
        """Sentences on model values of a world that are not finite or absurdly large."""
        for name, rows in self._rows():
            if (where := _first_bad(rows[index], bounded=True)) is not None:
                who = element_name(self.model, name, where)
                yield f"model field {name} of {who} is {rows[index].reshape(-1)[where]:g}"

    def _rows(self) -> list[tuple[str, np.ndarray]]:
        prefix = "model."
        found = [(n, a) for n, a in self.arrays.items() if n.startswith(prefix)]
        return [(name.removeprefix(prefix), array) for name, array in found]


def replay(record: FlightRecord, index: int) -> str:
    """Step a recorded world in MuJoCo C; say in one sentence what went bad first, and when.

    Args:
        record: the file.
        index: position of the world in `record.arrays["worlds"]`.
    """
    model, a = record.model_of(index), record.arrays
    data = mujoco.MjData(model)
    before = mujoco.MjData(model)
    first = record.metadata["first_call"]
    begins, calls = int(a["begins"][index]), len(a["nsubsteps"])
    with quiet_mujoco():
        for call in range(begins, calls):
            mujoco.mj_setState(model, data, a["states"][call, index], _INTEGRATION)
            if found := _bad_field(model, data, _INPUTS):
                return f"{found} before step call {first + call}, written there from outside"
            for substep in range(int(a["nsubsteps"][call])):
                when = f"in step call {first + call}, substep {substep} (time {data.time:.6g} s)"
                mujoco.mj_copyData(before, model, data)
                try:
                    mujoco.mj_step(model, data)
                except mujoco.FatalError as error:
                    return f"MuJoCo raised {when}: {' '.join(str(error).split())}"
                if found := _what_broke(model, before, data):
                    return f"{found} {when}"
    bits = WorldStatus(int(a["status"][index]))
    return (
        f"nothing went bad in MuJoCo C over {calls - begins} calls, though the "
        f"{record.metadata['engine']} engine reported {str(bits.name).lower()}"
    )


def _what_broke(model: mujoco.MjModel, before: mujoco.MjData, data: mujoco.MjData) -> str | None:
    """Name what a step made bad, if it did: the first field in the order of computation."""
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
    return int(bad.argmax()) if bad.any() else None


def _unreadable(path: Path, error: Exception) -> ValueError:
    return ValueError(
        f"'{path}' is not a whole flight record: {' '.join(str(error).split()) or repr(error)}. "
        "Give a nan_dump_*.npz file that the NaN guard wrote."
    )
