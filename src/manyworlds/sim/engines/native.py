"""The CPU engine: MuJoCo C through `mujoco.batch`.

The authoritative values are float64: state rows and expanded model rows. Users get float32
tensors; only the elements that they changed are written back, so that a world without writes
follows `mj_step` bit for bit. A tensor's version counter is a cheap test for writes.
"""

from __future__ import annotations

import math
import warnings
from _ctypes import CFuncPtr  # base class of C function types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import mujoco
import numpy as np
import torch
from mujoco.batch import DATA_FIELDS, MODEL_FIELDS, Batch, SimulationError

from manyworlds.sim.contacts import ContactReader, Contacts
from manyworlds.sim.diagnostics.status import WorldStatus, error_bits, quiet_mujoco, warning_bits
from manyworlds.sim.engines.flags import FLAG_SOURCES, Flags
from manyworlds.sim.engines.float32_shadow import Float32Shadow, engine_shape
from manyworlds.sim.engines.last_calls import LastCalls
from manyworlds.sim.engines.native_rays import NativeRays, RayRequest
from manyworlds.sim.fields.defaults import pristine_fields
from manyworlds.sim.fields.mesh_validation import ABSENCE_FIELDS, check_absent_geoms
from manyworlds.sim.fields.model_fields import recompute_level
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.sim.fields.shared import OPTION_FIELDS, conditional_field_reason
from manyworlds.sim.options import check_timestep
from manyworlds.sim.rays import CameraRequest, Rays
from manyworlds.sim.state import State, check_known, check_shapes, check_sizes, model_sizes
from manyworlds.utils import newton
from manyworlds.utils.devices import usable_cores
from manyworlds.utils.memory import check_memory
from manyworlds.validation.names import near_matches
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    import warp as wp

_P = ParamSpec("_P")
_T = TypeVar("_T")

_DONE: Future[None] = Future()
_DONE.set_result(None)

_MESH = mujoco.mjtGeom.mjGEOM_MESH

# Structs in a thread's scratch memory, which the next world overwrites.
_TRANSIENT = ("contact", "efc")

# Prefix of the names under which `LastCalls` is saved.
_LAST = "last_call."
# Prefix of the names of the rows that flags were computed from.
_FLAGS = "flags."

# Status bits with which a list of contacts, or their forces, is incomplete.
_LOST = int(WorldStatus.CONTACT_OVERFLOW | WorldStatus.CONSTRAINT_OVERFLOW)

# Inputs: state components that a step reads and does not change, in the order of the columns.
_STATIC_INPUTS = {
    "qfrc_applied": mujoco.mjtState.mjSTATE_QFRC_APPLIED,
    "xfrc_applied": mujoco.mjtState.mjSTATE_XFRC_APPLIED,
    "eq_active": mujoco.mjtState.mjSTATE_EQ_ACTIVE,
    "mocap_pos": mujoco.mjtState.mjSTATE_MOCAP_POS,
    "mocap_quat": mujoco.mjtState.mjSTATE_MOCAP_QUAT,
}


