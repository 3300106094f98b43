"""What a lab shows: one compiled world, its robots, and how it begins."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.control import ControlDesk, RobotControl
from manyworlds.lab.controllers import JOINT_TRANSMISSIONS, RobotActuators
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import MujocoCfg
from manyworlds.utils.spec import add_ground_plane, export_spec, set_options

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

INITIAL_KEYFRAME = "init_state"
"""The keyframe in which a scene begins."""


STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
"""All that MuJoCo needs to go on from a moment, bit for bit."""


class CompileError(ValueError):
    """A world that MuJoCo does not compile; the message is MuJoCo's."""


@dataclass(kw_only=True)
class World:
    """A compiled world.

    Attributes:
        spec: what it was compiled from.
        model: the compiled model.
        robots: prefix of the elements of each robot, by the robot's name.
        start: `mjSTATE_INTEGRATION` in which it begins; None for the model's own.
        sources: where robots come from, by name.
    """

    spec: mujoco.MjSpec
    model: mujoco.MjModel
    robots: dict[str, str]
    start: np.ndarray | None = None
    sources: dict[str, str] = field(default_factory=dict)

    @functools.cached_property
    def model_hash(self) -> str:
        """Identifies the compiled model: equal models understand each other's states."""
        return hashlib.sha256(_binary(self.model)).hexdigest()

    def reset(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Put data into the initial state: `start`, the keyframe `init_state`, or the model's."""
        key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, INITIAL_KEYFRAME)
        if key < 0:
            mujoco.mj_resetData(model, data)
        else:
            mujoco.mj_resetDataKeyframe(model, data, key)
        if self.start is not None:
            mujoco.mj_setState(model, data, self.start, STATE)

    def controls(self) -> ControlDesk:
        """Make the controls of all robots, which rest at the initial state's controls."""
        data = mujoco.MjData(self.model)
        self.reset(self.model, data)
        desk = {}
        for name, prefix in self.robots.items():
            actuators = find_actuators(self.model, prefix)
            if len(actuators.ids):
                desk[name] = RobotControl(name, actuators, data.ctrl[actuators.ids])
        return ControlDesk(desk)

    def dump(self, folder: Path) -> Path:
        """Write what was really compiled: `scene.xml`, `scene.mjb`, assets, and `build.json`.

        Args:
            folder: where to; an earlier dump is replaced.

        Returns:
            The folder.

        Raises:
            FileExistsError: the folder holds something else.
        """
        build = {
            "mujoco": mujoco.mj_versionString(),
            "python": platform.python_version(),
            "model_hash": self.model_hash,
            "robots": self.robots,
            "sources": self.sources,
        }
        extra = {
            "scene.mjb": _binary(self.model),
            "build.json": json.dumps(build, indent=2).encode(),
        }
        return export_spec(self.spec, folder, extra=extra)


def world_from_spec(spec: mujoco.MjSpec, name: str = "") -> World:
    """Compile a spec whose actuators all belong to one robot.

    Args:
        spec: it is copied.
        name: what the robot is called; by default as the model.

    Raises:
        CompileError: it does not compile.
    """
    spec = spec.copy()
    return World(spec=spec, model=_compile(spec), robots={name or spec.modelname or "robot": ""})


def world_from_file(path: Path, *, plane: bool = False, by_prefix: bool = False) -> World:
    """Compile an MJCF or URDF file; its options stay as they are.

    Args:
        path: the file.
        plane: whether to add a floor.
        by_prefix: whether elements `robot/...` belong to a robot called `robot`, as in the scene
            that an entity was exported with; else all belong to one robot, called as the file.

    Raises:
        FileNotFoundError: there is no such file.
        CompileError: it cannot be read, or does not compile.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file '{path}'.")
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError as error:
        raise CompileError(f"{path}: {' '.join(str(error).split())}") from error
    if plane:
        add_ground_plane(spec)
    world = world_from_spec(spec, path.stem)
    if by_prefix:
        names = [body.name for body in spec.bodies if "/" in body.name]
        world.robots = {name: f"{name}/" for name in dict.fromkeys(n.split("/")[0] for n in names)}
    world.sources = dict.fromkeys(world.robots, path.name)
    return world


def world_from_scene(cfg: SceneCfg, options: MujocoCfg | None = None) -> World:
    """Build one world of a scene; each entity that has actuators is a robot.

    Args:
        cfg: the scene; one world of it is built.
        options: MuJoCo's options; None takes the scene's own.

    Raises:
        CompileError: it does not compile.
    """
    cfg = copy.copy(cfg)
    cfg.num_envs = 1
    scene = Scene(cfg)
    robots = {name: f"{name}/" for name in scene.entities}
    model = _compile(scene.spec)
    if options is not None:
        options.apply(model)
        set_options(scene.spec, model.opt)
    return World(spec=scene.spec, model=model, robots=robots)


def world_from_env(env: ManagerBasedRlEnv, env_id: int) -> World:
    """Copy one world of a batch as it is now: its model rows and its state, to the last bit.

    The batch does not notice.

    Args:
        env: the environment.
        env_id: the world.

    Raises:
        ValueError: there is no such world.
    """
    if not 0 <= env_id < env.num_envs:
        raise ValueError(f"There is no world {env_id}: the batch has {env.num_envs}.")
    model, data = next(iter(env.sim.world_copies([env_id])))
    start = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    robots = {name: f"{name}/" for name in env.scene.entities}
    return World(spec=env.scene.spec, model=copy.copy(model), robots=robots, start=start)


def find_actuators(model: mujoco.MjModel, prefix: str) -> RobotActuators:
    """Find the controls of the actuators whose names begin with a prefix."""
    names, ids, actuators, trees = [], [], [], set()
    for actuator in range(model.nactuator):
        name = model.actuator(actuator).name or f"actuator_{actuator}"
        if not name.startswith(prefix):
            continue
        start, count = int(model.actuator_ctrladr[actuator]), int(model.actuator_ctrlnum[actuator])
        short = name.removeprefix(prefix)
        names += [short] if count == 1 else [f"{short}[{i}]" for i in range(count)]
        ids += range(start, start + count)
        actuators += [actuator] * count
        if mujoco.mjtTrn(model.actuator_trntype[actuator]) in JOINT_TRANSMISSIONS:
            trees.add(int(model.body_treeid[model.jnt_bodyid[model.actuator_trnid[actuator, 0]]]))
    return RobotActuators(
        tuple(names), np.array(ids, int), np.array(actuators, int), np.array(sorted(trees), int)
    )


def _binary(model: mujoco.MjModel) -> bytes:
    block = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, block)
    return block.tobytes()


def _compile(spec: mujoco.MjSpec) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        raise CompileError(" ".join(str(error).split())) from error
