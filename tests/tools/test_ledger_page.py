"""The page of the ledger of benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

from tools.write_ledger_page import main, render_page

ROOT = Path(__file__).parents[2]


def result(workload: str, ratio: float, processor: str = "A", **changes) -> dict:
    """A result of the ledger."""
    machine = {"processor": processor, "cores": 2, "load": 0.5, "system": "Linux", "gpu": None}
    return {
        "workload": workload,
        "what": "one | other",
        "goal": None,
        "time": "2026-01-02T03:04:05+00:00",
        "commit": "abc",
        "machine": machine,
        "ratio": ratio,
        **changes,
    }


def test_the_newest_result_comes_first():
    """List the newest result of each workload and machine, and the earlier ratios."""
    results = [result("walk", float(i)) for i in range(8)]
    page = render_page([*results, result("run", 2.5, goal=2.0), result("walk", 9.0, "B")])
    a, b = page.split("\n## ")[1:]
    assert a.startswith("A, 2 cores, Linux\n") and b.startswith("B, ")
    assert a.index("| run | one / other | 2.5 | 2.0 |") < a.index("| walk |")
    assert "| walk | one / other | 7 |  | 6, 5, 4, 3, 2 | 0.5 | 2026-01-02 | abc |" in a
    assert "| walk | one / other | 9 |  |  |" in b


def test_the_ledger_of_this_project_has_a_page(tmp_path):
    """Write the page of the real ledger: each of its workloads is in a row."""
    ledger = ROOT / "benchmarks" / "results.jsonl"
    assert main([str(ledger), str(tmp_path / "page.md")]) == 0
    page = (tmp_path / "page.md").read_text()
    for line in ledger.read_text().splitlines():
        assert f"| {json.loads(line)['workload']} |" in page
