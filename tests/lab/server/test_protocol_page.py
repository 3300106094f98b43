"""The page of the protocol is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

from manyworlds.lab.server import LabServerCfg
from tests.lab.server.all_operations import OPERATIONS
from tools.docs.lab_protocol import codes, page

ROOT = Path(__file__).parents[3]


def test_the_page_is_that_of_the_registry():
    """Write the page again: it is the committed one, and has each operation."""
    text = page()
    assert (ROOT / "docs" / "lab_protocol.md").read_text() == text, "python -m tools.docs"
    assert set(re.findall(r"^\| `(\w+)`(?: \*)?: ", text, re.MULTILINE)) == set(OPERATIONS)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} <= {3, 4, 5}


def test_all_codes_are_explained():
    """Find the codes in the source: the page explains each of them."""
    folder = ROOT / "src" / "manyworlds"
    found = set()
    for part in ("lab/verbs", "lab/server", "lab", "plugins/urlab"):
        for path in (folder / part).glob("*.py"):
            text = path.read_text()
            found |= set(re.findall(r'VerbError\(\s*"(\w+)"', text))
            found |= set(re.findall(r'(?:code=|_error\()"(\w+)"', text))
    renamed = {"unknown_robot", "unknown_entity"}  # `unknown_articulation` for clients
    assert found - renamed <= codes(), found - codes()


def test_ports_are_local_and_documented():
    """Take the server's settings: this machine only, seven ports, each on the page."""
    cfg, text = LabServerCfg(), page()
    assert cfg.listen == "" and len(set(cfg.ports.values())) == len(cfg.ports)
    for port in cfg.ports.values():
        assert str(port) in text, port
