"""`manyworlds doctor`: check the installed packages."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass

from manyworlds.cli.parsing import parse

_NOT_EXTRAS = ("dev",)
_REQUIREMENT = re.compile(
    r"""(?P<name>[\w.-]+) \s* (?P<bounds>[^;\[]*) (?:;\s*extra\s*==\s*["'](?P<extra>\w+)["'])?$""",
    re.VERBOSE,
)
_BOUND = re.compile(r"\s*(>=|<)\s*([\d.]+)\s*")


@dataclass(kw_only=True)
class DoctorOptions:
    """List the installed packages, and check that their versions fit this release.

    The exit code is 0 if all fit, else 1. An extra that is not installed is no problem.
    """


@dataclass(frozen=True)
class Package:
    """Package that manyworlds depends on."""

    name: str
    bounds: str
    """Versions that fit, such as `>=4.0,<5`."""
    extra: str
    """Extra that needs it; empty for the core."""
    installed: str
    """Installed version; empty if it is not installed."""

    @property
    def problem(self) -> str:
        """Problem with the package; empty if there is none."""
        if not self.installed:
            return "" if self.extra else "missing"
        return "" if is_within(self.installed, self.bounds) else f"wanted {self.bounds}"


def main(argv: list[str]) -> int:
    """Run `manyworlds doctor`."""
    parse(DoctorOptions, argv, "doctor")
    from manyworlds import __version__
    from manyworlds.utils.newton import newton_defect
    from manyworlds.utils.table import render_table

    packages = list(find_packages(importlib.metadata.requires("manyworlds") or []))
    rows = [[p.name, p.installed or "-", p.bounds, p.extra or "all", p.problem] for p in packages]
    columns = ("package", "installed", "wanted", "for", "problem")
    print(f"manyworlds {__version__}, Python {platform.python_version()}, {platform.platform()}")
    print(render_table("", columns, rows))
    problems = [f"{p.name} {p.installed}: {p.problem}" for p in packages if p.problem]
    problems += _library_problem()
    if defect := newton_defect():
        print(f"note: {defect}")
    print("\n".join(f"wrong: {problem}" for problem in problems) or "nothing is wrong")
    return int(bool(problems))


def find_packages(requirements: list[str]) -> Iterator[Package]:
    """Look up the packages of a distribution's requirements, except development tools."""
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        if found is None or found["extra"] in _NOT_EXTRAS:
            continue
        try:
            installed = importlib.metadata.version(found["name"])
        except importlib.metadata.PackageNotFoundError:
            installed = ""
        bounds = ",".join(sorted(found["bounds"].strip().split(","), reverse=True))
        yield Package(found["name"], bounds, found["extra"] or "", installed)


def is_within(version: str, bounds: str) -> bool:
    """Return whether a version such as `4.0.1` is in `>=4.0,<5`, without a suffix of letters."""
    number = _numbers(version)
    tests = {">=": lambda bound: number >= bound, "<": lambda bound: number < bound}
    return all(tests[sign](_numbers(bound)) for sign, bound in _BOUND.findall(bounds))


def _numbers(version: str) -> list[int]:
    found = re.match(r"[\d.]+", version)
    numbers = [int(part) for part in (found[0] if found else "0").split(".") if part]
    return numbers + [0] * (4 - len(numbers))


def _library_problem() -> list[str]:
    """Return a problem if MuJoCo's package and the library that it loads differ in version."""
    import mujoco

    if mujoco.__version__ == mujoco.mj_versionString():
        return []
    return [f"mujoco {mujoco.__version__} loads the library {mujoco.mj_versionString()}"]
