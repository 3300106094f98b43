"""The CPU engine: MuJoCo C through `mujoco.batch`.

The record of truth is float64: state rows and expanded model rows. Users see float32 tensors; only
the elements that they changed are written back, so that an untouched world follows `mj_step` bit
for bit. A tensor's version counter tells cheaply whether anything was written at all.
"""

from __future__ import annotations

import warnings
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco.batch import DATA_FIELDS, MODEL_FIELDS, Batch, SimulationError

from manyworlds.sim.fields import MATRIX_SHAPES, conditional_field_reason
from manyworlds.sim.state import State, check_shapes
from manyworlds.sim.status import error_bits, quiet_mujoco, warning_bits
from manyworlds.utils.string import near_matches
from manyworlds.utils.torch import usable_cores

_TORCH_DTYPES = {"f": np.float32, "i": np.int32, "u": np.uint8, "b": np.bool_}


class _Mirror:
    """A float32 tensor over one float64 array of the batch."""

    __slots__ = ("array", "buffer", "tensor", "version")

    def __init__(self, array: np.ndarray, shape: tuple[int, ...], dtype: type | None = None):
        self.array = array.reshape(shape)
        self.buffer = np.empty(shape, dtype or _TORCH_DTYPES[array.dtype.kind])
        # A tensor born in inference mode has no version counter and refuses later writes.
        with torch.inference_mode(False):
            self.tensor = torch.from_numpy(self.buffer)
        self.pull()

    def pull(self, ids: np.ndarray | None = None) -> None:
        """Refresh the tensor from the batch, for all worlds or the ones named."""
        if ids is None:
            np.copyto(self.buffer, self.array, casting="unsafe")
        else:
            self.buffer[ids] = self.array[ids]
        self.version = self.tensor._version

    def push(self) -> np.ndarray | None:
        """Write the elements that the user changed to the batch; return which they were."""
        if self.tensor._version == self.version:
            return None
        # An element equal to the rounded record keeps the record's exact value.
        changed = self.array.astype(self.buffer.dtype) != self.buffer
        np.copyto(self.array, self.buffer, where=changed, casting="unsafe")
        self.version = self.tensor._version
        return changed


