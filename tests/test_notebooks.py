"""The notebooks run headless from top to bottom, as Colab runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def cells(path: Path, kind: str) -> list[str]:
    """Return the sources of a notebook's cells of one kind."""
    found = json.loads(path.read_text())["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def test_there_are_notebooks():
    """Have a quick start, and a notebook about domain randomization."""
    assert [path.stem for path in NOTEBOOKS] == ["domain_randomization", "quick_start"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_ready_for_colab(path):
    """Install by pip in Colab only, keep no outputs, and use no widgets."""
    first, *others = cells(path, "code")
    assert 'if "google.colab" in sys.modules:' in first
    assert re.search(r"^    %pip install -q .*manyworlds-rl\[", first, re.M)
    assert "%" not in re.sub(r"f?\"[^\"]*\"", "", "".join(others))  # no other magic
    assert "ipywidgets" not in path.read_text()
    code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    """Run all cells in a kernel of its own; pictures appear where cells draw some."""
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    drawn = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(drawn) == sum("plt.subplots" in text for text in cells(path, "code"))
