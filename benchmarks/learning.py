"""Train tasks with their settings for a few cores, and record the results.

Run from the project's root: python -m benchmarks.learning TASK [--minutes 15]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console

from benchmarks.__main__ import circumstances
from benchmarks.learning_goals import SUCCESS, evaluate_task
from benchmarks.learning_page import LEDGER, MEDIA, stem, write_page
from benchmarks.learning_pictures import draw_curves, draw_policy
from manyworlds.cli.training_progress import TrainingProgress
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.rl.evaluation import Evaluation
from manyworlds.rl.progress import IterationRecord, curve, read_progress, training_minutes
from manyworlds.rl.run_folder import RunFolder
from manyworlds.rl.training import train
from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset
from manyworlds.utils.config import update_from_plain

_POINTS = 60
_CURVES = ("track_", "lift_precise", "motion_body_pos", "motion_body_ori")
"""First letters of the reward terms that are drawn, all of which are at most 1."""
_ENDS = "Episode_Termination/"


@dataclass
class Options:
    """Train a task with its settings for a few cores, evaluate the policies, and draw them."""

    task: tyro.conf.Positional[str]
    minutes: float | None = None
    """Time for each training [min]; None takes the iterations of the task's settings."""
    seeds: tuple[int, ...] = (1,)
    """Seeds of the trainings, which run one after the other."""
    log_root: Path = Path("runs")
    runs: tuple[Path, ...] = ()
    """Runs of this program to evaluate, instead of training."""
    note: str = ""
    """Sentence about the circumstances, which the page repeats."""
    dry: bool = False
    """Write images into the first run's folder, without writing the ledger and the page."""


def main() -> int:
    """Train, evaluate, draw and record."""
    options = tyro.cli(Options, prog="python -m benchmarks.learning")
    runs = [RunFolder(path) for path in options.runs]
    about = [_about(options, run, commit=None) for run in runs]
    if not runs:
        commit = circumstances()["commit"]
        runs = [_train(options, seed) for seed in options.seeds]
        about = [_about(options, run, commit) for run in runs]
    recorded = datetime.now(UTC).isoformat(timespec="seconds")
    lines = [
        {"recorded": recorded, **a, **_results(options.task, run)}
        for a, run in zip(about, runs, strict=True)
    ]
    folder = runs[0].path if options.dry else MEDIA
    name = stem(options.task)
    draw_curves(lines, folder / f"{name}.png")
    draw_policy(options.task, *_policy(options.task, runs[0]), folder / f"{name}_policy.png")
    if not options.dry:
        with LEDGER.open("a") as ledger:
            ledger.writelines(json.dumps(line) + "\n" for line in lines)
        write_page()
    return 0


def _about(options: Options, run: RunFolder, commit: str | None) -> dict[str, Any]:
    """Return the circumstances of the training of a run, which may be older than this program.

    Args:
        options: what to record.
        run: the run.
        commit: commit of the training; None for a run that another program trained, because
            runs do not record it.

    Raises:
        ValueError: the run does not record its circumstances.
    """
    origin = run.origin()
    missing = {"started", "machine", "versions"} - origin.keys()
    if missing:
        raise ValueError(
            f"The run '{run.path}' does not record {', '.join(sorted(missing))} of its training in "
            "params/run.yaml: train it again."
        )
    return {
        "time": origin.get("started"),
        "commit": commit,
        "machine": origin.get("machine"),
        "versions": origin.get("versions"),
        "task": options.task,
        "limit": options.minutes,
        "note": options.note,
    }


def _policy(task: str, run: RunFolder) -> tuple[RslRlOnPolicyRunnerCfg, Path]:
    """Return the settings and the last checkpoint of a run."""
    rl_cfg = load_rl_cfg(task)
    update_from_plain(rl_cfg, run.agent_params())
    return rl_cfg, run.last_checkpoint()


