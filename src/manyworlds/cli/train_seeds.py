"""`manyworlds train TASK --seeds 1,2,3`: one training per seed, each in a process of its own."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import parse_known
from manyworlds.utils.platforms import describe_exit, interrupt, own_group_flags, stop_signals

if TYPE_CHECKING:
    from manyworlds.cli.task_fields import TrainConfig
    from manyworlds.cli.train import TrainOptions
    from manyworlds.rl.run_folder import RunFolder

RUN_FILE = "MANYWORLDS_RUN_FILE"
"""Environment variable with a file to which a training writes the path of its run folder."""
_SEEDS = ("--agent.seed", "--env.seed")
_INTERRUPTED = 130
_SIGNALS = list(stop_signals())
if hasattr(signal, "SIGHUP"):
    _SIGNALS.append(signal.SIGHUP)


@dataclass(kw_only=True)
class SeedOptions:
    """Seeds of several trainings."""

    seeds: str | None = None
    """Train once per seed, such as 1,2,3, one after the other, and plot the runs together."""
    seeds_parallel: bool = False
    """Train with all seeds at the same time; the cores are divided among the trainings."""


@dataclass
class _Training:
    """Training with one seed."""

    seed: int
    run_file: Path
    code: int | None = None
    """Exit code; None before the end."""

    @property
    def run(self) -> RunFolder | None:
        """The run's folder; None if the training did not come so far."""
        from manyworlds.rl.run_folder import RunFolder

        if not self.run_file.exists():
            return None
        return RunFolder(Path(self.run_file.read_text(encoding="utf-8")))


@dataclass
class _Processes:
    """Running processes, to which signals are passed on."""

    running: list[subprocess.Popen[str]] = field(default_factory=list)
    stopped: bool = False

    def add(self, process: subprocess.Popen[str]) -> None:
        """Pass signals on to a process, also one that came while it started."""
        self.running.append(process)
        if self.stopped:
            interrupt(process)

    @contextlib.contextmanager
    def forward_signals(self) -> Iterator[None]:
        """Pass Ctrl-C, SIGTERM and the end of the terminal on; each process then saves its run."""

        def forward(signum: int, frame: object) -> None:
            self.stopped = True
            if signum != signal.SIGINT:
                signum = signal.SIGTERM
            for process in self.running:
                interrupt(process, signum)

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # A signal that is ignored, as below `nohup`, stays so.
        caught = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, forward) for number in caught}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for process in self.running:  # after an error
                process.terminate()


def train_seeds(task: str, options: TrainOptions, config: TrainConfig, argv: Sequence[str]) -> int:
    """Train once per seed, and draw all curves in one picture.

    Args:
        task: name of the task.
        options: the options.
        config: environment and learner.
        argv: the arguments of `manyworlds train`.

    Returns:
        The exit code: 130 after Ctrl-C, else 1 if a training failed, else 0.
    """
    seeds = parse_seeds(options.seeds)
    _check(options, config, argv)
    _, rest = parse_known(SeedOptions, [*argv], "train")
    started = datetime.datetime.now()
    with tempfile.TemporaryDirectory() as scratch:
        trainings = [_Training(seed, Path(scratch, f"seed-{seed}")) for seed in seeds]
        stopped = _run(trainings, options, config, rest)
        parts = (f"{started:%Y-%m-%d_%H-%M-%S}", config.agent.run_name, "seeds")
        name = "_".join(filter(None, parts))
        picture = options.log_root / config.agent.experiment_name / f"{name}.png"
        _report(task, trainings, picture)
    codes = {training.code for training in trainings}
    if stopped or _INTERRUPTED in codes:
        return _INTERRUPTED
    return int(codes != {0})


def parse_seeds(text: str | None) -> list[int]:
    """Return the seeds of a text such as "1,2,3".

    Raises:
        UsageError: there is no text, or a seed is not a number, out of bounds, or there twice.
    """
    from manyworlds.utils.seeding import MAX_SEED

    if text is None:
        raise UsageError("--seeds-parallel needs --seeds, such as --seeds 1,2,3.")
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or max(seeds) > MAX_SEED or len({*seeds}) < len(seeds):
        raise UsageError(
            f"--seeds '{text}' must be different numbers from 0 to {MAX_SEED} with commas between "
            "them, such as 1,2,3."
        )
    return seeds


