"""Finds the Python code in a web page that was turned to text."""

from __future__ import annotations

import ast
import re

_LONGEST = 40  # paragraphs
_MAY_BE_CODE = re.compile(
    r"[#@]|>>> |(import|from|def|class|for|with) |[\w.\[\]]+(:.*)? ?=|[\w.]+\("
)


def code_blocks(text: str) -> list[str]:
    """List the blocks of a page: paragraphs that are code and have no prose between them.

    A block is the longest run of paragraphs that Python can parse and of which each statement is
    one that prose and tables cannot be taken for. Headings and signatures end in a permalink, `#`.
    """
    paragraphs = re.split(r"\n\s*\n", re.sub(r"^.*#$", "\n\nA heading.\n\n", text, flags=re.M))
    blocks, start = [], 0
    while start < len(paragraphs):
        end = _end_of_block(paragraphs, start)
        if end > start:
            blocks.append(_statements(_join(paragraphs[start:end])))
        start = max(end, start + 1)
    return blocks


def _end_of_block(paragraphs: list[str], start: int) -> int:
    if not _MAY_BE_CODE.match(paragraphs[start].lstrip("\n")):
        return start
    if paragraphs[start].startswith(">>> "):
        return start + 1
    last = min(len(paragraphs), start + _LONGEST)
    runs = (end for end in range(last, start, -1) if _is_code(_join(paragraphs[start:end])))
    end = next(runs, start)
    # What is indented below a block belongs to it even where Python cannot parse it.
    while start < end < len(paragraphs) and paragraphs[end].startswith("    "):
        end += 1
    return end


def _join(paragraphs: list[str]) -> str:
    return "\n\n".join(paragraphs).strip("\n")


def _statements(text: str) -> str:
    """Leave the output of an interactive session away."""
    if not text.startswith(">>> "):
        return text
    return "\n".join(line[4:] for line in text.splitlines() if line.startswith((">>> ", "... ")))


def _is_code(text: str) -> bool:
    try:
        statements = ast.parse(text).body
    except SyntaxError:
        return False
    lines = text.splitlines()
    return bool(statements) and all(_is_statement(node, lines) for node in statements)


def _is_statement(node: ast.stmt, lines: list[str]) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    if not isinstance(node, ast.Expr):
        return True
    if "  #" in lines[(node.end_lineno or node.lineno) - 1]:
        return True
    call = node.value
    return isinstance(call, ast.Call) and (
        bool(call.keywords) or isinstance(call.func, ast.Attribute)
    )
