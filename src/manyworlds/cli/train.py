"""`manyworlds train TASK`: train a policy."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.common import find_run, parse, take_task

if TYPE_CHECKING:
    from rich.console import Console

    from manyworlds.rl.training import TrainingResult


def main(argv: list[str]) -> int:
    """Parse the command line and train."""
    task, argv = take_task(argv, "train")
    # What takes long to import comes after what can go wrong without it.
    from manyworlds.cli.options import TrainConfig
    from manyworlds.sim.sim import choose_device
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls, use_cpu_preset
    from manyworlds.utils.config import update_from_plain
    from manyworlds.utils.extras import require_extra

    default = TrainConfig(env=load_env_cfg(task), agent=load_rl_cfg(task))
    cfg = parse(TrainConfig, default, argv, f"train {task}")
    on_cpu = cfg.preset == "auto" and choose_device(cfg.env.sim, cfg.device).type == "cpu"
    if (on_cpu or cfg.preset == "cpu") and use_cpu_preset(task, default.env, default.agent):
        cfg = parse(TrainConfig, default, argv, f"train {task}")
    require_extra("rsl_rl", "train")
    resume = None
    if cfg.resume or cfg.agent.resume or cfg.checkpoint is not None:
        patterns = cfg.agent.load_run, cfg.agent.load_checkpoint
        resume, run = find_run(cfg.checkpoint, cfg.log_root, task, *patterns)
        if run is not None:
            update_from_plain(default.env, run.env_params())
            update_from_plain(default.agent, run.agent_params())
            cfg = parse(TrainConfig, default, argv, f"train {task}")
    from rich.console import Console

    from manyworlds.cli.progress import TrainingProgress
    from manyworlds.rl.distributed import Ranks
    from manyworlds.rl.training import train

    is_main = Ranks.from_environment().is_main
    console = Console() if is_main else Console(file=io.StringIO())
    runner = load_runner_cls(task)
    with TrainingProgress(console) as progress:
        result = train(
            task,
            cfg.env,
            cfg.agent,
            cfg.log_root,
            device=cfg.device,
            resume=resume,
            on_iteration=progress.update,
            **({} if runner is None else {"runner_cls": runner}),
        )
    if is_main:
        _report(task, result, console)
    return 130 if result.interrupted else 0


def _report(task: str, result: TrainingResult, console: Console) -> None:
    """Write what the run came to, and say where everything is."""
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
            f"stopped after iteration {iterations}; go on with: "
            f"manyworlds train {task} --checkpoint {result.checkpoint}",
            highlight=False,
            soft_wrap=True,
        )
    print_files([*result.files, summary], console)


def print_files(files: list[Path], console: Console) -> None:
    """Say where files are, one a line."""
    console.print(f"in {files[0].parent}:", highlight=False, soft_wrap=True)
    for path in files:
        console.print(f"  {path.name}", highlight=False)
