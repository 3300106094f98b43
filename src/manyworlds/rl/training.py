"""One training run, from configuration to exported policy."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.rl.exporter_utils import export_policy
from manyworlds.rl.learning_curve import plot_learning_curve
from manyworlds.rl.run_folder import RunFolder
from manyworlds.rl.runner import IterationRecord, OnPolicyRunner, TrainingStopped
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.utils.config import to_plain
from manyworlds.utils.os import write_atomic


@dataclass
class TrainingResult:
    """What a training run leaves."""

    run: RunFolder
    interrupted: bool = False
    """Whether it was stopped before its last iteration."""
    records: list[IterationRecord] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    """Files worth looking at: the last checkpoint, the exported policy, and the curve."""

    @property
    def checkpoint(self) -> Path:
        """The checkpoint of the last iteration."""
        return self.files[0]


def train(
    task: str,
    env_cfg: ManagerBasedRlEnvCfg,
    rl_cfg: RslRlOnPolicyRunnerCfg,
    log_root: Path,
    *,
    device: str | None = None,
    resume: Path | None = None,
    runner_cls: type[OnPolicyRunner] = OnPolicyRunner,
    on_iteration: Callable[[IterationRecord], None] | None = None,
) -> TrainingResult:
    """Train a policy and export it.

    Ctrl-C or SIGTERM stops after the present iteration and still writes a checkpoint.

    Args:
        task: name of the task, kept in the run folder.
        env_cfg: the environment; its seed is set from the learner's unless it has one.
        rl_cfg: the learner.
        log_root: where run folders are made.
        device: a torch device, or None for the default.
        resume: checkpoint to go on from.
        runner_cls: the runner.
        on_iteration: called after every iteration.
    """
    _check_counts(rl_cfg)
    env_cfg = copy.deepcopy(env_cfg)
    if env_cfg.seed is None:
        env_cfg.seed = rl_cfg.seed
    env = ManagerBasedRlEnv(env_cfg, device=device)
    wrapped = RslRlVecEnvWrapper(env, clip_actions=rl_cfg.clip_actions)
    runner = runner_cls(wrapped, rl_cfg, None, str(env.device))
    if resume is not None:
        runner.load(resume)
    remaining = rl_cfg.max_iterations - runner.current_learning_iteration
    if resume is not None and remaining <= 0:
        raise ValueError(
            f"'{resume}' already has {runner.current_learning_iteration} iterations: ask for more "
            f"than that with --agent.max-iterations (now {rl_cfg.max_iterations})."
        )
    run = RunFolder.create(log_root, rl_cfg.experiment_name, rl_cfg.run_name, task, env_cfg, rl_cfg)
    runner.logger.log_dir = str(run.path)
    guard = env.sim.cfg.nan_guard
    guard.output_dir = guard.output_dir or str(run.path / "nan_dumps")
    result = TrainingResult(run)

    def record(item: IterationRecord) -> None:
        result.records.append(item)
        if on_iteration is not None:
            on_iteration(item)

    runner.on_iteration(record)
    with _stop_on_signal(runner):
        try:
            runner.learn(remaining, init_at_random_ep_len=resume is None)
        except (TrainingStopped, KeyboardInterrupt):
            # A second Ctrl-C ends an iteration half-way; its weights are still worth keeping.
            result.interrupted = True
    _write_results(runner, result)
    return result


def _check_counts(rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    for name in ("max_iterations", "num_steps_per_env", "save_interval"):
        if (value := getattr(rl_cfg, name)) < 1:
            raise ValueError(f"The learner's {name} must be at least 1, got {value}.")


def _write_results(runner: OnPolicyRunner, result: TrainingResult) -> None:
    path = result.run.path
    checkpoint = path / f"model_{runner.current_learning_iteration}.pt"
    if not checkpoint.is_file():
        runner.save(checkpoint)
    lines = "".join(json.dumps(asdict(item)) + "\n" for item in result.records)
    write_atomic(path / "progress.jsonl", lines)
    result.files = [
        checkpoint,
        export_policy(runner, path / "policy.onnx"),
        plot_learning_curve(result.records, path / "learning_curve.png"),
    ]


@contextlib.contextmanager
def _stop_on_signal(runner: OnPolicyRunner) -> Iterator[None]:
    """Turn the first Ctrl-C or SIGTERM into a stop between iterations; a second one is at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(signum: int, frame: object) -> None:
        runner.request_stop()
        signal.signal(signum, before[signal.Signals(signum)])

    before = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def write_summary(run: RunFolder, summary: dict[str, object]) -> Path:
    """Write what a run came to as `summary.json`; what is not finite becomes null."""
    finite = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in summary.items()
    }
    path = run.path / "summary.json"
    write_atomic(path, json.dumps(to_plain(finite), indent=2, allow_nan=False) + "\n")
    return path
