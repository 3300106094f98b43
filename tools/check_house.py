"""Rules of the house that linters do not know: lengths, engines, and a light import.

Run from the project's root: python tools/check_house.py
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
# Module prefix -> the only files that may import it.
ENGINE_IMPORTS = {
    "mujoco.batch": ("src/manyworlds/sim/engines/native.py",),
    "mujoco_warp": tuple(
        f"src/manyworlds/sim/engines/{name}.py" for name in ("warp", "warp_cameras")
    ),
    "warp": tuple(
        f"src/manyworlds/sim/engines/{name}.py"
        for name in ("warp", "warp_cameras", "warp_spare", "warp_views")
    ),
}
# Modules that `import manyworlds` and its command line must not load.
HEAVY = ("torch", "mujoco", "warp", "viser", "rsl_rl", "trimesh", "matplotlib", "numpy")


def check_lengths(path: Path, tree: ast.Module, text: str) -> Iterator[str]:
    """Yield files and functions that are too long."""
    if (lines := text.count("\n")) > MAX_FILE_LINES:
        yield f"{path}: {lines} lines, at most {MAX_FILE_LINES}: split it by meaning"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield (
                    f"{path}:{node.lineno}: {node.name} has {length} lines, "
                    f"at most {MAX_FUNCTION_LINES}"
                )


def check_engines(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield imports of an engine outside the files that may have them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            for module, owners in ENGINE_IMPORTS.items():
                inside = name == module or name.startswith(f"{module}.")
                if inside and path.as_posix() not in owners:
                    allowed = " and ".join(owners)
                    yield f"{path}:{node.lineno}: imports {name}, which only {allowed} may"


def check_import_weight() -> Iterator[str]:
    """Yield heavy modules that a bare import loads."""
    code = (
        "import sys, manyworlds, manyworlds.cli.main; "
        f"print(*(m for m in {HEAVY!r} if m in sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    for module in loaded:
        yield f"`import manyworlds` loads {module}: import it where it is used"


def main() -> int:
    """Check every rule; print what breaks one."""
    problems: list[str] = []
    for root in ("src", "tests", "tools", "benchmarks"):
        for path in sorted(Path(root).rglob("*.py")):
            text = path.read_text()
            tree = ast.parse(text)
            problems += check_lengths(path, tree, text)
            if root == "src":
                problems += check_engines(path, tree)
    problems += check_import_weight()
    print("\n".join(problems) if problems else "The house is in order.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
