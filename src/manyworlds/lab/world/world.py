"""World of a lab: one compiled model, its robots, and its initial state."""

from __future__ import annotations

import copy
import functools
import json
import platform
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import mujoco
import numpy as np

from manyworlds.lab.world.elements import RobotElements
from manyworlds.lab.world.model_facts import (
    INITIAL_KEYFRAME,
    STATE,
    binary_model,
    has_prefix,
    hash_model,
)
from manyworlds.lab.world.options import resolve_options
from manyworlds.spec.edits import add_ground_plane, export_spec, set_options
from manyworlds.spec.load import ModelFileError, load_spec
from manyworlds.spec.mesh_files import MESH_SUFFIXES
from manyworlds.spec.model_text import read_elements
from manyworlds.spec.references import complete_keyframes, copy_spec
from manyworlds.validation.names import free_name

if TYPE_CHECKING:  # entities and scenes import torch, which a model file does not need
    from manyworlds.entity import EntityCfg
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.lab.scene.items import ItemFacts
    from manyworlds.lab.world.card import WorldCard
    from manyworlds.scene import Scene, SceneCfg
    from manyworlds.sim import MujocoCfg

_UNNAMED = "MuJoCo Model"  # MuJoCo's name of a model without one
_ELEMENT = re.compile(r"(?:[Ee]lement name|repeated name) '([^']*)'")


class CompileError(ValueError):
    """Error of a world that MuJoCo does not compile, with MuJoCo's message.

    Args:
        message: MuJoCo's message.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _ELEMENT.search(message)
        self.element = found[1] if found else ""
        """Name of the element that MuJoCo's message names; empty if it names none."""
        self.entity = self.element.rpartition("/")[0]
        """Entity that the element belongs to; empty if it belongs to none."""


