from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.affected_tests import affected_tests, changed_files

FILES = {
    "src/manyworlds/sim/native.py": "",
    "src/manyworlds/sim/choice.py": "import manyworlds.sim.native",
    "src/manyworlds/lab/page/panels.py": "",
    "tests/sim/test_choice.py": "",
    "tests/sim/test_native.py": "",
    "tests/lab/test_lab.py": "",
    "tests/lab/page/test_page.py": "def test():\n    from manyworlds.sim.native import Engine",
    "tests/scenes.py": "from tools import draw",
    "tests/envs/conftest.py": "",
    "tests/envs/test_env.py": "from tests.scenes import HINGE",
    "tests/envs/mdp/test_rewards.py": "",
    "tests/entity/test_entity.py": "from tests.envs.helpers import robot",
    "tests/envs/helpers.py": "import tests.scenes",
    "tests/test_docs.py": "",
    "tests/test_examples.py": "",
    "tests/test_notebooks.py": "",
    "tests/test_readme.py": "",
    "tools/draw.py": "",
}
IMPORTERS = {"manyworlds.sim.native": {"manyworlds.sim.choice", "manyworlds.lab.engine"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Lay out a small project."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        # Its folder, and a test elsewhere that imports it within a function.
        (["src/manyworlds/sim/native.py"], ["tests/lab/page/test_page.py", "tests/sim"]),
        # A folder without tests of its own: the one above.
        (["src/manyworlds/sim/gpu/kernels.py"], ["tests/sim"]),
        (["src/manyworlds/lab/page/panels.py"], ["tests/lab/page"]),
        (["src/manyworlds/new/thing.py"], ["tests"]),
        # A folder swallows what is in it.
        (["src/manyworlds/lab/engine.py", "tests/lab/page/test_page.py"], ["tests/lab"]),
        (["tests/sim/test_native.py"], ["tests/sim/test_native.py"]),
        (["tests/sim/test_deleted.py"], []),
        (["tests/envs/conftest.py"], ["tests/envs"]),
        (["tests/envs/mdp/robot.xml"], ["tests/envs/mdp"]),
        # A helper, through another helper.
        (["tests/scenes.py"], ["tests/entity/test_entity.py", "tests/envs/test_env.py"]),
        (["tools/draw.py"], ["tests/entity/test_entity.py", "tests/envs/test_env.py"]),
        (["docs/index.md", "Makefile"], ["tests/test_docs.py", "tests/test_readme.py"]),
        (["examples/01_swing.py", "README.txt"], ["tests/test_examples.py"]),
        (["examples/start.ipynb"], ["tests/test_notebooks.py"]),
        (["pyproject.toml", "tests/sim/test_native.py"], ["tests"]),
        (["Makefile"], []),
    ],
)
def test_what_is_near(project: Path, changed: list[str], expected: list[str]):
    """Find the tests in a module's folder, and those of what imports it."""
    assert affected_tests(changed, lambda module: (), project) == expected


def test_what_imports_a_module_is_near(project: Path):
    """Add the tests of the modules that import the one that was changed, where there are any."""
    changed = ["src/manyworlds/sim/native.py"]
    (project / "tests/lab/test_engine.py").write_text("")
    found = affected_tests(changed, lambda module: IMPORTERS[module], project)
    assert found == ["tests/lab/page/test_page.py", "tests/lab/test_engine.py", "tests/sim"]


def test_what_differs_from_main_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Count commits since main, and what is not committed, staged or not, or new."""

    def git(*args: str) -> None:
        name = ("-c", "user.name=n", "-c", "user.email=e@x")
        subprocess.run(["git", *name, *args], check=True, capture_output=True)

    monkeypatch.chdir(tmp_path)
    git("init", "--initial-branch=main")
    for name in ("kept", "edited", "staged", "committed"):
        Path(name).write_text("before")
    git("add", ".")
    git("commit", "-m", "before")
    assert changed_files() == []
    git("checkout", "-b", "branch")
    Path("committed").write_text("after")
    git("commit", "-am", "after")
    Path("staged").write_text("after")
    git("add", ".")
    Path("edited").write_text("after")
    Path("new").write_text("new")
    assert changed_files() == ["committed", "edited", "new", "staged"]
