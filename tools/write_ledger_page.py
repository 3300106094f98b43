"""Page of the ledger of benchmarks: python tools/write_ledger_page.py LEDGER.jsonl PAGE.md."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

_HEAD = """# Benchmarks

Each row is the newest result of a workload on a machine; a ratio above 1 means that the first of
the two things compared is faster. They run in turn within one process. `earlier` has the ratios of
earlier results on this machine, the newest first. The load is that of the machine before the
measurement.
"""
_COLUMNS = ("workload", "compared", "ratio", "goal", "earlier", "load", "day", "commit")
_EARLIER = 5


def render_page(results: list[dict[str, Any]]) -> str:
    """Return the page of results in the order of their measurement."""
    machines: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        machines[_describe(result["machine"])][result["workload"]].append(result)
    parts = [_HEAD]
    for machine, workloads in machines.items():
        parts += [f"\n## {machine}\n", _row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
        parts += [_row(_cells(found)) for _, found in sorted(workloads.items())]
    return "\n".join(parts) + "\n"


def _describe(machine: dict[str, Any]) -> str:
    gpu = f", {machine['gpu']}" if machine.get("gpu") else ""
    return f"{machine['processor']}, {machine['cores']} cores, {machine['system']}{gpu}"


def _cells(found: list[dict[str, Any]]) -> list[str]:
    *before, last = found
    load = last["machine"]["load"]
    return [
        last["workload"],
        last["what"],
        f"{last['ratio']:.3g}",
        "" if last["goal"] is None else str(last["goal"]),
        ", ".join(f"{result['ratio']:.3g}" for result in before[: -_EARLIER - 1 : -1]),
        "" if load is None else f"{load:.1f}",
        last["time"][:10],
        last["commit"],
    ]


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def main(argv: list[str]) -> int:
    """Write the page of a ledger."""
    ledger, page = map(Path, argv)
    lines = ledger.read_text(encoding="utf-8").splitlines()
    page.write_text(render_page([json.loads(line) for line in lines if line]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
