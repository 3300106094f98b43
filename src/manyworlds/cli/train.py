"""`manyworlds train TASK`: train a policy."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import arg

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import (
    FRONTENDS,
    RUNS,
    Host,
    LogRoot,
    Port,
    TaskOptions,
    WandbCheckpointName,
    WandbRunPath,
    WebOrigins,
    parse_task_command,
)
from manyworlds.cli.runs import (
    FoundRun,
    downloaded_checkpoint,
    find_run,
    find_task,
    tell_differences,
)
from manyworlds.cli.task_files import LOADED, absolute, trust
from manyworlds.cli.train_seeds import RUN_FILE, SeedOptions, train_seeds
from manyworlds.utils.terminal import new_console, print_line

if TYPE_CHECKING:
    from rich.console import Console

    from manyworlds.cli.task_fields import TrainConfig
    from manyworlds.rl import RslRlBaseRunnerCfg
    from manyworlds.rl.progress import EditRecord, IterationRecord
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.rl.training import TrainingResult
    from manyworlds.sim import SimulationCfg


@dataclass(kw_only=True)
class TrainOptions(SeedOptions, TaskOptions):
    """Train a policy for a task.

    Options `--env...` change the environment of the task, options `--agent...` its learner:
    see `manyworlds train TASK --help`. Collections are written as in Python, such as "(256, 128)".
    See `manyworlds list` for the tasks.

    Fields that every task has: --agent.max-iterations INT, --agent.max-minutes FLOAT,
    --agent.seed INT, --agent.run-name STR, --agent.save-interval INT, --agent.logger
    {tensorboard,wandb}, --env.episode-length-s FLOAT, --env.decimation INT, --env.sim.engine
    {auto,native,warp}, --env.sim.num-threads INT.
    """

    preset: Annotated[
        Literal["auto", "cpu", "gpu"],
        arg(help="Settings of the task for a few CPU cores or for a GPU; auto chooses by device."),
    ] = "auto"
    log_root: LogRoot = RUNS
    resume: bool = False
    """Resume the newest run of this task, with its configuration."""
    auto_resume: Annotated[
        bool,
        arg(
            help="Resume the newest run of this task with the same `--agent.run-name`, or start "
            "one; for jobs that are restarted after failures. A finished run only gets the output "
            "files that it lacks."
        ),
    ] = False
    checkpoint: Path | None = None
    """Resume from this checkpoint: a file, a run folder, or the name of a run."""
    from_file: Annotated[
        bool,
        arg(
            help="Resume with the task's settings and file as they are now, not with those of the "
            "run."
        ),
    ] = False
    init_policy: Annotated[
        Path | None,
        arg(
            help="Begin a new training with the networks of a checkpoint, for example to "
            "fine-tune under other rewards: a file, a run folder, or the name of a run."
        ),
    ] = None
    wandb_run_path: WandbRunPath = None
    wandb_checkpoint_name: WandbCheckpointName = None
    video: bool = False
    """Record videos of a world during training, into `videos/train` of the run folder."""
    video_length: int = 200
    """Length of a video [control steps]."""
    video_interval: int = 2000
    """Control steps from the start of one video to the start of the next."""
    view: bool = False
    """Show the worlds during training on a read-only web page."""
    view_worlds: int = 64
    """Maximum number of worlds on that page."""
    peek_world: int = 0
    """World of that page that `manyworlds peek` opens in MuJoCo's window."""
    enter: bool = False
    """Let `manyworlds lab --attach` enter the worlds; implied by `--view`."""
    remember: Annotated[
        bool,
        arg(
            help="Keep the last 10 s of all worlds and the worst episodes in memory, for "
            "`manyworlds why`; needs `--enter` or `--view`."
        ),
    ] = False
    edits: Annotated[
        Path | None,
        arg(
            help="Run whose edits are repeated after the same iterations: its folder or name; None "
            "repeats those of the resumed run."
        ),
    ] = None
    repeat_edits: bool = True
    """Repeat the edits of the resumed run that came after the checkpoint."""
    host: Host = "127.0.0.1"
    port: Port = 8080
    web_origin: WebOrigins = ()
    enable_nan_guard: bool = False
    """Record the last steps of diverging worlds; same as `--env.sim.nan-guard.enabled`."""
    gpu_ids: Annotated[
        list[int] | Literal["all"] | None,
        tyro.conf.UsePythonSyntaxForLiteralCollections,
        arg(
            help='GPUs to train on, one process each, such as "[0, 1]", or all; None trains in one '
            "process on `--device`."
        ),
    ] = None


