"""A physical object: built from a spec, found by name, driven by actuators."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, cast

import mujoco
import torch

from manyworlds.actuator import Actuator, ActuatorCfg, ActuatorGroups, XmlActuatorCfg
from manyworlds.actuator.targets import COMMAND_FIELDS
from manyworlds.entity.data import EntityData, EntityDefaults
from manyworlds.entity.driven import DrivenTargets
from manyworlds.entity.elements import Matches, NamedElements, Names
from manyworlds.entity.indexing import EntityIndexing, compute_indexing, spec_elements
from manyworlds.entity.pose_holder import PoseHolder
from manyworlds.entity.writers import StateWriters
from manyworlds.signals import DelayBuffer
from manyworlds.sim.views import DataView, ModelView
from manyworlds.spec.config import (
    CameraCfg,
    CollisionCfg,
    GeomCfg,
    LightCfg,
    MaterialCfg,
    MeshCfg,
    SpecCfg,
    TextureCfg,
    warn_overlapping_geom_edits,
)
from manyworlds.spec.edits import (
    auto_wrap_fixed_base_mocap,
    export_spec,
    get_free_joint,
    remove_actuators,
)
from manyworlds.spec.elements import TRANSMISSIONS, is_position_actuator, qpos_width
from manyworlds.spec.mjcf import fix_spec_xml, mark_bare, strip_buffer_textures
from manyworlds.spec.references import complete_keyframes, copy_spec
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.declared import declared
from manyworlds.utils.files import write_atomic
from manyworlds.utils.overrides import overrides
from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import WorldRandom
from manyworlds.validation.checks import check_tuple, check_type
from manyworlds.validation.names import free_name, match_ids, resolve_expr
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

# Kinds of elements that actuators drive, named as in `TransmissionType`.
_DRIVEN = ("joint", "tendon", "site")
_POSITION = int(mujoco.mjtCtrlInput.mjINPUT_POS)
_INITIALIZE = (
    "before it is part of a simulation: build a Simulation of scene.spec and call "
    "scene.initialize(sim.mj_model, sim.model, sim.data), or make a ManagerBasedRlEnv."
)
_KINDS = {kind: name.value for name, kinds in TRANSMISSIONS.items() for kind in kinds}


class SecondActuatorsWarning(UserWarning):
    """Warning of actuators of the model that act beside those of a configuration."""

    def __init__(self, where: str, problem: str, remedy: str) -> None:
        super().__init__(f"{where} {problem}: {remedy}.")
        self.where = where
        self.problem = problem
        self.remedy = remedy


@dataclass
class EntityArticulationInfoCfg:
    """Actuators and soft joint limits of an entity."""

    actuators: tuple[ActuatorCfg, ...] = ()
    soft_joint_pos_limit_factor: float = 1.0
    """Share of each joint's range that counts as soft limits, around the midpoint."""
    file_actuators: Literal["keep", "replace"] = field(default="keep", kw_only=True)
    """What becomes of the model's own actuators on the joints, tendons and sites that `actuators`
    select: they stay, so that the forces of both add up, or `actuators` replace them. Those that
    an `XmlActuatorCfg` takes always stay."""

    def __post_init__(self) -> None:
        if self.file_actuators not in ("keep", "replace"):
            raise ValueError(
                "EntityArticulationInfoCfg.file_actuators must be 'keep' or 'replace', got "
                f"{self.file_actuators!r}: 'replace' removes the model's own actuators from the "
                "joints that have others."
            )
        check_tuple("EntityArticulationInfoCfg.actuators", self.actuators, ActuatorCfg)
        if not 0.0 < self.soft_joint_pos_limit_factor <= 1.0:
            raise ValueError(
                "soft_joint_pos_limit_factor must be in (0, 1], got "
                f"{self.soft_joint_pos_limit_factor}: 1 keeps the model's limits."
            )


