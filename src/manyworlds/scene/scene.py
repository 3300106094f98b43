"""A scene of entities and sensors: attachment, compilation, and initialization."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import mujoco
import numpy as np
import torch

from manyworlds.entity import Entity, EntityCfg, VariantMetadata
from manyworlds.sensor import BuiltinSensor, Sensor, SensorCfg, SensorContext
from manyworlds.sim.views import DataView, ModelView
from manyworlds.spec.edits import drop_options, export_spec
from manyworlds.spec.elements import qpos_width
from manyworlds.spec.plausibility import doubtful_sizes
from manyworlds.spec.references import name_keyframes
from manyworlds.terrains import TerrainEntity, TerrainEntityCfg
from manyworlds.terrains.utils import spiral_origins
from manyworlds.utils.declared import declared
from manyworlds.utils.devices import as_device
from manyworlds.utils.state import Stateful
from manyworlds.utils.table import render_table
from manyworlds.utils.world_random import WorldRandom
from manyworlds.validation.checks import check_count, check_tuple, check_type
from manyworlds.validation.names import near_matches
from manyworlds.validation.worlds import EnvIds, Worlds

SensorT = TypeVar("SensorT", bound=Sensor[Any])

_ONE_INPUT = (
    mujoco.mjtGain.mjGAIN_FIXED,
    mujoco.mjtGain.mjGAIN_AFFINE,
    mujoco.mjtGain.mjGAIN_MUSCLE,
    mujoco.mjtGain.mjGAIN_USER,
)


@dataclass(kw_only=True)
class SceneCfg:
    """Configuration of a scene: its entities, its sensors, and the number of worlds."""

    num_envs: int = 1
    """Number of parallel worlds."""
    first_world: int = 0
    """Place of the first world in a batch of which the scene has a part, such as the worlds of one
    process: the number of worlds before."""
    total_envs: int | None = None
    """Number of worlds of that batch, over which variants and columns of the terrain are divided;
    None for `num_envs`."""
    world_ids: tuple[int, ...] | None = None
    """Id of each world, on which its origin and its random numbers depend; None counts from
    `first_world`."""
    env_spacing: float = 2.0
    """Distance between the origins of neighboring worlds [m]; 0 puts them all in one place.
    A generated terrain determines the origins instead."""
    terrain: TerrainEntityCfg | None = None
    """Terrain, if any; it may also be among the entities, under any name."""
    entities: dict[str, EntityCfg] = field(default_factory=dict)
    """Entities by name; the name is the prefix of their elements."""
    sensors: tuple[SensorCfg, ...] = ()
    """Sensors, in addition to those that the entities' models have."""
    extent: float | None = None
    """Extent of the scene for cameras [m]; None lets MuJoCo compute it."""
    spec_fn: Callable[[mujoco.MjSpec], None] | None = None
    """Function that edits the spec after all entities are attached, such as to add lights."""
    kept_sensors: tuple[str, ...] | None = None
    """Names of the entities' own sensors that are kept, as in 'robot/imu'; None keeps all. MuJoCo
    computes all sensors of a model, read or not; those that are left out cannot be read."""
    buckets: dict[str, SceneCfg] = field(default_factory=dict)
    """Scenes of different topology by name, such as other robots, which share the `num_envs` worlds
    of a `BucketedRlEnv`. They replace this scene; their own number of worlds is not read."""
    bucket_assignment: (
        tuple[float, ...] | dict[str, float] | np.ndarray | Callable[[int], Sequence[int]]
    ) = ()
    """A tuple with a weight for each bucket, weights by name (1 for those that are not named), an
    array of the index of each world's bucket, or a function of the number of worlds that returns
    one; empty for equal weights."""
    merge_buckets: bool = False
    """Whether buckets of equal topology are compiled as variants of one model, which is faster
    where there are many small ones; see `docs/buckets.md`. Terms must then read what differs by
    world, as in `sim.model` and `entity.data`, and not in `sim.mj_model`."""