def main(argv: list[str]) -> int:
    """Run `manyworlds train`."""
    from manyworlds.tasks import list_tasks

    options, words = parse_task_command(TrainOptions, argv, "train")
    if not options.task:
        raise UsageError(f"Name a task: manyworlds train TASK; tasks: {', '.join(list_tasks())}.")
    continues = options.resume or options.auto_resume or options.checkpoint is not None
    continues |= any(word.partition("=")[0] == "--agent.resume" for word in words)
    task = find_task(options, "train", has_trained=continues)
    config, resume = read_config(task, options, words)
    if options.seeds is not None or options.seeds_parallel:
        return train_seeds(task, options, config, argv)
    return run(task, options, config, resume, argv)


def run(
    task: str,
    options: TrainOptions,
    config: TrainConfig,
    resume: Path | None = None,
    argv: Sequence[str] = (),
) -> int:
    """Train a policy, and print the files that were written.

    Args:
        task: name of the task.
        options: the options.
        config: environment and learner; the environment may be modified.
        resume: checkpoint to continue from.
        argv: arguments with which the command starts again for each of several GPUs.

    Returns:
        The exit code: 0, or 130 if a signal stopped the run.
    """
    _check_options(options, resume)
    from manyworlds.cli.play import enlarge
    from manyworlds.cli.task_tables import task_tables
    from manyworlds.cli.training_progress import TrainingProgress
    from manyworlds.cli.training_watchers import TrainingWatchers
    from manyworlds.rl.distributed import Ranks
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.training import train
    from manyworlds.tasks import load_runner_cls

    ranks = Ranks.from_environment()
    if options.gpu_ids is not None and not ranks.is_distributed:
        _use_gpus(options, argv)
    if options.enable_nan_guard:
        config.env.sim.nan_guard.enabled = True
    if options.video:
        enlarge(config.env.viewer)
    recorded = _recorded_edits(options, resume)
    console = new_console(silent=not ranks.is_main)
    load = absolute(options.load)
    trust(load)
    init = None
    if options.init_policy is not None:
        init = find_run(options.init_policy, options.log_root).need_checkpoint()
        print_line(console, f"the networks begin as those of {init}")
    with (
        TrainingProgress(console) as progress,
        contextlib.closing(TrainingWatchers(options, console, recorded)) as watchers,
    ):

        def start(runner: OnPolicyRunner, folder: RunFolder) -> None:
            if RUN_FILE not in os.environ:  # of several seeds, all would print the same
                print_line(console, task_tables(runner.env.unwrapped))
            print_line(console, f"run folder: {folder.path}")
            watchers.start(runner, folder)

        def report(record: IterationRecord) -> None:
            progress.update(record)
            watchers.note(record)

        result = train(
            task,
            config.env,
            config.agent,
            options.log_root,
            device=options.device,
            resume=resume,
            runner_cls=load_runner_cls(task) or OnPolicyRunner,
            complete=options.auto_resume,
            on_runner=watchers.attach,
            on_start=start,
            on_iteration=report,
            on_stop=_say_that_it_stops if ranks.is_main else None,
            command=shlex.join(["manyworlds", "train", *argv]),
            load=load,
            task_files={name: LOADED[name] for name in load if name in LOADED},
            init=init,
        )
    result.files += watchers.files
    if ranks.is_main:
        _report(task, options, result, console)
    if result.interrupted:
        return 130
    return 0


def _check_options(options: TrainOptions, resume: Path | None) -> None:
    """Check options that exclude or need one another.

    Raises:
        ValueError: they do not fit.
    """
    if options.video_interval < 1:
        raise ValueError(f"--video-interval must be at least 1 step, got {options.video_interval}.")
    if options.init_policy is not None and resume is not None:
        raise UsageError("--init-policy begins a new training: leave out what resumes one.")
    if options.remember and not (options.enter or options.view):
        raise ValueError("--remember needs --enter or --view: add one of them.")


