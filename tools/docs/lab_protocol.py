"""The page of the lab's protocol: a template, filled with numbers and operations of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from manyworlds.lab.pictures.camera import KINDS
from manyworlds.lab.server.config import LabServerCfg
from manyworlds.lab.server.dispatcher import Dispatcher
from manyworlds.lab.server.held import HOLD_S
from manyworlds.lab.server.operations import ClientOperation
from manyworlds.lab.server.ports import STATE_BACKLOG
from manyworlds.lab.server.session_operations import UNITS
from manyworlds.lab.server.sessions import HEARTBEAT_S
from manyworlds.lab.verbs.fields import Field
from manyworlds.lab.verbs.registry import ALWAYS
from manyworlds.plugins.urlab.fast_path.registry import REFRESH_S
from manyworlds.plugins.urlab.plugin import EDITOR

PAGE = Path("docs/lab_protocol.md")
TEMPLATE = Path(__file__).with_suffix(".md")

_TITLES = {
    "session": "Sessions",
    "runtime": "The world",
    "sim": "Start and stop",
    "recording": "Recordings",
    "replay": "Replays",
    "debug": "Drawings",
    "lab": "Verbs of the lab",
}


def page() -> str:
    """Return the text of the page: the template with a value in place of each `{{name}}`."""
    values = _values()
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], TEMPLATE.read_text())


def codes() -> set[str]:
    """Return the codes of errors that the page explains."""
    (table,) = re.findall(r"^\| code \| meaning \|\n(.*?)\n\n", page(), re.MULTILINE | re.DOTALL)
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def _values() -> dict[str, str]:
    limits = LabServerCfg().limits
    secure = LabServerCfg(listen="0.0.0.0").secure_ports
    return {
        **{use: str(port) for use, port in LabServerCfg().ports.items()},
        **{f"{use}_far": str(port) for use, port in secure.items()},
        "kinds": ", ".join(f"`{kind}`" for kind in KINDS),
        "refresh": f"{REFRESH_S:g}",
        "heartbeat": f"{HEARTBEAT_S:g}",
        "hold": f"{HOLD_S:g}",
        "state_backlog": str(STATE_BACKLOG),
        "num_editor": str(len(EDITOR)),
        "max_bytes": str(limits.max_bytes),
        "max_depth": str(limits.max_depth),
        "max_items": str(limits.max_items),
        "max_rate": f"{limits.max_rate:g}",
        "max_sessions": str(limits.max_sessions),
        "units": "; ".join(f"{key} {value}" for key, value in UNITS.items()),
        "operations": "".join(_tables()),
    }


def _tables() -> Iterable[str]:
    """Yield a table of operations for each of their groups."""
    operations = Dispatcher(None).operations
    for namespace, title in _TITLES.items():
        yield f"\n### {title}\n\n| operation | fields | reply |\n|---|---|---|\n"
        for _, operation in sorted(operations.items()):
            if operation.namespace == namespace:
                yield _row(operation)


def _row(operation: ClientOperation) -> str:
    mark = "" if operation.writes else " *"
    fields = []
    for name, field in operation.fields.items():
        if name in operation.required:
            fields.append(_line(name, field))
        else:
            fields.append(_line(f"{name}?", field, operation.defaults[name]))
    reply = [_line(name, f) for name, f in operation.reply.items() if f is not ALWAYS.get(name)]
    cells = (f"`{operation.name}`{mark}: {operation.text}", "<br>".join(fields), "<br>".join(reply))
    return f"| {' | '.join(cells)} |\n"


def _line(name: str, field: Field, default: object = None) -> str:
    """Return name, type, unit, bounds, choices, default and meaning of a field."""
    facts: dict[str, Any] = field.describe()
    kind = field.type
    if "size" in facts:
        kind = kind.replace("[]", f"[{facts['size']}]")
    kind = kind.replace("[", "\\[")  # Markdown takes "[3] [m]" for a link
    text = f"`{name}` {kind}"
    if field.unit:
        text += f" [{field.unit}]"
    if "low" in facts and "high" in facts:
        text += f", {facts['low']:g} to {facts['high']:g}"
    elif "low" in facts:
        text += f", at least {facts['low']:g}"
    elif "high" in facts:
        text += f", at most {facts['high']:g}"
    if "infinite" in facts:
        text += " or inf"
    if "options" in facts:
        text += f", one of {', '.join(facts['options'])}"
    if default not in (None, "", (), {}):
        text += f", default `{json.dumps(default)}`"
    if field.text:
        text += f": {field.text}"
    return text.replace("|", "/")
