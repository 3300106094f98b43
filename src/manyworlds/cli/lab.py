"""`manyworlds lab TARGET`: run one world live, with or without a web page."""

from __future__ import annotations

import dataclasses
import math
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from manyworlds.cli.attach import ATTACH, attach
from manyworlds.cli.buckets import exported_folder, one_bucket
from manyworlds.cli.lab_environment import open_environment
from manyworlds.cli.options import (
    RUNS,
    Bucket,
    Command,
    Host,
    Load,
    LogRoot,
    MissingMeshes,
    Port,
    WebOrigins,
    parse,
)
from manyworlds.cli.play_onnx import set_commands
from manyworlds.cli.runs import find_run, runs_below
from manyworlds.cli.task_files import load_task_of
from manyworlds.cli.waiting import check_seconds, wait
from manyworlds.utils.garbage import gc_paused
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.lab import LabCfg, LiveLab, World
    from manyworlds.lab.server import HubProcess, LabServerCfg
    from manyworlds.rl.run_folder import RunFolder


@dataclass(kw_only=True)
class LabOptions:
    """Run one world live: view it, apply forces to bodies, control its robot.

    TARGET is a model file (MJCF or URDF), a mesh file, a world of the gallery, a task, or a run:
    its folder, one of its checkpoints, or its policy.onnx. The policy of a run controls the robot.
    See `manyworlds list --worlds` for the gallery, and `manyworlds lab --attach --help` for
    entering a world of a running training.
    """

    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")]
    """Model file, world of the gallery, task, run folder, checkpoint, or exported policy."""
    world: int | None = None
    """World of the training whose variant and randomization are used; None uses none."""
    bucket: Bucket = None
    policy: Path | None = None
    """ONNX file or checkpoint of a policy that controls the robot; None uses that of the run."""
    stepper: Annotated[
        Literal["auto", "plain", "environment"],
        tyro.conf.arg(
            aliases=["--driver"],
            help="`plain` runs a policy in plain MuJoCo, as a check of its deployment; "
            "`environment` steps the environment of the task, with its commands, rewards, "
            "terminations and randomization; `auto` uses the environment for policies that plain "
            "MuJoCo cannot run.",
        ),
    ] = "auto"
    play: bool = False
    """With `--stepper environment`, use the task's configuration for watching, whose episodes
    usually do not end, instead of that for training."""
    command: Command = field(default_factory=dict)
    plane: bool = False
    """Add a floor to a model file without one."""
    missing_meshes: MissingMeshes = "error"
    validate: bool = True
    """Warn of probable mistakes in a model file, as `manyworlds validate` does."""
    paused: bool = False
    """Start paused."""
    start: Literal["drawn", "now"] = "drawn"
    """Start simulating once the first browser has drawn the world, or now (without a page)."""
    speed: float = 1.0
    """Simulated seconds per second, 0.05 to 10; inf runs as fast as possible."""
    headless: bool = False
    """Serve no page; the extra 'lab' is not needed."""
    seconds: float | None = None
    """Time until the lab stops [s]; None runs until Ctrl-C."""
    host: Host = "127.0.0.1"
    port: Port = 8080
    web_origin: WebOrigins = ()
    listen: Annotated[
        str,
        tyro.conf.arg(
            help="Address, such as 0.0.0.0, on which other machines reach the page (with the "
            "token in the printed address) and, with `--serve`, the encrypted ports (with a copy "
            "of the key file); `--host` opens the page alone."
        ),
    ] = ""
    serve: bool = False
    """Accept clients on this machine; see docs/lab_protocol.md."""
    port_shift: int = 0
    """Offset added to the ports of `--serve`: 5555 to 5561, 5571 and 5580."""
    takeover: bool = False
    """With `--serve`, the newest client takes control; otherwise the first one keeps it."""
    on_loss: Literal["hold", "zero"] = "hold"
    """Targets of robots after the controlling client is lost: unchanged, or zero."""
    collapsed: bool = False
    """Hide the panel until Tab or B is pressed."""
    log_root: LogRoot = RUNS
    load: Load = ()

    @property
    def waits(self) -> bool:
        """True if time starts with the first browser."""
        return self.start == "drawn" and not self.headless and not self.paused

    def lab_cfg(self) -> LabCfg:
        """Return the configuration of the lab."""
        from manyworlds.lab import LabCfg

        return LabCfg(start_paused=self.paused or self.waits, speed=self.speed)

    def server_cfg(self) -> LabServerCfg:
        """Return the configuration of the server.

        Raises:
            ValueError: a port is not valid.
        """
        from manyworlds.lab.server import LabServerCfg

        fresh = LabServerCfg(
            takeover=self.takeover,
            on_loss=self.on_loss,
            listen=self.listen,
            web_origins=self.web_origin,
        )
        shifted = {f"{use}_port": port + self.port_shift for use, port in fresh.ports.items()}
        return dataclasses.replace(fresh, **shifted)


