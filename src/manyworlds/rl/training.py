"""Training run, from configuration to exported policy."""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from manyworlds.envs import BucketedRlEnv, ManagerBasedRlEnv, ManagerBasedRlEnvCfg, make_env
from manyworlds.envs.buckets import separate_cfgs
from manyworlds.rl.config import RslRlBaseRunnerCfg
from manyworlds.rl.curves import plot_learning_curve
from manyworlds.rl.distributed import Ranks, disconnect, share
from manyworlds.rl.exporter_utils import export_policy, export_scene
from manyworlds.rl.progress import IterationRecord, read_edits, read_progress, write_progress
from manyworlds.rl.run_folder import RunFolder, RunOrigin
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.rl.settings_check import check_settings
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.utils.config import finite_or_none, to_plain
from manyworlds.utils.devices import as_device
from manyworlds.utils.files import write_atomic
from manyworlds.utils.machine import machine, package_versions
from manyworlds.utils.platforms import stop_signals


@dataclass
class TrainingResult:
    """Result of a training run."""

    run: RunFolder
    stopped: bool = False
    """True if it ended before its last iteration."""
    timed_out: bool = False
    """True if it ended because of its time limit."""
    was_complete: bool = False
    """True if it had all its iterations before, so that only its files were written."""
    records: list[IterationRecord] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    """Most important files: the last checkpoint, the exported policy, its scene, and the learning
    curve."""

    @property
    def interrupted(self) -> bool:
        """True if a signal stopped the run."""
        return self.stopped and not self.timed_out

    @property
    def checkpoint(self) -> Path:
        """Checkpoint of the last iteration."""
        return self.files[0]


