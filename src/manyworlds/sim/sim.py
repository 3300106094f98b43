"""The simulation: many parallel worlds of one model, with one interface for both engines."""

from __future__ import annotations

import contextlib
import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.sim.config import MujocoCfg, SimulationCfg
from manyworlds.sim.diagnostics.flight_recorder import FlightRecorder
from manyworlds.sim.diagnostics.status import status_counts
from manyworlds.sim.engines.factory import make_engine
from manyworlds.sim.fields.defaults import as_tensor
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.sim.fields.shared import check_model_fields, field_shape
from manyworlds.sim.fields.variant_rows import VariantInfo, VariantRows, variant_indices
from manyworlds.sim.options import check_options, check_timestep
from manyworlds.sim.rays import CameraRequest, Rays, check_rays
from manyworlds.sim.state import State, check_state, check_target
from manyworlds.sim.views import DataView, ModelView
from manyworlds.validation.checks import check_count, check_tuple, check_type
from manyworlds.validation.names import near_matches
from manyworlds.validation.worlds import EnvIds, Worlds

if TYPE_CHECKING:
    import mujoco_warp as mjw
    import warp as wp

    from manyworlds.sim.contacts import Contacts
    from manyworlds.sim.engines.engine import AttachedSensors, Engine


class Simulation:
    """Steps many worlds of one model in parallel.

    `data` and `model` expose MuJoCo's fields as torch tensors with a leading world dimension.
    Write in place (`sim.data.ctrl[:] = u`): the values are the input of the next call. After
    `step`, derived fields such as `xpos` describe the state before the last substep, as with
    `mj_step`; pass `refresh=True` or call `forward` to compute them at the new state. MuJoCo's
    automatic reset of diverged worlds is disabled: a NaN stays visible until the world is reset,
    and `status` reports the errors of each world.

    Args:
        num_envs: the number of worlds, at least 1.
        cfg: engine and physics options. If None, a `model` keeps its own physics options.
        model: a compiled model, which is copied. Give either this or `spec`.
        device: a torch device; None selects CUDA if available, else the CPU.
        spec: an editable model, compiled here.
        variant_info: entities that differ from world to world: `scene.collect_variant_info()`.

    Raises:
        ValueError: no model or no worlds are given, the engine cannot run on the device, or
            variants differ in a field that the engine holds once for all worlds.
    """

    def __init__(
        self,
        num_envs: int,
        cfg: SimulationCfg | None = None,
        model: mujoco.MjModel | None = None,
        device: str | torch.device | None = None,
        *,
        spec: mujoco.MjSpec | None = None,
        variant_info: VariantInfo | None = None,
    ) -> None:
        check_count("num_envs", num_envs, 1, ": ask for one world or more")
        check_type("cfg", cfg, SimulationCfg, "name the arguments, as in model=model.")
        check_type("model", model, mujoco.MjModel, "compile it, or give an MjSpec as spec=.")
        check_type("spec", spec, mujoco.MjSpec, "give a compiled model as model=.")
        if (model is None) == (spec is None):
            raise ValueError("Simulation needs either model= or spec=: give exactly one of them.")
        if cfg is None:
            cfg = SimulationCfg()
            if model is not None:
                cfg.mujoco = None  # the model's own options
        check_options(cfg)
        if spec is not None:
            mj_model = spec.compile()
        else:
            assert model is not None
            mj_model = copy.copy(model)
        # Options at their defaults do not override those of a model that was compiled elsewhere.
        if cfg.mujoco is not None and (spec is not None or cfg.mujoco != MujocoCfg()):
            cfg.mujoco.apply(mj_model)
        check_timestep(mj_model.opt.timestep)
        self._timestep = float(mj_model.opt.timestep)
        # mj_step would silently reset a diverged world to qpos0.
        mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self.cfg = copy.deepcopy(cfg)
        self.num_envs = num_envs
        self._engine = make_engine(cfg, mj_model, num_envs, device)
        self._variants = VariantRows(self._engine, variant_info or ())
        self.after_assignment: Callable[[str, torch.Tensor], object] | None = None
        """Callback of `assign_variants` with the entity's name and the ids of the worlds whose
        variant changed, shape (n,), before constants are recomputed there. An environment's event
        manager sets it, and randomizes these worlds again as before."""
        self._recorder: FlightRecorder | None = None
        if self.cfg.nan_guard.enabled:
            self._recorder = FlightRecorder(self.cfg.nan_guard, self._engine, self._variants)
        self._sensor_context: AttachedSensors | None = None
        self._outdated: Worlds | None = None
        self._everywhere = Worlds(None, num_envs, self._engine.device)
        self._data = DataView(self._engine)
        self._model = ModelView(self._engine, self._default_rows)

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self._engine.device

    @property
    def engine(self) -> str:
        """Name of the engine that steps the worlds: 'native' or 'warp'."""
        return self._engine.name

    @property
    def is_bit_exact(self) -> bool:
        """True if each world equals one that MuJoCo C steps, bit for bit."""
        return self._engine.is_bit_exact

    @property
    def num_threads(self) -> int:
        """Number of threads that step the worlds."""
        return self._engine.num_threads

    @property
    def mj_model(self) -> mujoco.MjModel:
        """The compiled model, with the options that the engine uses.

        The engine works on a copy and ignores edits of this model: write through `model`.
        """
        return self._engine.mj_model

    @property
    def data(self) -> DataView:
        """Per-world arrays: state, inputs, and derived fields, each `(num_envs, ...)`."""
        return self._data

    @property
    def model(self) -> ModelView:
        """Model arrays, each `(num_envs, ...)`; the first in-place write makes them per-world."""
        return self._model

    @property
    def wp_model(self) -> mjw.Model:
        """MuJoCo Warp's model; not available on the native engine."""
        return self._warp_struct("wp_model", "model")

    @property
    def wp_data(self) -> mjw.Data:
        """MuJoCo Warp's data; not available on the native engine."""
        return self._warp_struct("wp_data", "data")

    @property
    def wp_device(self) -> wp.Device:
        """Warp's device; not available on the native engine."""
        return self._warp_struct("wp_device", "device")

    @functools.cached_property
    def mj_data(self) -> mujoco.MjData:
        """A separate `MjData` of `mj_model` in its default state, after `mj_forward`.

        It is not one of the worlds: the engine neither reads nor writes it. Created on first use.
        """
        data = mujoco.MjData(self.mj_model)
        mujoco.mj_forward(self.mj_model, data)
        return data

    @property
    def use_cuda_graph(self) -> bool:
        """True if calls replay CUDA graphs."""
        return self._engine.use_graphs and self.device.type == "cuda"

    @property
    def step_graph(self) -> wp.Graph | None:
        """Captured graph of `step`; None before its first call, and without graphs."""
        return self._engine.graphs.get("step")

    @property
    def forward_graph(self) -> wp.Graph | None:
        """Captured graph of `forward`; None before its first call, and without graphs."""
        graphs = self._engine.graphs
        return graphs.get("forward", graphs.get("forward some"))

    @property
    def reset_graph(self) -> wp.Graph | None:
        """Captured graph of `reset`; None before its first call, and without graphs."""
        return self._engine.graphs.get("reset")

    @property
    def sense_graph(self) -> wp.Graph | None:
        """Captured graph of the first camera; None before its second image, and without graphs."""
        return next((g for name, g in self._engine.graphs.items() if "sense" in name), None)

    def _warp_struct(self, name: str, instead: str) -> Any:
        if not hasattr(self._engine, name):
            raise AttributeError(
                f"'{name}' is not available: the {self.engine} engine steps MuJoCo C and has no "
                f"Warp arrays, so use sim.{instead}, or engine='warp'."
            )
        return getattr(self._engine, name)

    @property
    def layout(self) -> int:
        """Number of times that arrays were replaced, after which graphs are captured again."""
        return self._engine.layout

    def captured_on(self, stream: torch.cuda.Stream) -> contextlib.AbstractContextManager[None]:
        """Let calls within this context become part of a CUDA graph that PyTorch captures.

        Args:
            stream: the stream on which it captures.

        Raises:
            RuntimeError: the engine has no kernels.
        """
        return self._engine.captured_on(stream)

    @property
    def expanded_fields(self) -> set[str]:
        """Names of the model fields that have one row per world."""
        return set(self._engine.expanded)

    @property
    def status(self) -> torch.Tensor:
        """Bits of `WorldStatus`, int32, shape (num_envs,), kept until a world is reset.

        A world that fails is marked here and raises no error; the other worlds continue unaffected.
        Reading the status does not wait for a GPU. Each read returns a new tensor.
        """
        return self._engine.status()

    def status_counts(self) -> dict[str, int]:
        """Count the worlds with each status bit, by its lower-case name; zeros are omitted."""
        return status_counts(self.status.cpu().numpy())

    @property
    def nan_guard(self) -> FlightRecorder | None:
        """The flight recorder, if `cfg.nan_guard` enables it."""
        return self._recorder

    @property
    def timestep(self) -> float:
        """Physics timestep [s]."""
        return self._timestep

    def step(self, nsubsteps: int = 1, *, refresh: bool = False) -> None:
        """Advance all worlds.

        Args:
            nsubsteps: physics steps to take, with the inputs held constant.
            refresh: compute position- and velocity-dependent fields at the new state. Fields that
                depend on accelerations (forces, accelerometers) stay one substep behind.
        """
        check_count("nsubsteps", nsubsteps, 1)
        stepper = self._ready_engine
        if self._recorder is not None:
            stepper = self._recorder
        stepper.step(nsubsteps, refresh)
        if self._outdated is not None:
            self._set_outdated(None)
        self._data.changed(self._everywhere)

    def launch(self, pool: Executor, nsubsteps: int, *, refresh: bool = False) -> None:
        """Begin `step` on a thread of a pool; `finish` completes it.

        Nothing of this simulation may be read or written in between. A GPU, and a simulation whose
        steps `nan_guard` records, take the steps at once.

        Args:
            pool: the threads.
            nsubsteps: physics steps to take, with the inputs held constant.
            refresh: see `step`.
        """
        self.finish()  # of a control step that was given up
        if self._recorder is None:
            self._ready_engine.step(nsubsteps, refresh, pool=pool)
        else:
            self._recorder.step(nsubsteps, refresh)

    def is_stepping(self) -> bool:
        """Return whether steps that `launch` began are not done yet."""
        return self._engine.is_stepping()

    def take_launched(self) -> bool:
        """Take steps that `launch` began in this thread, if no other has begun them.

        Returns:
            Whether it did. Call `finish` in either case.
        """
        return self._engine.take_launched()

    def finish(self) -> None:
        """Complete the steps that `launch` began: wait for them, or take them in this thread."""
        self._engine.finish()
        if self._outdated is not None:
            self._set_outdated(None)
        self._data.changed(self._everywhere)

    @property
    def _ready_engine(self) -> Engine:
        """The engine, for calls that read model rows: those that worlds lack are restored."""
        if self._variants.absent.exist:
            self._variants.absent.restore()
        return self._engine

    def _worlds(self, env_ids: EnvIds) -> Worlds:
        if isinstance(env_ids, Worlds):
            return env_ids
        return Worlds(env_ids, self.num_envs, self._engine.device)

    def forward(self, env_ids: EnvIds = None) -> None:
        """Compute derived fields at the present state, without integrating.

        Args:
            env_ids: the worlds; None for all. The others keep their derived fields.
        """
        worlds = self._worlds(env_ids).ascending
        if worlds:
            outdated = self._outdated
            if outdated is not None:
                self._set_outdated(None)
            self._ready_engine.forward(worlds)
            if outdated is not None and not worlds.is_all:
                left = outdated.without(worlds)
                if left is not None:
                    self._set_outdated(left)
            self._data.changed(worlds)

    def outdate(self, env_ids: EnvIds = None) -> None:
        """Mark derived fields of some worlds as outdated, because their state was written.

        The next access to a derived field of `data`, by a sensor or a term for instance, then
        calls `forward` for these worlds. An environment does so where several terms in turn write
        and read the state.

        Args:
            env_ids: the worlds; None for all.
        """
        worlds = self._worlds(env_ids)
        if not worlds:
            return
        outdated = self._outdated
        if outdated is not worlds:
            if outdated is not None:
                worlds = outdated.union(worlds)
            self._set_outdated(worlds)
        self._data.changed(worlds)

    @contextlib.contextmanager
    def outdating(self, env_ids: EnvIds) -> Iterator[None]:
        """Mark derived fields of some worlds as outdated if the state is written in this context.

        Args:
            env_ids: the worlds that the code in this context may write; None for all.
        """
        before = self._data.state_versions()
        yield
        if self._data.state_versions() != before:
            self.outdate(env_ids)

    def refresh(self) -> None:
        """Compute derived fields of the worlds that are marked as outdated; see `outdate`."""
        if self._outdated is not None:
            self.forward(self._outdated)

    @property
    def outdated(self) -> Worlds | None:
        """Worlds that are marked as outdated; None for none."""
        return self._outdated

    def keep_outdated_in(self, mask: torch.Tensor) -> None:
        """Let a mask of fixed memory name the worlds that are marked as outdated.

        Code that follows then makes the same operations whether there are any such worlds or not.
        All worlds, where the host knows that it is all, need no mask.

        Args:
            mask: the memory, shape [num_envs], which is overwritten.
        """
        outdated = self._outdated
        if outdated is not None and outdated.is_all:
            return
        if outdated is None:
            mask.zero_()
        elif outdated.mask is not mask:
            mask.copy_(outdated.mask)
        self._set_outdated(Worlds.masked(mask))

    def _set_outdated(self, worlds: Worlds | None) -> None:
        self._outdated = worlds
        if worlds is None:
            self._data.before_derived(None)
        else:
            self._data.before_derived(self.refresh)

    def reset(self, env_ids: EnvIds = None) -> None:
        """Reset worlds to the model's default state: `qpos0`, zero velocity, and zero inputs.

        Derived fields of these worlds are computed by the next `forward` or `step`.

        Args:
            env_ids: the worlds; None for all.
        """
        worlds = self._worlds(env_ids).ascending
        if worlds:
            if self._recorder is not None:
                self._recorder.before_restart(worlds)
            self._engine.reset(worlds)
            self._data.changed(worlds)

    def contacts(self, env_ids: EnvIds = None) -> Contacts:
        """Return all contacts at the present state, with their forces.

        They are those that `forward` would compute now: writes since the last call count, and after
        `step` the contacts belong to the new state, while contact sensors and `xpos` still describe
        the state before the last substep. The call has no side effects on the state, derived
        fields, or later steps. It costs more than a step; on a GPU it waits for the device and
        temporarily doubles the memory of the data; see `docs/engines.md`.

        Args:
            env_ids: the worlds; None for all.

        Returns:
            New tensors over all contacts of these worlds, by ascending world. A world in which
            MuJoCo raised an error has no contacts, and `status` reports the error.
        """
        return self._ready_engine.contacts(self._worlds(env_ids).ascending)

    def ray(
        self,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None = None,
        flg_static: bool = True,
        bodyexclude: int | torch.Tensor = -1,
        cutoff: float = math.inf,
        env_ids: EnvIds = None,
    ) -> Rays:
        """Cast rays at the geoms of each world, as `mj_ray` does.

        The native engine computes the geoms' poses from the present state, including writes since
        the last call. The warp engine uses the poses as last computed: there, call `forward` after
        a write, or `step` with `refresh=True`. The call has no side effects.

        Args:
            pnt: origins in the world frame [m], shape (nray, 3) or (n, nray, 3) for n worlds.
            vec: directions, likewise; a zero direction is an error on the native engine.
            geomgroup: one flag per geom group, 0 for those that rays pass through; None hits all.
            flg_static: include geoms that are welded to the world.
            bodyexclude: id of the body whose geoms a ray ignores, or one per ray; -1 for none.
            cutoff: hits farther away than this count as misses, in lengths of the direction.
            env_ids: the worlds; None for all. Rows of the result are in ascending order of world.

        Returns:
            Hits of the rays, each field with shape (n, nray) or (n, nray, 3).

        Raises:
            TypeError: the rays are not tensors.
            ValueError: shapes or devices do not fit, or a body or group does not exist.
        """
        worlds = self._worlds(env_ids).ascending
        pnt, vec = check_rays(pnt, vec, geomgroup, len(worlds), self.device)
        exclude = torch.as_tensor(bodyexclude, dtype=torch.int32, device=self.device)
        if exclude.shape not in ((), (1,), pnt.shape[1:2]):
            raise ValueError(
                f"bodyexclude must be one body or one for each of {pnt.shape[1]} rays, got shape "
                f"{tuple(exclude.shape)}: give -1 for a ray that excludes no body."
            )
        exclude = exclude.expand(pnt.shape[1])
        rays = self._ready_engine.ray(pnt, vec, geomgroup, flg_static, exclude, worlds)
        if cutoff != math.inf:
            rays = rays.within_(cutoff)
        return rays

    def render_cameras(self, view: CameraRequest) -> dict[str, torch.Tensor] | None:
        """Render a camera in all worlds.

        Returns:
            Images by kind: rgb, uint8, shape (num_envs, height, width, 3); depth along the optical
            axis [m], shape (num_envs, height, width, 1); segmentation, int32, object id and type,
            -1 for none, shape (num_envs, height, width, 2). None on the native engine, which does
            not render: render `world_copies` with `mujoco.Renderer`.
        """
        return self._ready_engine.render_cameras(view)

    def world_copies(
        self, env_ids: EnvIds = None
    ) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        """Yield one world after another as MuJoCo's own structs, the same two for all worlds.

        The model has the world's rows of all fields; the data has its state, without derived fields
        until a function of MuJoCo computes them. Do not use the simulation during the iteration.

        Args:
            env_ids: the worlds, in ascending order; None for all.
        """
        return self._ready_engine.world_copies(self._worlds(env_ids).ascending)

    def set_sensor_context(self, ctx: AttachedSensors) -> None:
        """Attach a sensor context, whose sensors cast rays and render in this simulation.

        Raises:
            TypeError: `ctx` is not a sensor context.
            ValueError: the context was made for another simulation.
        """
        if not hasattr(ctx, "attach"):
            raise TypeError(
                f"ctx must be a sensor context, got {type(ctx).__name__}: give "
                "scene.sensor_context after scene.initialize."
            )
        if getattr(ctx, "data", self._data) is not self._data:
            raise ValueError(
                "The sensor context was made for another simulation: give "
                "scene.initialize this one's mj_model, model and data first."
            )
        self._sensor_context = ctx
        ctx.attach(self)

    def sense(self) -> None:
        """Mark the context's sensors as outdated, so that they measure again when next read."""
        if self._sensor_context is not None:
            self._sensor_context.invalidate()

    def expand_model_fields(self, fields: tuple[str, ...]) -> None:
        """Give model fields one row per world, so that worlds may differ in them.

        Raises:
            ValueError: a field is unknown or cannot differ between worlds on this engine; no field
                is expanded then.
        """
        if isinstance(fields, str):
            raise ValueError(f"fields must be a tuple of names, got '{fields}': add a comma.")
        check_tuple("fields", fields, str)
        check_model_fields(self.mj_model, fields, self._engine.defaults)
        problems = list(filter(None, map(self._engine.expansion_problem, fields)))
        if problems:
            raise ValueError(" ".join(problems))
        for name in fields:
            if name not in self._engine.expanded:
                self._engine.expand(name)
                self._model.clear_cache()

    def recompute_level(self, fields: Iterable[str]) -> RecomputeLevel:
        """Return the level that `recompute_constants` requires after a change of some model fields.

        Args:
            fields: names of model fields; options are named 'opt.<name>'.
        """
        return self._engine.recompute_level(set(fields))

    def recompute_constants(self, level: RecomputeLevel, env_ids: EnvIds = None) -> None:
        """Recompute model fields that derive from others, as `mj_setConst` does.

        Fields that now differ between worlds are added to `expanded_fields`. Other worlds keep
        their values.

        Args:
            level: the strongest level that a changed field needs; see `docs/model_fields.md`.
            env_ids: the worlds whose fields have changed; None for all.

        Raises:
            RuntimeError: MuJoCo cannot recompute a world.
        """
        if level not in list(RecomputeLevel):
            names = ", ".join(known.name for known in RecomputeLevel)
            raise ValueError(f"level must be one of RecomputeLevel ({names}), got {level!r}.")
        worlds = self._worlds(env_ids).ascending
        if level == RecomputeLevel.none or not worlds:
            return
        before = len(self._engine.expanded)
        self._ready_engine.recompute_constants(level, worlds)
        if len(self._engine.expanded) > before:
            self._model.clear_cache()
        self._data.changed(worlds)

    def get_default_field(self, field: str) -> torch.Tensor:
        """Return a new tensor with the compiled value of a model field, shape `(...)` of one world.

        A field of `per_world_default_fields` has the values of each world's variants instead, with
        shape (num_envs, ...).

        Args:
            field: a model field; options are named 'opt.<name>'.

        Raises:
            ValueError: there is no such field.
        """
        check_type("field", field, str, "give its name.")
        value = self._engine.defaults.get(field)
        if value is None:
            raise ValueError(
                f"'{field}' is not a model field with a default."
                + near_matches(field, self._engine.defaults)
            )
        if field in self._variants.fields:
            return self._variants.default(field)
        return as_tensor(value, field_shape(field, value.shape), self.device)

    def get_default_of_variants(self, field: str) -> torch.Tensor:
        """Return compiled values of a model field, one row for each variant of each entity.

        Each row has one entity's variant, and the first variants of all others. Without variants
        that differ in the field, there is one row. Numbers of what a variant lacks are NaN.

        Args:
            field: a model field; options are named 'opt.<name>'.
        """
        return self._variants.default_of_variants(field)

    @property
    def default_model_fields(self) -> dict[str, torch.Tensor]:
        """Compiled values of the expanded fields by name; shapes as in `get_default_field`."""
        return {name: self.get_default_field(name) for name in sorted(self._engine.expanded)}

    @property
    def per_world_default_fields(self) -> set[str]:
        """Names of the fields whose default differs between worlds; empty without variants."""
        return set(self._variants.fields)

    @property
    def world_to_variant(self) -> dict[str, torch.Tensor]:
        """Variant index of each world by entity, int64, shape (num_envs,); read-only."""
        return self._variants.worlds

    def assign_variants(
        self,
        entity: str,
        env_ids: EnvIds,
        variant_ids: torch.Tensor | np.ndarray | Sequence[int] | int,
    ) -> None:
        """Change an entity's variant in some worlds, with the model fields of that variant.

        Only the fields in which the variants differ change, only for this entity, and only in
        worlds that had another variant. Pose and velocity are kept. Values written to these fields
        are lost, but `after_assignment`, if set, is called: an environment applies its events there
        again; see `docs/variants.md`.

        Args:
            entity: name of the entity in the scene.
            env_ids: the worlds; None for all.
            variant_ids: indices of variants in the order of their declaration, shape (n,) in the
                order of `env_ids`, or one for all worlds.

        Raises:
            ValueError: there is no such entity or variant.
        """
        worlds = self._worlds(env_ids)
        check_target(worlds)
        variants = variant_indices(variant_ids, len(worlds))
        changed = self._variants.assign(entity, worlds.host_ids, variants)
        if not changed.size:
            return
        ids = torch.from_numpy(changed).long().to(self.device)
        self._model.clear_cache()
        if self.after_assignment is not None:
            self.after_assignment(entity, ids)
        self._variants.complete(entity, changed)
        self._model.clear_cache()
        self._data.changed(self._worlds(ids))

    def variant_fields(self, entity: str) -> frozenset[str]:
        """Return the model fields in which an entity's variants differ; empty without variants.

        Fields that derive from others, such as inverse weights, are not included.
        """
        return self._variants.own_fields(entity)

    def restore_variant_fields(
        self, entity: str, fields: Iterable[str], env_ids: EnvIds = None
    ) -> None:
        """Restore an entity's rows of model fields to the compiled values of its present variants.

        Call `recompute_constants` afterwards.

        Args:
            entity: the name of an entity that has variants.
            fields: names of model fields.
            env_ids: the worlds; None for all.
        """
        self._variants.restore(entity, fields, self._worlds(env_ids).ascending.host_ids)

    def restore_absent(self) -> None:
        """Restore the compiled values of elements that worlds lack, as geoms of other variants.

        Values that were written there would let such a geom appear, or such an object fall. Calls
        of the simulation, and events, restore them, too.
        """
        self._variants.absent.restore()

    def _default_rows(self, field: str) -> torch.Tensor:
        """Return a field's default as (num_envs, ...) if variants differ in it, else (1, ...)."""
        default = self.get_default_field(field)
        if field not in self._variants.fields:
            default = default.unsqueeze(0)
        return default

    def create_graph(self) -> None:
        """Discard captured graphs; required after replacing an array of model or data.

        `expand_model_fields` does so itself. Each graph is captured at its next call. Read `data`
        and `model` again for views of replaced arrays. The native engine has no graphs.
        """
        self._engine.create_graph()
        self._data.clear_cache()
        self._model.clear_cache()

    def get_state(self, env_ids: EnvIds = None) -> State:
        """Return a copy of everything that worlds need to continue from here.

        The state has the full integration state, model rows of all expanded fields, derived fields
        as last computed, and status, each with one row per world. On the native engine a restored
        world continues bit for bit.

        Args:
            env_ids: the worlds, in the order of the returned rows; None for all.
        """
        worlds = self._worlds(env_ids)
        return self._ready_engine.state_dict(worlds) | self._variants.state(worlds)

    def set_state(self, state: State, env_ids: EnvIds = None) -> None:
        """Restore a state that `get_state` returned, of these or other worlds of the same model.

        Args:
            state: the saved arrays, one row per world.
            env_ids: the worlds that receive the rows, in the same order; None for all.

        Raises:
            ValueError: the state does not fit: another engine, model, or number of worlds.
        """
        check_state(state)
        worlds = self._worlds(env_ids)
        check_target(worlds)
        if worlds:
            if self._recorder is not None:
                self._recorder.before_restart(worlds)
            variants, rest = self._variants.split(state, worlds)
            self._engine.load_state_dict(rest, worlds)
            self._variants.take(variants, worlds)
            self._data.changed(worlds)

    def bound_tensors(self) -> list[torch.Tensor]:
        """Return the tensors of `data` and `model` accessed so far, in their fields' shapes."""
        return [*self._data.bound_tensors(), *self._model.bound_tensors()]

    def state_dict(self) -> State:
        """Return the state of all worlds, as `get_state()` does, for torch's protocol."""
        return self.get_state()

    def load_state_dict(self, state: State) -> None:
        """Restore the state of all worlds, as `set_state` does, for torch's protocol."""
        self.set_state(state)
