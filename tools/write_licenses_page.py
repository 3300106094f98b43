"""Page of the licenses of dependencies and robots, from what the packages say of themselves.

Run from the project's root, in an environment with all extras: python tools/write_licenses_page.py
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from manyworlds.share.vendor import PACKAGES

PAGE = Path("docs/licenses.md")
_UNLISTED = ("dev", "docs")
_CORE = "all"
_OURS = "manyworlds-rl"
# What metadata say in words of their own, or leave out.
_NAMED = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_NOTES = {
    "imageio-ffmpeg": "its wheels have a program of FFmpeg, which is under the GPL",
    "torch": "builds with CUDA install packages of NVIDIA, under NVIDIA's own license",
    "warp-lang": "its wheels have libraries of NVIDIA's CUDA toolkit, under NVIDIA's own license",
}

_HEAD = """# Licenses

*Written by `python tools/write_licenses_page.py` from the packages' own metadata.*

manyworlds is under the [Apache License 2.0](../LICENSE). Its wheel has no code and no models of
others. These notes are no legal advice: the packages' own license files count.

## Packages that are installed with it

| package | for | license | note |
|---|---|---|---|
"""
_INDIRECT = """
## Packages that those need

As of an installation with all extras on Linux, with PyTorch's build for the CPU.

| license | packages |
|---|---|
"""
_PAGES = """
## Programs in shared pages

`manyworlds share` copies these packages of npm into its folders, with their licenses; the wheel
does not contain them.

| package | version | license | source |
|---|---|---|---|
"""
_ROBOTS = """
## Robots

The robots of this package are its own models, with dimensions, masses and motor figures that their
makers published:

| robot | figures of | license of the source |
|---|---|---|
| quadruped | Unitree's Go1: `unitree_ros/robots/go1_description` | BSD-3-Clause |
| humanoid | Unitree's G1: `unitree_ros/robots/g1_description` | BSD-3-Clause |
| arm | I2RT's YAM: `i2rt-robotics/i2rt` | MIT |

Models of others are not part of the package. Those of `unitree_go1`, `unitree_g1` and `i2rt_yam`
come from the folder that `MANYWORLDS_ROBOTS` names, or from `robot_descriptions`, which downloads
them from MuJoCo Menagerie. Each model of MuJoCo Menagerie has a license of its own:

| license | models of MuJoCo Menagerie |
|---|---|
"""


def license_of(name: str) -> str:
    """Return the license of an installed package, as an SPDX expression where it gives one.

    Raises:
        PackageNotFoundError: the package is not installed.
        ValueError: its metadata do not name a license.
    """
    metadata = importlib.metadata.metadata(name)
    if expression := metadata["License-Expression"]:
        return expression
    classifiers = [c.split(" :: ") for c in metadata.get_all("Classifier") or ()]
    named = [c[-1] for c in classifiers if c[0] == "License" and c[-1] != "OSI Approved"]
    text = (metadata["License"] or "").strip()
    text = "" if "\n" in text else text  # the whole license, not its name
    # "BSD License" stands for several; the text may say which.
    found = [name for name in named if name != "BSD License" or not text] or [
        text.removeprefix("The ").removesuffix(" (MIT)")
    ]
    if not found[0]:
        raise ValueError(f"The metadata of '{name}' name no license: look it up, and add it here.")
    return " AND ".join(dict.fromkeys(_NAMED.get(license, license) for license in found))


def direct_packages(project: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the extras that need each package that `pyproject.toml` names."""
    extras: Mapping[str, list[str]] = project["optional-dependencies"]  # pyright: ignore[reportAssignmentType]
    required: list[str] = project["dependencies"]  # pyright: ignore[reportAssignmentType]
    found: dict[str, list[str]] = {}
    for extra, lines in {_CORE: required, **extras}.items():
        for line in lines:
            name = Requirement(line).name
            if extra not in _UNLISTED and name != _OURS:
                found.setdefault(name, []).append(extra)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def indirect_packages(direct: Iterable[str]) -> list[str]:
    """Return the installed packages that these need, directly or not."""
    seen: set[str] = {canonicalize_name(name) for name in direct}
    first, rest = set(seen), [(name, "") for name in seen]
    while rest:
        name, extra = rest.pop()
        for line in importlib.metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is not None and not needed.marker.evaluate({"extra": extra}):
                continue
            key = canonicalize_name(needed.name)
            try:
                importlib.metadata.version(key)
            except importlib.metadata.PackageNotFoundError:
                continue
            if key not in seen:
                seen.add(key)
                rest += [(key, extra) for extra in ("", *needed.extras)]
    return sorted(seen - first)


def render_page(project: Mapping[str, object], robots: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        project: the table `project` of `pyproject.toml`.
        robots: license of each model of MuJoCo Menagerie.
    """
    direct = direct_packages(project)
    rows = [
        f"| `{name}` | {', '.join(extras)} | {license_of(name)} | {_NOTES.get(name, '')} |"
        for name, extras in direct.items()
    ]
    indirect = {name: license_of(name) for name in indirect_packages(direct)}
    parts = [_HEAD, *_lines(rows), _INDIRECT, *_lines(_by_license(indirect))]
    pages = [
        f"| {each.name} | {each.version} | {each.license} | {each.source} |" for each in PACKAGES
    ]
    parts += [_PAGES, *_lines(pages)]
    return "".join([*parts, _ROBOTS, *_lines(_by_license(robots))])


def _by_license(licenses: Mapping[str, str]) -> Iterator[str]:
    """Yield a row of a table for each license."""
    for license in sorted(set(licenses.values()), key=str.lower):
        names = ", ".join(f"`{name}`" for name in sorted(licenses) if licenses[name] == license)
        yield f"| {license} | {names} |"


def _lines(rows: Iterable[str]) -> Iterator[str]:
    return (f"{row}\n" for row in rows)


def read_page(text: str) -> dict[str, str]:
    """Return the licenses of all packages and models that the page names."""
    found = {
        name: kind for name, kind in re.findall(r"^\| `([^`]+)` \| [^|]+ \| ([^|]+) \|", text, re.M)
    }
    for kind, names in re.findall(r"^\| ([^`|]+) \| (`[^|]+`) \|$", text, re.M):
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", names), kind)
    return found


def main() -> int:
    """Write the page."""
    import mujoco_menagerie

    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    robots = {robot.name: robot.license for robot in mujoco_menagerie.robots()}
    PAGE.write_text(render_page(project, robots), encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
