"""`manyworlds doctor`: say which of the packages that manyworlds needs are there, and fit."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass

from manyworlds.cli.common import UsageError

_USAGE = """usage: manyworlds doctor

Say which packages are installed, and whether they are those that this release was made for. The
exit code is 0 if nothing is wrong, else 1; an extra that is not installed is not wrong."""

_NOT_EXTRAS = ("dev",)
_REQUIREMENT = re.compile(
    r"""(?P<name>[\w.-]+) \s* (?P<bounds>[^;\[]*) (?:;\s*extra\s*==\s*["'](?P<extra>\w+)["'])?$""",
    re.VERBOSE,
)
_BOUND = re.compile(r"\s*(>=|<)\s*([\d.]+)\s*")


@dataclass(frozen=True)
class Package:
    """A package that manyworlds needs."""

    name: str
    bounds: str
    """Such as `>=4.0,<5`."""
    extra: str
    """Which extra needs it; empty for all."""
    installed: str
    """Its version; empty if it is not there."""

    @property
    def problem(self) -> str:
        """What is wrong with it; empty if nothing is."""
        if not self.installed:
            return "" if self.extra else "missing"
        return "" if is_within(self.installed, self.bounds) else f"wanted {self.bounds}"


def main(argv: list[str]) -> int:
    """Run `manyworlds doctor`."""
    if any(arg in ("-h", "--help") for arg in argv):
        print(_USAGE)
        return 0
    if argv:
        raise UsageError(f"`manyworlds doctor` takes no arguments, got '{argv[0]}'.")
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
    """Look for the packages of a distribution's requirements, but for developers' tools."""
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
    """Whether a version such as `4.0.1` lies in `>=4.0,<5`; letters behind it do not count."""
    number = _numbers(version)
    tests = {">=": lambda bound: number >= bound, "<": lambda bound: number < bound}
    return all(tests[sign](_numbers(bound)) for sign, bound in _BOUND.findall(bounds))


def _numbers(version: str) -> list[int]:
    found = re.match(r"[\d.]+", version)
    numbers = [int(part) for part in (found[0] if found else "0").split(".") if part]
    return numbers + [0] * (4 - len(numbers))


def _library_problem() -> list[str]:
    """MuJoCo's package and the library that it loads may be of different releases."""
    import mujoco

    if mujoco.__version__ == mujoco.mj_versionString():
        return []
    return [f"mujoco {mujoco.__version__} loads the library {mujoco.mj_versionString()}"]
