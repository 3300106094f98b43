"""Measure every workload, and append a line for each to the ledger.

Run from the project's root: python -m benchmarks [NAME ...] [--seconds 10] [--dry] [--gpu]
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.gpu import GPU_WORKLOADS
from benchmarks.workloads import WORKLOADS
from manyworlds.utils.extras import installed_version
from manyworlds.utils.machine import machine

LEDGER = Path(__file__).parent / "results.jsonl"
TABLE = Path(__file__).parents[1] / "docs" / "performance.md"
_MARK = "<!-- the table below is written by `make bench` -->\n"


@dataclass
class Options:
    """Measure the speed of workloads."""

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Names of the workloads; none runs all."""
    seconds: float = 10.0
    """Measured time of each workload [s]."""
    dry: bool = False
    """Print the results without writing the ledger."""
    gpu: bool = False
    """Run the workloads that need an NVIDIA GPU instead of those for the CPU."""


def main() -> int:
    """Measure, print and record."""
    options = tyro.cli(Options, prog="python -m benchmarks")
    workloads = GPU_WORKLOADS if options.gpu else WORKLOADS
    if unknown := set(options.names) - set(workloads):
        print(f"error: no workload {sorted(unknown)}; there are {', '.join(workloads)}.")
        return 2
    if options.gpu and machine(gpu=True)["gpu"] is None:
        print("error: --gpu needs an NVIDIA GPU and PyTorch's CUDA build; PyTorch finds no GPU.")
        return 2
    console = Console()
    lines = []
    for name in options.names or workloads:
        what, goal, measure = workloads[name]
        figures = measure(options.seconds)
        if figures is None:
            console.print(f"{name}: skipped, the third-party robots are not here", highlight=False)
            continue
        about = {"workload": name, "what": what, "goal": goal, **circumstances(options.gpu)}
        lines.append(about | figures)
        console.print(f"{name}: {summary(lines[-1])}", highlight=False)
        if not options.dry:  # at once, so that an error in a later workload loses nothing
            with LEDGER.open("a") as ledger:
                ledger.write(json.dumps(lines[-1]) + "\n")
            write_table()
    console.print(table(lines))
    return 0


def circumstances(gpu: bool = False) -> dict[str, Any]:
    """Return time, commit, machine and versions of a measurement."""
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    names = ("mujoco", "torch", "numpy", *(("mujoco-warp", "warp-lang") if gpu else ()))
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": git.stdout.strip() or None,
        "machine": machine(gpu),
        "versions": {name: installed_version(name) for name in names},
    }


def summary(line: dict[str, Any]) -> str:
    """Return a result as one line of text."""
    goal = f" (goal {line['goal']:.2f})" if line["goal"] else ""
    figures = [
        f"{key} {value:,.3g}" if isinstance(value, float) and value < 100 else f"{key} {value:,.0f}"
        for key, value in line.items()
        if key.endswith(("_s", "_ms", "_us", "_hz", "_share", "_bytes", "pieces"))
        and isinstance(value, int | float)
    ]
    return f"ratio {line['ratio']:.3f}{goal}; {', '.join(figures)}"


def table(lines: list[dict[str, Any]]) -> Table:
    """Show ratios beside their goals."""
    view = Table("workload", "ratio", "goal")
    for line in lines:
        goal = "" if line["goal"] is None else f"{line['goal']:.2f}"
        view.add_row(line["what"], f"{line['ratio']:.3f}", goal)
    return view


def write_table() -> None:
    """Write the newest figure of each workload into the documentation."""
    newest: dict[str, dict[str, Any]] = {}
    for text in LEDGER.read_text().splitlines():
        line = json.loads(text)
        newest[line["workload"]] = line
    rows = ["| workload | ratio | goal | figures | measured |", "|---|---|---|---|---|"]
    for name in (name for name in (*WORKLOADS, *GPU_WORKLOADS) if name in newest):
        line = newest[name]
        goal = "" if line["goal"] is None else f"{line['goal']:.2f}"
        figures = summary(line).split("; ", 1)[1]
        machine, day = line["machine"], line["time"][:10]
        place = machine.get("gpu") or f"{machine['cores']} cores of {machine['processor']}"
        where = f"{day}, {place}, {line['commit']}"
        rows.append(f"| {line['what']} | {line['ratio']:.3f} | {goal} | {figures} | {where} |")
    before = TABLE.read_text().split(_MARK)[0]
    TABLE.write_text(before + _MARK + "\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    sys.exit(main())