@dataclass(kw_only=True)
class World:
    """A compiled world.

    Attributes:
        spec: spec that was compiled.
        model: the compiled model.
        robots: prefix of the elements of each robot, by the robot's name.
        start: initial state as `mjSTATE_INTEGRATION`, shape [num_values]; None for the model's own.
        sources: file or config of each robot, by name.
        option_sources: robot whose model set each of MuJoCo's options that are not the default, by
            the option's name, where it is known.
        errors: reasons why entities were left out, by name.
        warnings: sentences about what was changed or left out when the file of the world was read,
            and about what is probably wrong with it.
        shared: model whose fields a task randomizes to get `model`; None if nothing is randomized.
        card: facts about the world of a batch that this is a copy of; None for other worlds.
        items: facts about items of the scene that its editor added, by name.
        inferred: `robots` as derived from the model; a rebuild keeps other names for them.
    """

    spec: mujoco.MjSpec
    model: mujoco.MjModel
    robots: dict[str, str]
    start: np.ndarray | None = None
    sources: dict[str, str] = field(default_factory=dict)
    option_sources: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    shared: mujoco.MjModel | None = None
    card: WorldCard | None = None
    items: dict[str, ItemFacts] = field(default_factory=dict)
    inferred: dict[str, str] = field(default_factory=dict)

    @functools.cached_property
    def model_hash(self) -> str:
        """Hash of the compiled model; models of the same hash can exchange states.

        It covers all fields except the shapes of meshes and textures, which are most of a model;
        sizes, masses and bounds of meshes are covered. Where a task's environment steps the world,
        it is the hash of `shared`, because a saved state includes what was randomized.
        """
        return hash_model(self.model if self.shared is None else self.shared)

    @functools.cached_property
    def actuator_types(self) -> list[str]:
        """Elements of MJCF that the actuators were written as: `position`, `motor` ... by id.

        The compiled model does not have them.
        """
        types = {a.id: a.type.name for a in self.spec.actuators}
        count = self.model.nactuator
        return [types.get(i, "mjACTUATOR_GENERAL").partition("_")[2].lower() for i in range(count)]

    @functools.cached_property
    def elements(self) -> RobotElements:
        """Which elements of the model belong to which robot."""
        return RobotElements(self.model, self.robots)

    def reset(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Put data into the initial state: `start`, the keyframe `init_state`, or the model's."""
        key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, INITIAL_KEYFRAME)
        if key < 0:
            mujoco.mj_resetData(model, data)
        else:
            mujoco.mj_resetDataKeyframe(model, data, key)
        if self.start is not None:
            mujoco.mj_setState(model, data, self.start, STATE)

    def new_data(self) -> mujoco.MjData:
        """Create data in the initial state."""
        data = mujoco.MjData(self.model)
        self.reset(self.model, data)
        return data

    def dump(self, folder: Path) -> Path:
        """Write the compiled model to files: `scene.xml`, `scene.mjb`, assets, and `build.json`.

        For one world of a batch, `scene.xml` is the scene that all worlds share; the world's
        variants and randomization are in `scene.mjb`.

        Args:
            folder: folder to write; an earlier dump is replaced.

        Returns:
            The folder.

        Raises:
            FileExistsError: the folder contains something else.
        """
        build = {
            "mujoco": mujoco.mj_versionString(),
            "python": platform.python_version(),
            "model_hash": self.model_hash,
            "robots": self.robots,
            "sources": self.sources,
            "items": {name: asdict(facts) for name, facts in self.items.items()},
        }
        extra = {
            "scene.mjb": binary_model(self.model),
            "build.json": json.dumps(build, indent=2).encode(),
        }
        return self.export(folder, extra=extra)

    def export(self, path: str | Path, *, extra: Mapping[str, bytes] | None = None) -> Path:
        """Write `scene.xml`, which plain MuJoCo compiles to the same model, and its assets.

        For one world of a batch, it is the scene that all worlds share, as in `dump`.

        Args:
            path: folder to write, or an archive if it ends in `.zip`; an earlier export is
                replaced.
            extra: contents of further files, by name.

        Returns:
            The folder or the archive.

        Raises:
            FileExistsError: the folder contains something else.
            ValueError: MuJoCo cannot write the spec.
        """
        path = Path(path)
        spec = self.spec.copy()
        set_options(spec, self.model.opt)  # the present ones, not those at compilation
        zip = path.suffix.lower() == ".zip"
        return export_spec(spec, path.with_suffix("") if zip else path, zip=zip, extra=extra)


def world_from_spec(
    spec: mujoco.MjSpec, name: str = "", *, robots: Mapping[str, str] | None = None
) -> World:
    """Compile a spec.

    Args:
        spec: the spec; not modified.
        name: name of the only robot, to which all elements belong.
        robots: prefix of the elements of each robot, by the robot's name. Without names, there is a
            robot for each prefix `ROBOT/` if these cover all actuators; otherwise one, with the
            name of the model.

    Raises:
        CompileError: it does not compile.
        ValueError: no element has a given prefix.
    """
    return _world_of(spec, name, robots, {}, "robot")


def _world_of(
    spec: mujoco.MjSpec,
    name: str,
    robots: Mapping[str, str] | None,
    attached: Mapping[str, str],
    unnamed: str,
) -> World:
    """Compile a spec; names of robots are given, or those of prefixes, or of the model."""
    # A spec that was compiled holds the meshes, with which each copy of it would be large.
    try:
        spec = copy_spec(spec)
        complete_keyframes(spec)
    except ValueError as error:
        raise CompileError(" ".join(str(error).split())) from error
    world = World(spec=spec, model=_compile(spec.copy()), robots={})
    if robots is None:
        robots = {name: ""} if name else None
    if robots is None:
        world.inferred = _infer_robots(world.model, attached, spec.modelname, unnamed)
    for robot, prefix in (robots or {}).items():
        if not has_prefix(world.model, prefix):
            raise ValueError(f"No element has the prefix '{prefix}' of the robot '{robot}'.")
    world.robots = dict(world.inferred if robots is None else robots)
    return world


