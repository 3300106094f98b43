"""The page of the protocol is that of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from manyworlds.lab.server import LabServerCfg
from manyworlds.lab.verbs.registry import ALWAYS
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


def test_the_page_has_all_about_each_field():
    """Look for the facts of `meta`: types, bounds, choices and defaults, of replies, too."""
    rows = {}
    text = page().replace("\\[", "[")  # escaped for Markdown
    for line in text.splitlines():
        found = re.match(r"\| `(\w+)`(?: \*)?: ", line)
        if found:
            rows[found[1]] = line
    for name, operation in OPERATIONS.items():
        described = operation.describe()
        cells = rows[name].split(" | ")
        for cell, fields in ((cells[1], described["fields"]), (cells[2], described["reply"])):
            lines = dict(re.findall(r"`(\w+)\??` (.*?)(?:<br>|$)", cell))
            for field in fields:
                if operation.reply.get(field["name"]) in ALWAYS.values():
                    continue  # in the replies of all verbs
                line = lines[field["name"]]
                kind = field["type"]
                if "size" in field:
                    kind = kind.replace("[]", f"[{field['size']}]")
                assert line.startswith(kind)
                numbers = [f"{field[key]:g}" for key in ("low", "high") if key in field]
                for fact in (*numbers, *field.get("options", ()), field.get("unit", "")):
                    assert fact in line, (name, line)
                default = field.get("default")
                if default not in (None, "", [], {}):
                    assert f"default `{json.dumps(default)}`" in line, (name, line)


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
