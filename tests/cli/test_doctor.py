"""`manyworlds doctor`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import tomllib
from pathlib import Path

import mujoco
import pytest

from manyworlds import __version__
from manyworlds.cli.doctor import find_packages, is_within
from manyworlds.cli.main import main
from manyworlds.utils.extras import DISTRIBUTION


@pytest.mark.parametrize(
    ("version", "bounds", "inside"),
    [
        ("4.0.1", ">=4.0,<4.1", True),
        ("4.1", ">=4.0,<4.1", False),
        ("3.9.9", ">=4.0,<4.1", False),
        ("2.13.0+cpu", ">=2.7,<2.14", True),
        ("2.14.0rc1", ">=2.7,<2.14", False),
        ("1.10", ">=1.9", True),
        ("0.1", "", True),
    ],
)
def test_versions_are_numbers(version, bounds, inside):
    """Compare versions with bounds."""
    assert is_within(version, bounds) is inside


def test_packages_are_found():
    """Read requirements: what is needed by all, by extras and by developers."""
    packages = list(
        find_packages(
            [
                "mujoco<4.1,>=4.0",
                "no-such-thing>=1",
                'neither-this>=1; extra == "lab"',
                'pytest>=8; extra == "dev"',
                'mkdocs>=1; extra == "docs"',
                "numpy>=1000",
            ]
        )
    )
    assert [(p.name, p.bounds, p.extra, p.problem) for p in packages] == [
        ("mujoco", ">=4.0,<4.1", "", ""),
        ("no-such-thing", ">=1", "", "missing"),
        ("neither-this", ">=1", "lab", ""),
        ("numpy", ">=1000", "", "wanted >=1000"),
    ]


def test_the_doctor_tells(monkeypatch, capsys):
    """Ask: all is well here; not so with another release of MuJoCo, which is named."""
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert mujoco.__version__ in out and re.search("nothing (else )?is wrong", out)
    wanted = {p.name: p.bounds for p in find_packages(importlib.metadata.requires(DISTRIBUTION))}
    version = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "3.1.0" if name == "mujoco" else version(name)
    )
    assert main(["doctor"]) == 1
    assert f"wrong: mujoco 3.1.0: wanted {wanted['mujoco']}" in capsys.readouterr().out


@pytest.mark.parametrize(("version", "noted"), [("4.0.0", True), ("4.0.1", False)])
def test_the_doctor_names_the_defective_release(monkeypatch, capsys, version, noted):
    """Tell of the release whose sparse factorization is wrong, and what follows from it."""
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: version)
    monkeypatch.setattr(mujoco, "__version__", version)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert ("note: MuJoCo 4.0.0 can factorize sparse Hessians wrongly" in out) is noted
    assert ("stepped with dense Jacobians" in out) is noted


def test_the_doctor_names_extras_that_are_not_installed(monkeypatch, capsys):
    """Say in one line which extras are missing, and how one is installed; this is no problem."""
    version = importlib.metadata.version

    def without(name: str) -> str:
        if name in ("wandb", "pyarrow"):
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name) if name != "robot_descriptions" else "3.3"

    monkeypatch.setattr(importlib.metadata, "version", without)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("note: extras")]
    assert "data" in line and "wandb" in line and "train" not in line and "docs" not in line
    assert line.endswith("pip install 'manyworlds-rl[NAME]'")


def test_every_release_of_mujoco_4_is_allowed():
    """Allow 4.0.1 and 4.1, but no 5, of MuJoCo and of MuJoCo Warp."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    requirements = [*project["dependencies"], *project["optional-dependencies"]["gpu"]]
    bounds = {p.name: p.bounds for p in find_packages(requirements)}
    for name in ("mujoco", "mujoco-warp"):
        inside = [is_within(v, bounds[name]) for v in ("3.9", "4.0.0", "4.0.1", "4.1.0", "5.0")]
        assert inside == [False, True, True, True, False]


@pytest.fixture
def versions(monkeypatch) -> dict[str, str | None]:
    """Replace versions of distributions; None hides one."""
    changed: dict[str, str | None] = {}
    version = importlib.metadata.version

    def find(name: str) -> str:
        if name in changed and changed[name] is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return changed.get(name) or version(name)

    monkeypatch.setattr(importlib.metadata, "version", find)
    return changed


def test_the_doctor_finds_the_other_project_of_this_name(versions, capsys):
    """Tell of PyPI's `manyworlds`, and how to get rid of it."""
    versions["manyworlds"] = "0.5.0"
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "wrong: manyworlds 0.5.0, another project" in out
    assert "`pip uninstall manyworlds`" in out
    assert "`pip install --force-reinstall --no-deps manyworlds-rl`" in out


def test_the_doctor_finds_files_that_the_other_project_took_with_it(monkeypatch, capsys):
    """Tell how to restore the files that both projects have, once the other one is removed."""
    there = importlib.util.find_spec
    monkeypatch.setattr(
        "manyworlds.cli.doctor.find_spec",
        lambda name: None if name == "manyworlds.__main__" else there(name),
    )
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "wrong: files of manyworlds-rl are gone" in out
    assert "`pip install --force-reinstall --no-deps manyworlds-rl`" in out


def test_the_version_is_not_that_of_the_other_project(versions, monkeypatch, capsys):
    """Tell this project's version, whatever stands in the `__init__.py` of both."""
    import manyworlds

    monkeypatch.setattr(manyworlds, "__version__", "0.5.0")
    versions[DISTRIBUTION] = "1.2.3"
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "manyworlds 1.2.3\n"


def test_the_doctor_finds_sources_that_are_not_installed(versions, capsys):
    """Tell of sources that are imported, but not installed."""
    versions[DISTRIBUTION] = None
    assert main(["doctor"]) == 1
    assert "wrong: manyworlds-rl is not installed" in capsys.readouterr().out


def test_the_version_is_that_of_the_distribution(versions, monkeypatch):
    """Read the version where pip keeps it, at its first use; without it, say that."""
    import manyworlds

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert __version__ == tomllib.loads(text)["project"]["version"]
    assert tomllib.loads(text)["project"]["name"] == DISTRIBUTION
    versions[DISTRIBUTION] = None
    monkeypatch.delattr(manyworlds, "__version__")
    assert manyworlds.__version__ == "0+unknown"
    with pytest.raises(AttributeError, match="no attribute 'version'"):
        _ = manyworlds.version  # pyright: ignore[reportAttributeAccessIssue]
