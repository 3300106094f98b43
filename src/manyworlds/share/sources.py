"""Worlds and policies of a page: from runs, tasks and model files."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.entity import VariantEntityCfg
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.recording.reading import load_recording
from manyworlds.lab.robots.policy import exported
from manyworlds.lab.world.model_facts import INITIAL_KEYFRAME, STATE
from manyworlds.lab.world.world import World, world_from_file
from manyworlds.rl.exporter_utils import save_described
from manyworlds.rl.onnx_policy import OnnxPolicy, open_session, read_description
from manyworlds.rl.policy_description import (
    ExportedDescription,
    NeedsEnvironmentError,
    describe_policy,
)
from manyworlds.rl.run_folder import RunFolder
from manyworlds.share.control_graph import check_forms
from manyworlds.share.folder import PagePolicy, PageWorld, RecordedMotion
from manyworlds.share.scene_files import check_same_motion, compile_files, page_files
from manyworlds.share.task_facts import CommandFacts, WorldFacts, command_facts, world_facts
from manyworlds.share.values import Graph
from manyworlds.spec.edits import set_options
from manyworlds.tasks import list_tasks, load_env_cfg

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg

_SEED = 0
_IR_VERSION = 8
"""Version of ONNX's file format, that of exported policies."""
_CAMERA: dict[str, object] = {
    "lookat": [0.0, 0.0, 0.0],
    "distance": 3.0,
    "azimuth": 125.0,
    "elevation": -18.0,
}
"""Camera that follows a robot from behind and above."""
_MOTION_PERIOD = 0.02
"""Time between two poses of a recorded motion on a page [s]."""
_OF_ZERO = {"inputs": {}, "recurrent": False}
"""Description of a network that observes nothing."""


def page_world(world: World, name: str, facts: WorldFacts | None = None) -> PageWorld:
    """Make the files of a world.

    Args:
        world: the world.
        name: its name on the page.
        facts: what the page does in it.

    Raises:
        ValueError: MuJoCo cannot write the world, or the written one moves differently.
    """
    spec = world.spec.copy()
    set_options(spec, world.model.opt)
    model = world.model
    keyframe = _first_keyframe(model)
    if world.start is not None:
        keyframe = _add_start(spec, world)
        model = spec.compile()
    files = page_files(spec)
    written = compile_files(files)
    check_same_motion(model, written, keyframe)
    return PageWorld(name, files, written, keyframe, facts or {})


def recorded_motion(path: Path, model: mujoco.MjModel) -> RecordedMotion:
    """Read a recording of the lab as the motion of a world; other joints keep their start.

    Args:
        path: an MCAP, CSV or JSON file that `lab` has recorded.
        model: model of the world.

    Raises:
        ValueError: it is no recording, or has no joint of the model.
    """
    recording = load_recording(path, _MOTION_PERIOD)
    data = mujoco.MjData(model)
    key = _first_keyframe(model)
    if key is not None:
        mujoco.mj_resetDataKeyframe(model, data, model.key(key).id)
    columns: list[tuple[slice, tuple[int, int]]] = []
    for index, starts, offset in (
        ("qpos", model.jnt_qposadr, 0),
        ("qvel", model.jnt_dofadr, model.nq),
    ):
        for name, (start, width) in recording.index.get(index, {}).items():
            joint = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
            if joint >= 0:
                first = offset + int(starts[joint])
                columns.append((slice(first, first + width), (start, width)))
    if not columns:
        raise ValueError(
            f"The recording '{path}' has the joints {', '.join(recording.joints[:5])}, of which "
            "the world has none: name the model that was recorded."
        )
    count = math.floor(recording.duration / _MOTION_PERIOD + 1e-6) + 1
    rows = np.tile(np.concatenate([data.qpos, data.qvel]), (count, 1))
    for i in range(count):
        values = recording.sample(i * _MOTION_PERIOD)
        for target, (start, width) in columns:
            rows[i, target] = values[start : start + width]
    return RecordedMotion(rows, _MOTION_PERIOD)


def task_worlds(
    cfg: ManagerBasedRlEnvCfg, name: str, shown: tuple[str, ...] = ()
) -> Iterator[tuple[PageWorld, ManagerBasedRlEnv]]:
    """Yield a world for each variant of a task's entities, with its environment of one world.

    Args:
        cfg: the environment; not modified.
        name: name of the world, if there are no variants.
        shown: variants to show; empty for all.

    Raises:
        ValueError: there is no variant of such a name, or the task has buckets.
    """
    for variant, one in _variants(cfg, shown):
        env = ManagerBasedRlEnv(one, device="cpu")
        try:
            env.reset()
            world = World(spec=env.scene.spec, model=env.sim.mj_model, robots={})
            facts = world_facts(env, world.model)
            world.start = _own_start(env, facts)
            yield page_world(world, variant or name, facts), env
        finally:
            env.close()


