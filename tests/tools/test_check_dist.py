"""The check of built distributions, on small ones that are right, and wrong in one way each."""

from __future__ import annotations

import importlib.util
import io
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tools import check_dist

ROOT = Path(__file__).parents[2]
PROJECT = {"name": "manyworlds-rl", "version": "1.2.3"}
INFO = "manyworlds_rl-1.2.3.dist-info"
METADATA = "Metadata-Version: 2.4\nName: manyworlds-rl\nVersion: 1.2.3\n"
WHEEL = {
    "manyworlds/__init__.py": "",
    "manyworlds/py.typed": "",
    f"{INFO}/METADATA": f"{METADATA}\n[a](https://b.org/c) [d](#e)",
    f"{INFO}/entry_points.txt": "[console_scripts]\nmanyworlds = manyworlds.cli.main:main\n",
    f"{INFO}/licenses/LICENSE": "",
}
SDIST = ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"]


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Path:
    """A clone with a package of two files."""
    package = tmp_path / "src" / "manyworlds"
    (package / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "py.typed", "__pycache__/a.pyc"):
        (package / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def wheel_problems(clone: Path, **changes: str | None) -> list[str]:
    """Return the problems of a wheel with changed contents; None leaves a file out."""
    path = clone / "manyworlds_rl-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**WHEEL, **changes}.items():
            if text is not None:
                archive.writestr(name, text)
    return list(check_dist.check_wheel(path, PROJECT))


def test_a_good_wheel_has_no_problems(clone):
    """Accept a wheel with all files of the package, and nothing else."""
    assert wheel_problems(clone) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"manyworlds/py.typed": None}, "manyworlds/py.typed is missing"),
        ({"manyworlds/old.py": ""}, "manyworlds/old.py is no source"),
        ({"tests/test_a.py": ""}, "tests/test_a.py belongs to the repository alone"),
        ({"manyworlds/film.GIF": ""}, "manyworlds/film.GIF belongs to the repository alone"),
        ({"other/a.py": ""}, "other/a.py is outside of the package"),
        ({f"{INFO}/licenses/LICENSE": None}, "has no LICENSE"),
        ({f"{INFO}/entry_points.txt": ""}, "has no command"),
        ({f"{INFO}/METADATA": "Name: manyworlds\nVersion: 1.2.3\n"}, "is manyworlds 1.2.3"),
        ({f"{INFO}/METADATA": f"{METADATA}\n[a](docs/a.md)"}, "link docs/a.md leads nowhere"),
        ({f"{INFO}/METADATA": f"{METADATA}\n![a](a.gif)"}, "link a.gif leads nowhere"),
        ({"manyworlds/py.typed": "x" * check_dist.MAX_BYTES}, "at most 2,000,000"),
    ],
)
def test_each_problem_of_a_wheel_is_found(clone, changes, problem):
    """Find what is missing, too much, or too large."""
    found = wheel_problems(clone, **changes)
    assert any(problem in text for text in found), found


@pytest.mark.parametrize(
    ("left_out", "added", "problem"),
    [
        ("", "", ""),
        ("LICENSE", "", "LICENSE is missing"),
        ("src/manyworlds/py.typed", "", "src/manyworlds/py.typed is missing"),
        ("", "docs/media/a.png", "docs/media/a.png belongs to the repository alone"),
    ],
)
def test_each_problem_of_an_sdist_is_found(clone, left_out, added, problem):
    """Find what is missing or too much."""
    path = clone / "manyworlds_rl-1.2.3.tar.gz"
    names = {*SDIST, "src/manyworlds/__init__.py", "src/manyworlds/py.typed", added} - {
        left_out,
        "",
    }
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"manyworlds_rl-1.2.3/{name}"), io.BytesIO())
    found = list(check_dist.check_sdist(path))
    assert [problem in text for text in found] == [True] * bool(problem), found


def test_distributions_of_one_version_are_found(tmp_path):
    """Find the sdist and the wheel; name what is there in their place."""
    names = ("manyworlds_rl-1.2.3.tar.gz", "manyworlds_rl-1.2.3-py3-none-any.whl")
    for name in names:
        (tmp_path / name).touch()
    assert check_dist.find_dists(tmp_path, "1.2.3") == tuple(tmp_path / name for name in names)
    with pytest.raises(SystemExit, match=r"1\.2\.4.*make dist"):
        check_dist.find_dists(tmp_path, "1.2.4")


def test_every_extra_has_a_trial():
    """Try the core and each extra that users install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - set(check_dist._UNINSTALLED)
    assert set(check_dist.TRIALS) == {check_dist.CORE, *extras}
    known = [*check_dist.TRIALS]
    assert check_dist.parse_extras("all", known) == known
    assert check_dist.parse_extras("core,lab", known) == ["core", "lab"]
    with pytest.raises(SystemExit, match="no extra \\['labb'\\]"):
        check_dist.parse_extras("labb", known)


def test_the_workflow_tries_every_extra():
    """Install each extra on Linux, and the core and the training on all platforms."""
    import yaml

    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())
    matrix = workflow["jobs"]["smoke"]["strategy"]["matrix"]
    (everywhere,) = matrix["extras"]
    linux = [job["extras"] for job in matrix["include"] if job["os"] == matrix["os"][0]]
    tried = ",".join((everywhere, *linux)).split(",")
    assert sorted(tried) == sorted(check_dist.TRIALS)
    assert {"core", "train"} < set(everywhere.split(","))
    for job in matrix["include"]:
        assert set(job["extras"].split(",")) < set(check_dist.TRIALS)


def setup_module_of_the_project():
    """Return setup.py as a module."""
    spec = importlib.util.spec_from_file_location("manyworlds_setup", ROOT / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_description_leads_into_the_repository():
    """Let links lead to the files of the release; without an address, keep their texts."""
    describe = setup_module_of_the_project().describe
    text = "![film](docs/a.gif) see [B](docs/b.md#c), [D](https://d.org) and [E](#e)"
    assert describe(text, "https://host.org/x/manyworlds/", "1.2.3") == (
        "![film](https://host.org/x/manyworlds/raw/v1.2.3/docs/a.gif) see "
        "[B](https://host.org/x/manyworlds/blob/v1.2.3/docs/b.md#c), [D](https://d.org) and [E](#e)"
    )
    assert describe(text, None, "1.2.3") == " see B, [D](https://d.org) and [E](#e)"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    relative = check_dist._RELATIVE_LINK.findall(readme)
    for address in (None, "https://host.org/x/manyworlds"):
        described = describe(readme, address, "1.2.3")
        assert check_dist._RELATIVE_LINK.findall(described) == []
        assert described.count("/v1.2.3/") == (len(relative) if address else 0)
    assert len(relative) > 50


def test_the_documentation_names_wheels_of_this_version():
    """Keep the names of wheels in the documentation those that are built."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert set(re.findall(r"manyworlds_rl-([\d.]+)-py3", page)) == {version}


def test_the_citation_has_the_version():
    """Keep the version of the citation that of the package."""
    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"] and citation["cff-version"] == "1.2.0"
    assert citation["license"] == project["license"] and citation["authors"] and citation["title"]
    assert set(citation) >= {"message", "title", "authors"}  # the fields that CFF requires