class Scene(Stateful):
    """Entities attached to one spec, with sensors, and their addresses in the compiled model.

    Raises:
        ValueError: `num_envs` is below 1, or an entity or a sensor cannot be built.
    """

    # Random numbers are the last, since sensors draw when they are built for a saved state.
    state_attributes = ("entities", "sensors", "random")
    derived_attributes = ("_since_control",)  # saved only if it matters
    num_envs: int = declared()
    """Number of worlds."""
    device: torch.device = declared()
    """Device of the tensors."""
    spec: mujoco.MjSpec = declared()
    """Spec to which all entities are attached."""
    entities: dict[str, Entity] = declared()
    """Entities by name, the terrain included."""
    terrain: TerrainEntity | None = declared()
    """Terrain, if any."""
    sensors: dict[str, Sensor[Any]] = declared()
    """Sensors by name; those of entities' models are named `<entity>/<sensor>`."""
    sensor_context: SensorContext | None = declared()
    """Shared state of sensors that cast rays or render, if any, after `initialize`; pass it to
    `Simulation.set_sensor_context`."""

    def __init__(self, scene_cfg: SceneCfg, device: str | torch.device = "cpu") -> None:
        world_ids = _world_ids(scene_cfg)
        check_tuple("SceneCfg.sensors", scene_cfg.sensors, SensorCfg)
        for name, entity_cfg in scene_cfg.entities.items():
            check_type(f"Entity '{name}'", entity_cfg, EntityCfg, "give EntityCfg(spec_fn=...).")
        if not 0 <= scene_cfg.env_spacing < math.inf:
            raise ValueError(
                "SceneCfg.env_spacing must not be negative or infinite, got "
                f"{scene_cfg.env_spacing}: give meters, or 0 for one place."
            )
        self.cfg = copy.deepcopy(scene_cfg)
        self.num_envs = self.cfg.num_envs
        self.device = as_device(device)
        self.world_ids: tuple[int, ...] = world_ids
        """Id of each world in the whole batch."""
        self.random = WorldRandom(self.num_envs, self.device, torch.initial_seed(), world_ids)
        """Random numbers of the worlds."""
        self.entities = {}
        self.terrain = self._build_terrain()
        # The terrain has no prefix, so its spec is the root spec.
        self.spec = mujoco.MjSpec()
        if self.terrain is not None:
            self.spec = self.terrain.spec
        self._initial_qpos: dict[str, Sequence[float]] = {}
        self.entity_options: dict[str, dict[str, Any]] = {}
        """MuJoCo's options that models of entities set, by entity, which the scene ignores."""
        for name, entity_cfg in self.cfg.entities.items():
            if not isinstance(entity_cfg, TerrainEntityCfg):
                self._attach(name, entity_cfg)
        if self.cfg.extent is not None:
            self.spec.stat.extent = self.cfg.extent
        if self.cfg.spec_fn is not None:
            self.cfg.spec_fn(self.spec)
        self._follow_moved_geoms()
        self._left_out_sensors = self._leave_out_sensors()
        self._add_keyframe()
        self.sensors = {
            sensor.name: BuiltinSensor.from_existing(sensor.name)
            for sensor in self.spec.sensors
            if sensor.name
        }
        self._short_names: dict[str, list[str]] = {}
        for sensor_cfg in self.cfg.sensors:
            self._add_sensor(sensor_cfg)
        self._samplers = [
            sensor
            for sensor in self.sensors.values()
            if sensor.cfg is not None and sensor.cfg.samples_eagerly
        ]
        self._steps_per_control = 1
        self._control_period = 0.0  # [s]; 0 if every update is a control step
        self._since_control = 0.0
        self.sensor_context = None
        if self.terrain is None:
            self._env_origins = self._spiral_origins()

    def entity(self, name: str) -> Entity:
        """Return an entity by name.

        Raises:
            KeyError: there is no such entity.
        """
        found = self.entities.get(name)
        if found is not None:
            return found
        sensor = self._find_sensor(name)
        if sensor is None:
            raise self._not_found(name)
        kind = type(sensor).__name__
        raise KeyError(
            f"Scene element '{name}' is a {kind}, not an entity: call "
            f"scene.sensor('{name}', {kind}), or name an entity of {sorted(self.entities)}."
        )

    def sensor(self, name: str, kind: type[SensorT]) -> SensorT:
        """Return a sensor of a kind by name.

        Args:
            name: name of the sensor; one of an entity is also found without its prefix, if no other
                entity has a sensor of that name.
            kind: class of the sensor, or a base class of it.

        Raises:
            KeyError: there is no such sensor.
            TypeError: the sensor is of another kind.
        """
        found = self._find_sensor(name)
        if found is None and name in self.entities:
            raise KeyError(
                f"Scene element '{name}' is an entity, not a sensor: call scene.entity('{name}'), "
                f"or name a sensor of {sorted(self.sensors)}."
            )
        if found is None:
            raise self._not_found(name)
        if not isinstance(found, kind):
            raise TypeError(
                f"Sensor '{name}' is a {type(found).__name__}, not a {kind.__name__}: name another "
                f"sensor, or call scene.sensor('{name}', {type(found).__name__})."
            )
        return found

    def __getitem__(self, key: str) -> Any:
        found = self._find_sensor(key)
        if found is not None:
            return found
        if key in self.entities:
            return self.entities[key]
        raise self._not_found(key)

    def _find_sensor(self, name: str) -> Sensor[Any] | None:
        if name in self.sensors:
            return self.sensors[name]
        # Sensors of two entities may have the same name, which is then ambiguous.
        names = self._short_names.get(name, [])
        if len(names) != 1:
            return None
        return self.sensors[names[0]]

    def _not_found(self, name: str) -> KeyError:
        """Return the error that lists what can be found instead."""
        if name in self._left_out_sensors:
            return KeyError(
                f"Sensor '{name}' is left out of the scene: add it to SceneCfg.kept_sensors, which "
                "a task's settings for a few CPU cores set."
            )
        available = sorted({*self.entities, *self.sensors})
        return KeyError(
            f"Scene element '{name}' not found.{near_matches(name, available)} "
            f"Available: {available}"
        )

    @property
    def env_origins(self) -> torch.Tensor:
        """Origin of each world [m], shape [num_envs, 3]."""
        if self.terrain is None:
            return self._env_origins
        return self.terrain.env_origins

    def saved_values(self) -> dict[str, object]:
        """Return entities and sensors, and the origins of the worlds unless a terrain has them.

        If sensors hold samples, the time since the last control step is among them.
        """
        values = super().saved_values()
        if self.terrain is None:
            values["env_origins"] = self._env_origins
        if self._samplers:
            values["since_control"] = self._since_control
        return values

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned; states of older versions lack some parts."""
        super().load_state_dict({"random": self.random.state_dict(), **state})
        if self.terrain is None and "env_origins" in state:
            self._env_origins.copy_(state["env_origins"])
        self._since_control = state.get("since_control", 0.0)

    @property
    def env_spacing(self) -> float:
        """Distance between the origins of neighboring worlds [m]."""
        return self.cfg.env_spacing

    @property
    def needs_substeps(self) -> bool:
        """True if an entity or a sensor must be updated at every physics step."""
        elements = (*self.entities.values(), *self.sensors.values())
        if any(element.needs_substeps for element in elements):
            return True
        period = self._control_period
        return period > 0.0 and any(s.cfg.samples_within(period) for s in self._samplers)

    def needs_refresh(self, dt: float) -> bool:
        """Return whether an update by `dt` [s] takes samples, which need current fields."""
        return any(sensor.is_due(dt) for sensor in self._samplers)

    def keep_substeps(self, count: int) -> None:
        """Prepare sensors for updates that cover up to `count` physics steps.

        Sensors that support it then need no update after each step. This changes the spec.

        Args:
            count: number of physics steps in a control step.
        """
        self._steps_per_control = count
        for sensor in self.sensors.values():
            sensor.keep_substeps(self.spec, count)

    def compile(self) -> mujoco.MjModel:
        """Return the compiled scene."""
        return self.spec.compile()

    def collect_variant_info(self) -> list[tuple[str, VariantMetadata]]:
        """Return the entities that differ from world to world, for `Simulation(variant_info=)`."""
        found = []
        for name, entity in self.entities.items():
            metadata = entity.variant_metadata
            if metadata is not None:
                metadata.first_world = self.cfg.first_world
                metadata.total_envs = self.cfg.total_envs
                found.append((name, metadata))
        return found

    def initialize(self, mj_model: mujoco.MjModel, model: ModelView, data: DataView) -> None:
        """Resolve all entities and sensors in the compiled model.

        Raises:
            ValueError: the simulation has a different number of worlds.
        """
        num_envs = data.qpos.shape[0]
        if num_envs != self.num_envs:
            raise ValueError(
                f"The simulation has {num_envs} worlds, but the scene has {self.num_envs}: build "
                "it with num_envs=scene.num_envs."
            )
        for note in doubtful_sizes(mj_model):
            warnings.warn(note, stacklevel=2)
        for entity in self.entities.values():
            entity.initialize(mj_model, model, data, self.device)
        for name, entity in self.entities.items():
            entity.draw_from(self.random, name)
        for sensor in self.sensors.values():
            if isinstance(sensor, Sensor):  # and not only of its protocol
                sensor.draw_from(self.random)
            sensor.initialize(mj_model, model, data, self.device)
        if self._steps_per_control > 1:
            self._control_period = float(mj_model.opt.timestep) * self._steps_per_control
        lookers = [s for s in self.sensors.values() if s.requires_sensor_context]
        if lookers:
            self.sensor_context = SensorContext(mj_model, model, data, device=self.device)
            for sensor in lookers:
                sensor.set_context(self.sensor_context)
        data.on_change(self.invalidate_sensors)

    def reset(self, env_ids: EnvIds = None) -> None:
        """Clear the data that entities and sensors carry over from step to step."""
        worlds = Worlds.of(env_ids, self.num_envs, self.device)
        if worlds.is_all:
            self._since_control = 0.0
        for entity in self.entities.values():
            entity.reset(worlds.for_term(entity.reset))
        for sensor in self.sensors.values():
            sensor.reset(worlds.for_term(sensor.reset))

    def update(self, dt: float) -> None:
        """Advance the time-dependent state of entities and sensors by `dt` [s]."""
        if self._samplers:
            self._since_control += dt
            at_control_step = self._since_control > self._control_period * (1.0 - 1e-6)
            if at_control_step:
                self._since_control = 0.0
            for sensor in self._samplers:
                sensor.is_at_control_step = at_control_step
        for entity in self.entities.values():
            entity.update(dt)
        for sensor in self.sensors.values():
            sensor.update(dt)

    def invalidate_sensors(self, env_ids: EnvIds = None) -> None:
        """Mark the measurements of these worlds as outdated.

        Every call of the simulation that changes worlds does so automatically.
        """
        for sensor in self.sensors.values():
            worlds = Worlds.of(env_ids, self.num_envs, self.device)
            sensor.invalidate(worlds.for_term(sensor.invalidate))

    def write_data_to_sim(self, env_ids: EnvIds = None) -> None:
        """Write the entities' targets to the simulation's controls.

        Args:
            env_ids: worlds whose episode begins, before its first physics step: only their
                controls are written, and nothing moves in the others. None for a physics step of
                all worlds, which advances the delays and memories of actuators.
        """
        for entity in self.entities.values():
            if env_ids is None:
                entity.write_data_to_sim()
            else:
                entity.begin_controls(Worlds.of(env_ids, self.num_envs, self.device))

    def write(self, output_dir: str | Path, *, zip: bool = False) -> Path:
        """Write the scene as `scene.xml` with its assets, to a folder or an archive.

        Returns:
            Path of the folder or archive; see `export_spec` for the files that it replaces.
        """
        return export_spec(self.spec, Path(output_dir), zip=zip)

    def __str__(self) -> str:
        entities = []
        for name, entity in self.entities.items():
            base = "free"
            if entity.is_mocap:
                base = "mocap"
            elif entity.is_fixed_base:
                base = "fixed"
            joints = entity.num_joints + entity.num_ball_joints
            entities.append(
                [name, type(entity).__name__, base, entity.num_bodies, joints, entity.num_actuators]
            )
        columns = ("entity", "class", "base", "bodies", "joints", "actuators")
        text = render_table(f"Scene of {self.num_envs} worlds", columns, entities)
        if self.sensors:
            sensors = [[name, type(sensor).__name__] for name, sensor in self.sensors.items()]
            text += "\n" + render_table("", ("sensor", "class"), sensors)
        return text

    def _build_terrain(self) -> TerrainEntity | None:
        """Build the terrain of the configuration or among its entities, if there is one."""
        if self.cfg.terrain and "terrain" in self.cfg.entities:
            raise ValueError(
                "SceneCfg has a terrain and an entity named 'terrain': rename the entity."
            )
        terrains: dict[str, TerrainEntityCfg] = {}
        if self.cfg.terrain:
            terrains["terrain"] = self.cfg.terrain
        terrains |= {
            name: cfg
            for name, cfg in self.cfg.entities.items()
            if isinstance(cfg, TerrainEntityCfg)
        }
        if not terrains:
            return None
        if len(terrains) > 1:
            raise ValueError(
                f"A scene has one terrain, but SceneCfg gives {sorted(terrains)}: remove all "
                "but one."
            )
        [(name, cfg)] = terrains.items()
        cfg = replace(
            cfg,
            num_envs=self.num_envs,
            env_spacing=self.cfg.env_spacing,
            first_world=self.cfg.first_world,
            total_envs=self.cfg.total_envs,
            world_ids=self.world_ids,
        )
        terrain = TerrainEntity(cfg, self.device)
        self.entities[name] = terrain
        return terrain

    def _follow_moved_geoms(self) -> None:
        """Let exclusions of contacts name the bodies that have the geoms."""
        moved: dict[str, str] = {}
        for entity in self.entities.values():
            moved.update(entity.moved_geoms)
        for exclude in self.spec.excludes:
            exclude.bodyname1 = moved.get(exclude.bodyname1, exclude.bodyname1)
            exclude.bodyname2 = moved.get(exclude.bodyname2, exclude.bodyname2)

    def _leave_out_sensors(self) -> set[str]:
        """Delete sensors that are not kept from the spec; return their names."""
        kept = self.cfg.kept_sensors
        if kept is None:
            return set()
        check_tuple("SceneCfg.kept_sensors", kept, str)
        names = {sensor.name for sensor in self.spec.sensors}
        unknown = sorted(set(kept) - names)
        if unknown:
            raise ValueError(
                f"SceneCfg.kept_sensors names {unknown}, which are not sensors of any entity's "
                f"model: choose from {sorted(names)}."
            )
        for sensor in list(self.spec.sensors):
            if sensor.name not in kept:
                self.spec.delete(sensor)
        return names - set(kept)

    def _add_sensor(self, cfg: SensorCfg) -> None:
        """Build a sensor of the configuration, and let it edit the spec."""
        key = cfg.prefixed_name
        if key in self._short_names.get(cfg.name, []):
            raise ValueError(f"Two sensors are called '{key}': rename one of them.")
        if key in self.sensors:
            raise ValueError(
                f"Sensor '{key}' is defined in both entity XML and scene config: rename one of "
                "them, or remove it from the config to use that of the XML."
            )
        cfg.check_options()
        sensor = cfg.build()
        if sensor.cfg is None:
            sensor.cfg = cfg
        sensor.edit_spec(self.spec, self.entities)
        self.sensors[key] = sensor
        self._short_names.setdefault(cfg.name, []).append(key)

    def _attach(self, name: str, cfg: EntityCfg) -> None:
        """Build an entity and attach its spec, with its name as prefix."""
        try:
            entity = cfg.build()
        except ValueError as error:
            raise ValueError(f"Entity '{name}': {error}") from error
        options = drop_options(entity.spec)
        if options:
            warnings.warn(
                f"Entity '{name}' sets <option> {', '.join(options)}, which a scene ignores: "
                "set them in SimulationCfg.mujoco.",
                stacklevel=4,
            )
            self.entity_options[name] = options
        for joint, qpos in entity.initial_qpos().items():
            self._initial_qpos[f"{name}/{joint}"] = qpos
        frame = self.spec.worldbody.add_frame()
        _adopt_sizes_and_looks(entity.spec, self.spec)
        name_keyframes(entity.spec)
        self.spec.attach(entity.spec, prefix=f"{name}/", frame=frame)
        self.entities[name] = entity

    def _spiral_origins(self) -> torch.Tensor:
        """Return origins on a square spiral [m], shape [num_envs, 3]."""
        fixed = [
            geom.name or "without a name"
            for geom in _fixed_geoms(self.spec.worldbody)
            if geom.type != mujoco.mjtGeom.mjGEOM_PLANE and (geom.contype or geom.conaffinity)
        ]
        if fixed and self.cfg.env_spacing and self.num_envs > 1:
            warnings.warn(
                f"All worlds share one origin instead of being {self.cfg.env_spacing} m apart, "
                f"because the scene fixes a geom to the world ({fixed[0]}), which would stay "
                "behind: make it an entity of its own, or set env_spacing=0.",
                stacklevel=3,
            )
        spacing = self.cfg.env_spacing
        if fixed:
            spacing = 0.0
        origins = spiral_origins(self.world_ids, spacing)
        return torch.as_tensor(origins, dtype=torch.float32, device=self.device)

    def _add_keyframe(self) -> None:
        """Merge the entities' initial states into one keyframe."""
        if any(key.name == "init_state" for key in self.spec.keys):
            return
        initial = self._initial_qpos
        if any(joint.name not in initial for joint in self.spec.joints):
            # Joints that spec_fn added have their reference positions.
            model = self.spec.compile()
            for joint in self.spec.joints:
                adr = model.jnt_qposadr[joint.id]
                width = qpos_width(joint.type)
                initial.setdefault(joint.name, model.qpos0[adr : adr + width].tolist())
        qpos = [q for joint in self.spec.joints for q in initial[joint.name]]
        self.spec.add_key(name="init_state", qpos=qpos, ctrl=self._initial_ctrl())

    def _initial_ctrl(self) -> list[float]:
        """Return controls for the initial keyframe; further controls of an actuator are zero."""
        ctrl = [u for entity in self.entities.values() for u in entity.initial_ctrl()]
        ctrl += [0.0] * (len(self.spec.actuators) - len(ctrl))
        if all(actuator.gaintype in _ONE_INPUT for actuator in self.spec.actuators):
            return ctrl
        controls: list[float] = []
        for value, count in zip(ctrl, self.spec.compile().actuator_ctrlnum.tolist(), strict=True):
            controls += [value, *[0.0] * (count - 1)][:count]
        return controls