def _check(options: TrainOptions, config: TrainConfig, argv: Sequence[str]) -> None:
    """Check that no option contradicts several seeds."""
    given = {arg.split("=")[0].replace("_", "-") for arg in argv}
    both = given & {*_SEEDS}
    if both:
        raise UsageError(f"Give either --seeds or {sorted(both)[0]}, not both.")
    continued = options.resume or options.auto_resume or config.agent.resume
    if continued or options.checkpoint or options.wandb_run_path:
        raise UsageError(
            "--seeds begins new runs: leave out --resume, --auto-resume, --checkpoint and "
            "--wandb-run-path, or continue each run by itself."
        )
    if "WORLD_SIZE" in os.environ:
        raise UsageError("--seeds starts its own processes: use it without torchrun.")


def _run(
    trainings: Sequence[_Training],
    options: TrainOptions,
    config: TrainConfig,
    argv: Sequence[str],
) -> bool:
    """Run the trainings in processes; return True if a signal stopped them."""
    processes = _Processes()
    with processes.forward_signals():
        if options.seeds_parallel:
            _run_all(trainings, config, argv, processes)
            return processes.stopped
        for i, training in enumerate(trainings, 1):
            if processes.stopped:
                break
            print(f"seed {training.seed} ({i} of {len(trainings)}):", flush=True)
            process = _start(training, config, argv)
            processes.add(process)
            training.code = process.wait()
    return processes.stopped


def _run_all(
    trainings: Sequence[_Training],
    config: TrainConfig,
    argv: Sequence[str],
    processes: _Processes,
) -> None:
    """Run all trainings at once; print their output with the seed before each line."""
    from manyworlds.utils.devices import usable_cores

    cores = max(1, usable_cores() // len(trainings))
    if not config.env.sim.num_threads:
        argv = [*argv, "--env.sim.num-threads", str(cores)]
    environment = {"OMP_NUM_THREADS": str(cores), **os.environ}

    def copy_output(training: _Training, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"seed {training.seed}: {line}", end="", flush=True)

    readers = []
    for training in trainings:
        if processes.stopped:
            break
        processes.add(_start(training, config, argv, environment))
        args = training, processes.running[-1]
        readers.append(threading.Thread(target=copy_output, args=args))
        readers[-1].start()
    for training, process, reader in zip(trainings, processes.running, readers, strict=False):
        training.code = process.wait()
        reader.join()


def _start(
    training: _Training,
    config: TrainConfig,
    argv: Sequence[str],
    piped_environment: dict[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start a training in a process group of its own, to which a terminal sends no Ctrl-C.

    With an environment for it, its output and errors go to a pipe.
    """
    name = "_".join(filter(None, (config.agent.run_name, f"seed-{training.seed}")))
    options = [text for option in _SEEDS for text in (option, str(training.seed))]
    command = [sys.executable, "-m", "manyworlds.cli.main", "train", *argv, *options]
    output = errors = None
    if piped_environment:
        output = subprocess.PIPE
        errors = subprocess.STDOUT
    return subprocess.Popen(
        [*command, "--agent.run-name", name],
        env={**(piped_environment or os.environ), RUN_FILE: str(training.run_file)},
        stdout=output,
        stderr=errors,
        text=True,
        errors="replace",
        process_group=0,
        creationflags=own_group_flags(),
    )


def _report(task: str, trainings: Sequence[_Training], picture: Path) -> None:
    """Draw the curves of the trainings that ended well or were stopped; print one line."""
    from manyworlds.rl.comparison import RunCurves, plot_comparison
    from manyworlds.rl.progress import read_progress

    for training in trainings:
        if training.code not in (None, 0, _INTERRUPTED):
            reason = f"exit code {training.code}; its message is above."
            if training.code < 0:
                reason = f"{describe_exit(training.code)} ended it."
            print(f"error: seed {training.seed} failed: {reason}", file=sys.stderr)
    ended = [t.run for t in trainings if t.code in (0, _INTERRUPTED)]
    runs = [RunCurves.of(run) for run in ended if run is not None and read_progress(run.path)]
    last = (run.records[-1].mean_return for run in runs)
    returns = [value for value in last if value is not None]
    line = f"{task}: {len(runs)} of {len(trainings)} seeds trained"
    if any(training.code == _INTERRUPTED for training in trainings):
        line += " until the stop"
    if returns:
        line += (
            f", mean return {sum(returns) / len(returns):.2f} (minimum {min(returns):.2f}, "
            f"maximum {max(returns):.2f})"
        )
        line += f"; picture: {plot_comparison(runs, ['mean_return'], picture)}"
    print(line)