def _results(task: str, run: RunFolder) -> dict[str, Any]:
    """Evaluate a run; return its line of the ledger."""
    rl_cfg, checkpoint = _policy(task, run)
    result, measures = evaluate_task(task, rl_cfg, checkpoint)
    print(result, ", ".join(f"{name} {value:.3f}" for name, value in measures.items()), sep="\n")
    return {
        "seed": rl_cfg.seed,
        "run": run.path.name,
        "evaluation": asdict(result),
        "measures": measures,
        **_history(run, result),
    }


def _train(options: Options, seed: int) -> RunFolder:
    env_cfg, rl_cfg = load_env_cfg(options.task), load_rl_cfg(options.task)
    use_cpu_preset(options.task, env_cfg, rl_cfg)
    rl_cfg.seed, rl_cfg.max_minutes = seed, options.minutes
    if options.minutes is not None:
        rl_cfg.max_iterations = 1_000_000

    with TrainingProgress(Console()) as progress:
        result = train(
            options.task, env_cfg, rl_cfg, options.log_root, on_iteration=progress.update
        )
    return result.run


def _history(run: RunFolder, result: Evaluation) -> dict[str, Any]:
    """Return the amount of work of a run, and the course of what its task is about."""
    records = read_progress(run.path)
    minutes = training_minutes(records)
    # From the rates, because a run that was continued may have had other sizes before.
    steps = round(sum(r.steps_per_s * r.time for r in records))
    if SUCCESS in result.ends:
        shares = {SUCCESS: success_share(records)}
    else:
        shares = _reward_shares(records, run.agent_params()["num_steps_per_env"], result)
    return {
        "num_envs": run.env_params()["scene"]["num_envs"],
        "iterations": len(records),
        "minutes": round(minutes[-1], 2),
        "control_steps": steps,
        "control_steps_per_s": round(steps / (60 * minutes[-1])),
        "learner_share": round(sum(r.learn_time for r in records) / (60 * minutes[-1]), 3),
        "curves": {name: _points(minutes, values) for name, values in shares.items()},
    }


def success_share(records: Sequence[IterationRecord]) -> np.ndarray:
    """Return the share of episodes that end with success, shape [iterations] (NaN: none ends)."""
    ends = {key for record in records for key in record.scalars if key.startswith(_ENDS)}
    counts = {key: np.nan_to_num(curve(records, key)) for key in ends}
    total = sum(counts.values(), np.zeros(len(records)))
    share = np.full(len(records), np.nan)
    np.divide(counts[_ENDS + SUCCESS], total, out=share, where=total > 0)
    return share


def _reward_shares(
    records: Sequence[IterationRecord], steps: int, result: Evaluation
) -> dict[str, np.ndarray]:
    """Return some reward terms as shares of their weights, shape [iterations] each.

    Args:
        records: the iterations.
        steps: control steps of a world per iteration.
        result: the evaluation, with the weights.
    """
    lengths = np.nan_to_num(curve(records, "Train/mean_episode_length"), nan=1.0)
    firsts = [max(0, i - round(length / steps)) for i, length in enumerate(lengths)]
    shares = {}
    for name in [n for n in result.terms if n.startswith(_CURVES)] or [*result.terms][:1]:
        # A weight changes within episodes: take its mean over one episode.
        weight = curve(records, f"Curriculum/{name}_weight/weight")
        weight = np.nan_to_num(weight, nan=result.weights[name])
        means = [np.mean(weight[first : i + 1]) for i, first in enumerate(firsts)]
        shares[name] = curve(records, f"Episode_Reward/{name}") / np.array(means)
    return shares


def _points(minutes: Sequence[float], values: np.ndarray) -> list[list[float]]:
    """Return at most 60 points of a curve: the time at their end [min], and the mean value."""
    known = [point for point in zip(minutes, values, strict=True) if np.isfinite(point[1])]
    return [
        [round(float(part[-1][0]), 3), round(float(np.mean([value for _, value in part])), 4)]
        for part in _parts(known)
    ]


def _parts(points: list[Any]) -> list[list[Any]]:
    """Split a curve into as many parts as it has points in the result."""
    count = max(1, -(-len(points) // _POINTS))
    return [points[i : i + count] for i in range(0, len(points), count)]


if __name__ == "__main__":
    sys.exit(main())
