"""The page in docs: its table of functions. That its code runs is tested with the other pages."""

import inspect
import re
from pathlib import Path

from manyworlds.envs.mdp import dr

PAGE = (Path(__file__).parents[4] / "docs" / "domain_randomization.md").read_text()


def test_all_functions_are_listed():
    """List every function with its aliases and its default operation."""
    functions = {n: f for n in dr.__all__ if hasattr(f := getattr(dr, n), "prepare")}
    rows = re.findall(r"^\| [a-z]+ \| (`.*) \|$", PAGE, re.MULTILINE)
    listed = re.findall(r"`(\w+)`(?: \[`(\w+)`\])?(?: \((\w+)[^)]*\))?", ", ".join(rows))
    assert sorted(name for row in listed for name in row[:2] if name) == sorted(functions)
    for name, alias, operation in listed:
        assert not alias or functions[alias] is functions[name]
        arguments = inspect.signature(functions[name]).parameters
        default = arguments["operation"].default if "ranges" in arguments else ""
        if "yaw_range" in arguments:
            default = "turn"
        assert operation == default or (operation == "pick" and not default)