def run_page(
    run: RunFolder,
    policy_file: Path,
    cfg: ManagerBasedRlEnvCfg | None,
    name: str,
    shown: tuple[str, ...] = (),
) -> Iterator[PagePolicy]:
    """Yield a run's policy in its scene, or in the scene of each variant of its task.

    Args:
        run: the run.
        policy_file: its exported policy, or a checkpoint.
        cfg: the task's environment; None if it is not known, so that the page offers commands
            without their bounds, and no randomization.
        name: name of the policy.
        shown: variants to show; empty for all.

    Raises:
        FileNotFoundError: the task is not known, and the run has no scene.
        ValueError: a term of the policy has no form in ONNX, or there is no variant of such a name.
        NeedsEnvironmentError: plain MuJoCo cannot run the policy.
    """
    with exported(policy_file) as path:
        check_forms(read_description(open_session(path), policy_file), policy_file)
        scene = run.path / "scene" / "scene.xml"
        if cfg is None:
            if not scene.is_file():
                raise FileNotFoundError(
                    f"There is no scene '{scene}', and the task of the run is not known: name the "
                    "file that registers it with --load."
                )
            trained = world_from_file(scene, by_prefix=True)
            trained.start = _motion_start(path, trained.model)
            world = page_world(trained, name)
            yield PagePolicy.of(name, world, path)
            return
        for world, env in task_worlds(cfg, run.task or name, shown):
            # Only the environment knows the origin of a cell of its terrain.
            if scene.is_file() and not has_variants(cfg) and not _has_terrain(env):
                trained = world_from_file(scene, by_prefix=True)
                facts = world_facts(env, trained.model)
                trained.start = _motion_start(path, trained.model)
                if trained.start is None and trained.model.nq == env.sim.mj_model.nq:
                    trained.start = _own_start(env, facts)
                world = page_world(trained, world.name, facts)
            yield PagePolicy.of(name, world, path, command_facts(env))


def driven_world(world: World, name: str, policy_file: Path, robot: str = "") -> PagePolicy:
    """Return a policy that controls a robot in a world of another source than its training.

    The world takes over the timestep and the gains of training, as `LiveLab.run_policy` does.

    Args:
        world: the world.
        name: its name on the page.
        policy_file: exported policy, or a checkpoint in its run folder.
        robot: name of the robot; the only one if empty.

    Raises:
        ValueError: the policy does not fit the robot, or a term has no form in ONNX.
        NeedsEnvironmentError: plain MuJoCo cannot run the policy.
    """
    with exported(policy_file) as path:
        description = read_description(open_session(path), policy_file)
        check_forms(description, policy_file)
        with LiveLab(world, LabCfg(start_paused=True)) as lab:
            control = lab.only_robot(robot)
            lab.run_policy(path, control.name)
            model = copy.copy(lab.model)
            prefix = lab.robots[control.name]
        spec = world.spec.copy()
        for actuator in spec.actuators:
            row = model.actuator(actuator.name).id
            actuator.gainprm = model.actuator_gainprm[row]
            actuator.biasprm = model.actuator_biasprm[row]
        shown = page_world(replace(world, spec=spec, model=model), name)
        entity = description["entities"][description["actuators"][0]["entity"]]
        root = prefix + entity["root_body"].partition("/")[2]
        shown.facts["camera"] = {**_CAMERA, "track_body": root}
        return PagePolicy.of(policy_file.stem, shown, path, _commands_of(description), prefix)


def _commands_of(description: ExportedDescription) -> list[CommandFacts]:
    """Describe the commands of a policy by its task, if that is registered."""
    task = description["task"]
    if task not in list_tasks():
        return []
    cfg = load_env_cfg(task, play=True)
    cfg.scene.num_envs = 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    try:
        return command_facts(env)
    finally:
        env.close()


def zero_policy(env: ManagerBasedRlEnv, world: PageWorld, folder: Path) -> PagePolicy | None:
    """Return the policy of zero actions, which holds the default pose in most tasks.

    None with a warning if the task's actions need its environment.

    Args:
        env: the environment.
        world: its world.
        folder: folder for the policy's file.
    """
    path = folder / "zero.onnx"
    graph = Graph()
    size = env.action_manager.total_action_dim
    graph.output("actions", graph.constant(np.zeros((1, size)), np.float32))
    description = {**describe_policy(env), "policy": _OF_ZERO}
    save_described(graph.build("zero", _IR_VERSION), path, description)
    try:
        return PagePolicy.of("zero action", world, path, command_facts(env))
    except NeedsEnvironmentError as error:
        warnings.warn(f"The page has no controls: {error}", stacklevel=2)
        return None


