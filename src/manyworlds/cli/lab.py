"""`manyworlds lab TARGET`: walk into a world, in the browser or without one."""

from __future__ import annotations

import math
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manyworlds.cli.common import find_run, parse, play_env_cfg, take_modules
from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.lab import LiveLab, World
    from manyworlds.rl.run_folder import RunFolder

_HEARTBEAT_S = 0.2


@dataclass(kw_only=True)
class LabOptions:
    """Walk into one world: look at it, pull at it, steer it.

    TARGET is an MJCF or URDF file, a task (also of one's own, with --load), or a run folder, one of
    its checkpoints or its policy.onnx, whose policy then moves the robot.
    """

    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")]
    """A model file, a task, a run folder, or a checkpoint or policy in one."""
    world: int | None = None
    """Of a task or a run: the world of the batch, with its variants and its randomization; None
    takes the scene as it was described."""
    policy: Path | None = None
    """A policy that moves the robot, exported or a checkpoint; None takes that of a run folder."""
    command: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """What command terms of the policy ask for, such as {'twist': (0.5, 0.0, 0.0)}."""
    plane: bool = False
    """Add a floor to a model file that has none."""
    paused: bool = False
    """Begin with time standing still."""
    speed: float = 1.0
    """Simulated seconds per second, 0.05 to 10, or inf for as fast as it goes."""
    headless: bool = False
    """Serve no page; nothing of the extra 'lab' is needed."""
    seconds: float | None = None
    """Stop after this time [s]; None goes on until Ctrl-C."""
    host: str = "127.0.0.1"
    """Address to serve the page on."""
    port: int = 8080
    """Port to serve the page on; the next free one is taken if it is in use."""
    collapsed: bool = False
    """Hide the panel until somebody presses Tab."""
    log_root: Path = Path("runs")
    """Where run folders are."""


def main(argv: list[str]) -> int:
    """Parse the command line and open the lab."""
    cfg = parse(LabOptions, None, take_modules(argv), "lab")
    if not cfg.headless:
        require_extra("viser", "lab")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    try:
        if cfg.headless:
            with open_lab(cfg):
                print(f"{cfg.target} is alive, without a page (Ctrl-C ends)", flush=True)
                wait(cfg.seconds)
        else:
            _serve(cfg)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _serve(cfg: LabOptions) -> None:
    from manyworlds.lab.page import ReloadablePage

    page = ReloadablePage(
        lambda: open_lab(cfg), host=cfg.host, port=cfg.port, collapsed=cfg.collapsed
    )
    try:
        page.open()
        if page.error:
            print(f"does not compile: {page.error}", flush=True)
        print(f"lab at {page.url} (Ctrl-C ends)", flush=True)
        wait(cfg.seconds)
    finally:
        page.close()


def wait(seconds: float | None) -> None:
    """Let time go by [s]; None waits for Ctrl-C."""
    until = math.inf if seconds is None else time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(_HEARTBEAT_S)


def open_lab(cfg: LabOptions) -> LiveLab:
    """Build the world that the user means, with a policy if there is one.

    Raises:
        FileNotFoundError: there is no such file, and no such task or run.
        ValueError: the world does not compile, or the policy does not fit it.
    """
    from manyworlds.lab import LabCfg, LiveLab

    world, policy = find_world(cfg)
    if cfg.command and policy is None:
        raise ValueError("--command is for policies, and there is none: name a run, or --policy.")
    lab = LiveLab(world, LabCfg(start_paused=cfg.paused, speed=cfg.speed))
    if policy is not None:
        law = lab.run_policy(policy, commands=cfg.command)
        if law.differences:
            print(f"unlike the training of {policy}: {'; '.join(law.differences)}", flush=True)
    return lab


def find_world(cfg: LabOptions) -> tuple[World, Path | None]:
    """Find the world that the user means, and the policy that belongs to it."""
    from manyworlds.tasks import list_tasks

    path = Path(cfg.target)
    if path.is_file() and path.suffix not in (".pt", ".onnx"):
        if cfg.world is not None:
            raise ValueError("--world chooses among the worlds of a task: a model file has one.")
        return _world_of_file(path, cfg.plane), cfg.policy
    if cfg.plane:
        raise ValueError("--plane is for model files: scenes of tasks have a floor of their own.")
    if cfg.target in list_tasks():
        from manyworlds.tasks import load_env_cfg

        return _world_of_task(load_env_cfg(cfg.target, play=True), cfg.world), cfg.policy
    try:
        checkpoint, run = find_run(path, cfg.log_root, None)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no model file, task or run '{cfg.target}': `manyworlds list` names the "
            "tasks."
        ) from None
    if run is None or run.task is None:
        raise ValueError(f"'{checkpoint}' lies in no run folder: name the run's folder.")
    # Training exports its policy at its end; what is named, or what there is so far, is exported
    # for the lab.
    policy = run.path / "policy.onnx"
    if path.suffix in (".pt", ".onnx") or not policy.is_file():
        policy = checkpoint
    return _world_of_run(run, cfg.world), cfg.policy or policy


def _world_of_file(path: Path, plane: bool) -> World:
    from manyworlds.cli.validate import compile_spec, load_spec
    from manyworlds.lab import world_from_file

    try:
        return world_from_file(path, plane=plane)
    except ValueError:
        compile_spec(load_spec(path), path)  # says more, if the file is to blame
        raise


def _world_of_task(env_cfg: ManagerBasedRlEnvCfg, world: int | None) -> World:
    from manyworlds.lab import world_from_env, world_from_scene

    if world is None:
        return world_from_scene(env_cfg.scene, env_cfg.sim.mujoco)
    from manyworlds.envs import ManagerBasedRlEnv

    if world >= env_cfg.scene.num_envs:
        env_cfg.scene.num_envs = world + 1
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    try:
        return world_from_env(env, world)
    finally:
        env.close()


def _world_of_run(run: RunFolder, world: int | None) -> World:
    """The scene that the run exported, or a world of its environment."""
    from manyworlds.lab import world_from_file

    scene = run.path / "scene" / "scene.xml"
    if world is None and scene.is_file():
        return world_from_file(scene, by_prefix=True)
    assert run.task is not None
    return _world_of_task(play_env_cfg(run.task, run), world)
