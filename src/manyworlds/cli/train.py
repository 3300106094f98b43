"""`manyworlds train TASK`: train a policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from manyworlds.cli.common import find_run, parse, take_task
from manyworlds.cli.progress import TrainingProgress
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl import RslRlOnPolicyRunnerCfg
from manyworlds.utils.config import update_from_plain
from manyworlds.utils.extras import require_extra


@dataclass(kw_only=True)
class TrainConfig:
    """Train a policy for a task."""

    env: ManagerBasedRlEnvCfg
    """The environment."""
    agent: RslRlOnPolicyRunnerCfg
    """The learner."""
    log_root: Path = Path("runs")
    """Where run folders are made."""
    device: str | None = None
    """Torch device; None takes CUDA where there is one, else the CPU."""
    resume: bool = False
    """Go on from the newest run of this task, with its configuration."""
    checkpoint: Path | None = None
    """Go on from this checkpoint instead of the newest one."""


def main(argv: list[str]) -> int:
    """Parse the command line and train."""
    task, argv = take_task(argv, "train")
    require_extra("rsl_rl", "train")
    from manyworlds.rl.training import train, write_summary
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls

    default = TrainConfig(env=load_env_cfg(task), agent=load_rl_cfg(task))
    cfg = parse(TrainConfig, default, argv, f"train {task}")
    resume = None
    if cfg.resume or cfg.checkpoint is not None:
        resume, run = find_run(cfg.checkpoint, cfg.log_root, task)
        if run is not None:
            update_from_plain(default.env, run.env_params())
            update_from_plain(default.agent, run.agent_params())
            cfg = parse(TrainConfig, default, argv, f"train {task}")
    console = Console()
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
    return 130 if result.interrupted else 0


def print_files(files: list[Path], console: Console) -> None:
    """Say where files are, one a line."""
    console.print(f"in {files[0].parent}:", highlight=False, soft_wrap=True)
    for path in files:
        console.print(f"  {path.name}", highlight=False)
