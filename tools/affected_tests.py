"""Print the tests that are closest to the changes, for `make quick`.

These are the tests in the folder of a changed module, those of the modules that import it, and
those that import it themselves. Code further away can break, too: `make test` runs everything.

Run from the project's root: python tools/affected_tests.py
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

PACKAGE = "manyworlds"
Importers = Callable[[str], Iterable[str]]


def changed_files() -> list[str]:
    """Return the files that differ from main, committed or not, as paths from the root."""
    base = "HEAD"
    for main in ("origin/main", "main"):
        if found := _git("merge-base", "HEAD", main, check=False):
            base = found[0]
            break
    untracked = _git("ls-files", "--others", "--exclude-standard")
    return sorted({*_git("diff", "--name-only", base), *untracked})


def _git(*args: str, check: bool = True) -> list[str]:
    done = subprocess.run(["git", *args], check=check, capture_output=True, text=True)
    return done.stdout.splitlines()


def affected_tests(paths: Iterable[str], importers: Importers, root: Path = Path()) -> list[str]:
    """Return the folders and files of tests to run, none within another.

    Args:
        paths: changed files, from the root.
        importers: gives the modules that import a module.
        root: the project's root.
    """
    imports = {
        file: _imports(root / file)
        for file in sorted(p.relative_to(root) for p in (root / "tests").rglob("*.py"))
    }
    found = {test for path in paths for test in _tests_of(Path(path), imports, importers, root)}
    found = {test for test in found if (root / test).exists()}
    return sorted(str(test) for test in found if found.isdisjoint(test.parents))


def _tests_of(
    path: Path, imports: dict[Path, set[str]], importers: Importers, root: Path
) -> Iterator[Path]:
    """Yield the tests of one file."""
    top = path.parts[0]
    if path.name == "pyproject.toml":
        yield Path("tests")
    elif path.name == "conftest.py" or (top == "tests" and path.suffix != ".py"):
        yield _folder(path.parent, root)
    elif top == "tests" and path.name.startswith("test_"):
        yield path
    elif path.suffix == ".md" or path.name == "mkdocs.yml":
        yield from (Path("tests/test_readme.py"), Path("tests/test_docs.py"))
    elif top == "examples":
        yield Path(f"tests/test_{'examples' if path.suffix == '.py' else 'notebooks'}.py")
    elif top == "src":
        yield _folder(Path("tests", *path.parts[2:]).parent, root)
        if path.suffix == ".py":
            module = _module(path.relative_to("src"))
            yield from map(_mirror, importers(module))
            yield from _users(module, imports)
    elif path.suffix == ".py":
        yield from _users(_module(path), imports)


def _folder(folder: Path, root: Path) -> Path:
    """Return the folder, or the nearest above it that exists."""
    while not (root / folder).is_dir():
        folder = folder.parent
    return folder


def _mirror(module: str) -> Path:
    """Return the file that tests a module."""
    *packages, name = module.split(".")[1:] or [PACKAGE]
    return Path("tests", *packages, f"test_{name}.py")


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _users(module: str, imports: dict[Path, set[str]]) -> Iterator[Path]:
    """Yield the tests that import a module, or a helper that does."""
    for file, names in imports.items():
        if module not in names:
            continue
        if file.name.startswith("test_"):
            yield file
        elif file.name == "conftest.py":
            yield file.parent
        elif (helper := _module(file)) != module:
            yield from _users(helper, imports)


def _imports(path: Path) -> set[str]:
    """Return the names of all modules that a file may import, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def main() -> None:
    """Print the tests of the differences from main, on one line."""
    import grimp

    graph = grimp.build_graph(PACKAGE)

    def importers(module: str) -> set[str]:
        return graph.find_modules_that_directly_import(module) if module in graph.modules else set()

    print(*affected_tests(changed_files(), importers))


if __name__ == "__main__":
    main()
