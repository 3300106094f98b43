"""Train tasks with their settings for a few cores, and record the results.

Run from the project's root: python -m benchmarks.learning TASK [--minutes 15]
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console

from benchmarks.__main__ import circumstances
from benchmarks.learning_pictures import draw_curve, draw_policy
from manyworlds.cli.evaluate import UNSEEN_SEED
from manyworlds.cli.policies import load_policy
from manyworlds.cli.training_progress import TrainingProgress
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.evaluation import evaluate
from manyworlds.rl.progress import curve, read_progress, training_minutes
from manyworlds.rl.run_folder import RunFolder
from manyworlds.rl.training import train
from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset
from manyworlds.utils.config import update_from_plain

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "benchmarks" / "learning.jsonl"
PAGE = ROOT / "docs" / "learning.md"
_MARK = "<!-- the rest is written by `python -m benchmarks.learning` -->\n"
_WORLDS = 256
_POINTS = 60


@dataclass
class Options:
    """Train a task, evaluate the policy in it, and draw both."""

    task: tyro.conf.Positional[str]
    minutes: float | None = None
    """Time for training [min]; None takes the iterations of the task's settings."""
    seed: int = 42
    log_root: Path = Path("runs")
    checkpoint: Path | None = None
    """Checkpoint of a run of this program to evaluate, without training."""
    dry: bool = False
    """Write images beside the checkpoint, without writing the ledger and the page."""


def main() -> int:
    """Train, evaluate, draw and record."""
    options = tyro.cli(Options, prog="python -m benchmarks.learning")
    about = circumstances()
    checkpoint = options.checkpoint or _train(options)
    run = RunFolder(checkpoint.parent)
    rl_cfg = load_rl_cfg(options.task)
    update_from_plain(rl_cfg, run.agent_params())
    env_cfg = load_env_cfg(options.task)
    env_cfg.scene.num_envs, env_cfg.seed = _WORLDS, UNSEEN_SEED
    env = ManagerBasedRlEnv(env_cfg)
    result = evaluate(env, load_policy(env, rl_cfg, checkpoint))
    print(result)
    shown = [name for name in result.terms if name.startswith("track_")] or [*result.terms][:1]
    line = {
        **about,
        "task": options.task,
        "evaluation": asdict(result),
        "shown": shown,
        **_history(run, {name: result.weights[name] for name in shown}),
    }
    folder = run.path if options.dry else PAGE.parent / "media"
    stem = f"learning_{options.task.lower().replace('-', '_')}"
    draw_curve(line, folder / f"{stem}.png")
    draw_policy(options.task, rl_cfg, checkpoint, folder / f"{stem}_policy.png")
    if not options.dry:
        with LEDGER.open("a") as ledger:
            ledger.write(json.dumps(line) + "\n")
        write_page()
    return 0


def _train(options: Options) -> Path:
    env_cfg, rl_cfg = load_env_cfg(options.task), load_rl_cfg(options.task)
    use_cpu_preset(options.task, env_cfg, rl_cfg)
    rl_cfg.seed, rl_cfg.max_minutes = options.seed, options.minutes
    if options.minutes is not None:
        rl_cfg.max_iterations = 1_000_000

    with TrainingProgress(Console()) as progress:
        result = train(
            options.task, env_cfg, rl_cfg, options.log_root, on_iteration=progress.update
        )
    return result.checkpoint


def _history(run: RunFolder, weights: dict[str, float]) -> dict[str, Any]:
    """Return the amount of work of a run, and the course of some rewards as shares."""
    records = read_progress(run.path)
    minutes = training_minutes(records)
    curves: dict[str, Any] = {}
    agent, num_envs = run.agent_params(), run.env_params()["scene"]["num_envs"]
    lengths = np.nan_to_num(curve(records, "Train/mean_episode_length"), nan=1.0)
    for name, weight in weights.items():
        # A weight changes within episodes: take its mean over one episode.
        then = curve(records, f"Curriculum/{name}_weight/weight")
        then = np.nan_to_num(then, nan=weight)
        values = curve(records, f"Episode_Reward/{name}")
        shares = []
        for i, value in enumerate(values):
            first = max(0, i - round(lengths[i] / agent["num_steps_per_env"]))
            shares.append((minutes[i], value / float(np.mean(then[first : i + 1]))))
        curves[name] = [
            [round(part[-1][0], 3), round(float(np.mean([share for _, share in part])), 4)]
            for part in _parts([point for point in shares if np.isfinite(point[1])])
        ]
    steps = num_envs * agent["num_steps_per_env"] * len(records)
    return {
        "num_envs": num_envs,
        "iterations": len(records),
        "minutes": round(minutes[-1], 2),
        "control_steps": steps,
        "control_steps_per_s": round(steps / (60 * minutes[-1])),
        "learner_share": round(sum(r.learn_time for r in records) / (60 * minutes[-1]), 3),
        "curves": curves,
    }


def _parts(points: list[Any]) -> list[list[Any]]:
    """Split a curve into as many parts as it has points in the result."""
    count = max(1, -(-len(points) // _POINTS))
    return [points[i : i + count] for i in range(0, len(points), count)]


def write_page() -> None:
    """Write the newest run of each task into the documentation."""
    newest = {line["task"]: line for line in map(json.loads, LEDGER.read_text().splitlines())}
    parts = [_section(line) for _, line in sorted(newest.items())]
    PAGE.write_text(PAGE.read_text().split(_MARK)[0] + _MARK + "\n" + "\n".join(parts))


def _section(line: dict[str, Any]) -> str:
    result, machine = line["evaluation"], line["machine"]
    stem = f"media/learning_{line['task'].lower().replace('-', '_')}"
    ends = ", ".join(f"{name} {count}" for name, count in result["ends"].items() if count)
    rows = [
        f"| {name} | {mean:.3f} | {result['weights'][name]:g} |"
        for name, mean in result["terms"].items()
    ]
    return "\n".join(
        [
            f"## {line['task']}",
            "",
            f"![Learning curves]({stem}.png)",
            "",
            f"![Frames of the trained policy]({stem}_policy.png)",
            "",
            f"Training: {line['minutes']:.1f} minutes, {line['iterations']} iterations, "
            f"{line['num_envs']} worlds, {line['control_steps'] / 1e6:.1f} million control steps, "
            f"{line['control_steps_per_s']:,} control steps per second, "
            f"{100 * line['learner_share']:.0f} % of the time in the learner. "
            f"{line['time'][:10]}, {machine['cores']} cores of {machine['processor']}, "
            f"load before the start {machine['load']:.1f}, {line['commit']}.",
            "",
            f"Evaluation: {result['episodes']} episodes of up to {result['episode_length_s']:g} s; "
            f"mean length {result['mean_length_s']:.1f} s; terminations: {ends or 'none'}.",
            "",
            "| reward term | mean | weight |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