class NativeEngine:
    """Steps worlds on a C++ thread pool, bit-identical to a loop over one `MjData` per world."""

    name = "native"

    def __init__(self, mj_model: mujoco.MjModel, num_envs: int, num_threads: int = 0) -> None:
        self.mj_model = mj_model
        self.num_envs = num_envs
        self.num_threads = num_threads or usable_cores()
        self.device = torch.device("cpu")
        self.expanded: set[str] = set()
        self.batch = Batch(mj_model, nsim=num_envs, nthread=self.num_threads)
        self._errors = np.zeros(num_envs, np.int32)
        self._error_shown = False
        self._written = np.zeros(num_envs, bool)
        self._state: dict[str, _Mirror] = {}
        self._derived: dict[str, _Mirror] = {}
        self._rows: dict[str, _Mirror] = {}
        self.data = _NativeData(self)
        self.model = _NativeModel(self)

    def step(self, nsubsteps: int, refresh: bool) -> None:
        """Take physics steps; with `refresh`, compute the velocity stage at the new state."""
        stage = mujoco.mjtStage.mjSTAGE_VEL if refresh else mujoco.mjtStage.mjSTAGE_NONE
        self._push()
        self._run(self.batch.step, None, nsubsteps, stage.value)
        self._pull()

    def forward(self, env_ids: np.ndarray | None) -> None:
        """Run `mj_forward` on the worlds named."""
        self._push()
        self._run(self.batch.forward, env_ids)
        self._pull(env_ids)

    def reset(self, env_ids: np.ndarray | None) -> None:
        """Set the state of the worlds named to defaults; derived fields follow at `forward`."""
        self._push()
        # MuJoCo clears the warning counters, too.
        _call(self.batch.reset, env_ids, -1, mujoco.mjtStage.mjSTAGE_NONE.value)
        self._errors[slice(None) if env_ids is None else env_ids] = 0
        for mirror in self._state.values():
            mirror.pull(env_ids)

    def status(self) -> torch.Tensor:
        """Bits of `WorldStatus`, int32, shape (num_envs,)."""
        return torch.from_numpy(warning_bits(self.batch.warning) | self._errors)

    def expand(self, field: str) -> None:
        """Give a model field one float64 row per world."""
        if field in self.expanded:
            return
        if field not in MODEL_FIELDS or field.startswith("opt."):
            raise ValueError(
                f"Model field '{field}' cannot differ between worlds on the native engine."
                + near_matches(field, MODEL_FIELDS)
            )
        array = self.batch.expand(field)
        self._rows[field] = _Mirror(array, _shape(field, array))
        self.expanded.add(field)

    def bind(self, field: str) -> torch.Tensor:
        """Return the tensor of a data field, bound on its first use."""
        for mirrors in (self._state, self._derived):
            if field in mirrors:
                return mirrors[field].tensor
        if field not in DATA_FIELDS:
            raise AttributeError(
                f"'{field}' is not a data field of the native engine."
                + near_matches(field, DATA_FIELDS)
            )
        if reason := conditional_field_reason(self.mj_model, field):
            raise AttributeError(f"'{field}' is not available: {reason}.")
        array = self.batch.bind(field)
        mirrors = self._state if array.flags.writeable else self._derived
        if mirrors is self._derived:
            # An output reads zero until the first call after it was bound. The state is that of
            # the last call: what users wrote since then stays pending, and other fields keep.
            self._run(self.batch.forward, None)
        dtype = np.bool_ if field == "eq_active" else None
        mirrors[field] = _Mirror(array, _shape(field, array), dtype)
        return mirrors[field].tensor

    def state_dict(self, env_ids: np.ndarray | None = None) -> State:
        """State rows, model rows, derived fields as last computed, and status."""
        self._push()
        ids = slice(None) if env_ids is None else env_ids
        arrays = {"state": self.batch.state, "status": self.status().numpy()}
        arrays |= {f"model.{name}": rows for name, rows in self.model_rows().items()}
        arrays |= {f"derived.{name}": mirror.buffer for name, mirror in self._derived.items()}
        return {name: torch.from_numpy(array[ids].copy()) for name, array in arrays.items()}

    def load_state_dict(self, state: State, env_ids: np.ndarray | None = None) -> None:
        """Take over rows, derived fields and status, element for element."""
        check_shapes(state, {"state": self._shape_of(self.batch.state, env_ids)})
        for key in state:
            kind, _, field = key.partition(".")
            if kind == "model":
                self.expand(field)
            elif kind == "derived":
                self.bind(field)
        rows = self.model_rows()
        arrays = {f"model.{name}": array for name, array in rows.items()}
        arrays |= {f"derived.{name}": mirror.buffer for name, mirror in self._derived.items()}
        saved = {name: array for name, array in arrays.items() if name in state}
        check_shapes(state, {name: self._shape_of(a, env_ids) for name, a in saved.items()})
        self._push()
        ids = slice(None) if env_ids is None else env_ids
        for field in rows:
            # Rows that were not saved had the compiled values.
            value = state.get(f"model.{field}")
            compiled = np.asarray(getattr(self.mj_model, field)).reshape(rows[field].shape[1:])
            self._set_rows(field, ids, compiled if value is None else value.cpu().numpy())
        for field, mirror in self._derived.items():
            if (value := state.get(f"derived.{field}")) is not None:
                mirror.buffer[ids] = value.cpu().numpy()
        self.batch.state[ids] = state["state"].cpu().numpy()
        self.batch.warning[ids] = 0
        self._errors[ids] = state["status"].cpu().numpy() if "status" in state else 0
        for mirror in self._state.values():
            mirror.pull()

    def state_rows(self) -> torch.Tensor:
        """The state as `mj_getState` lays it out, float64; the engine's own memory."""
        self._push()
        return torch.from_numpy(self.batch.state)

    def take_written_worlds(self) -> np.ndarray | None:
        """Mask of the worlds whose model rows changed since the last call, or None."""
        if not self._written.any():
            return None
        written, self._written = self._written, np.zeros_like(self._written)
        return written

    def model_rows(self) -> dict[str, np.ndarray]:
        """Float64 rows of all fields that differ between worlds, also those set_const expanded."""
        rows = {field: mirror.array for field, mirror in self._rows.items()}
        for field in sorted(MODEL_FIELDS - set(rows)):
            if not field.startswith("opt.") and self._is_expanded(field):
                self.expand(field)
                rows[field] = self._rows[field].array
        return rows

    def _is_expanded(self, field: str) -> bool:
        expanded: Any = self.batch.expanded  # absent from the stubs
        return expanded(field) is not None

    def _set_rows(self, field: str, ids: Any, values: np.ndarray) -> None:
        mirror = self._rows[field]
        self._written[ids] = True
        mirror.array[ids] = values
        mirror.tensor.zero_()  # tells caches that the rows have changed
        mirror.pull()

    def _shape_of(self, array: np.ndarray, env_ids: np.ndarray | None) -> tuple[int, ...]:
        return (self.num_envs if env_ids is None else len(env_ids), *array.shape[1:])

    def _run(self, function: Any, *args: Any) -> None:
        """Call into the batch; mark the worlds in which MuJoCo raised an error."""
        try:
            with quiet_mujoco():
                function(*args)
        except SimulationError as error:
            for world in error.ids.tolist():
                self._errors[world] |= error_bits(self.batch.error(world))
            if not self._error_shown:
                warnings.warn(f"{_failure(error)} Further errors: sim.status.", RuntimeWarning, 4)
                self._error_shown = True

    @np.errstate(over="ignore")
    def _push(self) -> None:
        for mirror in self._state.values():
            mirror.push()
        for mirror in self._rows.values():
            if (changed := mirror.push()) is not None:
                self._written |= changed.reshape(self.num_envs, -1).any(axis=1)

    @np.errstate(over="ignore")
    def _pull(self, env_ids: np.ndarray | None = None) -> None:
        # What a diverging world has beyond float32's range becomes infinite.
        for mirror in self._state.values():
            mirror.pull(env_ids)
        for mirror in self._derived.values():
            mirror.pull(env_ids)


