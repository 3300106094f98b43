"""The page of licenses."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from tools.write_licenses_page import direct_packages, license_of, read_page

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEXT = (ROOT / "docs" / "licenses.md").read_text()
PAGE = read_page(TEXT)


@pytest.mark.parametrize("name", direct_packages(PROJECT))
def test_each_dependency_has_its_license(name):
    """Compare the page with the metadata of each package that this project names."""
    assert PAGE.get(name), "run python tools/write_licenses_page.py"
    try:
        found = license_of(name)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert PAGE[name] == found


def test_the_page_has_each_dependency_of_each_extra():
    """Compare the packages and what they are for with `pyproject.toml`, in its order."""
    table = TEXT.partition("## Packages that are installed")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", table, re.M)
    expected = [(name, ", ".join(extras)) for name, extras in direct_packages(PROJECT).items()]
    assert rows == expected, "run python tools/write_licenses_page.py"


def test_each_robot_has_its_license():
    """Compare the page with the registry of MuJoCo Menagerie."""
    menagerie = pytest.importorskip("mujoco_menagerie")
    known = {robot.name: robot.license for robot in menagerie.robots()}
    named = {name: PAGE[name] for name in known if name in PAGE}
    assert len(named) > 50 and named == {name: known[name] for name in named}


@pytest.mark.parametrize(
    ("metadata", "license"),
    [
        ("License-Expression: MIT-CMU", "MIT-CMU"),
        ("License: MIT", "MIT"),
        (
            "License: The MIT License (MIT)\nClassifier: License :: OSI Approved :: X License",
            "X License",
        ),
        ("Classifier: License :: OSI Approved :: ISC License (ISCL)", "ISC"),
        ("License: other\nLicense-Expression: Zlib", "Zlib"),
    ],
)
def test_licenses_are_read_from_metadata(tmp_path, monkeypatch, metadata, license):
    """Take the SPDX expression, else the classifiers, else the text."""
    info = tmp_path / "some_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\n{metadata}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert license_of("some-package") == license


def test_a_package_without_a_license_is_an_error(tmp_path, monkeypatch):
    """Do not leave a license out."""
    info = tmp_path / "some_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="'some-package' name no license"):
        license_of("some-package")
