"""Types as users see them: pyright's standard mode over what they type, read and copy.

One run checks `tests/typing`, the examples, and the Python blocks of README, docs and notebooks.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What exists only at run time: the alias for packages that are written for mjlab.
AT_RUN_TIME = 'Import "mjlab.'


def blocks_of_page(page: Path) -> str:
    """Return the Python blocks of a page, which are one program."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))


def cells_of_notebook(notebook: Path) -> str:
    """Return the cells of a notebook, except the first, which installs the package in Colab."""
    cells = json.loads(notebook.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return "\n".join(code[1:])


def write_programs(folder: Path) -> list[Path]:
    """Write the programs of pages and notebooks into a folder."""
    programs = {path: blocks_of_page(path) for path in [ROOT / "README.md"]}
    programs |= {path: blocks_of_page(path) for path in sorted((ROOT / "docs").rglob("*.md"))}
    programs |= {path: cells_of_notebook(path) for path in (ROOT / "examples").glob("*.ipynb")}
    written = []
    for path, code in programs.items():
        if code:
            file = folder / "_".join(path.relative_to(ROOT).with_suffix(".py").parts)
            file.write_text(code)
            written.append(file)
    return written


@pytest.fixture(scope="module")
def errors(tmp_path_factory) -> dict[str, list[str]]:
    """Return pyright's errors by the name of the file."""
    pytest.importorskip("pyright")
    files = write_programs(tmp_path_factory.mktemp("programs"))
    files += sorted((ROOT / "examples").glob("*.py"))
    files += sorted((ROOT / "tests" / "typing").glob("*.py"))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    result = subprocess.run([*command, *map(str, files)], cwd=ROOT, capture_output=True, text=True)
    report = json.loads(result.stdout)
    assert report["summary"]["filesAnalyzed"] == len(files)
    found: dict[str, list[str]] = {file.name: [] for file in files}
    for note in report["generalDiagnostics"]:
        if note["severity"] == "error" and not note["message"].startswith(AT_RUN_TIME):
            line = note["range"]["start"]["line"] + 1
            found[Path(note["file"]).name].append(f"{line}: {note['message']}")
    return found


@pytest.mark.slow
def test_programs_have_no_type_errors(errors):
    """Accept what is right, and refuse what is not."""
    wrong = [f"{name}:{error}" for name, lines in errors.items() for error in lines]
    assert not wrong, "\n".join(wrong)
