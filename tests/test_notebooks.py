"""The notebooks run headless from top to bottom, as Colab runs them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S
from tools.docs.notebooks import with_badge

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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_how_to_install_the_package(path):
    """Name the extras that the first cell of code installs."""
    (install,) = re.findall(r"%pip install -q \"(.+)\"", cells(path, "code")[0])
    assert f"`pip install '{install}'`" in cells(path, "markdown")[0]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_badge_of_colab(path):
    """Open the notebook of the repository that `pyproject.toml` names; have no badge without."""
    place, text = path.relative_to(EXAMPLES.parent), path.read_text()
    urls = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())["project"].get("urls")
    assert with_badge(text, place, urls or {}) == text  # `python -m tools.docs` writes it
    badged = with_badge(text, place, {"Repository": "https://github.com/someone/somewhere.git"})
    title, blank, badge, *rest = json.loads(badged)["cells"][0]["source"]
    assert title.startswith("# ") and blank == rest[0] == "\n" != rest[1]
    address = f"colab.research.google.com/github/someone/somewhere/blob/main/examples/{path.name})"
    assert badge.startswith("[![Open in Colab](") and badge.endswith(f"{address}\n")
    moved = with_badge(badged, place, {"Repository": "https://github.com/other/place"})
    assert moved.count("/github/other/place/") == 1 and "someone" not in moved
    assert with_badge(moved, place, {}) == with_badge(text, place, {})


def test_colab_opens_github_only():
    """Refuse a repository elsewhere, rather than write a badge that fails."""
    with pytest.raises(ValueError, match=r"'https://gitlab\.com/a/b', but Colab opens"):
        with_badge(NOTEBOOKS[0].read_text(), Path("x"), {"Repository": "https://gitlab.com/a/b"})


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
        notebook,
        timeout=PATIENCE_S,
        kernel_name="python3",
        resources={"metadata": {"path": tmp_path}},
    ).execute()
    drawn = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(drawn) == sum("plt.subplots" in text for text in cells(path, "code"))
