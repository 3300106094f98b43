"""The GPU engine: MuJoCo Warp.

Tensors share memory with Warp's arrays: values that users write are the input of the next call,
without a copy. Every call replays a captured graph where the device can capture, also on the CPU:
there this engine serves to check that both engines agree, and most of its time without graphs is
that of Python between the kernels.
"""

from __future__ import annotations

import copy
import dataclasses
import gc
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import mujoco
import numpy as np
import torch

from manyworlds.sim.contacts import CONTACT_FIELDS, Contacts
from manyworlds.sim.diagnostics.status import WorldStatus
from manyworlds.sim.engines.capacity import estimate_capacity
from manyworlds.sim.fields.defaults import pristine_fields, write_field
from manyworlds.sim.fields.model_fields import recompute_level
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.sim.fields.shared import STATE_FIELDS
from manyworlds.sim.rays import CameraRequest, Rays
from manyworlds.sim.state import State, check_known, check_shapes
from manyworlds.utils.extras import MissingExtraError, install_hint
from manyworlds.validation.names import near_matches
from manyworlds.validation.worlds import Worlds, assign

try:
    import mujoco_warp as mjw
    import warp as wp

    from manyworlds.sim.engines.warp_cameras import CameraRenderer, cast_rays
    from manyworlds.sim.engines.warp_spare import SpareData
    from manyworlds.sim.engines.warp_views import (
        DataFields,
        ModelFields,
        OptionFields,
        WarpFields,
        repeat_rows,
        to_torch,
    )
except ImportError as error:
    raise MissingExtraError(
        "engine='warp' needs MuJoCo Warp, which is not installed: "
        f"run {install_hint('gpu')}, or use engine='native' on the CPU."
    ) from error

if TYPE_CHECKING:
    from manyworlds.sim.config import SimulationCfg

ModelCall: TypeAlias = "Callable[[mjw.Model, mjw.Data], None]"

# State that a world carries from one step to the next; MuJoCo Warp has no plugins.
_STATE = tuple(field for field in STATE_FIELDS if field != "plugin_state")

# Those in `mj_getState`, in its order.
_ROW = (*(f for f in _STATE if f not in ("plastic", "tree_asleep")), "plastic")

# Flags that MuJoCo Warp rejects although it already behaves accordingly.
_MEANINGLESS = mujoco.mjtDisableBit.mjDSBL_AUTORESET | mujoco.mjtDisableBit.mjDSBL_MIDPHASE

# Type of a contact made only for a distance sensor; MuJoCo Warp does not export its enum.
_SENSOR_CONTACT = 1 << 1

# Bits of `data.overflow` that each bit of `Simulation.status` stands for.
_STATUS = {
    WorldStatus.CONSTRAINT_OVERFLOW: (
        mjw.OverflowType.NEFC | mjw.OverflowType.NJMAX_NNZ | mjw.OverflowType.NVMAX
    ),
    WorldStatus.CONTACT_OVERFLOW: (
        mjw.OverflowType.BROADPHASE
        | mjw.OverflowType.NARROWPHASE
        | mjw.OverflowType.CCD
        | mjw.OverflowType.HFIELD
        | mjw.OverflowType.EPA_HORIZON
    ),
    WorldStatus.SENSOR_OVERFLOW: mjw.OverflowType.CONTACT_MATCH | mjw.OverflowType.TACTILE,
}

# MuJoCo Warp omits a whole pass of the step if these fields are zero in the compiled model.
_PASSES = {
    "geom_adhesion": "flg_adhesion",
    "pair_adhesion": "flg_adhesion",
    "geom_surfacevel": "flg_surfacevel",
}
_DISCRETE_PASSES = {
    "tendon_stiffness": "has_tendon_stiffness",
    "tendon_stiffnesspoly": "has_tendon_stiffness",
    "tendon_damping": "has_tendon_damping",
    "tendon_dampingpoly": "has_tendon_damping",
    "actuator_damping": "has_tendon_damping",
    "actuator_dampingpoly": "has_tendon_damping",
    "actuator_gainprm": "has_efm_actuator",
    "actuator_biasprm": "has_efm_actuator",
}