def world_from_file(
    path: str | Path,
    *,
    plane: bool = False,
    by_prefix: bool = False,
    name: str = "",
    robots: Mapping[str, str] | None = None,
    missing_meshes: Literal["error", "skip"] = "error",
) -> World:
    """Compile a model file (MJCF, URDF) or a mesh file; its options stay as they are.

    Without names, robots are those of `world_from_spec`; prefixes of `<attach>` in the file count,
    too, as `left` for `left_`, and a model without a name has that of the file.

    Args:
        path: path of the file.
        plane: whether to add a floor.
        by_prefix: whether elements `robot/...` belong to a robot named `robot` even if there are
            actuators without such a prefix, as in an exported scene of entities.
        name: see `world_from_spec`.
        robots: see `world_from_spec`.
        missing_meshes: see `load_spec`; what it warns of is in `World.warnings`.

    Raises:
        FileNotFoundError: there is no such file.
        CompileError: it cannot be read, or does not compile.
        ValueError: no element has a given prefix.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file '{path}'.")
    try:
        spec, warnings = load_spec(path, missing_meshes=missing_meshes)
    except ModelFileError as error:
        raise CompileError(str(error)) from error
    if plane:
        add_ground_plane(spec)
    try:
        world = _world_of(spec, name, robots, _attached(path), path.stem)
    except CompileError as error:
        raise CompileError(f"{path}: {error}") from error
    if by_prefix:
        world.robots = _slashed(world.model)
    world.sources = dict.fromkeys(world.robots, path.name)
    world.warnings = warnings
    return world


def world_from_scene(
    cfg: SceneCfg,
    options: MujocoCfg | None = None,
    *,
    priority: Sequence[str] = (),
    on_error: Literal["raise", "skip"] = "raise",
) -> World:
    """Build one world of a scene; each entity that has actuators is a robot.

    Args:
        cfg: the scene; one world of it is built, and entities with variants are what they are in
            the first world.
        options: MuJoCo's options, as in training; None takes those that the models of the entities
            set, see `resolve_options`.
        priority: robots in the order in which their options apply where they differ.
        on_error: whether an entity that cannot be built is left out, and reported in `errors`.

    Raises:
        CompileError: it does not compile.
    """
    cfg = copy.copy(cfg)
    cfg.num_envs = 1
    cfg.entities = {name: _of_first_world(name, e) for name, e in cfg.entities.items()}
    errors: dict[str, str] = {}
    try:
        scene, model = _build(cfg)
    except CompileError:
        if on_error == "raise":
            raise
        alone = {name: _error_of(cfg, name) for name in cfg.entities}
        errors = {name: error for name, error in alone.items() if error}
        if not errors:
            raise
        cfg.entities = {name: e for name, e in cfg.entities.items() if name not in errors}
        scene, model = _build(cfg)
    robots = {name: f"{name}/" for name in scene.entities}
    sources: dict[str, str] = {}
    if options is not None:
        options.apply(model)
    else:
        wanted = {name: scene.entity_options.get(name, {}) for name in scene.entities}
        sources = resolve_options(wanted, model.opt, priority)
    set_options(scene.spec, model.opt)
    return World(spec=scene.spec, model=model, robots=robots, option_sources=sources, errors=errors)


def add_entities(
    cfg: SceneCfg, entities: Mapping[str, EntityCfg], rename: bool = False
) -> tuple[SceneCfg, dict[str, str]]:
    """Add entities to a scene.

    Args:
        cfg: the scene; not modified.
        entities: entities to add, by name.
        rename: whether an entity whose name is taken gets `NAME_1`, `NAME_2` ...

    Returns:
        The larger scene, and the name of each new entity in it.

    Raises:
        ValueError: a name is taken, and `rename` is off.
    """
    cfg = copy.copy(cfg)
    cfg.entities = dict(cfg.entities)
    names = {}
    for name, entity in entities.items():
        if name in cfg.entities and not rename:
            raise ValueError(
                f"The scene has an entity '{name}': choose another name, or set rename=True."
            )
        names[name] = free_name(name, cfg.entities)
        cfg.entities[names[name]] = entity
    return cfg, names


def world_from_env(env: ManagerBasedRlEnv, env_id: int) -> World:
    """Copy one world of a batch as it is now: its model rows and its state, to the last bit.

    The batch does not change.

    Args:
        env: the environment.
        env_id: index of the world.

    Raises:
        ValueError: there is no such world.
    """
    from manyworlds.lab.world.card import read_card

    if not 0 <= env_id < env.num_envs:
        raise ValueError(f"There is no world {env_id}: the batch has {env.num_envs} worlds.")
    model, data = next(iter(env.sim.world_copies([env_id])))
    start = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    robots = {name: f"{name}/" for name in env.scene.entities}
    return World(
        spec=env.scene.spec,
        model=copy.copy(model),
        robots=robots,
        start=start,
        card=read_card(env, env_id),
    )


def _infer_robots(
    model: mujoco.MjModel, attached: Mapping[str, str], name: str, unnamed: str
) -> dict[str, str]:
    """Return a robot for each prefix if all actuators have one, or one robot for all elements."""
    found = {robot: prefix for robot, prefix in attached.items() if has_prefix(model, prefix)}
    found = found or _slashed(model)
    actuators = (model.actuator(i).name for i in range(model.nactuator))
    if found and all(actuator.startswith(tuple(found.values())) for actuator in actuators):
        return found
    if name in ("", _UNNAMED):
        return {unnamed: ""}
    return {"_".join(name.split()): ""}


def _slashed(model: mujoco.MjModel) -> dict[str, str]:
    """Return the first parts of names of bodies `ROBOT/...`, and the prefixes."""
    bodies = (model.body(i).name for i in range(1, model.nbody))
    return {name.split("/")[0]: f"{name.split('/')[0]}/" for name in bodies if "/" in name}


def _attached(path: Path) -> dict[str, str]:
    """Return the prefixes of `<attach>` in a model file by the names that they give to robots."""
    if path.suffix.lower() in MESH_SUFFIXES:
        return {}
    elements = read_elements(path).find("attach")
    prefixes = (element.attributes.get("prefix", "") for element in elements)
    return {prefix.rstrip("_-./ ") or prefix: prefix for prefix in prefixes if prefix}


def _build(cfg: SceneCfg) -> tuple[Scene, mujoco.MjModel]:
    from manyworlds.scene import Scene

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Entity '.*' sets <option>")
        try:
            scene = Scene(cfg)
        except ValueError as error:
            raise CompileError(str(error)) from error
    return scene, _compile(scene.spec)


def _of_first_world(name: str, cfg: EntityCfg) -> EntityCfg:
    """Return the variant of an entity in the first world, if it has variants."""
    from manyworlds.entity import VariantEntityCfg
    from manyworlds.entity.variants.assignment import assign_worlds

    if not isinstance(cfg, VariantEntityCfg):
        return cfg
    assignment = cfg.resolved_assignment()
    if not isinstance(assignment, np.ndarray):  # which has the variants of all worlds
        what = f"The assignment of entity '{name}'"
        assignment = assign_worlds(assignment, what, len(cfg.variants), 1)
    chosen = [*cfg.variants][assignment[0]]
    if cfg.variants[chosen] is None:  # a world without it has nothing to show
        chosen = next(variant for variant, spec_fn in cfg.variants.items() if spec_fn)
    return cfg.of_variant(chosen)


def _error_of(cfg: SceneCfg, name: str) -> str:
    """Return the reason why an entity cannot be built, even alone; empty if it can."""
    from manyworlds.scene import SceneCfg

    try:
        _build(SceneCfg(entities={name: cfg.entities[name]}))
    except CompileError as error:
        return str(error)
    return ""


def _compile(spec: mujoco.MjSpec) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        raise CompileError(" ".join(str(error).split())) from error