@dataclass
class EntityCfg:
    """Spec, initial state and actuators of an entity."""

    @dataclass
    class InitialStateCfg:
        """State at reset."""

        pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
        """Root position relative to the world's origin [m]."""
        rot: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
        """Root orientation (wxyz)."""
        lin_vel: tuple[float, float, float] = (0.0, 0.0, 0.0)
        """Root linear velocity [m/s]."""
        ang_vel: tuple[float, float, float] = (0.0, 0.0, 0.0)
        """Root angular velocity [rad/s]."""
        joint_pos: dict[str, float] | None = field(default_factory=lambda: {".*": 0.0})
        """Joint positions by regular expression [rad or m]; the first match counts, and joints
        without one are at 0. None takes joints and ball joints from the first keyframe."""
        joint_vel: dict[str, float] = field(default_factory=lambda: {".*": 0.0})
        """Joint velocities by regular expression [rad/s or m/s]."""
        _: KW_ONLY
        ball_joint_quat: dict[str, tuple[float, float, float, float]] = field(default_factory=dict)
        """Orientations of ball joints by regular expression (wxyz); the others are at identity."""

    init_state: InitialStateCfg = field(default_factory=InitialStateCfg)
    spec_fn: Callable[[], mujoco.MjSpec] = mujoco.MjSpec
    """Returns a spec of the entity alone, which is copied; its root is the body of its free joint,
    or its first body if it has no free joint."""
    articulation: EntityArticulationInfoCfg | None = None
    sort_actuators: bool = False
    """Sort actuators by the joints that they move, instead of in the order of `articulation`."""
    lights: tuple[LightCfg, ...] = ()
    cameras: tuple[CameraCfg, ...] = ()
    textures: tuple[TextureCfg, ...] = ()
    materials: tuple[MaterialCfg, ...] = ()
    meshes: tuple[MeshCfg, ...] = ()
    geoms: tuple[GeomCfg, ...] = ()
    collisions: tuple[CollisionCfg, ...] = ()
    kinematic: bool = field(default=False, kw_only=True)
    """True if the root is moved from outside, as a mocap body: it pushes and is not pushed. The
    spec's free joint is removed."""

    def __post_init__(self) -> None:
        """Check that `spec_fn` is a function.

        Raises:
            TypeError: `spec_fn` is not callable.
        """
        if not callable(self.spec_fn):
            raise TypeError(
                "EntityCfg.spec_fn must be a function that returns a spec, got "
                f"{type(self.spec_fn).__name__}: write spec_fn=lambda: ..."
            )

    def build(self) -> Entity:
        """Make the entity."""
        return Entity(self)