def has_variants(cfg: ManagerBasedRlEnvCfg) -> bool:
    """Return whether an entity of a task has variants."""
    return any(isinstance(entity, VariantEntityCfg) for entity in cfg.scene.entities.values())


def _variants(
    cfg: ManagerBasedRlEnvCfg, shown: tuple[str, ...]
) -> Iterator[tuple[str, ManagerBasedRlEnvCfg]]:
    """Yield a configuration of one world for each variant of the first entity that has some."""
    if cfg.scene.buckets:
        raise ValueError(
            f"The task has buckets ({', '.join(cfg.scene.buckets)}), whose padded observations a "
            "page does not compute: share a policy that was trained with one robot."
        )
    # The same folder each time, with the same terrain and the same start.
    cfg = replace(cfg, scene=copy.copy(cfg.scene), seed=_SEED)
    cfg.scene.num_envs = 1
    found = [(k, e) for k, e in cfg.scene.entities.items() if isinstance(e, VariantEntityCfg)]
    if not found:
        if shown:
            raise ValueError(
                f"--variants names {', '.join(shown)}, but the task's entities have no variants: "
                "leave the option out."
            )
        yield "", cfg
        return
    key, entity = found[0]
    known = [variant for variant, spec_fn in entity.variants.items() if spec_fn is not None]
    unknown = [variant for variant in shown if variant not in known]
    if unknown:
        raise ValueError(
            f"'{key}' has no variant {', '.join(unknown)}: choose from {', '.join(known)}."
        )
    for variant in shown or known:
        entities = dict(cfg.scene.entities)
        for other, each in found:
            name = variant if variant in each.variants else next(iter(each.variants))
            # With the names of elements that a world of the batch has.
            one = copy.copy(each)
            one.variants = {name: each.variants[name]}
            one.assignment = None
            entities[other] = one
        scene = copy.copy(cfg.scene)
        scene.entities = entities
        yield variant, replace(cfg, scene=scene)


def _own_start(env: ManagerBasedRlEnv, facts: WorldFacts) -> np.ndarray | None:
    """Return a start that the task draws in a way which the page cannot; None if it can.

    Args:
        env: the environment, reset.
        facts: facts of the world, with the ranges that the page draws from.
    """
    model = env.sim.mj_model
    if _first_keyframe(model) != INITIAL_KEYFRAME:
        return None
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key(INITIAL_KEYFRAME).id)
    drawn = np.zeros(model.nq, bool)
    ranges: Any = facts.get("reset", {}).get("ranges", [])
    for entry in ranges:
        joint = model.joint(entry["joint"]).id if "joint" in entry else -1
        if joint < 0:
            joint = model.body(entry["body"]).jntadr[0]
        address = model.jnt_qposadr[joint]
        drawn[address : address + (1 if "joint" in entry else 7)] = True
    if _has_terrain(env):
        drawn[:] = False  # the page draws around a place in the cell of the world
    qpos = env.sim.data.qpos[0].double().numpy()
    if np.allclose(qpos[~drawn], data.qpos[~drawn], atol=1e-5):
        return None
    data.qpos[~drawn] = qpos[~drawn]
    mujoco.mj_normalizeQuat(model, data.qpos)
    start = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    return start


def _has_terrain(env: ManagerBasedRlEnv) -> bool:
    """Return whether worlds begin in cells of a terrain."""
    terrain = env.scene.terrain
    return terrain is not None and terrain.terrain_origins is not None


def _motion_start(path: Path, model: mujoco.MjModel) -> np.ndarray | None:
    """Return the state in which a policy that tracks a motion starts; None for other policies."""
    policy = OnnxPolicy(path, model)
    if policy.motion is None:
        return None
    data = mujoco.MjData(model)
    policy.reset(data)
    start = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    return start


def _first_keyframe(model: mujoco.MjModel) -> str | None:
    """Return the keyframe of the initial state, or else the first one with a name."""
    names = [model.key(i).name for i in range(model.nkey)]
    if INITIAL_KEYFRAME in names:
        return INITIAL_KEYFRAME
    return next(filter(None, names), None)


def _add_start(spec: mujoco.MjSpec, world: World) -> str:
    """Add the world's start as a keyframe; return its name."""
    data = world.new_data()
    for key in list(spec.keys):
        if key.name == INITIAL_KEYFRAME:
            spec.delete(key)
    spec.add_key(
        name=INITIAL_KEYFRAME,
        time=data.time,
        qpos=data.qpos.tolist(),
        qvel=data.qvel.tolist(),
        act=data.act.tolist(),
        ctrl=data.ctrl.tolist(),
        mpos=data.mocap_pos.ravel().tolist(),
        mquat=data.mocap_quat.ravel().tolist(),
    )
    return INITIAL_KEYFRAME