_CONST_GROUPS = {
    RecomputeLevel.set_const_fixed: mjw.SetConstGroup.FIXED,
    RecomputeLevel.set_const_0: mjw.SetConstGroup.KIN0 | mjw.SetConstGroup.INERT0,
    RecomputeLevel.set_const: mjw.SetConstGroup.ALL,
}

# Fields that these computations write.
_CONST_OUTPUTS = {
    RecomputeLevel.set_const_fixed: ("body_subtreemass", "geom_aabb", "geom_rbound"),
    RecomputeLevel.set_const_0: (
        "dof_invweight0",
        "body_invweight0",
        "tendon_invweight0",
        "actuator_acc0",
        "tendon_length0",
        "eq_data",
        "cam_pos0",
        "cam_poscom0",
        "cam_mat0",
        "light_pos0",
        "light_poscom0",
        "light_dir0",
    ),
}
_CONST_OUTPUTS[RecomputeLevel.set_const] = sum(_CONST_OUTPUTS.values(), ())

# Other outputs of mj_setConst, which MuJoCo Warp holds once for all worlds or not at all.
_SHARED_OUTPUTS = {*mujoco.MjModel._setconst_outputs} - {*_CONST_OUTPUTS[RecomputeLevel.set_const]}
_SHARED_OUTPUTS -= {"geom_size"}  # of height fields, which MuJoCo Warp computes like the others