class Entity(StateWriters, NamedElements, Stateful):
    """A robot, a prop or a fixture.

    Before compilation, an entity owns an editable spec; after `initialize`, it reads and writes its
    part of the simulation. Names do not include the scene's prefix. A fixed base is attached to a
    mocap body `mocap_base`, which each world can place at its origin. Joints and geoms without a
    name get one.

    Raises:
        ValueError: the spec has no body or several free joints, the initial state does not fit,
            or an actuator's pattern matches nothing.
    """

    state_attributes = ("data", "actuators")
    derived_attributes = ("_actuator_groups",)  # they follow gears of the model
    wraps_fixed_base: ClassVar[bool] = True
    """True if a fixed base is attached to a mocap body."""
    _beginning: Worlds | None = None
    _hold: PoseHolder | None = None
    has_prefix: ClassVar[bool] = True
    """True if a scene gives its elements the entity's name as a prefix."""
    moved_geoms: Mapping[str, str] = MappingProxyType({})
    """Bodies of the scene that have the geoms of a body of the entity, by its name in the scene."""
    variant_metadata: Any = None
    """Differences between its variants; None without variants."""
    spec: mujoco.MjSpec = declared()
    """Editable spec: of the entity alone, and of the scene once that has attached it."""
    actuators: list[Actuator] = declared()
    """Actuators, in the order of `cfg.articulation`."""
    is_fixed_base: bool = declared()
    """True if the entity has no free joint."""
    is_mocap: bool = declared()
    """True if the root is a mocap body."""
    data: EntityData = declared(_INITIALIZE)
    """State, targets and defaults in all worlds; after `initialize`."""
    indexing: EntityIndexing = declared(_INITIALIZE)
    """Ids of the entity's elements in the compiled scene; after `initialize`."""

    def __init__(self, cfg: EntityCfg) -> None:
        _check_init_state(cfg.init_state)
        self.cfg = cfg
        self._prepare_spec()
        self._index_elements()

    def _index_elements(self) -> None:
        """Keep the elements of the spec and their names, and add the actuators."""
        # The spec may later contain a whole scene, so the entity's own elements are stored.
        self._elements = spec_elements(self.spec)
        self._free_joint = get_free_joint(self.spec)  # of a spec that variants may have replaced
        self._all_joint_names = tuple(joint.name for joint in self.spec.joints)
        self._names = {
            kind: tuple(element.name for element in elements)
            for kind, elements in self._elements.items()
        }
        self._key_act: tuple[float, ...] = ()
        if self.cfg.init_state.joint_pos is None and self.spec.keys:
            self._key_act = tuple(self.spec.keys[0].act)
        self.actuators = []
        self._add_actuators()
        self._warn_of_second_actuators()
        self._actuator_groups = ActuatorGroups(self.actuators)
        actuators = tuple(self.spec.actuators)
        self._elements["actuator"] = actuators
        self._names["actuator"] = tuple(actuator.name for actuator in actuators)
        self._actuator_targets = [_driven_by(actuator) for actuator in actuators]

    # Structure.

    @property
    def is_articulated(self) -> bool:
        """True if the entity has joints other than a free joint."""
        return self.num_joints + self.num_ball_joints > 0

    @property
    def is_actuated(self) -> bool:
        """True if the entity has actuators."""
        return self.num_actuators > 0

    @property
    def all_joint_names(self) -> tuple[str, ...]:
        """Names of all joints in model order, ball joints and a free one included."""
        return self._all_joint_names

    @property
    def has_tendon_actuators(self) -> bool:
        """True if an actuator configuration drives tendons."""
        return self._drives(TransmissionType.TENDON)

    @property
    def has_site_actuators(self) -> bool:
        """True if an actuator configuration drives sites."""
        return self._drives(TransmissionType.SITE)

    @property
    def root_body(self) -> mujoco.MjsBody:
        """The root body in the spec: that of the free joint, or the first one."""
        if self._free_joint is None:
            return self.spec.bodies[1]
        return self._free_joint.parent

    @property
    def needs_substeps(self) -> bool:
        """True if an actuator or a method of a subclass must run in every physics step."""
        own = overrides(self, Entity, "update", "write_data_to_sim")
        return own or self._actuator_groups.needs_substeps

    def find_joints_by_actuator_names(self, actuator_name_keys: Names) -> Matches:
        """Select joints that actuators move, in joint order; see `DrivenTargets` for the names."""
        found = self.driven_targets(TransmissionType.JOINT).select(actuator_name_keys)
        return [self.names("joint").index(name) for name in found], found

    def driven_targets(self, transmission: TransmissionType) -> DrivenTargets:
        """Return the joints, tendons or sites that the model's actuators drive."""
        kind = TransmissionType(transmission).value
        names = self.names("actuator")
        pairs = [
            (name, target)
            for name, (driven, target) in zip(names, self._actuator_targets, strict=True)
            if driven == kind
        ]
        driven = {target for _, target in pairs}
        targets = [name for name in self.names(kind) if name in driven]  # no ball joints
        return DrivenTargets(kind, tuple(targets), tuple(pairs)).of(targets)

    # Life cycle.

    def compile(self) -> mujoco.MjModel:
        """Compile the entity alone."""
        return self.spec.compile()

    def write_xml(self, xml_path: str | Path) -> None:
        """Write the entity alone as one MJCF file, which refers to its assets."""
        spec = self.spec.copy()
        strip_buffer_textures(spec)
        bare = mark_bare(spec)
        spec.compile()
        write_atomic(Path(xml_path), fix_spec_xml(spec.to_xml(), bare=bare))

    def to_zip(self, path: str | Path) -> Path:
        """Write the entity alone and its assets into one archive; return its path."""
        return export_spec(self.spec, Path(path).with_suffix(""), zip=True)

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the entity in the compiled scene and allocate its data."""
        self.indexing = compute_indexing(self._elements, self._free_joint, mj_model, device)
        articulation = self.cfg.articulation or EntityArticulationInfoCfg()
        pose = None
        if self.is_actuated:
            pose = self._default_pose(mj_model)
        self.data = EntityData(
            self.indexing,
            model,
            data,
            self._defaults(data.qpos.shape[0], device, pose),
            articulation.soft_joint_pos_limit_factor,
            {actuator.transmission_type for actuator in self.actuators},
        )
        for actuator in self.actuators:
            actuator.initialize(mj_model, model, data, device)
        self._actuator_groups.initialize(data.qpos.shape[0], device)
        if pose is not None:
            followed = {i for actuator in self.actuators for i in actuator.global_ctrl_ids.tolist()}
            self._hold = PoseHolder(mj_model, pose, self.indexing, followed, self._key_act, device)
            self._hold.begin(data)

    def draw_from(self, random: WorldRandom, name: str) -> None:
        """Draw the delays of actuators from these random numbers, from now on.

        Args:
            random: random numbers of the worlds.
            name: name of the entity, with which the names of its streams begin.
        """
        buffers: list[DelayBuffer] = []
        for actuator in self.actuators:
            buffer = actuator.delay_buffer
            if buffer is not None and all(buffer is not other for other in buffers):
                buffer.draw_from(random, f"{name}/delay {len(buffers)}")
                buffers.append(buffer)

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Begin anew in the given worlds; None for all.

        Targets and activations are those that hold the default pose, or the keyframe's; external
        wrenches and the memories of actuators are cleared.
        """
        worlds = Worlds.of(env_ids, self.data.num_envs, self.data.device)
        self.data.clear_state(worlds)
        if self._hold is not None:
            self._hold.begin(self.data.data, worlds)
        self._actuator_groups.reset(worlds)

    def update(self, dt: float) -> None:
        """Advance time-dependent actuator state by `dt` [s]."""
        self._actuator_groups.update(dt)

    def write_data_to_sim(self) -> None:
        """Turn targets into controls; once per physics step, and from `begin_controls`."""
        self._actuator_groups.apply_controls(self.data, self._beginning)

    def begin_controls(self, worlds: Worlds) -> None:
        """Turn targets into the first controls of worlds whose episode begins.

        Delays and memories of actuators in the other worlds do not move.
        """
        # A subclass may override `write_data_to_sim`, which has no argument.
        self._beginning = worlds
        try:
            self.write_data_to_sim()
        finally:
            self._beginning = None
        if self._hold is not None:
            self._hold.fill_history(self.data.data, worlds)

    # Initial state.

    def initial_qpos(self) -> dict[str, Sequence[float]]:
        """Return the initial `qpos` of each joint by name; call it before a scene owns the spec."""
        init = self.cfg.init_state
        qpos: dict[str, Sequence[float]] = {
            name: [q] for name, q in zip(self.joint_names, self._initial_joint_pos(), strict=True)
        }
        qpos |= dict(zip(self.ball_joint_names, self._initial_ball_quat(), strict=True))
        free = self._free_joint
        if free is not None:
            qpos[free.name] = [*init.pos, *init.rot]
        return qpos

    def initial_root_state(self) -> list[float]:
        """Return pose and velocity of the root at reset; only the pose of a fixed base."""
        init = self.cfg.init_state
        state = [*init.pos, *init.rot]
        if not self.is_fixed_base:
            state += [*init.lin_vel, *init.ang_vel]
        return state

    def initial_ctrl(self) -> list[float]:
        """Return the first control of each actuator: position actuators hold initial positions."""
        joints = dict(zip(self.names("joint"), self._initial_joint_pos(), strict=True))
        actuators = cast("tuple[mujoco.MjsActuator, ...]", self._elements["actuator"])
        controls = []
        for actuator, (kind, target) in zip(actuators, self._actuator_targets, strict=True):
            control = 0.0
            holds = is_position_actuator(actuator) or actuator.ctrlspec & _POSITION
            if kind == "joint" and holds:
                control = joints.get(target, 0.0) * actuator.gear[0]  # the actuator's length there
            controls.append(control)
        return controls

    def _initial_joint_pos(self) -> tuple[float, ...]:
        table = self.cfg.init_state.joint_pos
        if table is not None:
            return resolve_expr(table, self.names("joint"), 0.0)
        return tuple(values[0] for values in self._key_values() if len(values) == 1)

    def _initial_ball_quat(self) -> tuple[Sequence[float], ...]:
        if self.cfg.init_state.joint_pos is None:
            return tuple(values for values in self._key_values() if len(values) == 4)
        table = self.cfg.init_state.ball_joint_quat
        return resolve_expr(table, self.names("ball_joint"), (1.0, 0.0, 0.0, 0.0))

    def _key_values(self) -> list[list[float]]:
        """Split the positions of the first keyframe by joint."""
        if not self.spec.keys:
            raise ValueError(
                "init_state.joint_pos=None requires the model to have a keyframe, but it has "
                "none: add a <key> or give joint positions."
            )
        qpos = list(self.spec.keys[0].qpos)
        widths = [qpos_width(joint.type) for joint in self.spec.joints]
        if len(qpos) != sum(widths):
            raise ValueError(
                f"The first keyframe has {len(qpos)} joint positions, but the entity has "
                f"{sum(widths)}: complete its qpos."
            )
        starts = accumulate(widths, initial=0)
        return [qpos[i : i + n] for i, n in zip(starts, widths, strict=False)]

    def _default_pose(self, mj_model: mujoco.MjModel) -> mujoco.MjData:
        """Return lengths of tendons and actuators in the default pose."""
        data = mujoco.MjData(mj_model)
        quats = [x for quat in self._initial_ball_quat() for x in quat]
        data.qpos[self.indexing.joint_q_adr.tolist()] = self._initial_joint_pos()
        data.qpos[self.indexing.ball_joint_q_adr.flatten().tolist()] = quats
        mujoco.mj_kinematics(mj_model, data)
        mujoco.mj_comPos(mj_model, data)
        mujoco.mj_tendon(mj_model, data)
        mujoco.mj_transmission(mj_model, data)
        return data

    def _defaults(
        self, num_envs: int, device: torch.device, pose: mujoco.MjData | None
    ) -> EntityDefaults:
        init = self.cfg.init_state
        tendon_len: Sequence[float] = []
        if pose is not None and self._drives(TransmissionType.TENDON):
            tendon_len = pose.ten_length[self.indexing.tendon_ids.tolist()].tolist()

        def rows(values: Sequence[float] | Sequence[Sequence[float]], *shape: int) -> torch.Tensor:
            row = torch.tensor(values, dtype=torch.float32, device=device).reshape(shape or (-1,))
            return row.repeat(num_envs, *[1] * row.ndim)

        return EntityDefaults(
            root_state=rows(self.initial_root_state()),
            joint_pos=rows(self._initial_joint_pos()),
            joint_vel=rows(resolve_expr(init.joint_vel, self.names("joint"), 0.0)),
            ball_joint_quat=rows(self._initial_ball_quat(), -1, 4),
            tendon_len=rows(tendon_len),
        )

    # Building.

    def _prepare_spec(self) -> None:
        """Make the spec, without actuators."""
        self.spec = self._make_spec()
        if len(self.spec.bodies) < 2:
            raise ValueError("An entity needs at least one body, but its spec has none: add one.")
        self._free_joint = self._prepare_free_joint()
        self.is_fixed_base = self._free_joint is None
        # Patterns and sensors need a name for each joint and each geom.
        for kind, elements in (("joint", self.spec.joints), ("geom", self.spec.geoms)):
            taken = {element.name for element in elements}
            for i, element in enumerate(element for element in elements if not element.name):
                element.name = free_name(f"{kind}_{i}", taken)
                taken.add(element.name)
        self.is_mocap = bool(self.root_body.mocap)
        cfg = self.cfg
        warn_overlapping_geom_edits(cfg.geoms, cfg.collisions, self.spec)
        # Geoms may use new meshes, materials and their textures.
        editors: tuple[SpecCfg, ...] = (*cfg.lights, *cfg.cameras, *cfg.textures, *cfg.materials)
        for editor in (*editors, *cfg.meshes, *cfg.geoms, *cfg.collisions):
            editor.edit_spec(self.spec)
        if self.is_mocap:
            self.root_body.pos[:] = cfg.init_state.pos
            self.root_body.quat[:] = cfg.init_state.rot
        if cfg.articulation is not None and cfg.articulation.file_actuators == "replace":
            self._remove_file_actuators(cfg.articulation)
        for body in self.spec.bodies[1:]:
            # MuJoCo compiles some bodies to shortcuts that per-world changes of mass break.
            body.simple = False

    def _spec_fn(self) -> mujoco.MjSpec:
        return self.cfg.spec_fn()

    def _make_spec(self) -> mujoco.MjSpec:
        def copied() -> mujoco.MjSpec:
            # A function may return one and the same spec to several entities.
            spec = self._spec_fn()
            check_type("What spec_fn returns", spec, mujoco.MjSpec, "return a spec, not compiled.")
            spec = copy_spec(spec)
            complete_keyframes(spec)
            free = get_free_joint(spec)
            if self.cfg.kinematic and free is not None:
                spec.delete(free)
            return spec

        if self.wraps_fixed_base:
            return auto_wrap_fixed_base_mocap(copied)()
        return copied()

    def _prepare_free_joint(self) -> mujoco.MjsJoint | None:
        """Check, name and return the free joint, if there is one."""
        free = get_free_joint(self.spec)
        if free is None:
            return None
        body = free.parent
        if body.parent.id != self.spec.worldbody.id:
            raise ValueError(
                f"The freejoint is on body '{body.name}' within '{body.parent.name}', but MuJoCo "
                f"takes freejoints only directly in the worldbody: move '{body.name}' there, or "
                "make it an entity of its own."
            )
        if not free.name:
            free.name = "floating_base_joint"
        return free

    def _remove_file_actuators(self, articulation: EntityArticulationInfoCfg) -> None:
        """Remove the model's own actuators from what others of the configuration will drive."""
        elements = spec_elements(self.spec)
        replaced: set[tuple[str | None, str]] = set()
        for cfg in articulation.actuators:
            if isinstance(cfg, XmlActuatorCfg):
                continue
            kind = cfg.transmission_type.value
            names = [element.name for element in elements[kind]]
            for pattern in cfg.target_names_expr:
                with suppress(ValueError):  # `_find_targets` reports invalid patterns
                    replaced.update((kind, names[i]) for i in match_ids(pattern, names))
        of_file = cast("tuple[mujoco.MjsActuator, ...]", elements["actuator"])
        remove_actuators(self.spec, [each for each in of_file if _driven_by(each) in replaced])

    def _add_actuators(self) -> None:
        """Build the actuators of the configuration, and add them to the spec."""
        articulation = self.cfg.articulation or EntityArticulationInfoCfg()
        for cfg in articulation.actuators:
            ids, names = self._find_targets(cfg)
            self.actuators.append(cfg.build(self, ids, names))
        if not self.cfg.sort_actuators:
            for actuator in self.actuators:
                self._create_actuators(actuator, actuator.target_names)
            return
        by_target: list[tuple[int, int, int, str]] = []
        for i, actuator in enumerate(self.actuators):
            kind = _DRIVEN.index(actuator.transmission_type.value)
            ids = actuator.target_ids.tolist()
            for target_id, name in zip(ids, actuator.target_names, strict=True):
                by_target.append((kind, target_id, i, name))
        for _, _, i, name in sorted(by_target):
            self._create_actuators(self.actuators[i], [name])

    def _create_actuators(self, actuator: Actuator, names: list[str]) -> None:
        """Let a configuration create its actuators, which are called as what they drive."""
        taken = {element.name for element in self.spec.actuators}
        try:
            actuator.edit_spec(self.spec, names)
        except ValueError as error:
            if "repeated name" not in str(error):
                raise
            others = [type(a.cfg).__name__ for a in self.actuators if a is not actuator]
            raise ValueError(
                f"{type(actuator.cfg).__name__} drives {sorted(taken & {*names})}, which another "
                f"configuration ({', '.join(others) or 'none'}) or the model itself already gives "
                "an actuator of that name: make target_names_expr more exact, so that each target "
                "has one, remove those of the model with file_actuators='replace' in "
                "EntityArticulationInfoCfg, or take them with XmlActuatorCfg."
            ) from None

    def _warn_of_second_actuators(self) -> None:
        """Warn of actuators of the file that act beside those that configurations create."""
        of_file = cast("tuple[mujoco.MjsActuator, ...]", self._elements["actuator"])
        ids = {element.id for element in of_file}
        created: dict[tuple[str | None, str], Actuator] = {}
        followers: dict[int, Actuator] = {}
        for actuator in self.actuators:
            for element in actuator._mjs_actuators:
                if element.id in ids:
                    followers[element.id] = actuator
                else:
                    created[_driven_by(element)] = actuator
        doubled: dict[tuple[str | None, str], list[str]] = {}
        for element in of_file:
            key = _driven_by(element)
            creator = created.get(key)
            follower = followers.get(element.id)
            # Two that follow targets of different kinds are meant to add up.
            apart = follower is not None and not any(
                creator is None or (creator.reads(field) and follower.reads(field))
                for field in COMMAND_FIELDS
            )
            if creator is not None and not apart:
                doubled.setdefault((key[0], type(creator.cfg).__name__), []).append(element.target)
        for (kind, name), targets in doubled.items():
            warnings.warn(
                SecondActuatorsWarning(
                    "The model's own actuators",
                    f"act on the {kind}s {targets} beside those of {name}, so that the forces of "
                    "both add up and targets are missed",
                    "set file_actuators='replace' in EntityArticulationInfoCfg to remove them, or "
                    f"take them with XmlActuatorCfg instead of {name}",
                ),
                stacklevel=2,
            )

    def _find_targets(self, cfg: ActuatorCfg) -> Matches:
        """Return what an actuator drives; warn of patterns that also match other kinds."""
        kind = cfg.transmission_type.value
        exact = {f"^{re.escape(name)}$" for name in self._names[kind]}
        patterns = [pattern for pattern in cfg.target_names_expr if pattern not in exact]
        others: list[str] = []
        for other in _DRIVEN:
            names = _names_found(patterns, self._names[other])
            if names and other != kind:
                others.append(f"{other}: {', '.join(names)}")
        found = "; ".join(others)
        try:
            targets = self.find(kind, cfg.target_names_expr)
        except ValueError as error:
            hint = ""
            if found:
                hint = f" Matches were found in {found}: set transmission_type."
            raise ValueError(f"{type(cfg).__name__}: {error}{hint}") from None
        if found:
            warnings.warn(
                f"{type(cfg).__name__}: target_names_expr={cfg.target_names_expr} selects {kind}s, "
                f"but its patterns also match {found}: make them more exact if these were meant.",
                stacklevel=2,
            )
        return targets

    def _drives(self, transmission: TransmissionType) -> bool:
        return any(actuator.transmission_type == transmission for actuator in self.actuators)


