"""Rules of this project that linters do not know: lengths, engines, words, shapes, types, imports.

Run from the project's root: python tools/check_house.py
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
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
# Public signatures that name Any; this number may only fall.
MAX_ANY_SIGNATURES = 105
# Files that may compare an engine's name: the engines, and what chooses between them.
ENGINE_NAMES = ("src/manyworlds/sim/",)
# Modules that `import manyworlds` and its command line must not load.
HEAVY = ("torch", "mujoco", "warp", "viser", "rsl_rl", "trimesh", "matplotlib", "numpy")
# A docstring begins with a noun phrase or a verb.
QUESTION_WORDS = {"How", "What", "Where", "Whether", "Which", "Who", "Whose", "Why"}
# Words that have a plainer form.
AVOIDED = re.compile(r"\b(he|his|him|himself|somebody|anew|clerks?)\b|at the wheel", re.IGNORECASE)
_SHAPE = re.compile(r"\bshapes?\b|[\[(](num_\w+|n|nworld|worlds?|steps?|frames?|height)\b")


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
    """Yield imports of an engine, and comparisons with its name, outside their files."""
    for node in ast.walk(tree):
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


def check_docstrings(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield docstrings, those of attributes included, that begin with a question word."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else ():
            if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)):
                continue
            text = part.value.value
            first = text.split()[0].rstrip(",.:") if isinstance(text, str) and text.split() else ""
            if first in QUESTION_WORDS:
                yield (
                    f"{path}:{part.lineno}: a docstring begins with '{first}': begin with a noun "
                    "phrase or a verb"
                )


def check_words(path: Path, text: str) -> Iterator[str]:
    """Yield lines with words that have a plainer form."""
    for number, line in enumerate(text.splitlines(), 1):
        if (found := AVOIDED.search(line)) is not None:
            yield f"{path}:{number}: '{found[0]}': use a plainer word"


def check_shapes(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield public functions that return an array and do not state its shape."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        returns = "" if node.returns is None else ast.unparse(node.returns)
        text = ast.get_docstring(node)
        if re.search(r"\b(Tensor|ndarray)\b", returns) and text and not _SHAPE.search(text):
            yield f"{path}:{node.lineno}: {node.name} returns {returns}: state the shape"


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


def check_names(classes: dict[str, list[str]]) -> Iterator[str]:
    """Yield names that several public classes have."""
    for name, places in sorted(classes.items()):
        if len(places) > 1:
            yield f"{', '.join(places)}: several classes are called {name}: one word, one meaning"


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
    classes: dict[str, list[str]] = defaultdict(list)
    any_signatures = 0
    for root in ("src", "tests", "tools", "benchmarks"):
        for path in sorted(Path(root).rglob("*.py")):
            text = path.read_text()
            tree = ast.parse(text)
            problems += check_lengths(path, tree, text)
            problems += check_docstrings(path, tree)
            if path.name != "check_house.py":
                problems += check_words(path, text)
            if root == "src":
                problems += check_engines(path, tree)
                problems += check_shapes(path, tree)
                any_signatures += count_any(tree.body)
                if "compat" not in path.parts:
                    for node in tree.body:
                        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                            classes[node.name].append(path.as_posix())
    for path in (*sorted(Path("docs").rglob("*.md")), Path("README.md"), Path("CONTRIBUTING.md")):
        problems += check_words(path, path.read_text())
    problems += check_names(classes)
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