def world_ids_of(scene_cfg: SceneCfg) -> tuple[int, ...]:
    """Return the id of each world of a scene in the whole batch, given or counted."""
    if scene_cfg.world_ids is not None:
        return scene_cfg.world_ids
    first = scene_cfg.first_world
    return tuple(range(first, first + scene_cfg.num_envs))


def _world_ids(scene_cfg: SceneCfg) -> tuple[int, ...]:
    """Return the id of each world of a scene in the whole batch.

    Raises:
        ValueError: the scene has no world or several models, or its worlds do not fit the batch.
    """
    check_count("SceneCfg.num_envs", scene_cfg.num_envs, 1, ": ask for one world or more")
    check_count("SceneCfg.first_world", scene_cfg.first_world, 0, ": worlds count from 0")
    last = scene_cfg.first_world + scene_cfg.num_envs
    if scene_cfg.total_envs is not None and scene_cfg.total_envs < last:
        raise ValueError(
            f"SceneCfg.total_envs is {scene_cfg.total_envs}, but the scene has the worlds up "
            f"to {last - 1}: give at least {last}."
        )
    if scene_cfg.buckets:
        raise ValueError(
            f"SceneCfg.buckets has {len(scene_cfg.buckets)} scenes, but a Scene has one model: "
            "build the environment with make_env(cfg), or take one scene of the buckets."
        )
    world_ids = world_ids_of(scene_cfg)
    if len(world_ids) != scene_cfg.num_envs:
        raise ValueError(
            f"SceneCfg.world_ids has {len(world_ids)} ids, but num_envs is "
            f"{scene_cfg.num_envs}: give one id per world."
        )
    return world_ids


def _adopt_sizes_and_looks(part: mujoco.MjSpec, whole: mujoco.MjSpec) -> None:
    """Give a part the sizes of memory and the settings of pictures of the spec that gets it.

    MuJoCo keeps those of the whole in any case, and warns of others with each compilation.
    """
    for name in dir(part):
        if name.startswith("nuser_"):
            setattr(part, name, getattr(whole, name))
    part.njmax = whole.njmax
    part.nconmax = whole.nconmax
    part.memory = whole.memory
    for group in (name for name in dir(part.visual) if not name.startswith("_")):
        own = getattr(part.visual, group)
        other = getattr(whole.visual, group)
        for name in (name for name in dir(own) if not name.startswith("_")):
            setattr(own, name, getattr(other, name))


def _fixed_geoms(body: mujoco.MjsBody) -> Iterator[mujoco.MjsGeom]:
    """Yield the geoms of a body and of its descendants that are fixed to it."""
    yield from body.geoms
    for child in body.bodies:
        if not child.joints and not child.mocap:
            yield from _fixed_geoms(child)