def _recorded_edits(options: TrainOptions, resume: Path | None) -> list[EditRecord]:
    """Return the edits of the run that is repeated or continued.

    Raises:
        FileNotFoundError: the run that `--edits` names has none.
    """
    from manyworlds.rl.progress import EDITS_FILE, read_edits

    if options.edits is None:
        return [] if resume is None else read_edits(resume.parent)
    folder = find_run(options.edits, options.log_root).need_folder().path
    if not (folder / EDITS_FILE).is_file():
        raise FileNotFoundError(
            f"There is no '{folder / EDITS_FILE}': give the folder of a run that was edited."
        )
    return read_edits(folder)


def read_config(
    task: str, options: TrainOptions, words: Sequence[str]
) -> tuple[TrainConfig, Path | None]:
    """Return the configurations of a task, or of the run to continue, with the given values.

    Args:
        task: name of the task.
        options: the options.
        words: the arguments that change fields of the configurations.

    Returns:
        The configurations, and the checkpoint to continue from, if any.
    """
    from manyworlds.cli.given_values import keep_given_values
    from manyworlds.cli.task_fields import TrainConfig, parse_fields, take_num_envs
    from manyworlds.rl.distributed import Ranks
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset
    from manyworlds.tasks.run_configs import configs_of_run, with_texts_of
    from manyworlds.utils.extras import require_extra

    config = TrainConfig(env=load_env_cfg(task), agent=load_rl_cfg(task))
    if _is_for_cpu(options, config.env.sim, words):
        use_cpu_preset(task, config.env, config.agent)
    config = parse_fields(config, words, f"train {task}", options)
    require_extra("rsl_rl", "train")
    found = find_checkpoint(task, options, config.agent)
    resume = None
    notes: list[str] = []
    if found is not None:
        resume = found.need_checkpoint()
        notes.append(f"the training continues from '{resume}'")
        trained = found.folder
        if Ranks.from_environment().is_main:
            tell_differences(trained, task, from_file=options.from_file)
        if trained is not None and trained.task in (task, None) and not options.from_file:
            config.env, config.agent = configs_of_run(trained)
            # What the command line gives overrides the run.
            config = parse_fields(config, words, f"train {task}", options)
        elif trained is not None and trained.task == task:
            config.env = with_texts_of(config.env, trained)
            # The saved states are of this many worlds.
            config.env.scene.num_envs = trained.env_params()["scene"]["num_envs"]
            config = parse_fields(config, words, f"train {task}", options)
        elif trained is not None and trained.task not in (task, None):
            notes.append(
                f"the policy is of the task '{trained.task}', whose settings do not apply here"
            )
    take_num_envs(config.env, options.num_envs)
    notes += keep_given_values(config, words)
    if Ranks.from_environment().is_main:
        for note in notes:
            print(f"note: {note}.", file=sys.stderr)
    return config, resume


def _is_for_cpu(options: TrainOptions, sim: SimulationCfg, words: Sequence[str]) -> bool:
    """Return True if the settings for few CPU cores apply."""
    from manyworlds.sim import choose_device

    if options.preset != "auto":
        return options.preset == "cpu"
    if options.device is not None:
        return options.device.startswith("cpu")
    # The preset has terms whose fields are options: it must be chosen before these are parsed.
    sim = copy.copy(sim)
    for word, following in itertools.pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        if option == "--env.sim.engine":
            if not equals:
                value = following
            sim.engine = value  # type: ignore[assignment]
    try:
        return choose_device(sim, None).type == "cpu"
    except ValueError:  # of an engine that does not exist, which parsing explains
        return True


def find_checkpoint(task: str, options: TrainOptions, agent: RslRlBaseRunnerCfg) -> FoundRun | None:
    """Find the checkpoint to continue from; None if the options name none.

    Raises:
        UsageError: `--auto-resume` without a name of the run, or with another checkpoint.
        FileNotFoundError: there is no such checkpoint.
    """
    if options.auto_resume:
        return _newest_of_name(task, options, agent)
    if options.wandb_run_path is not None:
        return downloaded_checkpoint(options)
    if options.resume or agent.resume or options.checkpoint is not None:
        return find_run(
            options.checkpoint,
            options.log_root,
            task,
            load_run=agent.load_run,
            load_checkpoint=agent.load_checkpoint,
        )
    return None