def _driven_by(actuator: mujoco.MjsActuator) -> tuple[str | None, str]:
    """Return what an actuator drives: its kind, or None for other kinds, and its name."""
    return _KINDS.get(mujoco.mjtTrn(actuator.trntype)), actuator.target


def _names_found(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """List the names that match a pattern other than `.*`."""
    ids: set[int] = set()
    for pattern in patterns:
        if pattern != ".*":
            with suppress(ValueError):  # `find` reports invalid patterns
                ids.update(match_ids(pattern, names))
    return [names[i] for i in sorted(ids)]


def _check_init_state(init: EntityCfg.InitialStateCfg) -> None:
    """Refuse initial states with wrong numbers."""
    vectors: list[tuple[str, Sequence[float], int]] = [
        ("pos", init.pos, 3),
        ("rot", init.rot, 4),
        ("lin_vel", init.lin_vel, 3),
        ("ang_vel", init.ang_vel, 3),
    ]
    for pattern, quat in init.ball_joint_quat.items():
        vectors.append((f"ball_joint_quat[{pattern!r}]", quat, 4))
    for name, value, length in vectors:
        if len(value) != length:
            raise ValueError(f"init_state.{name} must have {length} numbers, got {value}.")
        if not all(_is_finite(x) for x in value):
            raise ValueError(f"init_state.{name} must be finite numbers, got {value}.")
        if length == 4 and not any(value):
            raise ValueError(f"init_state.{name} must not be zero: (1, 0, 0, 0) is no rotation.")
    for name, table in (("joint_pos", init.joint_pos or {}), ("joint_vel", init.joint_vel)):
        for pattern, x in table.items():
            if not _is_finite(x):
                raise ValueError(f"init_state.{name}[{pattern!r}] must be finite numbers, got {x}.")


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
