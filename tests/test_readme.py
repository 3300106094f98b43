"""Execution of the code in the README and the pages in docs."""

import re
import sys
from pathlib import Path

import pytest

from tests.programs import run_program

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_example_runs(tmp_path):
    """Run the README's Python example as it stands."""
    (code,) = re.findall(r"```python\n(import mujoco.*?)```", README, re.DOTALL)
    assert code.count("\n") <= 25
    program = tmp_path / "example.py"
    program.write_text(
        code + "assert obs['actor'].shape == (1024, 2) and reward.shape == (1024,)\n"
    )
    run_program(program)


PAGES = [
    path for path in sorted((ROOT / "docs").rglob("*.md")) if "```python\n" in path.read_text()
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_run(page, tmp_path):
    """Run the Python blocks of a page one after the other, as they stand."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    program = tmp_path / "page.py"
    program.write_text(code)
    run_program(program)


@pytest.mark.slow
def test_a_program_that_fails_is_seen(tmp_path):
    """Fail with what the program printed."""
    program = tmp_path / "program.py"
    program.write_text("print('so far')\nraise ValueError('no further')")
    with pytest.raises(AssertionError, match="ValueError: no further") as failed:
        run_program(program)
    assert "so far" in str(failed.value)


DOCUMENTS = ["README.md", "CONTRIBUTING.md", *map(str, (ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS)
def test_links_lead_somewhere(path):
    """Check every relative link and picture."""
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / path).read_text())
    folder = (ROOT / path).parent
    assert [link for link in links if not (folder / link).exists()] == []


def test_commands_exist():
    """Name only commands that there are."""
    from manyworlds.cli.main import COMMANDS

    named = set(re.findall(r"^(?:pip .* && )?manyworlds ([a-z-]+)", README, re.MULTILINE))
    assert named <= set(COMMANDS) and len(named) >= 5


def test_the_first_screen_says_what_it_is():
    """Have one sentence, a film, commands for an empty folder, and a table of links."""
    screen = README.partition("\n## ")[0]
    assert screen.count("\n") <= 30
    assert "**Train robots in many different worlds at once; walk into any one of them.**" in screen
    assert len(re.findall(r"\]\(docs/media/\w+\.gif\)", screen)) == 1
    (commands,) = re.findall(r"```sh\n(.*?)```", screen, re.DOTALL)
    clone, demo, lab = commands.splitlines()
    assert clone.startswith("git clone URL manyworlds && cd manyworlds ")
    assert demo.startswith("make demo ") and lab.startswith(".venv/bin/manyworlds lab ")
    rows = [line for line in screen.splitlines() if line.startswith("| **")]
    assert len(rows) == 4 and all(re.search(r"\]\(docs/\w+\.md", row) for row in rows)


def test_code_fits_the_landing_page():
    """Have no line of code that a browser of 1280 pixels cuts off."""
    blocks = re.findall(r"^```\w+\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert [line for block in blocks for line in block.splitlines() if len(line) > 100] == []


def test_the_demo_has_one_figure():
    """State one time for the demo wherever it is invited to."""
    from manyworlds.cli.main import WELCOME

    for text in (README, WELCOME, (ROOT / "Makefile").read_text()):
        (line,) = re.findall(r"^.*(?:make|manyworlds) demo  .*$", text, re.MULTILINE)
        assert "under 4 minutes" in line
    page = (ROOT / "docs/pushing.md").read_text()
    assert re.findall(r"[\d.]+ minutes?\b", page) == ["4 minutes"]


def test_packages_of_examples_are_named():
    """Name each example that imports more than the extras of the installation, and the package."""
    extra = {"stable_baselines3", "optuna"}
    files = sorted((ROOT / "examples").glob("*.py"))
    needed = {}
    for path in files:
        imported = set(re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.MULTILINE))
        known = {"manyworlds", "mujoco", "torch", "numpy", "PIL", "zmq", "msgpack"}
        more = imported - known - sys.stdlib_module_names
        if more:
            needed[int(path.name[:2])] = more
    assert set().union(*needed.values()) == extra and f"the {len(files)} [examples]" in README
    for number, packages in needed.items():
        for package in packages:
            assert f"xample {number} needs `{package.replace('_', '-')}`" in README