class WarpEngine:
    """Steps worlds with MuJoCo Warp.

    `data.overflow` holds one bit mask per world (`mujoco_warp.OverflowType`) of the buffers that
    have overflowed since the world was last reset.

    Args:
        mj_model: the compiled model.
        num_envs: the number of worlds.
        device: a CUDA device, or the CPU.
        nconmax: contacts to allocate per world; None estimates them, see `estimate_capacity`.
        njmax: constraints to allocate per world; None estimates them.
        configure: writes further options into MuJoCo Warp's `Option`.
    """

    name = "warp"
    is_bit_exact = False
    derives_in_single_precision = True
    skips_absent_meshes = True
    expansion_remedy = "use engine='native', or "
    num_threads = 1

    def __init__(
        self,
        mj_model: mujoco.MjModel,
        num_envs: int,
        device: torch.device,
        nconmax: int | None = None,
        njmax: int | None = None,
        configure: Callable[[mjw.Option], None] | None = None,
    ) -> None:
        self.mj_model = mj_model
        self.num_envs = num_envs
        self.expanded: set[str] = set()
        self.defaults = pristine_fields(mj_model)
        self.defaults["opt.impratio_invsqrt"] = np.array(mj_model.opt.impratio**-0.5)
        accepted = copy.copy(mj_model)
        accepted.opt.disableflags &= ~_MEANINGLESS
        with _quiet():
            wp.init()
            self.wp_device = wp.device_from_torch(device)
            with wp.ScopedDevice(self.wp_device):
                self.wp_model = _put_model(accepted)
                if configure is not None:
                    configure(self.wp_model.opt)
                self.wp_model.opt.warn_overflow = 0  # `status` reports it for each world
                nconmax, njmax = _room(accepted, nconmax, njmax)
                self.wp_data = mjw.make_data(accepted, num_envs, nconmax=nconmax, njmax=njmax)
                self._resets = wp.zeros(num_envs, dtype=bool)
                self._status = to_torch(wp.zeros(num_envs, dtype=int))
                # Worlds whose sensors are from before their reset, which says nothing of them now.
                self._unsensed = to_torch(wp.zeros(num_envs, dtype=bool))
                self._no_rows = to_torch(wp.zeros((num_envs, 0), dtype=float))
        self.device = torch.device(wp.device_to_torch(self.wp_device))
        self._static_geoms = torch.from_numpy(_static_geoms(mj_model)).to(self.device)
        self._late_sensors = torch.from_numpy(_late_sensors(mj_model)).to(self.device)
        self.use_graphs = can_capture(self.wp_device)
        self.graphs: dict[str, wp.Graph] = {}
        self.layout = 0
        self._within_graph = False
        self._scratch: tuple[mujoco.MjModel, mujoco.MjData] | None = None
        self._camera_renderer = CameraRenderer()
        self._shared: dict[str, wp.array] = {}
        self._spare_data: SpareData | None = None
        self._data = DataFields(self.wp_data, mj_model, self.device)
        self._model = ModelFields(self.wp_model, mj_model, self.device)
        self._options = OptionFields(self.wp_model.opt, mj_model, self.device)
        # Derived fields are zero until the first call computes them.
        self.forward(Worlds(None, num_envs, self.device))

    def create_graph(self) -> None:
        """Discard captured graphs; required after replacing an array of model or data."""
        self.graphs.clear()
        self.layout += 1
        self._spare_data = None

    @property
    def _spare(self) -> SpareData:
        """Second set of derived fields, hidden from users and created on first use."""
        if self._spare_data is None:
            with _quiet(), wp.ScopedDevice(self.wp_device):
                self._spare_data = SpareData(self.wp_data, _STATE)
        return self._spare_data

    def is_stepping(self) -> bool:
        """Return False: kernels run in the order of the stream."""
        return False

    def take_launched(self) -> bool:
        """Return False: no step waits."""
        return False

    def finish(self) -> None:
        """Do nothing: kernels run in the order of the stream."""

    def step(
        self,
        nsubsteps: int,
        refresh: bool,
        record: torch.Tensor | None = None,
        pool: Executor | None = None,
    ) -> None:
        """Take physics steps; with `refresh`, compute the velocity stage at the new state."""
        if record is not None:
            self.state_rows(out=record)
        self._unsensed.zero_()
        for _ in range(nsubsteps):
            self.run("step", mjw.step)
        if refresh:
            # step1 clears all sensors; those that need accelerations keep their last value.
            sensors = self._data.tensor("sensordata")
            values = sensors[:, self._late_sensors]
            self.run("refresh", mjw.step1)
            sensors[:, self._late_sensors] = values

    def forward(self, worlds: Worlds) -> None:
        """Compute derived fields of the given worlds."""
        if worlds.is_all:
            self._unsensed.zero_()
            self.run("forward", mjw.forward)
        else:
            self._unsensed.masked_fill_(worlds.mask, False)
            self._forward_some(worlds, self._spare.fields, "forward some")

    def _forward_some(self, worlds: Worlds, fields: Collection[str], name: str) -> None:
        """Compute some derived fields of the given worlds; `name` is that of the graph."""
        spare = self._spare

        def forward(model: mjw.Model, data: mjw.Data) -> None:
            spare.take_inputs()
            mjw.forward(model, spare.data)
            spare.share(fields)

        with _quiet(), wp.ScopedDevice(self.wp_device):
            spare.name_worlds(worlds)
        self.run(name, forward)

    def reset(self, worlds: Worlds) -> None:
        """Set the state of the given worlds to defaults; `forward` computes derived fields."""
        to_torch(self._resets).copy_(worlds.mask)
        self._status.masked_fill_(worlds.mask, 0)
        self._unsensed |= worlds.mask
        data = self._spare.without_contacts  # a reset also clears derived fields
        self.run("reset", lambda m, d: mjw.reset_data(m, data, reset=self._resets))

    def status(self) -> torch.Tensor:
        """Return bits of `WorldStatus`, int32, shape (num_envs,); does not wait for the GPU."""
        # A sum is finite only if every element is (or cancels an infinity, which gives NaN).
        sensors = self._data.tensor("sensordata").sum(dim=1).masked_fill(self._unsensed, 0.0)
        total = (
            self._data.tensor("qpos").sum(dim=1) + self._data.tensor("qvel").sum(dim=1) + sensors
        )
        self._status |= (~torch.isfinite(total)).int() * int(WorldStatus.NAN)
        overflow = self._data.tensor("overflow")
        for bit, kinds in _STATUS.items():
            self._status |= ((overflow & int(kinds)) != 0).int() * int(bit)
        return self._status.clone()

    def all_ok(self) -> bool:
        """Return whether no world has a bit of `WorldStatus`; waits for the GPU."""
        return not self.status().any()

    def state_rows(self, out: torch.Tensor | None = None) -> torch.Tensor:
        """Return a copy of the state in `mj_getState`'s layout, float32, (num_envs, nstate)."""
        fields = [self._data.tensor(field) for field in _ROW]
        rows = [field.reshape(self.num_envs, -1).float() for field in fields]
        return torch.cat(rows, dim=1, out=out)

    def record_slots(self, count: int) -> list[torch.Tensor]:
        """Allocate `count` tensors of the shape of the state rows."""
        rows = self.state_rows()
        with torch.inference_mode(False):
            return list(torch.zeros(count, *rows.shape, device=rows.device).unbind(0))

    def static_inputs(self) -> torch.Tensor:
        """Return an empty tensor of shape (num_envs, 0): users write to the engine's own memory."""
        return self._no_rows

    def take_written_worlds(self) -> np.ndarray | None:
        """Return None instead of a mask, (num_envs,): users write to the engine's own memory."""
        return None

    def model_rows(self) -> dict[str, np.ndarray]:
        """Return rows of expanded fields under MuJoCo C's names, float32, (num_envs, ...)."""
        rows = {name: self.field_rows(name).cpu().numpy() for name in sorted(self.expanded)}
        inverse_root = rows.pop("opt.impratio_invsqrt", None)
        if inverse_root is not None:
            rows["opt.impratio"] = inverse_root**-2.0
        return rows

    def contacts(self, worlds: Worlds) -> Contacts:
        """Compute a copy of the data, and return the contacts of the given worlds from it."""
        with _quiet(), wp.ScopedDevice(self.wp_device):
            data = _clone(self.wp_data)
            mjw.forward(self.wp_model, data)
            found = int(to_torch(data.nacon))
            pairs = int(to_torch(data.ncollision))
            if max(found, pairs) > data.naconmax:
                self._status |= int(WorldStatus.CONTACT_OVERFLOW)
            ids = wp.array(np.arange(min(found, data.naconmax)), dtype=int)
            force: Any = wp.zeros(ids.shape, dtype=wp.spatial_vector)
            mjw.contact_force(self.wp_model, data, ids, False, force)
        arrays = {name: to_torch(getattr(data.contact, name)) for name in CONTACT_FIELDS}
        world = to_torch(data.contact.worldid)[: len(ids)]
        # Some contacts exist for distance sensors only.
        wanted = to_torch(data.contact.type)[: len(ids)] != _SENSOR_CONTACT
        if not worlds.is_all:
            wanted &= torch.isin(world, worlds.ids)
        order = wanted.nonzero().flatten()
        order = order[torch.argsort(world[order], stable=True)]
        # Ids of flexes are not allocated in a model without flexes.
        rows: dict[str, torch.Tensor] = {}
        for name, array in arrays.items():
            if len(array):
                rows[name] = array[order]
            else:
                rows[name] = array.new_full((len(order), 2), -1)
        return Contacts(world=world[order], force=to_torch(force)[order], **rows)

    def ray(
        self,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None,
        flg_static: bool,
        bodyexclude: torch.Tensor,
        worlds: Worlds,
    ) -> Rays:
        """Cast rays at the geoms' poses as last computed."""
        options = (geomgroup, flg_static, bodyexclude, worlds.rows)
        with _quiet(), wp.ScopedDevice(self.wp_device):
            return cast_rays(self.wp_model, self.wp_data, pnt, vec, *options)

    def render_cameras(self, view: CameraRequest) -> dict[str, torch.Tensor] | None:
        """Render a camera at poses as last computed; images have shape (num_envs, ...)."""
        with _quiet(), wp.ScopedDevice(self.wp_device):
            return self._camera_renderer.draw(self, view)

    def world_copies(self, worlds: Worlds) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        """Yield copies of model and state of one world after another, in the same two structs."""
        if self._scratch is None:
            self._scratch = copy.copy(self.mj_model), mujoco.MjData(self.mj_model)
        model, data = self._scratch
        states = self.state_rows().double().cpu().numpy()
        rows = self.model_rows()
        for world in worlds.host_ids.tolist():
            for field, values in rows.items():
                write_field(model, field, values[world])
            state = mujoco.mjtState.mjSTATE_INTEGRATION
            mujoco.mj_setState(model, data, states[world], state)
            yield model, data

    def expansion_problem(self, field: str) -> str | None:
        """Return the reason why a model field cannot have one row per world; None if it can."""
        fields, name = self._owner(field)
        if not fields.is_per_world(name):
            known = [name for name in self._model.names() if self._model.is_per_world(name)]
            options = [name for name in self._options.names() if self._options.is_per_world(name)]
            known += [f"opt.{name}" for name in options]
            return (
                f"Model field '{field}' cannot differ between worlds on the warp engine."
                + near_matches(field, known)
            )
        flag = _PASSES.get(field)
        if self.wp_model.opt.integrator == mujoco.mjtIntegrator.mjINT_DISCRETE:
            flag = flag or _DISCRETE_PASSES.get(field)
        if flag and not getattr(self.wp_model, flag):
            return (
                f"Model field '{field}' is zero in the compiled model, so MuJoCo Warp omits "
                "its part of the step: give one element a nonzero value before compiling."
            )
        return None

    def recompute_level(self, fields: set[str]) -> RecomputeLevel:
        """Return the strongest level that a change of some model fields asks for."""
        return recompute_level(fields, "warp", self.mj_model)

    def expand(self, field: str) -> None:
        """Give a model field one row per world."""
        if field in self.expanded:
            return
        problem = self.expansion_problem(field)
        if problem:
            raise ValueError(problem)
        fields, name = self._owner(field)
        shared = getattr(fields.struct, name)
        setattr(fields.struct, name, repeat_rows(shared, self.num_envs))
        self._shared[field] = shared
        self.expanded.add(field)
        self.create_graph()

    def write_rows(
        self, field: str, env_ids: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> None:
        """Write elements of a model field; ids as in numpy's indexing."""
        self.expand(field)
        rows = self.field_rows(field)
        worlds = torch.from_numpy(env_ids).long().to(self.device)
        shape = np.broadcast_shapes(env_ids.shape, columns.shape)
        new = torch.from_numpy(values.reshape(*shape, *rows.shape[2:])).to(self.device, rows.dtype)
        rows[worlds, torch.from_numpy(columns).to(self.device)] = new

    def data_field(self, field: str) -> object:
        """Return a tensor of shape (num_envs, ...), a number, or a struct of Warp arrays."""
        return self._data.get(field)

    def data_fields(self) -> list[str]:
        """Return the names of tensors and structs that `data_field` returns."""
        return self._data.names()

    def model_field(self, field: str) -> torch.Tensor | int | float:
        """Return a tensor, (num_envs, ...) once expanded and (1, ...) before, or a number."""
        fields, name = self._owner(field)
        value = fields.get(name)
        assert isinstance(value, torch.Tensor | int | float)
        return value

    def model_fields(self, prefix: str) -> list[str]:
        """Return the names of options, for the prefix 'opt.', or of the model's other fields."""
        if prefix:
            return self._options.names()
        return self._model.names()

    def warp_array(self, field: str) -> object:
        """Return Warp's own array of a model field."""
        fields, name = self._owner(field)
        return getattr(fields.struct, name)

    def _owner(self, field: str) -> tuple[WarpFields, str]:
        """Return the fields to which a model field belongs, and its name there."""
        if field.startswith("opt."):
            return self._options, field.removeprefix("opt.")
        return self._model, field

    def field_rows(self, field: str) -> torch.Tensor:
        """Return the rows of an expanded model field, shape (num_envs, ...)."""
        fields, name = self._owner(field)
        return fields.tensor(name)

    def recompute_constants(self, level: RecomputeLevel, worlds: Worlds) -> None:
        """Compute constants and static geom poses of all worlds; keep those of the given worlds."""
        if level == RecomputeLevel.none:
            return
        outputs = [f for f in _CONST_OUTPUTS[level] if getattr(self.wp_model, f).shape[1]]
        for field in outputs:
            self.expand(field)
        kept = [(rows, rows.clone()) for rows in map(self.field_rows, outputs)]
        spare = self._spare.data
        with _quiet(), wp.ScopedDevice(self.wp_device):
            mjw.set_const(self.wp_model, spare, _CONST_GROUPS[level], restore=False)
            # Kinematics skip geoms that are welded to the world, unless none is marked as such.
            unwelded = wp.ones_like(self.wp_model.body_weldid)
            mjw.kinematics(dataclasses.replace(self.wp_model, body_weldid=unwelded), spare)
        # MuJoCo C leaves the inverse weight of a body that only slides at zero for rotations.
        if "body_invweight0" in outputs:
            weights = torch.from_numpy(self.mj_model.body_invweight0 == 0).to(self.device)
            self._model.tensor("body_invweight0").masked_fill_(weights, 0.0)
        for rows, before in kept:
            computed = rows.clone()
            rows.copy_(before)
            worlds.put(rows, worlds.take(computed))
        for name in ("geom_xpos", "geom_xmat"):
            moved = to_torch(getattr(spare, name))[:, self._static_geoms]
            assign(self._data.tensor(name), worlds.take(moved), worlds, self._static_geoms)
        self._model.forget(_SHARED_OUTPUTS)

    def state_dict(self, worlds: Worlds) -> State:
        """Return state, expanded model rows, derived fields as last computed, and status."""
        status = self.status()  # before bound fields are listed, because it binds some
        state = {field: self._data.tensor(field) for field in _STATE}
        for field in sorted(self.expanded):
            state[f"model.{field}"] = self.field_rows(field)
        for field, tensor in self._data.bound().items():
            if field not in _STATE:
                state[f"derived.{field}"] = tensor
        state["status"] = status
        return {key: tensor[worlds.rows].clone() for key, tensor in state.items()}

    def load_state_dict(self, state: State, worlds: Worlds) -> None:
        """Restore state, model rows, derived fields and status."""
        targets = {field: self._data.tensor(field) for field in _STATE}
        _check_rows(state, targets, worlds)
        for key in state:
            kind, _, field = key.partition(".")
            if kind == "model":
                self.expand(field)
                targets[key] = self.field_rows(field)
            elif kind == "derived":
                targets[key] = self._data.tensor(field)
            elif key == "status":
                targets[key] = self._status
        check_known(state, targets)
        _check_rows(state, targets, worlds)
        ids = worlds.rows
        for field, shared in self._shared.items():
            self.field_rows(field)[ids] = to_torch(shared)
        for key, target in targets.items():
            target[ids] = state[key].to(self.device)
        if "status" not in state:
            self._status[ids] = 0
        self._unsensed[ids] = False
        unsaved = [f for f in self._spare.fields if f"derived.{f}" not in state]
        if unsaved:
            self._forward_some(worlds, unsaved, f"forward {unsaved}")

    def run(self, name: str, function: ModelCall) -> None:
        """Call a function of model and data, through its graph if graphs can be used.

        Warp's stream and PyTorch's default stream wait for each other; with another PyTorch stream
        the caller must synchronize.
        """
        with _quiet(), wp.ScopedDevice(self.wp_device):
            if self._within_graph or not self.use_graphs:
                function(self.wp_model, self.wp_data)
                return
            if name not in self.graphs:
                self.graphs[name] = self._capture(function)
            wp.capture_launch(self.graphs[name])

    @contextmanager
    def captured_on(self, stream: torch.cuda.Stream) -> Iterator[None]:
        """Let calls become part of a CUDA graph that PyTorch captures on a stream."""
        wp_stream = wp.stream_from_torch(stream)
        with _quiet(), wp.ScopedDevice(self.wp_device), wp.ScopedStream(wp_stream, False):
            wp.capture_begin(self.wp_device, wp_stream, external=True)
            self._within_graph = True
            try:
                yield
            finally:
                self._within_graph = False
                wp.capture_end(self.wp_device, wp_stream)

    def _capture(self, function: ModelCall) -> wp.Graph:
        # A garbage collection could free memory of the GPU during the capture and break it.
        collecting = gc.isenabled()
        gc.disable()
        try:
            with wp.ScopedCapture(self.wp_device) as capture:
                function(self.wp_model, self.wp_data)
        finally:
            if collecting:
                gc.enable()
        assert capture.graph is not None  # the capture has ended
        return capture.graph


def _check_rows(state: State, targets: dict[str, torch.Tensor], worlds: Worlds) -> None:
    check_shapes(state, {key: (len(worlds), *t.shape[1:]) for key, t in targets.items()})


def can_capture(device: wp.Device) -> bool:
    """Return whether a Warp device can capture the loops of MuJoCo Warp's solver in a graph."""
    return device.is_cpu or (wp.is_mempool_enabled(device) and wp.is_conditional_graph_supported())


def _put_model(mj_model: mujoco.MjModel) -> mjw.Model:
    try:
        return mjw.put_model(mj_model)
    except (NotImplementedError, ValueError) as error:
        raise ValueError(
            f"MuJoCo Warp cannot run this model: {error} Change the model or use engine='native'."
        ) from None


def apply_options(opt: mjw.Option, cfg: SimulationCfg) -> None:
    """Write the options that only MuJoCo Warp has; None keeps its default."""
    opt.contact_sensor_maxmatch = cfg.contact_sensor_maxmatch
    if cfg.broadphase is not None:
        opt.broadphase = mjw.BroadphaseType[cfg.broadphase.upper()]
    if cfg.broadphase_filter is not None:
        opt.broadphase_filter = mjw.BroadphaseFilter(0)
        for test in cfg.broadphase_filter:
            opt.broadphase_filter |= mjw.BroadphaseFilter[test.upper()]


def _clone(struct: Any) -> Any:
    """Copy a dataclass, its arrays, and its nested dataclasses."""
    values = {field.name: getattr(struct, field.name) for field in dataclasses.fields(struct)}
    for name, value in values.items():
        if isinstance(value, wp.array):
            values[name] = wp.clone(value)
        elif dataclasses.is_dataclass(value):
            values[name] = _clone(value)
    return type(struct)(**values)


def _room(mj_model: mujoco.MjModel, nconmax: int | None, njmax: int | None) -> tuple[int, int]:
    """Replace sizes that are None by estimates, or by MuJoCo Warp's defaults if larger."""
    if nconmax is not None and njmax is not None:
        return nconmax, njmax
    contacts, rows = estimate_capacity(mj_model)
    with wp.ScopedDevice("cpu"):
        guess = mjw.make_data(mj_model, 1)
    if nconmax is None:
        nconmax = max(contacts, guess.naconmax)
    if njmax is None:
        njmax = max(rows, guess.njmax)
    return nconmax, njmax


def _late_sensors(model: mujoco.MjModel) -> np.ndarray:
    """Return the columns of sensordata that need accelerations."""
    late = model.sensor_needstage == mujoco.mjtStage.mjSTAGE_ACC
    return np.flatnonzero(np.repeat(late, model.sensor_dim))


def _static_geoms(model: mujoco.MjModel) -> np.ndarray:
    """Return the ids of geoms that cannot move in a step."""
    body = model.geom_bodyid
    moved_by_hand = model.body_mocapid[model.body_rootid[body]] >= 0
    return np.flatnonzero((model.body_weldid[body] == 0) & ~moved_by_hand)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Warp's banner and module messages, unless the user changed the log level."""
    level = wp.config.log_level
    if level == wp.LOG_INFO:
        wp.config.log_level = wp.LOG_WARNING
    try:
        yield
    finally:
        wp.config.log_level = level