def _newest_of_name(task: str, options: TrainOptions, agent: RslRlBaseRunnerCfg) -> FoundRun | None:
    """Find the newest run with the name that the options give; None without one."""
    if not agent.run_name:
        raise UsageError(
            "--auto-resume continues the newest run with the same name: give it one with "
            "--agent.run-name NAME."
        )
    if options.resume or agent.resume or options.checkpoint or options.wandb_run_path:
        raise UsageError(
            "--auto-resume finds the run itself: leave out --resume, --checkpoint and "
            "--wandb-run-path."
        )
    # Runs that begin within the same second have numbers after their names.
    pattern = rf"[\d_-]{{19}}_{re.escape(agent.run_name)}(_\d+_\d+)?"
    try:
        return find_run(None, options.log_root, task, load_run=pattern)
    except FileNotFoundError:
        return None


def _use_gpus(options: TrainOptions, argv: Sequence[str]) -> None:
    """Make one GPU the only visible one; for several, become `torchrun` with one process each.

    Raises:
        ValueError: a GPU does not exist.
    """
    from manyworlds.utils.gpu import select_gpus

    gpus, count = select_gpus(options.gpu_ids)
    if gpus is None:
        raise ValueError(
            f"--gpu-ids {options.gpu_ids} finds no GPU: leave it out to train on the CPU, or "
            "install PyTorch's CUDA build and NVIDIA's driver, and check CUDA_VISIBLE_DEVICES."
        )
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    options.device = options.device or "cuda"
    if count > 1:
        launch = ["torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        program = ["-m", "manyworlds.cli.main", "train", *argv]
        if FRONTENDS:
            program = FRONTENDS[-1].program()
        os.execv(sys.executable, [sys.executable, "-m", *launch, *program])


def _say_that_it_stops() -> None:
    """Acknowledge a signal; unbuffered, because a signal may interrupt any other output."""
    with contextlib.suppress(OSError):  # the signal may also have ended what reads the output
        os.write(2, b"\nstopping after this iteration; Ctrl-C again stops at once\n")


def _report(task: str, options: TrainOptions, result: TrainingResult, console: Console) -> None:
    """Write a summary of the run; print why it ended, its files, and what to do next."""
    from manyworlds.rl.training import write_summary

    iterations = 0
    mean_return = None
    if result.records:  # two quick Ctrl-C end the first iteration before it can report
        iterations = result.records[-1].iteration
        mean_return = result.records[-1].mean_return
    summary = write_summary(
        result.run,
        {
            "task": task,
            "iterations": iterations,
            "interrupted": result.interrupted,
            "mean_return": mean_return,
            "training_time_s": sum(r.collect_time + r.learn_time for r in result.records),
        },
    )
    print_line(console, _why_it_ended(result, iterations))
    print_files([*result.files, summary], console)
    log_root = _log_root_option(options)
    print_line(console, "next:")
    run_name = shlex.quote(str(result.run.path))
    if result.stopped:
        checkpoint = shlex.quote(str(result.checkpoint))
        print_line(console, f"  manyworlds train {task} --checkpoint {checkpoint}{log_root}")
    print_line(console, f"  manyworlds play {run_name}      # watch the policy in many worlds")
    print_line(console, f"  manyworlds evaluate {run_name}  # measure it")
    print_line(console, f"  manyworlds lab {run_name}       # walk into one world")
    print_line(console, f"  manyworlds report {run_name}    # a page with curves and films")


def _why_it_ended(result: TrainingResult, iterations: int) -> str:
    """Return why a training ended, as a line."""
    if result.was_complete:
        return f"'{result.checkpoint}' already has {iterations} iterations: its files are written."
    if result.timed_out:
        return f"ended after iteration {iterations}, at the time limit --agent.max-minutes"
    if result.stopped:
        return f"stopped after iteration {iterations}"
    return f"trained all {iterations} iterations"


def _log_root_option(options: TrainOptions) -> str:
    """Return the option that names the folder of runs; empty for the usual one."""
    if options.log_root == RUNS:
        return ""
    return f" --log-root {shlex.quote(str(options.log_root))}"


def print_files(files: list[Path], console: Console) -> None:
    """Print the paths of files, one per line."""
    print_line(console, f"in {files[0].parent}:")
    for path in files:
        print_line(console, f"  {path.relative_to(files[0].parent)}")