class _NativeData:
    """Struct of data fields: tensors, bound on first use."""

    def __init__(self, engine: NativeEngine) -> None:
        self._engine = engine

    def __getattr__(self, field: str) -> torch.Tensor:
        if field.startswith("_"):
            raise AttributeError(field)
        return self._engine.bind(field)

    def __dir__(self) -> list[str]:
        return sorted(DATA_FIELDS)


class _NativeModel:
    """Struct of model fields: per-world rows once expanded, else one shared row."""

    def __init__(self, engine: NativeEngine) -> None:
        self._engine = engine

    def __getattr__(self, field: str) -> Any:
        if field.startswith("_"):
            raise AttributeError(field)
        if field in self._engine._rows:
            return self._engine._rows[field].tensor
        value = getattr(self._engine.mj_model, field, None)
        if isinstance(value, np.ndarray):
            array = value[None]
            return _Mirror(array, _shape(field, array)).tensor
        if isinstance(value, int | float):
            return value
        raise AttributeError(
            f"'{field}' is not a model field of the native engine."
            + near_matches(field, MODEL_FIELDS)
        )

    def __dir__(self) -> list[str]:
        return sorted(field for field in MODEL_FIELDS if not field.startswith("opt."))


def _shape(field: str, array: np.ndarray) -> tuple[int, ...]:
    if field in MATRIX_SHAPES:
        return (*array.shape[:2], *MATRIX_SHAPES[field])
    return array.shape


def _call(function: Any, *args: Any) -> None:
    """Call into the batch; an error in any world raises, and names the worlds."""
    try:
        function(*args)
    except SimulationError as error:
        raise RuntimeError(_failure(error)) from None


def _failure(error: SimulationError) -> str:
    shown = ", ".join(map(str, error.ids[:5])) + (", ..." if len(error.ids) > 5 else "")
    return (
        f"MuJoCo failed in {len(error.ids)} worlds ({shown}), which kept the state they had "
        f"before the call: {error}. Reset these worlds or mend their model fields."
    )
