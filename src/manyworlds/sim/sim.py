"""The simulation: many parallel worlds of one model behind one face."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from manyworlds.sim.sim_data import WarpBridge
from manyworlds.sim.state import State, check_state, check_target
from manyworlds.validation.checks import check_count, check_tuple, check_type
from manyworlds.validation.names import near_matches
from manyworlds.validation.worlds import EnvIds, Worlds

if TYPE_CHECKING:
    from manyworlds.sim.contacts import Contacts
    from manyworlds.sim.engines.engine import AttachedSensors


class Simulation:
    """Steps many worlds of one model in parallel.

    `data` and `model` show MuJoCo's fields as torch tensors with a leading world dimension. Write
    in place (`sim.data.ctrl[:] = u`): what was written is the input of the next call. After `step`,
    derived fields such as `xpos` describe the state before the last substep, as with `mj_step`;
    ask for `refresh=True` or call `forward` to have them at the new state. MuJoCo's silent reset of
    diverged worlds is switched off: a NaN stays visible until the world is reset, and `status`
    says what went wrong in which world.

    Args:
        num_envs: the number of worlds, at least 1.
        cfg: engine and physics options. If None, a `model` keeps its own physics options.
        model: a compiled model, which is copied. Either this or `spec` is needed.
        device: a torch device; None takes CUDA where there is one, else the CPU.
        spec: an editable model, compiled here.
        variant_info: entities that differ from world to world: `scene.collect_variant_info()`.

    Raises:
        ValueError: no model, no worlds, an engine that cannot run on the device, or variants that
            differ in what it holds once for all worlds.
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
        check_count("num_envs", num_envs, 1, ": ask for one world")
        check_type("cfg", cfg, SimulationCfg, "name the arguments, as in model=model.")
        check_type("model", model, mujoco.MjModel, "compile it, or give an MjSpec as spec=.")
        check_type("spec", spec, mujoco.MjSpec, "give a compiled model as model=.")
        if (model is None) == (spec is None):
            raise ValueError("Simulation needs either model= or spec=: give exactly one of them.")
        if cfg is None:
            cfg = SimulationCfg(mujoco=None) if model is not None else SimulationCfg()
        check_options(cfg)
        mj_model = copy.copy(model) if spec is None else spec.compile()
        assert mj_model is not None
        # Options that nobody changed do not override those of a model that was compiled elsewhere.
        if cfg.mujoco is not None and (spec is not None or cfg.mujoco != MujocoCfg()):
            cfg.mujoco.apply(mj_model)
        check_timestep(mj_model.opt.timestep)
        # mj_step would put a diverged world back to qpos0 without a word.
        mj_model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self.cfg = copy.deepcopy(cfg)
        self.num_envs = num_envs
        self._engine = make_engine(cfg, mj_model, num_envs, device)
        self._variants = VariantRows(self._engine, variant_info or ())
        self.after_assignment: Callable[[str, torch.Tensor], object] | None = None
        """Called by `assign_variants` with the entity's name and the ids of the worlds that held
        another variant, before constants are recomputed there. The event manager of an environment
        sets it, and randomizes these worlds again as they were."""
        guard = self.cfg.nan_guard
        parts = guard, self._engine, self._variants
        self._recorder = FlightRecorder(*parts) if guard.enabled else None
        self._sensor_context: AttachedSensors | None = None
        self._data = WarpBridge(self._engine.data, num_envs)
        self._model = WarpBridge(
            self._engine.model, num_envs, engine=self._engine, defaults=self._default_rows
        )

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self._engine.device

    @property
    def engine(self) -> str:
        """The engine that steps the worlds: 'native' or 'warp'."""
        return self._engine.name

    @property
    def num_threads(self) -> int:
        """Threads that step the worlds."""
        return self._engine.num_threads

    @property
    def mj_model(self) -> mujoco.MjModel:
        """The compiled model, with the options that the engine steps with.

        The engine works on a copy: write through `model`, since edits here are not seen.
        """
        return self._engine.mj_model

    @property
    def data(self) -> WarpBridge:
        """Per-world arrays: state, inputs, and derived fields, each `(num_envs, ...)`."""
        return self._data

    @property
    def model(self) -> WarpBridge:
        """Model arrays, each `(num_envs, ...)`; the first in-place write makes one per world."""
        return self._model

    @property
    def wp_model(self) -> Any:
        """MuJoCo Warp's model; the native engine has none."""
        return self._warp_struct("wp_model", "model")

    @property
    def wp_data(self) -> Any:
        """MuJoCo Warp's data; the native engine has none."""
        return self._warp_struct("wp_data", "data")

    @property
    def wp_device(self) -> Any:
        """Warp's device; the native engine has none."""
        return self._warp_struct("wp_device", "device")

    @functools.cached_property
    def mj_data(self) -> mujoco.MjData:
        """An `MjData` of `mj_model` at its default state, after `mj_forward`; none of the worlds.

        It is made on first use and is the caller's: the engine neither reads nor writes it.
        """
        data = mujoco.MjData(self.mj_model)
        mujoco.mj_forward(self.mj_model, data)
        return data

    @property
    def use_cuda_graph(self) -> bool:
        """Whether calls replay CUDA graphs."""
        return self._engine.use_cuda_graph

    @property
    def step_graph(self) -> Any:
        """The CUDA graph of `step`; None before its first call, and without graphs."""
        return self._engine.graphs.get("step")

    @property
    def forward_graph(self) -> Any:
        """The CUDA graph of `forward`; None before its first call, and without graphs."""
        graphs = self._engine.graphs
        return graphs.get("forward", graphs.get("forward some"))

    @property
    def reset_graph(self) -> Any:
        """The CUDA graph of `reset`; None before its first call, and without graphs."""
        return self._engine.graphs.get("reset")

    @property
    def sense_graph(self) -> Any:
        """The CUDA graph of the first camera's pictures; None before the second, without graphs."""
        return next((g for name, g in self._engine.graphs.items() if "sense" in name), None)

    def _warp_struct(self, name: str, instead: str) -> Any:
        if not hasattr(self._engine, name):
            raise AttributeError(
                f"'{name}' is not available: the {self.engine} engine steps MuJoCo C and has no "
                f"Warp arrays, so use sim.{instead}, or engine='warp'."
            )
        return getattr(self._engine, name)

    @property
    def expanded_fields(self) -> set[str]:
        """Names of the model fields that have one row per world."""
        return set(self._engine.expanded)

    @property
    def status(self) -> torch.Tensor:
        """Bits of `WorldStatus`, int32, shape (num_envs,), kept until a world is reset.

        A world that fails is marked here and raises no error; the others go on as if nothing had
        happened. Reading it does not wait for a GPU. Each reading returns a tensor of its own.
        """
        return self._engine.status()

    def status_counts(self) -> dict[str, int]:
        """How many worlds have each status bit, by its name in lower case; zeros are left out."""
        return status_counts(self.status.cpu().numpy())

    @property
    def nan_guard(self) -> FlightRecorder | None:
        """The flight recorder, if `cfg.nan_guard` enables it."""
        return self._recorder

    @property
    def timestep(self) -> float:
        """Physics timestep [s]."""
        return float(self.mj_model.opt.timestep)

    def step(self, nsubsteps: int = 1, *, refresh: bool = False) -> None:
        """Advance all worlds.

        Args:
            nsubsteps: physics steps to take, with the inputs held constant.
            refresh: compute position- and velocity-dependent fields at the new state. Fields that
                depend on accelerations (forces, accelerometers) stay one substep behind.
        """
        check_count("nsubsteps", nsubsteps, 1)
        stepper = self._engine if self._recorder is None else self._recorder
        stepper.step(nsubsteps, refresh)
        self._data._changed(None)

    def _worlds(self, env_ids: EnvIds) -> Worlds:
        return Worlds.of(env_ids, self.num_envs, self.device)

    def forward(self, env_ids: EnvIds = None) -> None:
        """Compute derived fields at the present state, without integrating.

        Args:
            env_ids: the worlds; None for all. The others keep their derived fields.
        """
        worlds = self._worlds(env_ids).ascending
        if worlds:
            self._engine.forward(worlds)
            self._data._changed(worlds.ids_or_none)

    def reset(self, env_ids: EnvIds = None) -> None:
        """Put worlds back to the model's default state (`qpos0`, no velocity, no inputs).

        Derived fields of these worlds follow at the next `forward` or `step`.

        Args:
            env_ids: the worlds; None for all.
        """
        worlds = self._worlds(env_ids).ascending
        if worlds:
            if self._recorder is not None:
                self._recorder.before_restart(worlds)
            self._engine.reset(worlds)
            self._data._changed(worlds.ids_or_none)

    def contacts(self, env_ids: EnvIds = None) -> Contacts:
        """Find all contacts at the present state, and the forces that act there.

        They are those that `forward` would find now: what was written since the last call counts,
        and after `step` they belong to the new state, while contact sensors and `xpos` still
        describe the state before the last substep. Nothing is changed: not the state, nor derived
        fields, nor what the next step computes. It costs more than a step, and on a GPU it waits
        and for a moment needs the data's memory twice; see `docs/engines.md`.

        Args:
            env_ids: the worlds; None for all.

        Returns:
            New tensors over all contacts of these worlds, by ascending world. A world in which
            MuJoCo raised an error has none, and `status` tells of it.
        """
        return self._engine.contacts(self._worlds(env_ids).ascending)

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

        The native engine computes the geoms' poses from the present state, writes since the last
        call included. The warp engine takes them as last computed: there, call `forward` after a
        write, or `step` with `refresh=True`. Nothing is changed by asking.

        Args:
            pnt: origins in the world frame [m], shape (nray, 3) or (n, nray, 3) for n worlds.
            vec: directions, likewise; a zero direction is an error on the native engine.
            geomgroup: one flag per geom group, 0 for those that rays pass through; None hits all.
            flg_static: whether geoms that are welded to the world can be hit.
            bodyexclude: body whose geoms a ray passes through, or one per ray; -1 for none.
            cutoff: hits farther away than this count as misses, in lengths of the direction.
            env_ids: the worlds; None for all. The rows returned are in ascending order of world.

        Raises:
            TypeError: the rays are no tensors.
            ValueError: shapes or devices do not fit, or a body or group does not exist.
        """
        worlds = self._worlds(env_ids).ascending
        pnt, vec = check_rays(pnt, vec, geomgroup, len(worlds), self.device)
        exclude = torch.as_tensor(bodyexclude, dtype=torch.int32, device=self.device)
        if exclude.shape not in ((), (1,), pnt.shape[1:2]):
            raise ValueError(
                f"bodyexclude must be one body or one for each of {pnt.shape[1]} rays, got shape "
                f"{tuple(exclude.shape)}: give -1 where a ray is to leave out no body."
            )
        exclude = exclude.expand(pnt.shape[1])
        rays = self._engine.ray(pnt, vec, geomgroup, flg_static, exclude, worlds)
        return rays if cutoff == math.inf else rays.within_(cutoff)

    def render_cameras(self, view: CameraRequest) -> dict[str, torch.Tensor] | None:
        """Draw what a camera sees in all worlds.

        Returns:
            Pictures by kind: rgb, uint8, shape (num_envs, height, width, 3); depth along the axis
            of the camera [m], shape (num_envs, height, width, 1); segmentation, int32, object id
            and type, -1 for none, shape (num_envs, height, width, 2). None on the native engine,
            which does not draw: draw `world_copies` with `mujoco.Renderer`.
        """
        return self._engine.render_cameras(view)

    def world_copies(
        self, env_ids: EnvIds = None
    ) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        """Copy one world after the other into MuJoCo's own structs, the same two for all.

        The model has the world's rows of all fields; the data has its state, and no derived fields
        until one of MuJoCo's functions computes them. Leave the simulation alone meanwhile.

        Args:
            env_ids: the worlds, in ascending order; None for all.
        """
        return self._engine.world_copies(self._worlds(env_ids).ascending)

    def set_sensor_context(self, ctx: AttachedSensors) -> None:
        """Let the sensors of a context cast rays and render in this simulation.

        Raises:
            TypeError: that is no sensor context.
            ValueError: it was made for another simulation.
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
        """Have the sensors of the context measure the present state when they are next read."""
        if self._sensor_context is not None:
            self._sensor_context.invalidate()

    def expand_model_fields(self, fields: tuple[str, ...]) -> None:
        """Give model fields one row per world, so that worlds may differ in them.

        Raises:
            ValueError: a field is unknown or cannot differ between worlds on this engine; then
                no field of the call was expanded.
        """
        if isinstance(fields, str):
            raise ValueError(f"fields must be a tuple of names, got '{fields}': add a comma.")
        check_tuple("fields", fields, str)
        check_model_fields(self.mj_model, fields, self._engine.defaults)
        if problems := list(filter(None, map(self._engine.expansion_problem, fields))):
            raise ValueError(" ".join(problems))
        for name in fields:
            if name not in self._engine.expanded:
                self._engine.expand(name)
                self._model.clear_cache()

    def recompute_level(self, fields: Iterable[str]) -> RecomputeLevel:
        """Return the level that `recompute_constants` needs after some model fields were changed.

        Args:
            fields: names of model fields; options are named 'opt.<name>'.
        """
        return self._engine.recompute_level(set(fields))

    def recompute_constants(self, level: RecomputeLevel, env_ids: EnvIds = None) -> None:
        """Bring model fields that derive from others up to date, as `mj_setConst` does.

        Fields that come to differ between worlds join `expanded_fields`. Other worlds keep every
        value.

        Args:
            level: the strongest level that a changed field needs; see `docs/model_fields.md`.
            env_ids: the worlds whose fields were changed; None for all.

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
        self._engine.recompute_constants(level, worlds)
        if len(self._engine.expanded) > before:
            self._model.clear_cache()
        self._data._changed(worlds.ids_or_none)

    def get_default_field(self, field: str) -> torch.Tensor:
        """Return the compiled value of a model field: a new tensor without a world dimension.

        A field of `per_world_default_fields` has one: there, each world has its variants' values.

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

    @property
    def default_model_fields(self) -> dict[str, torch.Tensor]:
        """Compiled values of the expanded fields, by name."""
        return {name: self.get_default_field(name) for name in sorted(self._engine.expanded)}

    @property
    def per_world_default_fields(self) -> set[str]:
        """Names of the fields whose default differs between worlds: none without variants."""
        return set(self._variants.fields)

    @property
    def world_to_variant(self) -> dict[str, torch.Tensor]:
        """The variant of each world by entity, int64, shape (num_envs,); do not write."""
        return self._variants.worlds

    def assign_variants(
        self,
        entity: str,
        env_ids: EnvIds,
        variant_ids: torch.Tensor | np.ndarray | Sequence[int] | int,
    ) -> None:
        """Make an entity another variant in some worlds, with the model fields of that variant.

        Only the fields in which the variants differ change, only of this entity, and only in worlds
        that held another variant. Pose and velocity stay. What was written to these fields is lost,
        except that `after_assignment`, if set, is called: an environment applies its events there
        again, see `docs/variants.md`.

        Args:
            entity: its name in the scene.
            env_ids: the worlds; None for all.
            variant_ids: indices of variants in the order in which they were declared, one for
                each world in the order of `env_ids`, or one for all.

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
        self._data._changed(ids)

    def variant_fields(self, entity: str) -> frozenset[str]:
        """Names of the model fields in which an entity's variants differ: none without variants.

        Fields that follow from others, such as inverse weights, are not among them.
        """
        return self._variants.own_fields(entity)

    def restore_variant_fields(
        self, entity: str, fields: Iterable[str], env_ids: EnvIds = None
    ) -> None:
        """Put an entity's rows of model fields back to what its present variants were compiled to.

        Call `recompute_constants` afterwards.

        Args:
            entity: the name of an entity that has variants.
            fields: names of model fields.
            env_ids: the worlds; None for all.
        """
        self._variants.restore(entity, fields, self._worlds(env_ids).ascending.host_ids)

    def _default_rows(self, field: str) -> torch.Tensor:
        """A field's default with a world dimension, which is one if no variants differ in it."""
        default = self.get_default_field(field)
        return default if field in self._variants.fields else default.unsqueeze(0)

    def create_graph(self) -> None:
        """Have CUDA graphs captured anew; needed after replacing an array of model or data.

        `expand_model_fields` does so itself. Each graph is captured at the next call. Ask `data`
        and `model` anew for views of what was replaced. Without CUDA there is nothing to capture.
        """
        self._engine.create_graph()
        self._data.clear_cache()
        self._model.clear_cache()

    def get_state(self, env_ids: EnvIds = None) -> State:
        """Copy everything that worlds need to go on from here.

        That is the full integration state, model rows of all expanded fields, derived fields as
        last computed, and status. On the native engine a restored world continues bit for bit.

        Args:
            env_ids: the worlds, in the order of the rows returned; None for all.
        """
        worlds = self._worlds(env_ids)
        return self._engine.state_dict(worlds) | self._variants.state(worlds)

    def set_state(self, state: State, env_ids: EnvIds = None) -> None:
        """Take over what `get_state` returned, from these worlds or others of the same model.

        Args:
            state: one row for each world.
            env_ids: the worlds that take the rows, in their order; None for all.

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
            self._data._changed(worlds.ids_or_none)

    def bound_tensors(self) -> list[torch.Tensor]:
        """Return the tensors of `data` and `model` that were asked for so far."""
        return [*self._data.bound_tensors(), *self._model.bound_tensors()]

    def state_dict(self) -> State:
        """The state of all worlds: `get_state()` under torch's name."""
        return self.get_state()

    def load_state_dict(self, state: State) -> None:
        """Take over the state of all worlds: `set_state` under torch's name."""
        self.set_state(state)