def train(
    task: str,
    env_cfg: ManagerBasedRlEnvCfg,
    rl_cfg: RslRlBaseRunnerCfg,
    log_root: Path,
    *,
    device: str | None = None,
    resume: Path | None = None,
    runner_cls: type[OnPolicyRunner] = OnPolicyRunner,
    on_runner: Callable[[OnPolicyRunner], object] | None = None,
    on_start: Callable[[OnPolicyRunner, RunFolder], None] | None = None,
    on_iteration: Callable[[IterationRecord], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    command: str | None = None,
    load: Sequence[str] = (),
    task_files: Mapping[str, bytes] | None = None,
    init: Path | None = None,
    complete: bool = False,
) -> TrainingResult:
    """Train a policy and export it.

    Ctrl-C or SIGTERM stops after the current iteration and still writes a checkpoint; so does the
    learner's `max_minutes`, counted from the call of this function. Under `torchrun`, each process
    trains in its own environment and rank 0 writes the files.

    Args:
        task: name of the task, stored in the run folder.
        env_cfg: the environment; its seed is set to the learner's if it is None.
        rl_cfg: the learner.
        log_root: folder of the experiments' folders.
        device: torch device of the worlds; None for the default.
        resume: checkpoint to continue from.
        runner_cls: class of the runner, which gets the settings of the learner as a dict.
        on_runner: function called with the runner in all processes, before it loads a checkpoint;
            `manyworlds.live.RunEdits` continues a run that was edited.
        on_start: function called with runner and run folder before the first iteration, on rank 0.
        on_iteration: function called after every iteration.
        on_stop: function called in the handler of the signal that ends the training after the
            present iteration.
        command: command line that starts this training, stored in the run folder.
        load: Python files and modules that registered the task, stored in the run folder.
        task_files: contents of the Python files of `load`, of which the run folder has copies.
        init: checkpoint whose networks a new training begins with.
        complete: whether to export the policy of `resume` into its folder, if it has all its
            iterations already.

    Raises:
        ValueError: a setting is out of bounds, or `resume` has all its iterations already, without
            `complete`.
    """
    check_settings(asdict(rl_cfg), env_cfg.scene.num_envs)
    deadline = time.perf_counter() + 60.0 * (rl_cfg.max_minutes or math.inf)
    ranks = Ranks.from_environment()
    env_cfg = copy.deepcopy(env_cfg)
    if env_cfg.seed is None:
        env_cfg.seed = rl_cfg.seed
    with contextlib.ExitStack() as at_end:
        at_end.callback(disconnect)
        reserved = at_end.enter_context(_reserved(ranks, log_root, rl_cfg))
        runner = _make_runner(runner_cls, ranks, env_cfg, rl_cfg, device, reserved)
        resume = share(resume)
        if on_runner is not None:
            on_runner(runner)
        init = share(init)
        if resume is None:
            runner.load_teacher()
            if init is not None:
                runner.load(str(init), load_cfg={"actor": True, "critic": True})
        else:
            runner.load(str(resume))
        done = runner.current_learning_iteration
        remaining = rl_cfg.max_iterations - done
        if resume is not None and remaining <= 0:
            if not complete:
                raise ValueError(
                    f"'{resume}' already has {done} iterations: set --agent.max-iterations (now "
                    f"{rl_cfg.max_iterations}) to more than that."
                )
            run = RunFolder(resume.parent)
            result = TrainingResult(run, was_complete=True, files=[resume])
            result.records = _earlier_records(resume, done)
        else:
            origin: RunOrigin = {"command": command, "load": list(load)}
            if init is not None:
                origin["init"] = str(init.resolve())
            run = reserved or _shared_folder(ranks, log_root, rl_cfg)
            _start_run(runner, run, task, env_cfg, rl_cfg, origin, task_files)
            result = TrainingResult(run)
            result.records = _earlier_records(resume, done)
            if ranks.is_main:
                write_progress(run.path, result.records, mode="w")
                if on_start is not None:
                    on_start(runner, run)
            _learn(
                runner,
                remaining,
                result,
                on_iteration,
                on_stop,
                deadline,
                from_start=resume is None,
            )
            checkpoint = run.path / f"model_{runner.current_learning_iteration}.pt"
            if not ranks.is_distributed and not checkpoint.is_file():
                runner.save(str(checkpoint))  # of an iteration that was interrupted
            result.files = [checkpoint]
        if ranks.is_main:
            curve = run.path / "learning_curve.png"
            result.files += [
                *_export(runner, run.path, task),
                plot_learning_curve(result.records, curve, read_edits(run.path)),
            ]
    return result


def _export(runner: OnPolicyRunner, folder: Path, task: str) -> list[Path]:
    """Export the policy and its scene; with buckets, for each of them into a folder of its own."""
    env = runner.env.unwrapped
    if not isinstance(env, BucketedRlEnv):
        policy = export_policy(runner, folder / "policy.onnx", task=task)
        return [policy, export_scene(env, folder / "scene")]
    alone: dict[str, ManagerBasedRlEnvCfg] = {}
    if env.cfg.scene.merge_buckets:
        alone = separate_cfgs(env.cfg, num_envs=1)
    for name, bucket in env.buckets.items():
        own = folder / "buckets" / name
        own.mkdir(parents=True, exist_ok=True)
        if alone:  # the files describe one robot
            bucket = ManagerBasedRlEnv(alone[name], env.device)
        export_policy(runner, own / "policy.onnx", task=task, env=bucket)
        export_scene(bucket, own / "scene")
    return [folder / "buckets"]


@contextlib.contextmanager
def _reserved(
    ranks: Ranks, log_root: Path, rl_cfg: RslRlBaseRunnerCfg
) -> Iterator[RunFolder | None]:
    """Reserve the folder of a run, and remove it at the end if no run began in it.

    None for several processes, which are not connected before they have runners.
    """
    if ranks.is_distributed:
        yield None
        return
    missing = [folder for folder in (log_root, *log_root.parents) if not folder.exists()]
    run = RunFolder.reserve(log_root, rl_cfg.experiment_name, rl_cfg.run_name)
    try:
        yield run
    finally:
        run.remove_unless_begun()
        for folder in missing:
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()


def _shared_folder(ranks: Ranks, log_root: Path, rl_cfg: RslRlBaseRunnerCfg) -> RunFolder:
    """Make the folder of a run of several processes."""
    run = None
    if ranks.is_main:
        run = RunFolder.reserve(log_root, rl_cfg.experiment_name, rl_cfg.run_name)
    run = share(run)
    assert run is not None  # rank 0 made it
    return run


def _make_runner(
    runner_cls: type[OnPolicyRunner],
    ranks: Ranks,
    env_cfg: ManagerBasedRlEnvCfg,
    rl_cfg: RslRlBaseRunnerCfg,
    device: str | None,
    run: RunFolder | None = None,
) -> OnPolicyRunner:
    """Make the worlds of this process, and a runner on the learner's device.

    Raises:
        ValueError: the learner's device does not exist.
    """
    learner = None
    if rl_cfg.device is not None:
        learner = as_device(ranks.device(rl_cfg.device) or rl_cfg.device)
        if learner.type == "mps" and not torch.backends.mps.is_available():
            raise ValueError(
                "--agent.device is 'mps', but PyTorch finds no GPU of Apple: use 'cpu', or 'cuda' "
                "for one of NVIDIA."
            )
    if ranks.is_distributed:
        env_cfg = copy.deepcopy(env_cfg)
        scene = env_cfg.scene
        scene.first_world = ranks.rank * scene.num_envs
        scene.total_envs = ranks.world_size * scene.num_envs
        env_cfg.sim.num_threads = env_cfg.sim.num_threads or ranks.threads
    env = make_env(env_cfg, device=ranks.device(device))
    wrapped = RslRlVecEnvWrapper(env, clip_actions=rl_cfg.clip_actions)
    log_dir = None
    if run is not None:
        log_dir = str(run.path)
    return runner_cls(wrapped, asdict(rl_cfg), log_dir, str(learner or env.device))


def _learn(
    runner: OnPolicyRunner,
    iterations: int,
    result: TrainingResult,
    on_iteration: Callable[[IterationRecord], None] | None,
    on_stop: Callable[[], None] | None,
    deadline: float,
    *,
    from_start: bool,
) -> None:
    """Train until the last iteration, the deadline or a signal, and record each iteration."""

    def record(item: IterationRecord) -> None:
        result.records.append(item)
        if runner.ranks.is_main:
            write_progress(result.run.path, [item], mode="a")
        if on_iteration is not None:
            on_iteration(item)
        next_end = time.perf_counter() + item.collect_time + item.learn_time
        if runner.ranks.is_main and next_end > deadline and item.iteration < item.total:
            result.timed_out = True
            runner.request_stop()

    runner.on_iteration(record)
    with _stop_on_signal(runner, on_stop):
        try:
            runner.learn(iterations, init_at_random_ep_len=from_start)
            result.stopped = runner.stopped
            result.timed_out = share(result.timed_out)
        except KeyboardInterrupt:
            # A second Ctrl-C interrupts an iteration; its weights are still saved, unless other
            # processes may wait for this one.
            if runner.ranks.is_distributed:
                raise
            result.stopped = True


def _start_run(
    runner: OnPolicyRunner,
    run: RunFolder,
    task: str,
    env_cfg: ManagerBasedRlEnvCfg,
    rl_cfg: RslRlBaseRunnerCfg,
    origin: RunOrigin,
    task_files: Mapping[str, bytes] | None,
) -> None:
    """Write the configuration into the run's folder, and pass the folder to writers of files."""
    if runner.ranks.is_main:
        origin["started"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        origin["device"] = str(runner.device)
        origin["machine"] = machine(gpu=True)
        origin["versions"] = package_versions()
        run.begin(task, env_cfg, rl_cfg, origin, task_files)
    runner.logger.log_dir = str(run.path)
    dumps = "nan_dumps"
    if runner.ranks.is_distributed:
        dumps += f"_rank{runner.ranks.rank}"
    env = runner.env.unwrapped
    parts = [env]
    if isinstance(env, BucketedRlEnv):
        parts = list(env.buckets.values())
    for part in parts:
        guard = part.sim.cfg.nan_guard
        guard.output_dir = guard.output_dir or str(run.path / dumps)


def _earlier_records(checkpoint: Path | None, iterations: int) -> list[IterationRecord]:
    """Return the records of the run of a checkpoint up to the checkpoint, if they are available."""
    if checkpoint is None:
        return []
    try:
        records = read_progress(checkpoint.parent)
    except FileNotFoundError:
        return []
    return [item for item in records if item.iteration <= iterations]


@contextlib.contextmanager
def _stop_on_signal(runner: OnPolicyRunner, on_stop: Callable[[], None] | None) -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM: stop after the iteration, and at once if they come again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(signum: int, frame: object) -> None:
        runner.request_stop()
        if on_stop is not None:
            on_stop()
        signal.signal(signum, before[signal.Signals(signum)])

    before = {s: signal.signal(s, handle) for s in stop_signals()}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def write_summary(run: RunFolder, summary: dict[str, object]) -> Path:
    """Write the results of a run to `summary.json`; values that are not finite become null."""
    path = run.path / "summary.json"
    plain = finite_or_none(to_plain(summary))
    write_atomic(path, json.dumps(plain, indent=2, allow_nan=False) + "\n")
    return path
