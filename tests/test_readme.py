"""What the README shows, runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_example_runs(tmp_path):
    """Run the README's Python example as it stands."""
    (code,) = re.findall(r"```python\n(import mujoco.*?)```", README, re.DOTALL)
    assert code.count("\n") <= 25
    program = tmp_path / "example.py"
    program.write_text(
        code + "assert obs['actor'].shape == (1024, 2) and reward.shape == (1024,)\n"
    )
    subprocess.run([sys.executable, str(program)], check=True, cwd=tmp_path)


@pytest.mark.parametrize("path", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(path):
    """Check every relative link and picture."""
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / path).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_commands_exist():
    """Name only commands that there are."""
    from manyworlds.cli.main import COMMANDS

    named = set(re.findall(r"^(?:pip .* && )?manyworlds ([a-z]+)", README, re.MULTILINE))
    assert named <= set(COMMANDS) and len(named) >= 5
