"""Table of what may change while worlds run, from the tables of fields.

The page has it between two comments.
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path("docs/runtime_changes.md")

BEGIN, END = "<!-- fields -->", "<!-- end of fields -->"


def page() -> str:
    """Return the page with its present table."""
    from manyworlds.lab.edits.editable_fields import EDITABLE
    from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE

    lab: dict[str, str] = {}
    for fields in EDITABLE.values():
        for field in fields.values():
            effect = "compile" if field.compiles else "step"
            if lab.get(field.array) != "compile":
                lab[field.array] = effect
    rows = ["| field | lab | native | warp |", "|---|---|---|---|"]
    for name, field in sorted(MODEL_FIELD_TABLE.items()):
        if field.derived:
            continue
        levels = [
            "no" if level is None else f"`{level.name}`" if level else "step"
            for level in (field.native, field.warp)
        ]
        rows.append(f"| `{name}` | {lab.pop(name, 'no')} | {levels[0]} | {levels[1]} |")
    # MuJoCo Warp shares all others among all worlds.
    for name, effect in sorted(lab.items()):
        native = "step" if effect == "step" else "unknown"
        rows.append(f"| `{name}` | {effect} | {native} | no |")
    head, _, rest = PAGE.read_text().partition(BEGIN)
    table = "\n".join(rows)
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"
