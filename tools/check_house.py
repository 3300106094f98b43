"""Rules of this project that linters do not know: lengths of files, engines, types, imports.

Run from the project's root: python tools/check_house.py
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

MAX_FILE_LINES = 800
# Files that may be longer, each with the reason.
LONG_FILES: dict[str, str] = {
    "src/manyworlds/envs/mdp/dr/fields.py": "generated: a function for each model field",
}
# Module prefix -> the only files that may import it at run time.
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
# Public signatures that name Any; this number may only fall.
MAX_ANY_SIGNATURES = 69
# Files that may compare an engine's name: the engines, and what chooses between them.
ENGINE_NAMES = ("src/manyworlds/sim/",)
# Modules that `import manyworlds` and its command line must not load.
HEAVY = ("torch", "mujoco", "warp", "viser", "rsl_rl", "trimesh", "matplotlib", "numpy")


def check_length(path: Path, text: str) -> Iterator[str]:
    """Yield a file that is too long and has no reason to be."""
    lines = text.count("\n")
    if lines > MAX_FILE_LINES and path.as_posix() not in LONG_FILES:
        yield f"{path}: {lines} lines, at most {MAX_FILE_LINES}: split it by meaning"


def check_engines(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield imports of an engine, and comparisons with its name, outside their files.

    Imports for annotations only load nothing, so that any file may have them.
    """
    for_types: set[ast.AST] = set()
    for node in ast.walk(tree):  # a block comes before its statements
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for_types.update(node.body)
        if node in for_types:
            continue
        if isinstance(node, ast.Compare) and not path.as_posix().startswith(ENGINE_NAMES):
            sides = [node.left, *node.comparators]
            if any(isinstance(s, ast.Constant) and s.value in ("native", "warp") for s in sides):
                yield f"{path}:{node.lineno}: asks for an engine by name: ask for a capability"
        for line, name in _imports(node):
            for module, owners in ENGINE_IMPORTS.items():
                inside = name == module or name.startswith(f"{module}.")
                if inside and path.as_posix() not in owners:
                    allowed = " and ".join(owners)
                    yield f"{path}:{line}: imports {name}, which only {allowed} may"


def _imports(node: ast.AST) -> list[tuple[int, str]]:
    """Return the lines and names of what a statement imports."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    else:
        return []
    return [(node.lineno, name) for name in names]


def count_any(body: Iterable[ast.stmt]) -> int:
    """Count the public functions, methods and special methods whose signature names `Any`."""
    count = 0
    for node in body:
        special = getattr(node, "name", "").startswith("__")
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_") and not special:
            continue
        if isinstance(node, ast.ClassDef):
            count += count_any(node.body)
            continue
        arguments = (part for part in ast.walk(node.args) if isinstance(part, ast.arg))
        types = [node.returns, *(argument.annotation for argument in arguments)]
        count += any("Any" in re.findall(r"\w+", ast.unparse(kind)) for kind in types if kind)
    return count


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
    """Check every rule; print each violation."""
    problems: list[str] = []
    any_signatures = 0
    for root in ("src", "tests", "tools", "benchmarks"):
        for path in sorted(Path(root).rglob("*.py")):
            text = path.read_text()
            problems += check_length(path, text)
            if root == "src":
                tree = ast.parse(text)
                problems += check_engines(path, tree)
                any_signatures += count_any(tree.body)
    problems += check_import_weight()
    if any_signatures > MAX_ANY_SIGNATURES:
        problems.append(
            f"src: {any_signatures} public signatures name Any, at most {MAX_ANY_SIGNATURES}: "
            "state the types"
        )
    print("\n".join(problems) if problems else "All project rules hold.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