def main(argv: list[str]) -> int:
    """Run `manyworlds lab`."""
    if ATTACH in argv:
        return attach(argv)
    cfg = parse(LabOptions, argv, "lab")
    from manyworlds.lab.loop.pacing import FASTEST, SLOWEST

    if not SLOWEST <= cfg.speed <= FASTEST and cfg.speed != math.inf:
        raise ValueError(
            f"--speed must be from {SLOWEST:g} to {FASTEST:g}, got {cfg.speed:g}: choose such a "
            "value, or inf, which never waits."
        )
    check_seconds(cfg.seconds)
    hub = None
    if cfg.serve:
        hub = open_hub(cfg)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops as Ctrl-C does
    try:
        if cfg.headless:
            with _open(cfg, hub):
                print(f"{cfg.target} runs without a page (Ctrl-C stops)", flush=True)
                wait(cfg.seconds)
        else:
            _serve(cfg, hub)
    except KeyboardInterrupt:
        pass
    finally:
        if hub is not None:
            hub.close()
        signal.signal(signal.SIGTERM, before)
    return 0


def open_hub(cfg: LabOptions) -> HubProcess:
    """Open the ports for programs, and say which ones.

    Raises:
        MissingExtraError: the extra 'net' is not installed.
        ValueError: a port is not valid.
    """
    from manyworlds.lab.server import HubProcess

    hub = HubProcess(cfg.server_cfg(), report=lambda text: print(text, flush=True))
    print(hub.greeting, flush=True)
    return hub


def _open(cfg: LabOptions, hub: HubProcess | None) -> LiveLab:
    """Open the lab, and hand it to the programs that are connected."""
    with gc_paused():
        lab = open_lab(cfg)
    if hub is not None:
        try:
            hub.attach(lab)
        except ValueError:
            hub.attach(None)
            lab.stop()
            raise
    return lab


def _serve(cfg: LabOptions, hub: HubProcess | None) -> None:
    """Serve the page of the lab until its time is over."""
    from manyworlds.lab.page import ReloadablePage
    from manyworlds.utils.web_access import is_local, read_token, served_at, token_file

    host = cfg.listen or cfg.host
    token = ""
    if not is_local(host):
        token = read_token(token_file())
    network_port = 0
    if hub is not None:
        network_port = hub.ports["web"]
    page = ReloadablePage(
        lambda: _open(cfg, hub),
        host=host,
        port=cfg.port,
        collapsed=cfg.collapsed,
        play_when_drawn=cfg.waits,
        token=token,
        web_origins=cfg.web_origin,
        title=Path(cfg.target).stem,
        network_port=network_port,
    )
    try:
        if hub is not None:
            hub.allow_page(page.url)
        page.open()
        if page.error:
            print(f"error: {page.error}", flush=True)
        start = ""
        if cfg.waits:
            start = "; time starts when a browser has drawn the world"
        print(f"lab at {served_at(page.url, cfg.port)} (Ctrl-C stops{start})", flush=True)
        wait(cfg.seconds)
    finally:
        page.close()


@dataclass(frozen=True)
class Target:
    """Model file, task or run that a lab shows, and its policy."""

    file: Path | None = None
    """Model file; None for a task or a run."""
    gallery: str = ""
    """World of the gallery; empty for none."""
    task: str = ""
    run: RunFolder | None = None
    policy: Path | None = None
    """Exported policy or checkpoint that controls the robot; None for none."""
    folder: Path | None = None
    """Folder in which training exported policy and scene: that of the run, or of a bucket."""


def open_lab(cfg: LabOptions) -> LiveLab:
    """Build the world of the target, and start its policy if there is one.

    Raises:
        FileNotFoundError: the target is no file, task or run.
        ValueError: the world does not compile, or the policy does not fit it.
    """
    target = find_target(cfg)
    if cfg.command and target.policy is None and cfg.stepper != "environment":
        raise ValueError(
            "--command sets commands of a policy, and there is none: name a run, or give --policy."
        )
    if cfg.stepper == "environment":
        return open_environment(cfg, target, play=cfg.play)
    if target.policy is None:  # what runs policies needs torch
        return _open_plain(cfg, target)
    from manyworlds.rl.policy_description import NeedsEnvironmentError

    try:
        return _open_plain(cfg, target)
    except NeedsEnvironmentError as error:
        if cfg.stepper == "plain" or not target.task or cfg.world is not None:
            raise
        print(f"{error}\nThe environment of {target.task} steps the world.", flush=True)
        return open_environment(cfg, target, play=True)


def _open_plain(cfg: LabOptions, target: Target) -> LiveLab:
    """Open a lab in plain MuJoCo."""
    from manyworlds.lab import LiveLab
    from manyworlds.lab.world.gallery import open_gallery

    if target.gallery:
        lab = open_gallery(target.gallery, lambda world: LiveLab(world, cfg.lab_cfg()))
    else:
        lab = LiveLab(world_of(target, cfg), cfg.lab_cfg())
    lab.source = lambda: open_lab(cfg)
    if target.policy is not None:
        law = lab.run_policy(target.policy)
        set_commands(law.policy, cfg.command)
        if law.differences:
            print(
                f"differences from the training of {target.policy}: {'; '.join(law.differences)}",
                flush=True,
            )
    return lab