class NativeEngine:
    """Steps worlds on a C++ thread pool, bit-identical to a loop over one `MjData` per world."""

    name = "native"
    is_bit_exact = True
    derives_in_single_precision = False
    skips_absent_meshes = False
    expansion_remedy = ""
    use_graphs = False
    layout = 0

    def __init__(self, mj_model: mujoco.MjModel, num_envs: int, num_threads: int = 0) -> None:
        _check_supported(mj_model)
        # A world takes at least four times its state; six to 22 times were measured with the
        # environments of a cart-pole, a pusher and a quadruped.
        size = mujoco.mj_stateSize(mj_model, mujoco.mjtState.mjSTATE_INTEGRATION)
        check_memory("this model", num_envs, 32 * size)
        newton.avoid_sparse_newton(mj_model)
        self.mj_model = mj_model
        self.num_envs = num_envs
        self.num_threads = num_threads or usable_cores()
        self.device = torch.device("cpu")
        self.expanded: set[str] = set()
        self.defaults = pristine_fields(mj_model)
        self.batch = Batch(mj_model, nsim=num_envs, nthread=self.num_threads)
        self._errors = np.zeros(num_envs, np.int32)
        self._error_shown = False
        self._written: np.ndarray | None = None
        num_state_columns = self.batch.state.shape[1]
        # Callbacks and plugins may write the columns that follow the inputs, if there are any.
        if mj_model.nuserdata == mj_model.npluginstate == 0:
            inputs = sum(int(kind) for kind in _STATIC_INPUTS.values())
            num_state_columns -= mujoco.mj_stateSize(mj_model, inputs)
        self._state_columns = self.batch.state[:, :num_state_columns]
        self._input_columns = self.batch.state[:, num_state_columns:]
        self._unchanged_inputs: np.ndarray | None = None
        self._last_calls = LastCalls(self.batch, mj_model, num_state_columns, self.static_inputs())
        self._state: dict[str, Float32Shadow] = {}
        self._derived: dict[str, Float32Shadow] = {}
        self._rows: dict[str, Float32Shadow] = {}
        self._flags = Flags(num_envs, self.batch.set_const)
        self._unchecked: set[str] = set()
        self._scratch: tuple[mujoco.MjModel, mujoco.MjData] | None = None
        self._rays = NativeRays(self.batch, self.defaults, _call)
        self._launched: Future[None] | None = None
        self._steps = 0, 0
        self.graphs: dict[str, wp.Graph] = {}

    def create_graph(self) -> None:
        """Do nothing: there are no graphs."""

    def captured_on(self, stream: torch.cuda.Stream) -> AbstractContextManager[None]:
        """Raise an error: MuJoCo C has no kernels."""
        raise RuntimeError(f"A CUDA graph on {stream} cannot contain the steps of MuJoCo C.")

    def is_stepping(self) -> bool:
        """Return whether a step that was launched is not done yet."""
        return self._launched is not None and not self._launched.done()

    def take_launched(self) -> bool:
        """Take a step that was launched in this thread, if no other has begun it."""
        if self._launched is None or not self._launched.cancel():
            return False
        self._launched = None
        self._take_steps()
        self._launched = _DONE
        return True

    def finish(self) -> None:
        """Wait for a step that was launched, or take it; complete it."""
        self.take_launched()
        launched = self._launched
        if launched is not None:
            self._launched = None
            launched.result()
            self._pull()

    def step(
        self,
        nsubsteps: int,
        refresh: bool,
        record: np.ndarray | None = None,
        pool: Executor | None = None,
    ) -> None:
        """Take physics steps; with `refresh`, compute the velocity stage at the new state."""
        stage = mujoco.mjtStage.mjSTAGE_NONE
        if refresh:
            stage = mujoco.mjtStage.mjSTAGE_VEL
        self._push()
        if record is not None:
            np.copyto(record, self._state_columns)
        self._last_calls.note(self.static_inputs(), nsubsteps, stage.value)
        if pool is not None:  # MuJoCo releases Python's global lock
            self._steps = nsubsteps, stage.value
            self._launched = pool.submit(self._take_steps)
            return
        self._run(self.batch.step, None, nsubsteps, stage.value)
        self._pull()

    def _take_steps(self) -> None:
        """Take the steps that were launched."""
        self._run(self.batch.step, None, *self._steps)

    def forward(self, worlds: Worlds) -> None:
        """Run `mj_forward` on the given worlds."""
        self._push()
        self._last_calls.note_forward(worlds.host_rows)
        self._run(self.batch.forward, worlds.host_ids_or_none)
        self._pull(worlds.host_rows)

    def reset(self, worlds: Worlds) -> None:
        """Set the state of the given worlds to defaults; `forward` computes derived fields."""
        # The default state is made of model rows such as qpos0. The state itself is not pushed: the
        # writes of these worlds are discarded, those of the others wait for the next call.
        self._push_rows()
        # MuJoCo clears the warning counters, too.
        _call(self.batch.reset, worlds.host_ids_or_none, -1, mujoco.mjtStage.mjSTAGE_NONE.value)
        rows = worlds.host_rows
        self._errors[rows] = 0
        # Nearly every step resets some worlds, but few of these have applied forces to clear, and
        # only then are all inputs copied again.
        unchanged = self._unchanged_inputs
        if unchanged is not None and (unchanged[rows] != self._input_columns[rows]).any():
            self._unchanged_inputs = None
        for shadow in self._state.values():
            shadow.pull(rows)

    def all_ok(self) -> bool:
        """Return whether no world has a bit of `WorldStatus`."""
        return not (np.count_nonzero(self.batch.warning) or np.count_nonzero(self._errors))

    def status(self) -> torch.Tensor:
        """Return bits of `WorldStatus`, int32, shape (num_envs,)."""
        if np.count_nonzero(self.batch.warning):  # rarely true
            return torch.from_numpy(warning_bits(self.batch.warning) | self._errors)
        return torch.from_numpy(self._errors.copy())

    def contacts(self, worlds: Worlds) -> Contacts:
        """Run `mj_forward` on copies of the given worlds, one after another."""
        reader = ContactReader()
        counters = self.batch.warning.copy()
        with quiet_mujoco():
            copied = zip(worlds.host_ids.tolist(), self.world_copies(worlds), strict=True)
            for world, (model, data) in copied:
                try:
                    mujoco.mj_forward(model, data)
                except mujoco.FatalError as error:
                    self._fail({world: str(error)}, f"MuJoCo failed in world {world}: {error}.")
                    self._scratch = model, mujoco.MjData(model)
                else:
                    reader.read(world, model, data)
                counters[world, :, 1] = data.warning.number
        self._errors |= warning_bits(counters) & _LOST
        return reader.contacts()

    def render_cameras(self, view: CameraRequest) -> dict[str, torch.Tensor] | None:
        """Return None instead of images, (num_envs, ...): OpenGL renders the `world_copies`."""
        return None

    def world_copies(self, worlds: Worlds) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        """Yield copies of model and state of one world after another, in the same two structs."""
        self._push()
        if self._scratch is None:
            # Copying a whole model is slow because of its assets; copying the other fields is fast.
            model = self.batch.get_model(0)
            self._scratch = model, mujoco.MjData(model)
        for world in worlds.host_ids.tolist():
            model, data = self._scratch
            if self.expanded:
                if model.ngravcomp != self.mj_model.ngravcomp:
                    # A different number of gravity-compensated bodies is a different model size.
                    model.body_gravcomp[:] = self.mj_model.body_gravcomp
                    mujoco.mj_setConst(model, data)
                self.batch.get_model(world, model)
            self.batch.get_data(world, data)
            yield model, data

    def ray(
        self,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None,
        flg_static: bool,
        bodyexclude: torch.Tensor,
        worlds: Worlds,
    ) -> Rays:
        """Cast rays at the geoms' poses of the present state."""
        self._push()
        ids = worlds.host_ids_or_none
        request = RayRequest(pnt, vec, geomgroup, flg_static, bodyexclude.numpy(), ids)
        return self._rays.cast(request, self.model_rows())

    def expansion_problem(self, field: str) -> str | None:
        """Return the reason why a model field cannot have one row per world; None if it can."""
        if field in MODEL_FIELDS:
            return None
        return (
            f"Model field '{field}' cannot differ between worlds on the native engine."
            + near_matches(field, MODEL_FIELDS)
        )

    def recompute_level(self, fields: set[str]) -> RecomputeLevel:
        """Return the strongest level that a change of some model fields asks for."""
        return recompute_level(fields, "native", self.mj_model)

    def expand(self, field: str) -> None:
        """Give a model field one float64 row per world."""
        if field in self.expanded:
            return
        problem = self.expansion_problem(field)
        if problem:
            raise ValueError(problem)
        array = self.batch.expand(field)
        self._rows[field] = Float32Shadow(array, engine_shape(field, array))
        self.expanded.add(field)
        if field in FLAG_SOURCES:
            self._flags.add(field, self._rows[field].array)

    def recompute_constants(self, level: RecomputeLevel, worlds: Worlds) -> None:
        """Run `mj_setConst` on the given worlds; there is no cheaper level."""
        if level == RecomputeLevel.none:
            return
        self._push()
        # The batch resets bounds of mesh geoms to the template's, which mj_setConst keeps.
        rbound = self._rows.get("geom_rbound")
        geom_type = self.mj_model.geom_type[None]
        if "geom_type" in self._rows:
            geom_type = self._rows["geom_type"].array
        meshes = np.broadcast_to(geom_type == _MESH, (self.num_envs, self.mj_model.ngeom))
        kept: np.ndarray | None = None
        if rbound is not None:
            kept = rbound.array[meshes]
        rows = worlds.host_rows
        # A derived field that is bound later must be computed from the rows of the last call.
        for field, array in self._call_inputs().items():
            self._last_calls.keep(field, array, rows)
        try:
            _call(self.batch.set_const, worlds.host_ids_or_none)
            self._flags.note(self.model_rows(), rows)
        except RuntimeError as error:
            if "compiled as simple" not in str(error):
                raise
            raise RuntimeError(
                f"{error} A body with a variable inertial frame must not be compiled as simple: "
                "set body.simple = False in the MjSpec, or simple='false' in MJCF."
            ) from None
        finally:
            # Also after an error, before which some worlds may have been written.
            self._note_written(rows)
            if rbound is not None and kept is not None:
                rbound.array[meshes] = kept
            # These fields had no rows to keep above, and were as compiled.
            for field in self._expand_computed():
                self._last_calls.keep(field, self._compiled(field), rows)
            for shadow in self._rows.values():
                shadow.refresh(rows)

    def _expand_computed(self) -> list[str]:
        """Expand the fields in which a recomputation has made worlds differ; list them."""
        found = [
            field
            for field in MODEL_FIELDS - self.expanded
            if self.batch.expanded(field) is not None  # type: ignore[operator]
        ]
        for field in found:
            self.expand(field)
        return found

    def _apply_flags(self) -> None:
        """Let the flags of all worlds be those that are wanted; rows stay as they are."""
        worlds = self._flags.outdated()
        if not len(worlds):
            return
        rows = self.model_rows()
        self._flags.apply(worlds, rows, {field: self._compiled(field)[0] for field in rows})
        # Only the flags are wanted of this: fields that got rows by it are as compiled again.
        for field in self._expand_computed():
            self._rows[field].array[:] = self._compiled(field)
            self._rows[field].refresh()

    def model_field(self, field: str) -> torch.Tensor | int | float:
        """Return a model field: rows of worlds once expanded, else one shared row, or a number."""
        if field in self._rows:
            return self._rows[field].tensor
        value = self.defaults.get(field)
        if value is None and field.startswith("opt."):
            value = getattr(self.mj_model.opt, field.removeprefix("opt."), None)
        elif value is None:
            value = getattr(self.mj_model, field, None)
        if isinstance(value, np.ndarray) and (value.ndim or field in OPTION_FIELDS):
            return Float32Shadow(value[None], engine_shape(field, value[None])).tensor
        if isinstance(value, np.ndarray):
            return value.item()
        if isinstance(value, int | float):
            return value
        raise AttributeError(
            f"'{field}' is not a model field of the native engine."
            + near_matches(field, MODEL_FIELDS)
        )

    def model_fields(self, prefix: str) -> list[str]:
        """Return the names of options, for the prefix 'opt.', or of the model's other fields."""
        if prefix:
            return sorted(f.removeprefix("opt.") for f in MODEL_FIELDS if f.startswith("opt."))
        return sorted({"opt", *(f for f in MODEL_FIELDS if not f.startswith("opt."))})

    def field_rows(self, field: str) -> torch.Tensor:
        """Return the rows of an expanded model field, shape (num_envs, ...)."""
        return self._rows[field].tensor

    def warp_array(self, field: str) -> None:
        """Return None: there are no Warp arrays."""

    def data_fields(self) -> list[str]:
        """Return the names of the fields that `data_field` returns."""
        return sorted(f for f in DATA_FIELDS if not conditional_field_reason(self.mj_model, f))

    def data_field(self, field: str) -> torch.Tensor:
        """Return the tensor of a data field, shape (num_envs, ...), bound on its first use."""
        for shadows in (self._state, self._derived):
            if field in shadows:
                return shadows[field].tensor
        if field in _TRANSIENT:
            raise AttributeError(
                f"'{field}' is not available: MuJoCo C keeps it only within a call, so the native "
                "engine has no such arrays: use sim.contacts(), or engine='warp'."
            )
        if field not in DATA_FIELDS:
            raise AttributeError(
                f"'{field}' is not a data field of the native engine."
                + near_matches(field, DATA_FIELDS)
            )
        reason = conditional_field_reason(self.mj_model, field)
        if reason:
            raise AttributeError(f"'{field}' is not available: {reason}.")
        array = self.batch.bind(field)
        shadows = self._state
        if not array.flags.writeable:
            # An output is zero until the first call after it was bound.
            shadows = self._derived
            self._repeat_last_calls(Worlds(None, self.num_envs))
        dtype = None
        if field == "eq_active":
            dtype = np.bool_
        shadows[field] = Float32Shadow(array, engine_shape(field, array), dtype)
        return shadows[field].tensor

    def state_dict(self, worlds: Worlds) -> State:
        """Return state rows, model rows, derived fields, inputs of the last calls, and status."""
        self._push()
        sizes = model_sizes(self.mj_model)
        arrays = {"state": self.batch.state, "status": self.status().numpy()}
        arrays["sizes"] = np.broadcast_to(sizes, (self.num_envs, len(sizes)))
        rows = self.model_rows()
        arrays |= {f"model.{name}": array for name, array in rows.items()}
        arrays |= {f"derived.{name}": shadow.buffer for name, shadow in self._derived.items()}
        last = self._last_calls.arrays(self._call_inputs())
        arrays |= {f"{_LAST}{name}": array for name, array in last.items()}
        for field, source in self._flags.wanted.items():
            # Else the flags are those of the rows.
            if not np.array_equal(source, rows[field]):
                arrays[f"{_FLAGS}{field}"] = source
        return {
            name: torch.from_numpy(array[worlds.host_rows].copy()) for name, array in arrays.items()
        }

    def load_state_dict(self, state: State, worlds: Worlds) -> None:
        """Restore rows, derived fields and status, element for element."""
        check_shapes(state, {"state": (len(worlds), *self.batch.state.shape[1:])})
        check_sizes(state, model_sizes(self.mj_model))
        # Everything that the state has rows of must have rows here before these can be compared.
        for key in state:
            kind, _, field = key.partition(".")
            if kind == "model":
                self.expand(field)
            elif kind == "derived":
                self.data_field(field)
        rows = self.model_rows()
        arrays = {f"model.{name}": array for name, array in rows.items()}
        arrays |= {f"derived.{name}": shadow.buffer for name, shadow in self._derived.items()}
        inputs = self._call_inputs()
        last = self._last_calls.arrays(inputs, of=inputs)
        arrays |= {f"{_LAST}{name}": array for name, array in last.items()}
        arrays |= {f"{_FLAGS}{name}": array for name, array in self._flags.wanted.items()}
        arrays["status"] = self._errors
        saved = {name: array for name, array in arrays.items() if name in state}
        check_known(state, {"state", "sizes", *saved})
        check_shapes(state, {k: (len(worlds), *array.shape[1:]) for k, array in saved.items()})
        # Writes that other worlds wait for; those of the given worlds are overwritten below.
        self._push()
        ids = worlds.host_rows
        for field in rows:
            # Rows that were not saved had the compiled values.
            compiled = self._compiled(field)[ids]
            self._set_rows(field, ids, _saved(state, f"model.{field}", compiled))
        for field, source in self._flags.wanted.items():
            source[ids] = _saved(state, f"{_FLAGS}{field}", rows[field][ids])
        self._apply_flags()
        for field, shadow in self._derived.items():
            shadow.buffer[ids] = _saved(state, f"derived.{field}", shadow.buffer[ids])
        self.batch.state[ids] = state["state"].cpu().numpy()
        last = {
            name: state[f"{_LAST}{name}"].cpu().numpy()
            for name in last
            if f"{_LAST}{name}" in state
        }
        self._last_calls.load(last, self._call_inputs(), ids)
        self._unchanged_inputs = None
        self.batch.warning[ids] = 0
        self._errors[ids] = _saved(state, "status", np.zeros(len(worlds), np.int32))
        for shadow in self._state.values():
            shadow.pull()
        # A field that nobody had read when the state was saved is computed again.
        unsaved = [m for f, m in self._derived.items() if f"derived.{f}" not in state]
        if unsaved:
            self._repeat_last_calls(worlds.ascending)
            for shadow in unsaved:
                shadow.pull(ids)

    def _repeat_last_calls(self, worlds: Worlds) -> None:
        def run(function: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> None:
            self._apply_flags()
            # The same worlds failed in the call that is repeated, which reported the errors.
            with suppress(SimulationError):
                function(*args, **kwargs)

        with quiet_mujoco():
            self._last_calls.repeat(run, self._call_inputs(), worlds)
        self._apply_flags()

    def state_rows(self) -> torch.Tensor:
        """Return the state, float64, (num_envs, nstate), as `mj_getState`; the engine's memory."""
        self._push()
        return torch.from_numpy(self.batch.state)

    def record_slots(self, count: int) -> list[np.ndarray]:
        """Allocate arrays (num_envs, n) for the n columns of the state that a step may change."""
        # Filled, so that pages are allocated now rather than during the first steps.
        return list(np.full((count, *self._state_columns.shape), 0.0))

    def static_inputs(self) -> np.ndarray:
        """Return forces, active equalities and mocap poses, (num_envs, n), as a reused copy."""
        if self._unchanged_inputs is None:
            self._unchanged_inputs = self._input_columns.copy()
        return self._unchanged_inputs

    def write_rows(
        self, field: str, env_ids: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> None:
        """Write elements of a model field, in double precision; ids as in numpy's indexing."""
        self.expand(field)
        shadow = self._rows[field]
        # The refresh below would discard what users have written to the tensor since the last call.
        if shadow.tensor._version != shadow.version:
            self._push_row(field)
        worlds = env_ids.ravel()
        self._last_calls.keep(field, shadow.array, worlds)
        shape = np.broadcast_shapes(env_ids.shape, columns.shape)
        shadow.array[env_ids, columns] = values.reshape(*shape, *shadow.array.shape[2:])
        self._unchecked.add(field)
        self._note_written(worlds)
        shadow.refresh(worlds)

    def take_written_worlds(self) -> np.ndarray | None:
        """Return a mask, (num_envs,), of worlds with rows written since the last call, or None."""
        written = self._written
        self._written = None
        return written

    def model_rows(self) -> dict[str, np.ndarray]:
        """Return float64 rows, (num_envs, ...), of all fields that may differ between worlds."""
        return {field: shadow.array for field, shadow in self._rows.items()}

    def _call_inputs(self) -> dict[str, np.ndarray]:
        """Return what a call reads of each world besides its state: model rows, flags' sources."""
        flags = {f"{_FLAGS}{field}": source for field, source in self._flags.wanted.items()}
        return self.model_rows() | flags

    def _compiled(self, field: str) -> np.ndarray:
        """Return the rows of an expanded field as compiled, the same for all worlds."""
        rows = self._rows[field].array
        # bvh_aabb has rows for bodies only.
        compiled = self.defaults[field].ravel()[: rows[0].size]
        return np.broadcast_to(compiled.reshape(rows.shape[1:]), rows.shape)

    def _set_rows(self, field: str, ids: np.ndarray | slice, values: np.ndarray) -> None:
        shadow = self._rows[field]
        if not values.size:
            return  # the model has no element of this kind
        self._last_calls.keep(field, shadow.array, ids)
        self._note_written(ids)
        shadow.array[ids] = values.reshape(-1, *shadow.array.shape[1:])
        shadow.refresh()
        self._unchecked.add(field)

    def _note_written(self, worlds: np.ndarray | slice) -> None:
        if self._written is None:
            self._written = np.zeros(self.num_envs, bool)
        self._written[worlds] = True

    def _run(self, function: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Call into the batch; mark the worlds in which MuJoCo raised an error."""
        try:
            with quiet_mujoco():
                function(*args, **kwargs)
        except SimulationError as error:
            self._fail({w: self.batch.error(w) for w in error.ids.tolist()}, _failure(error))

    def _fail(self, errors: dict[int, str], message: str) -> None:
        """Mark worlds in which MuJoCo raised an error; warn about the first."""
        for world, error in errors.items():
            self._errors[world] |= error_bits(error)
        if not self._error_shown:
            warnings.warn(f"{message} Further errors: sim.status.", RuntimeWarning, 5)
            self._error_shown = True

    @np.errstate(over="ignore")
    def _push(self) -> None:
        """Write what users changed to the batch: state, inputs and model rows."""
        # State is always compared: a write through `.numpy()` or `.data` has no version.
        for field, shadow in self._state.items():
            # Exceptions are large fields that users seldom write.
            if field == "history" and shadow.tensor._version == shadow.version:
                continue
            changed = shadow.changed()
            shadow.push(changed)
            if self._unchanged_inputs is not None and field in _STATIC_INPUTS and changed.any():
                self._unchanged_inputs = None
        self._push_rows()

    def _push_rows(self) -> None:
        """Write the model rows that users changed to the batch."""
        for field, shadow in self._rows.items():
            if shadow.tensor._version != shadow.version:
                self._push_row(field)
        if self._unchecked:
            self._check_rows()

    def _check_rows(self) -> None:
        """Validate fields with restricted values that were written since the last check."""
        self._rays.note_written(self._unchecked)
        if self._unchecked & ABSENCE_FIELDS and "geom_dataid" in self._rows:
            rows = {f: m.array for f, m in self._rows.items() if f in ABSENCE_FIELDS}
            check_absent_geoms(self.mj_model, rows)
        # MuJoCo 4.0.0 computes wrong accelerations with sparse Jacobians: such worlds get others.
        if newton.newton_defect() and self._unchecked & newton.SPARSITY_FIELDS:
            for field in newton.SPARSITY_FIELDS:
                self.expand(field)
            solver = self._rows["opt.solver"]
            jacobian = self._rows["opt.jacobian"]
            newton.avoid_sparse_rows(self.mj_model, solver.array, jacobian.array)
            solver.refresh()
            jacobian.refresh()
        self._unchecked.clear()

    @np.errstate(over="ignore")
    def _push_row(self, field: str) -> None:
        """Write the elements of a model field that users changed to the batch."""
        shadow = self._rows[field]
        if field == "opt.timestep":
            check_timestep(float(shadow.buffer.min()))
            check_timestep(float(shadow.buffer.max()))
        changed = shadow.changed()
        worlds = np.flatnonzero(changed.reshape(self.num_envs, -1).any(axis=1))
        self._last_calls.keep(field, shadow.array, worlds)
        shadow.push(changed)
        self._note_written(worlds)
        self._unchecked.add(field)

    @np.errstate(over="ignore")
    def _pull(self, rows: np.ndarray | slice = slice(None)) -> None:
        # Values of a diverging world beyond float32's range become infinite.
        for shadow in self._state.values():
            shadow.pull(rows)
        for shadow in self._derived.values():
            shadow.pull(rows)
        # MuJoCo checks only the state. A sum is finite only if every element is.
        sensors = self._derived.get("sensordata")
        if sensors is not None and not math.isfinite(sensors.buffer[rows].sum()):
            bad = ~np.isfinite(sensors.buffer[rows]).all(axis=1)
            self._errors[rows] |= bad * np.int32(WorldStatus.NAN)


def _saved(state: State, key: str, otherwise: np.ndarray) -> np.ndarray:
    """Return an array of a saved state, or another one if the state has none."""
    if key not in state:
        return otherwise
    return state[key].cpu().numpy()


def _check_supported(mj_model: mujoco.MjModel) -> None:
    """Check that each world's state row is complete, and that the model can run on threads."""
    for flag in (mujoco.mjtEnableBit.mjENBL_SLEEP, mujoco.mjtEnableBit.mjENBL_IPC):
        if mj_model.opt.enableflags & flag:
            name = flag.name.removeprefix("mjENBL_").lower()
            raise ValueError(
                f"The native engine cannot run a model with <flag {name}='enable'/>, since MuJoCo "
                "keeps that outside of the state of a world: remove the flag."
            )
    for name in filter(lambda name: name.startswith("get_mjcb_"), dir(mujoco)):
        callback = getattr(mujoco, name)()
        if callback is not None and not isinstance(callback, CFuncPtr):
            callback = name.removeprefix("get_")
            raise ValueError(
                f"{callback} is a Python function, which cannot run on the native engine's "
                f"threads: uninstall it with mujoco.set_{callback}(None)."
            )


def _call(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call into the batch; an error in any world raises, and lists the worlds."""
    try:
        return function(*args, **kwargs)
    except SimulationError as error:
        raise RuntimeError(_failure(error)) from None


def _failure(error: SimulationError) -> str:
    shown = ", ".join(map(str, error.ids[:5]))
    if len(error.ids) > 5:
        shown += ", ..."
    return (
        f"MuJoCo failed in {len(error.ids)} worlds ({shown}), which kept the state they had "
        f"before the call: {error}. Reset these worlds or correct their model fields."
    )
