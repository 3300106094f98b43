"""The measured part of docs/learning.md, written from the ledger of trainings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.learning_goals import GOALS

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "benchmarks" / "learning.jsonl"
PAGE = ROOT / "docs" / "learning.md"
MEDIA = PAGE.parent / "media"
_MARK = "<!-- the rest is written by `python -m benchmarks.learning` -->\n"

Lines = Sequence[dict[str, Any]]


def stem(task: str) -> str:
    """Return the name of a task's images, without the suffix."""
    return f"learning_{task.lower().replace('-', '_')}"


def newest_trainings() -> list[list[dict[str, Any]]]:
    """Return the ledger's lines of each task's newest trainings, one for each seed."""
    newest: dict[str, list[dict[str, Any]]] = {}
    for line in map(json.loads, LEDGER.read_text().splitlines()):
        if "measures" not in line:
            continue  # of an earlier version, without seeds
        group = newest.setdefault(line["task"], [])
        if group and _recorded(group[0]) != _recorded(line):
            group.clear()
        group.append(line)
    return [group for _, group in sorted(newest.items())]


def write_page() -> None:
    """Write the newest trainings of each task into the documentation."""
    groups = newest_trainings()
    parts = [_table(groups), *map(_section, groups)]
    PAGE.write_text(PAGE.read_text().split(_MARK)[0] + _MARK + "\n" + "\n".join(parts))


def _recorded(line: Mapping[str, Any]) -> str:
    """Return the time at which a line was written; earlier versions gave one time to all seeds."""
    return line.get("recorded", line["time"])


def command(lines: Lines) -> str:
    """Return the command that repeats trainings."""
    task, seeds = lines[0]["task"], " ".join(str(line["seed"]) for line in lines)
    minutes = "" if lines[0]["limit"] is None else f" --minutes {lines[0]['limit']:g}"
    return f"python -m benchmarks.learning {task}{minutes} --seeds {seeds}"


def _table(groups: Sequence[Lines]) -> str:
    rows = []
    for lines in groups:
        goal = GOALS.get(lines[0]["task"])
        met = sum(goal.is_met(line["measures"], line["minutes"]) for line in lines) if goal else 0
        rows.append(
            f"| [{lines[0]['task']}](#{lines[0]['task'].lower()}) "
            f"| {_span(lines, lambda line: line['minutes'], '.1f')} "
            f"| {_span(lines, lambda line: line['control_steps'] / 1e6, '.1f')} "
            f"| {_measures(lines)} | {goal or ''} | {f'{met} of {len(lines)}' if goal else ''} |"
        )
    head = (
        "| task | minutes | million control steps | evaluation | goal | seeds that reach it |",
        "|---|---|---|---|---|---|",
    )
    return "\n".join(["## Results", "", *head, *rows, ""])


def _measures(lines: Lines) -> str:
    return ", ".join(
        f"{name} {_span(lines, lambda line, name=name: line['measures'][name], '.2f')}"
        for name in lines[0]["measures"]
    )


def _span(lines: Lines, value: Callable[[dict[str, Any]], float], form: str) -> str:
    """Return the values of all seeds, in their order."""
    return " / ".join(f"{value(line):{form}}" for line in lines)


def _section(lines: Lines) -> str:
    first = lines[0]
    result, machine = first["evaluation"], first["machine"]
    ends = ", ".join(f"{name} {count}" for name, count in result["ends"].items() if count)
    rows = [
        f"| {name} | "
        f"{_span(lines, lambda line, name=name: line['evaluation']['terms'][name], '.3f')} "
        f"| {weight:g} |"
        for name, weight in result["weights"].items()
    ]
    speeds = _span(lines, lambda line: line["control_steps_per_s"], ",.0f")
    learner = _span(lines, lambda line: 100 * line["learner_share"], ".0f")
    cores = f"{machine['cores']} core{'s' if machine['cores'] > 1 else ''}"
    seeds = "Seed" if len(lines) == 1 else "Seeds"
    return "\n".join(
        [
            f"## {first['task']}",
            "",
            f"![Learning curves](media/{stem(first['task'])}.png)",
            "",
            f"![Frames of the trained policy](media/{stem(first['task'])}_policy.png)",
            "",
            f"`{command(lines)}`",
            "",
            f"{seeds} {', '.join(str(line['seed']) for line in lines)}: "
            f"{first['num_envs']} worlds, {speeds} control steps per second, "
            f"{learner} % of the time in updates of the networks. "
            f"{first['time'][:10]}, {cores} of {machine['processor']}, "
            f"load before the start {machine['load']:.1f}"
            + (f", {first['commit']}." if first["commit"] else ".")
            + (f" {first['note']}" if first["note"] else ""),
            "",
            f"Evaluation{' of the first' if len(lines) > 1 else ''}: {result['episodes']} episodes "
            f"of up to {result['episode_length_s']:g} s; mean length {result['mean_length_s']:.1f} "
            f"s; terminations: {ends or 'none'}.",
            "",
            "| reward term | mean | weight |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