def find_target(cfg: LabOptions) -> Target:
    """Find what the command line names."""
    from manyworlds.lab.world.gallery import GALLERY
    from manyworlds.tasks import list_tasks

    path = Path(cfg.target)
    if path.is_file() and path.suffix not in (".pt", ".onnx"):
        if cfg.world is not None:
            raise ValueError(
                "--world selects a world of a task, but a model file has one: leave --world out."
            )
        return Target(file=path, policy=cfg.policy)
    if cfg.target in GALLERY:
        if cfg.plane or cfg.world is not None:
            raise ValueError(
                f"'{cfg.target}' is a world of the gallery, which is complete: leave --plane and "
                "--world out."
            )
        return Target(gallery=cfg.target, policy=cfg.policy)
    if cfg.plane:
        raise ValueError(
            "--plane is for model files, because scenes of tasks have a floor: leave --plane out."
        )
    if cfg.target in list_tasks():
        return Target(task=cfg.target, policy=cfg.policy)
    try:
        found = find_run(path, cfg.log_root)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no model file, world, task or run '{cfg.target}'."
            f"{near_matches(cfg.target, [*GALLERY, *list_tasks()])}{runs_below(path)} "
            "`manyworlds list` names the tasks, and with --worlds the worlds; a task of your own "
            "needs --load FILE."
        ) from None
    run = found.need_folder()
    task = found.need_task()
    try:
        load_task_of(run)
    except (FileNotFoundError, PermissionError) as error:
        # The exported scene and policy may do without the task.
        print(f"warning: {error}", file=sys.stderr)
    if cfg.target == task:
        return Target(task=task, policy=cfg.policy)
    # Training exports its policy at the end. The lab itself exports a named checkpoint, or the last
    # one of a run that has not ended.
    if path.suffix == ".onnx" and path.parent.parent.name == "buckets":
        cfg.bucket = cfg.bucket or path.parent.name
    folder = exported_folder(run, cfg.bucket)
    policy = folder / "policy.onnx"
    if path.suffix in (".pt", ".onnx") or not policy.is_file():
        policy = found.need_checkpoint()
    return Target(task=task, run=run, policy=cfg.policy or policy, folder=folder)


def world_of(target: Target, cfg: LabOptions) -> World:
    """Build the world of a target in plain MuJoCo.

    Raises:
        ValueError: the world does not compile, or the training has no world of that number.
    """
    from manyworlds.lab import world_from_file
    from manyworlds.lab.world.gallery import GALLERY
    from manyworlds.tasks import load_env_cfg

    if target.file is not None:
        return _world_of_file(target.file, cfg)
    if target.gallery:
        return GALLERY[target.gallery].world()
    if cfg.world is not None:
        count = load_env_cfg(target.task).scene.num_envs
        if target.run is not None:
            count = target.run.env_params().get("scene", {}).get("num_envs", count)
        if not 0 <= cfg.world < count:
            raise ValueError(
                f"--world must be from 0 to {count - 1}, because the training of '{target.task}' "
                f"has {count} worlds, got {cfg.world}: choose one of these."
            )
    if target.run is None:
        env_cfg = one_bucket(load_env_cfg(target.task, play=True), cfg.bucket)
        return _world_of_task(env_cfg, cfg.world)
    if cfg.world is None and target.folder is not None:
        scene = target.folder / "scene" / "scene.xml"
        if scene.is_file():
            return world_from_file(scene, by_prefix=True)
    from manyworlds.tasks.run_configs import play_env_cfg

    env_cfg = one_bucket(play_env_cfg(target.task, target.run), cfg.bucket)
    return _world_of_task(env_cfg, cfg.world)


def _world_of_file(path: Path, cfg: LabOptions) -> World:
    """Compile a model file, and print warnings about it."""
    from manyworlds.cli.validate import doubts, missing_floor
    from manyworlds.lab import CompileError, world_from_file
    from manyworlds.spec.load import ModelFileError, compile_spec, load_spec

    try:
        world = world_from_file(path, plane=cfg.plane, missing_meshes=cfg.missing_meshes)
    except CompileError as error:
        try:
            compile_spec(load_spec(path, missing_meshes=cfg.missing_meshes)[0], path)
        except ModelFileError as explained:  # has a better message
            raise CompileError(str(explained)) from error
        raise
    if cfg.validate:
        world.warnings += [*doubts(world.model), *missing_floor(world.model)]
    for warning in world.warnings:
        print(f"warning: {warning}", flush=True)
    return world


def _world_of_task(env_cfg: ManagerBasedRlEnvCfg, world: int | None) -> World:
    from manyworlds.lab import world_from_env, world_from_scene

    if world is None:
        return world_from_scene(env_cfg.scene, env_cfg.sim.mujoco)
    from manyworlds.envs import ManagerBasedRlEnv

    if world >= env_cfg.scene.num_envs:  # scenes for play have few worlds
        env_cfg.scene.num_envs = world + 1
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    try:
        return world_from_env(env, world)
    finally:
        env.close()
