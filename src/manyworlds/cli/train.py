"""`manyworlds train TASK`: train a policy."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.errors import UsageError
from manyworlds.cli.parsing import FRONTENDS, parse_known, parse_over, parse_task, rewritten
from manyworlds.cli.runs import (
    download_checkpoint,
    find_run,
    load_options,
    load_values,
    named_run,
)
from manyworlds.cli.train_seeds import RUN_FILE, train_seeds
from manyworlds.utils.files import write_atomic

if TYPE_CHECKING:
    from rich.console import Console

    from manyworlds.cli.task_options import PresetOptions, TrainOptions
    from manyworlds.envs.entrance import Entrance
    from manyworlds.rl.progress import IterationRecord
    from manyworlds.rl.run_edits import EditRecord
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.training import TrainingResult
    from manyworlds.viewer.training_view import TrainingView
    from manyworlds.viewer.video_recorder import VideoRecorder


def main(argv: list[str]) -> int:
    """Run `manyworlds train`."""
    task, rest = parse_task(argv, "train", "Train a policy for a task.")
    cfg, resume = _parse(task, rest)
    if cfg.seeds is not None or cfg.seeds_parallel:
        return train_seeds(task, cfg, argv)
    return run(task, cfg, resume, argv)


def run(task: str, cfg: TrainOptions, resume: Path | None = None, argv: Sequence[str] = ()) -> int:
    """Train a policy, and print the files that were written.

    Args:
        task: name of the task.
        cfg: the options.
        resume: checkpoint to continue from.
        argv: arguments with which the command starts again for each of several GPUs.

    Returns:
        The exit code: 0, or 130 if a signal stopped the run.
    """
    from rich.console import Console

    from manyworlds.cli.training_progress import TrainingProgress
    from manyworlds.rl.distributed import Ranks
    from manyworlds.rl.training import train
    from manyworlds.tasks import load_runner_cls

    ranks = Ranks.from_environment()
    if cfg.gpu_ids is not None and not ranks.is_distributed:
        _use_gpus(cfg, argv)
    cfg.env.sim.nan_guard.enabled |= cfg.enable_nan_guard
    if cfg.video_interval < 1:
        raise ValueError(f"--video-interval must be at least 1 step, got {cfg.video_interval}.")
    if cfg.remember and not (cfg.enter or cfg.view):
        raise ValueError("--remember needs --enter or --view: add one of them.")
    is_main = ranks.is_main
    console = Console() if is_main else Console(file=io.StringIO())
    runner = load_runner_cls(task)
    with (
        TrainingProgress(console) as progress,
        contextlib.closing(_Watchers(cfg, console, argv)) as seen,
    ):

        def report(record: IterationRecord) -> None:
            progress.update(record)
            seen.note(record)

        result = train(
            task,
            cfg.env,
            cfg.agent,
            cfg.log_root,
            device=cfg.device,
            resume=resume,
            edits=cfg.edits and named_run(str(cfg.edits), cfg.log_root)[0].path,
            repeat_edits=cfg.repeat_edits,
            complete=cfg.auto_resume,
            on_start=seen.start,
            on_iteration=report,
            command=shlex.join(["manyworlds", "train", *argv]),
            **({} if runner is None else {"runner_cls": runner}),
        )
    result.files += seen.files
    if is_main:
        _report(task, result, console, load_options(argv))
    return 130 if result.interrupted else 0


def _parse(task: str, argv: list[str]) -> tuple[TrainOptions, Path | None]:
    """Parse the command line over the configs of the task, or of the run to continue.

    Returns:
        The options, and the checkpoint to continue from, if any.
    """
    from manyworlds.cli.given_values import keep_given_values
    from manyworlds.cli.task_options import PresetOptions, take_num_envs
    from manyworlds.utils.config import update_from_plain
    from manyworlds.utils.extras import require_extra

    # The settings for few CPU cores have more terms, whose fields are options, too.
    chosen, _ = parse_known(PresetOptions, argv, f"train {task}")
    default = _default(task, for_cpu := _is_for_cpu(chosen))
    cfg = parse_over(default, argv, f"train {task}")
    if for_cpu != (for_cpu := _is_for_cpu(chosen, cfg)):
        default = _default(task, for_cpu)
        cfg = parse_over(default, argv, f"train {task}")
    require_extra("rsl_rl", "train")
    resume, folder = find_checkpoint(task, cfg)
    if folder is not None and folder.task in (task, None):
        update_from_plain(default.env, folder.env_params())
        update_from_plain(default.agent, folder.agent_params())
        cfg = parse_over(default, argv, f"train {task}")
    elif folder is not None:
        _note(f"the policy is of the task '{folder.task}', whose settings do not apply here")
    take_num_envs(cfg)
    for text in keep_given_values(cfg.env, cfg.agent, rewritten(cfg, argv)):
        _note(text)
    return cfg, resume


def _default(task: str, for_cpu: bool) -> TrainOptions:
    from manyworlds.cli.task_options import TrainOptions
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset

    default = TrainOptions(env=load_env_cfg(task), agent=load_rl_cfg(task))
    if for_cpu:
        use_cpu_preset(task, default.env, default.agent)
    return default


def _is_for_cpu(chosen: PresetOptions, cfg: TrainOptions | None = None) -> bool:
    """Return True if the settings for few CPU cores apply.

    Without all options, this is a guess that loads no PyTorch, for the help and for wrong usage.
    """
    from manyworlds.cli.machine_checks import has_nvidia_driver
    from manyworlds.sim import choose_device

    if chosen.preset != "auto":
        return chosen.preset == "cpu"
    if cfg is not None:
        return choose_device(cfg.env.sim, cfg.device).type == "cpu"
    return not has_nvidia_driver() if chosen.device is None else chosen.device.startswith("cpu")


def _note(text: str) -> None:
    from manyworlds.rl.distributed import Ranks

    if Ranks.from_environment().is_main:
        print(f"note: {text}.", file=sys.stderr)


def find_checkpoint(task: str, cfg: TrainOptions) -> tuple[Path | None, RunFolder | None]:
    """Find the checkpoint to continue from and its run folder; None if the options name none.

    Raises:
        UsageError: `--auto-resume` without a name of the run, or with another checkpoint.
        FileNotFoundError: there is no such checkpoint.
    """
    if cfg.auto_resume:
        return _newest_of_name(task, cfg)
    if cfg.wandb_run_path is not None:
        return download_checkpoint(cfg), None
    if cfg.resume or cfg.agent.resume or cfg.checkpoint is not None:
        patterns = cfg.agent.load_run, cfg.agent.load_checkpoint
        return find_run(cfg.checkpoint, cfg.log_root, task, *patterns)
    return None, None


def _newest_of_name(task: str, cfg: TrainOptions) -> tuple[Path | None, RunFolder | None]:
    """Find the last checkpoint of the runs with the name that the options give; None without."""
    if not cfg.agent.run_name:
        raise UsageError(
            "--auto-resume continues the newest run with the same name: give it one with "
            "--agent.run-name NAME."
        )
    if cfg.resume or cfg.agent.resume or cfg.checkpoint or cfg.wandb_run_path:
        raise UsageError(
            "--auto-resume finds the run itself: leave out --resume, --checkpoint and "
            "--wandb-run-path."
        )
    # Runs that begin within the same second have numbers after their names.
    pattern = rf"[\d_-]{{19}}_{re.escape(cfg.agent.run_name)}(_\d+_\d+)?"
    try:
        return find_run(None, cfg.log_root, task, pattern)
    except FileNotFoundError:
        return None, None


def _use_gpus(cfg: TrainOptions, argv: Sequence[str]) -> None:
    """Make one GPU the only visible one; for several, become `torchrun` with one process each.

    Raises:
        ValueError: a GPU does not exist.
    """
    from manyworlds.utils.gpu import select_gpus

    gpus, count = select_gpus(cfg.gpu_ids)
    if gpus is None:
        raise ValueError(
            f"--gpu-ids {cfg.gpu_ids} finds no GPU: leave it out to train on the CPU, or install "
            "PyTorch's CUDA build and NVIDIA's driver, and check CUDA_VISIBLE_DEVICES."
        )
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    cfg.device = cfg.device or "cuda"
    if count > 1:
        launch = ["torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        own = ["-m", "manyworlds.cli.main", "train", *argv]
        program = FRONTENDS[-1].program() if FRONTENDS else own
        os.execv(sys.executable, [sys.executable, "-m", *launch, *program])


class _Watchers:
    """Observers of a run in training: a video recorder and a web page."""

    def __init__(self, cfg: TrainOptions, console: Console, argv: Sequence[str]) -> None:
        self._cfg, self._argv = cfg, argv
        self._console = console
        self._film: VideoRecorder | None = None
        self._view: TrainingView | None = None
        self._entrance: Entrance | None = None

    def start(self, runner: OnPolicyRunner, run: RunFolder) -> None:
        """Start recording and serving, as the options say."""
        cfg = self._cfg
        if run_file := os.environ.get(RUN_FILE):
            write_atomic(Path(run_file), str(run.path.resolve()))
        runner.edits.on_applied = self._tell
        if cfg.video:
            from manyworlds.viewer.video_recorder import VideoRecorder

            runner.env.unwrapped.render_mode = "rgb_array"
            runner.env.env = self._film = VideoRecorder(
                runner.env.env,
                run.path / "videos" / "train",
                step_trigger=lambda step: step % cfg.video_interval == 0,
                video_length=cfg.video_length,
            )
        if cfg.view or cfg.enter:
            self._open_entrance(runner, run)
        if cfg.view:
            from manyworlds.lab.entry.warm_lab import WarmLab
            from manyworlds.lab.network.fast_path.training import TrainingOwner
            from manyworlds.utils.web_access import is_local, served_at
            from manyworlds.viewer.training_view import TrainingView

            shown = min(cfg.view_worlds, runner.env.num_envs)
            if not 0 <= cfg.peek_world < shown:
                raise ValueError(
                    f"--peek-world must be one of the {shown} worlds shown, from 0 to {shown - 1}, "
                    f"got {cfg.peek_world}: see --view-worlds."
                )
            share = functools.partial(TrainingOwner, world=cfg.peek_world, name=run.path.name)
            walk_in = None  # the lab's page is for this machine only
            if is_local(cfg.host):
                walk_in = functools.partial(WarmLab, run.path.resolve(), _loaded(self._argv))
            runner.env.env = self._view = TrainingView(
                runner.env.env,
                cfg.view_worlds,
                cfg.host,
                cfg.port,
                share,
                walk_in,
                web_origins=cfg.web_origin,
            )
            text = (
                f"watch at {served_at(self._view.url, cfg.port)}\n"
                f"or world {cfg.peek_world} in MuJoCo's window, where it cannot be pushed: "
                f"manyworlds peek {self._view.shared_at}"
            )
            self._console.print(text, highlight=False, soft_wrap=True)

    def _open_entrance(self, runner: OnPolicyRunner, run: RunFolder) -> None:
        from manyworlds.envs.entrance import Entrance
        from manyworlds.envs.world_memory import WorldMemory
        from manyworlds.rl.entered_policy import TrainingPolicy

        policy, steps = TrainingPolicy(runner), int(runner.cfg["num_steps_per_env"])
        memory = WorldMemory(runner.env.unwrapped) if self._cfg.remember else None
        runner.env.env = self._entrance = Entrance(
            runner.env.env, run.path, run.task or "", policy, steps, runner.edits, memory
        )
        text = f"go on from one of its worlds: manyworlds lab --attach {run.path} --world 0"
        text += load_options(self._argv)
        self._console.print(text, highlight=False, soft_wrap=True)

    def _tell(self, edit: EditRecord) -> None:
        text = f"edit after iteration {edit.after}: {edit.text}"
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    def note(self, record: IterationRecord) -> None:
        """Pass on the report of an iteration."""
        if self._view is not None:
            self._view.note(record)

    @property
    def files(self) -> list[Path]:
        """Videos written so far."""
        return [] if self._film is None else self._film.files

    def close(self) -> None:
        """Finish the videos and close the page."""
        for watcher in (self._film, self._view, self._entrance):
            if watcher is not None:
                watcher.finish()


def _loaded(argv: Sequence[str]) -> list[str]:
    """Return the values of `--load`, files as absolute paths."""
    return [str(Path(v).resolve()) if Path(v).is_file() else v for v in load_values(argv)]


def _report(task: str, result: TrainingResult, console: Console, load: str) -> None:
    """Write a summary of the run, and print its files; `load` are the options of the task."""
    from manyworlds.rl.training import write_summary

    # Two quick Ctrl-C end the first iteration before it can report.
    last = result.records[-1] if result.records else None
    iterations = 0 if last is None else last.iteration
    summary = write_summary(
        result.run,
        {
            "task": task,
            "iterations": iterations,
            "interrupted": result.interrupted,
            "mean_return": None if last is None else last.mean_return,
            "training_time_s": sum(r.collect_time + r.learn_time for r in result.records),
        },
    )
    if result.interrupted:
        console.print(
            f"stopped after iteration {iterations}; continue with: "
            f"manyworlds train {task} --checkpoint {result.checkpoint}{load}",
            highlight=False,
            soft_wrap=True,
        )
    if result.was_complete:
        text = f"'{result.checkpoint}' already has {iterations} iterations: its files are written."
        console.print(text, highlight=False, soft_wrap=True)
    print_files([*result.files, summary], console)


def print_files(files: list[Path], console: Console) -> None:
    """Print the paths of files, one per line."""
    console.print(f"in {files[0].parent}:", highlight=False, soft_wrap=True)
    for path in files:
        console.print(f"  {path.relative_to(files[0].parent)}", highlight=False)
